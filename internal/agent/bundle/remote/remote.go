// Package remote installs bundles of others: Git repositories with agents, roles, macros, tools and
// MCP servers.
//
// A bundle is not trusted. It is read from a clone that has no working tree, and one with a path,
// a name or a size that could do harm is refused as a whole. What it brings that can run is shown,
// and installed only if the user consents. A file of the user's own is never lost without a
// decision: that is a conflict.
//
// A [Record] keeps where the files came from and what they were, so that an update can tell the
// user's changes from those of the bundle, and a removal takes away what is the bundle's only.
// Files appear whole, and the record is written before them: an installation that was killed is
// finished by the next one.
package remote

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/bundle"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/file/repository"
	"loki/internal/base/text"
)

// Dirs says where everything is installed.
type Dirs struct {
	Agents, Roles, Macros, Tools, Skills string
	Servers                              string // the file mcp.json
	Records                              string // of installed bundles
	Work                                 string // what relative paths of bundles are relative to
}

// Secrets are the ones that settings refer to as {{NAME}}.
type Secrets interface {
	// Missing returns the names in text that are unknown, in order and once.
	Missing(text string) ([]string, error)
	// Add asks for a secret and stores it.
	Add(ctx context.Context, asker ask.Asker, name string) error
}

// Installer installs, updates and removes bundles. Several processes may do so at once: they wait
// for each other.
type Installer struct {
	Dirs    Dirs
	Git     repository.Git
	Asker   ask.Asker         // asks for consent and about conflicts; required
	Show    func(text string) // gets what the user has to know before the end, in lines; required
	Secrets Secrets           // required
	// Ships reports whether the program itself has an agent, a role or a tool of a name, which a file of a
	// bundle then takes the place of.
	Ships func(c Category, name string) bool
	Now   func() time.Time                 // nil means time.Now
	Busy  func(label string) (done func()) // shows that something takes its time; nil shows nothing

	Yes    bool // the user consents to what can run
	Force  bool // the bundle's is taken where there is a conflict
	DryRun bool // nothing is asked or written
}

// Report is what was done.
type Report struct {
	Bundle string `json:"bundle"`
	URL    string `json:"url"`
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`

	DryRun   bool     `json:"dry_run,omitempty"`
	Declined bool     `json:"declined,omitempty"` // the user does not want it: nothing was changed
	Gone     bool     `json:"gone,omitempty"`     // the bundle was removed
	Items    []Item   `json:"items"`
	Notes    []string `json:"notes,omitempty"`
	Missing  []string `json:"missing_secrets,omitempty"` // that servers refer to
	Added    []string `json:"added_secrets,omitempty"`

	servers string // the file
	shown   int    // how many notes the user has seen
}

// Install installs the bundle at an address with an optional #REF. Only says which categories; none
// means all of them. The error is a [*fault.Error].
func (i *Installer) Install(ctx context.Context, source string, only ...Category) (Report, error) {
	address, ref, err := splitRef(strings.TrimSpace(source))
	if err != nil {
		return Report{}, err
	}
	from, err := parseAddress(address, i.Dirs.Work)
	if err != nil {
		return Report{}, err
	}
	c, err := i.fetch(ctx, from, ref, only)
	if err != nil {
		return Report{}, err
	}
	return i.withLock(ctx, func() (Report, error) {
		r, err := i.recordOf(from.String())
		if err != nil {
			return Report{}, err
		}
		before := r.Only
		switch {
		case r.Commit == "" || len(only) == 0:
			r.Only = only
		case len(before) > 0:
			r.Only = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before, only))))
		}
		r.Ref = ref
		return i.bring(ctx, r, c, only, false)
	})
}

// Update brings an installed bundle to the present state of its repository.
func (i *Installer) Update(ctx context.Context, name string) (Report, error) {
	r, err := i.load(name)
	if err != nil {
		return Report{}, err
	}
	from, err := repository.ParseAddress(r.URL)
	if err != nil {
		return Report{}, fault.Wrap(fault.Config, err, "the record of bundle %s", name)
	}
	c, err := i.fetch(ctx, from, r.Ref, r.Only)
	if err != nil {
		return Report{}, err
	}
	return i.withLock(ctx, func() (Report, error) {
		now, err := i.load(name) // it may have been removed meanwhile
		if err != nil {
			return Report{}, err
		}
		return i.bring(ctx, now, c, now.Only, true)
	})
}

// Remove removes what a bundle has installed and the user has not changed.
func (i *Installer) Remove(ctx context.Context, name string) (Report, error) {
	return i.withLock(ctx, func() (Report, error) {
		r, err := i.load(name)
		if err != nil {
			return Report{}, err
		}
		return i.change(ctx, r, content{}, nil, true)
	})
}

// withLock does the work while no other process installs anything.
func (i *Installer) withLock(ctx context.Context, work func() (Report, error)) (Report, error) {
	if i.DryRun {
		return work()
	}
	lock := filepath.Join(i.Dirs.Records, ".lock")
	soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	unlock, err := atomicfile.Lock(soon, lock)
	cancel()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		i.Show("Waiting for another process that installs a bundle.")
		unlock, err = atomicfile.Lock(ctx, lock)
	}
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	return work()
}

// bring installs or updates the content.
func (i *Installer) bring(ctx context.Context, r Record, c content, only []Category, update bool) (Report, error) {
	if len(c.files) == 0 && c.servers == nil && r.Commit == "" {
		c.notes = append(c.notes, "nothing to install is in it: a bundle has agents/, roles/, macros/, skills/, functions/tools/ or functions/mcp.json in its top directory")
		return Report{URL: r.URL, Ref: r.Ref, Commit: c.commit, DryRun: i.DryRun, Notes: c.notes}, nil
	}
	r.Commit = c.commit
	return i.change(ctx, r, c, only, update)
}

// change makes what is there as the content has it, in the categories of only, none meaning all. An
// update or a removal leaves the user's changes.
func (i *Installer) change(ctx context.Context, r Record, c content, only []Category, update bool) (Report, error) {
	p, err := i.plan(r, c, only, update)
	if err != nil {
		return Report{}, err
	}
	p.report = Report{Bundle: r.Name, URL: r.URL, Ref: r.Ref, Commit: c.commit, DryRun: i.DryRun, Gone: c.commit == "", Notes: p.notes, servers: i.Dirs.Servers, shown: len(p.notes)}
	if c.commit != "" {
		i.Show(p.heading(r))
	}
	switch yes, err := i.consent(ctx, p); {
	case err != nil:
		return Report{}, err
	case i.DryRun:
		p.list()
		return p.report, nil
	case !yes:
		p.report.Declined = true
		return p.report, nil
	}
	if err := i.settle(ctx, p); err != nil {
		return Report{}, err
	}
	if err := i.apply(ctx, r, p); err != nil {
		return Report{}, err
	}
	p.list()
	return p.report, i.addSecrets(ctx, p)
}

// plan is what is going to be done.
type plan struct {
	files, mcp []item
	rest       Record  // the entries of the record that it does not concern
	local      servers // the user's
	notes      []string
	report     Report
}

// plan compares what is there with the content.
func (i *Installer) plan(r Record, c content, only []Category, update bool) (*plan, error) {
	p := &plan{notes: c.notes}
	concerned := func(category Category) bool { return len(only) == 0 || slices.Contains(only, category) }
	var known []Entry
	for _, e := range r.Files {
		if category, _ := categoryOf(e.Path); concerned(category) {
			known = append(known, e)
		} else {
			p.rest.Files = append(p.rest.Files, e)
		}
	}
	var err error
	if p.files, err = i.planFiles(c.files, known, update); err != nil {
		return nil, err
	}
	if !concerned(MCPConfig) {
		p.rest.Servers = r.Servers
		return p, nil
	}
	if c.servers == nil && len(r.Servers) == 0 {
		return p, nil // a damaged file of the user's is not the bundle's business
	}
	if p.local, err = readServers(i.Dirs.Servers); err != nil {
		return nil, err
	}
	bundled, notes, err := parseBundled(c.servers)
	if err != nil {
		return nil, err
	}
	p.notes = append(p.notes, notes...)
	p.mcp = planServers(p.local, bundled, r.Servers, update)
	return p, nil
}

// list puts the items into the report.
func (p *plan) list() {
	p.report.Items = []Item{}
	for _, t := range slices.Concat(p.files, p.mcp) {
		if t.State != Left || t.ours != "" {
			p.report.Items = append(p.report.Items, t.Item)
		}
	}
}

// apply writes what was decided. The record comes first and last.
func (i *Installer) apply(ctx context.Context, r Record, p *plan) error {
	now := i.now()
	if r.Installed.IsZero() {
		r.Installed = now
	}
	r.Updated, r.Pending = now, true
	r.Files, r.Servers = slices.Clone(p.rest.Files), slices.Clone(p.rest.Servers)
	done := r
	collect := func(items []item, before, after *[]Entry) {
		for n := range items {
			if e, ok := items[n].pendingEntry(); ok {
				*before = append(*before, e)
			}
			if e, ok := items[n].entry(); ok {
				*after = append(*after, e)
			}
		}
	}
	done.Files, done.Servers, done.Pending = slices.Clone(r.Files), slices.Clone(r.Servers), false
	collect(p.files, &r.Files, &done.Files)
	collect(p.mcp, &r.Servers, &done.Servers)
	if err := i.save(r); err != nil {
		return err
	}
	if err := i.write(ctx, p); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "bundle %s is incomplete", r.Name).WithHint("the same command finishes it")
	}
	if p.report.Gone {
		return os.Remove(i.recordFile(r.Name))
	}
	return i.save(done)
}

// write writes the files, mcp.json, and removes what the bundle has no longer.
func (i *Installer) write(ctx context.Context, p *plan) error {
	for _, t := range p.files {
		switch target := i.Dirs.target(t.Path); {
		case ctx.Err() != nil:
			return ctx.Err()
		case t.State.writes():
			if err := bundle.Replace(target, t.content); err != nil {
				return err
			}
		case t.State == Removed:
			if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removeEmpty(filepath.Dir(target), i.Dirs.root(t.Path))
		}
	}
	if merged, changed := merge(p.local, p.mcp); changed && ctx.Err() == nil {
		return merged.write(i.Dirs.Servers)
	}
	return ctx.Err()
}

// removeEmpty removes dir and those above it, up to root, which stays, as far as they are empty.
func removeEmpty(dir, root string) {
	for dir != root && len(dir) > len(root) && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

func (i *Installer) now() time.Time {
	now := time.Now
	if i.Now != nil {
		now = i.Now
	}
	return now().UTC().Truncate(time.Second)
}

// addSecrets offers to add the secrets that the servers refer to and that are missing. That one cannot be
// added is a note: the bundle is installed.
func (i *Installer) addSecrets(ctx context.Context, p *plan) error {
	if !slices.ContainsFunc(p.mcp, func(t item) bool { return t.State.writes() }) {
		return nil
	}
	merged, _ := merge(p.local, p.mcp)
	missing, err := i.Secrets.Missing(merged.text())
	if err != nil {
		p.report.Notes = append(p.report.Notes, "the secrets of the servers were not looked for: "+err.Error())
		return nil
	}
	for _, name := range missing {
		yes, no := "add it now", "later"
		answer, err := i.Asker.Ask(ctx, ask.Question{
			ID: "bundle-secret", Kind: ask.Select, Options: []string{no, yes}, Default: no, HasDefault: true,
			Text: "The servers refer to the secret " + text.Name(name) + ", which is not in the vault.",
		})
		if err == nil && answer == yes {
			if err = i.Secrets.Add(ctx, i.Asker, name); err == nil {
				p.report.Added = append(p.report.Added, name)
				continue
			}
			p.report.Notes = append(p.report.Notes, "secret "+text.Name(name)+" was not added: "+err.Error())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.report.Missing = append(p.report.Missing, name)
	}
	return nil
}
