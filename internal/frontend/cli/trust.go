package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/cases"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

// trust shows what the agent in the directory of --trust may do, or each agent in it, and records that the user trusts it. Test
// cases beside the agents are trusted with all of the directory.
func (c *command) trust(ctx context.Context) error {
	dir, err := filepath.Abs(c.opts.value)
	if err != nil {
		return err
	}
	if !isDirectory(dir) {
		return fault.New(fault.NotFound, "%s is not a directory", c.opts.value).WithHint("name the directory of an agent, or one that holds agents")
	}
	instructs, err := c.trustFiles(ctx, dir)
	if err != nil {
		return err
	}
	dirs, servers := []string{dir}, c.app.ServersIn(dir)
	if _, err := c.app.Agents.File(c.app.Agents.At(dir, dir)); fault.CodeOf(err) == fault.NotFound {
		team := c.app.Agents.For(agent.Ref{Beside: dir}).DirsBeside()
		dirs = slices.Sorted(maps.Values(team))
		below := slices.DeleteFunc(c.agentsBelow(dir), func(name string) bool { return slices.Contains(dirs, filepath.Join(dir, name)) })
		switch more := text.Visible(strings.Join(below, ", ")); {
		case len(dirs) == 0 && !hasCases(dir) && instructs:
		case len(dirs) == 0 && !hasCases(dir) && len(below) == 0 && len(servers) == 0:
			return fault.New(fault.NotFound, "%s has no agent, so nothing is trusted", c.opts.value).WithHint("name the directory of an agent, or one that holds agents")
		case len(dirs) == 0 && !hasCases(dir) && len(servers) == 0:
			return fault.New(fault.NotFound, "%s has no agent, so nothing is trusted; agents further below: %s", c.opts.value, more).
				WithHint("trust one of them: loki --trust %s", text.Word(filepath.Join(c.opts.value, below[0])))
		case len(below) > 0:
			c.warn("agents further below are not trusted by this: " + more)
		}
	}
	for _, dir := range dirs {
		of, findings, err := c.app.Agents.Load(c.app.Agents.At(dir, dir))
		if err != nil {
			return err
		}
		for _, f := range findings {
			c.warnFinding(of.Definition.File, f)
		}
		if err := c.trustDir(ctx, c.app.Trust.Of(ctx, of), of.Name); err != nil {
			return err
		}
	}
	if !slices.Contains(dirs, dir) && (hasCases(dir) || len(servers) > 0) { // cases choose the environment of all
		t := c.app.Trust.OfDir(ctx, dir)
		t.Server = strings.Join(servers, ", ")
		return c.trustDir(ctx, t, filepath.Base(dir))
	}
	return nil
}

// agentsBelow returns the directories with agents below one, without those in the directories of agents: relative, and the first of them.
func (c *command) agentsBelow(dir string) (below []string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir() || path == dir:
			return nil
		case strings.HasPrefix(d.Name(), ".") || strings.Count(path[len(dir):], string(filepath.Separator)) > maxBelow || len(below) == mostBelow:
			return filepath.SkipDir
		}
		if _, err := c.app.Agents.File(c.app.Agents.At(path, path)); fault.CodeOf(err) != fault.NotFound {
			below = append(below, path[len(dir)+1:])
			return filepath.SkipDir
		}
		return nil
	})
	return below
}

// maxBelow is how many levels below a directory agents are looked for, and mostBelow how many are named.
const maxBelow, mostBelow = 5, 10

// hasCases reports whether there are test cases in a directory, not in those below it.
func hasCases(dir string) bool {
	files, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), cases.Suffix) })
}

// trustDir records that the user trusts a directory, after it has shown what that means. Name is what it is called.
func (c *command) trustDir(ctx context.Context, t trust.Status, name string) error {
	where := text.Visible(cmp.Or(t.Content.Dir, name))
	switch {
	case t.Own:
		return c.say("%s is yours: it needs no trust", text.Visible(name))
	case t.Err != nil:
		return fault.Wrap(fault.Config, t.Err, "%s cannot be trusted", text.Visible(name)).
			WithHint("put the agent into a directory of its own, or name a directory that is yours in trusted_dirs of %s", c.app.Config.File)
	case t.Tests:
		return c.say("%s is trusted already", where)
	}
	var b strings.Builder
	for _, f := range slices.Concat(t.Content.Files, t.Content.Tests) {
		fmt.Fprintf(&b, "%-11s %s\n", f.Mode, text.Visible(f.Name))
	}
	if c.opts.yes {
		fmt.Fprintf(&b, "\n%s\n\n", strings.TrimSuffix(t.Question(name), "\n\n"+trust.QuestionEnd))
	}
	if _, err := io.WriteString(c.forUser(), c.hide(b.String())); err != nil {
		return err
	}
	if !c.opts.yes {
		if err := c.askTrust(ctx, t, name); err != nil {
			return err
		}
	}
	if err := c.app.Trust.Add(ctx, t.Content); err != nil {
		return err
	}
	return c.say("trusted: %s, %s", where, text.Count(len(t.Content.Files)+len(t.Content.Tests), "file"))
}

// askTrust returns an error unless the user consents at the terminal.
func (c *command) askTrust(ctx context.Context, t trust.Status, name string) error {
	yes, err := t.Ask(ctx, c.anyTerminal(), name, "no")
	return trustRefusal(yes, err, text.Visible(name)+" is", "its files")
}

// trustRefusal returns the error of a user who was asked about trust and did not consent, or could not be asked. Subject is what it is
// about, with its verb.
func trustRefusal(yes bool, err error, subject, files string) error {
	switch {
	case errors.Is(err, ask.ErrUnavailable):
		return fault.New(fault.Usage, "no user can be asked whether %s trusted", subject).WithHint("look at %s, and consent with --yes", files)
	case err == nil && !yes:
		return fault.New(fault.Canceled, "%s not trusted; nothing was changed", subject)
	}
	return err
}

// trustedDir is a directory in the list of --list trusted.
type trustedDir struct {
	Dir   string    `json:"dir"`
	Time  time.Time `json:"time"`
	Files int       `json:"files"`
	State string    `json:"state"` // trusted, changed or gone
}

// listTrusted shows the directories that the user trusts.
func (c *command) listTrusted(ctx context.Context) error {
	records, err := c.app.Trust.Store().List()
	if err != nil {
		return fault.Wrap(fault.Config, err, "the record of what is trusted")
	}
	list := make([]trustedDir, 0, len(records))
	for _, r := range records {
		d := trustedDir{Dir: r.Dir, Time: r.Time, Files: len(r.Files), State: "trusted"}
		if !isDirectory(r.Dir) {
			d.State = "gone"
		} else if r.Kind != "" {
			if !r.Intact() {
				d.State = "changed"
			}
		} else if t := c.app.Trust.OfDir(ctx, r.Dir); !t.Trusted {
			d.State = "changed"
		}
		list = append(list, d)
	}
	return printList(c, list, "no directories are trusted: loki --trust PATH trusts one", display.List(nil, list, func(d trustedDir) []string {
		return []string{text.Visible(d.Dir), d.State, text.Count(d.Files, "file"), display.Age(time.Since(d.Time))}
	}, 2, 3))
}

// untrust takes the directory of --untrust, and those of agents in it, out of the record.
func (c *command) untrust(ctx context.Context) error {
	dir, err := trust.Resolve(c.opts.value)
	if errors.Is(err, os.ErrNotExist) { // it was trusted when it was there
		dir, err = filepath.Abs(c.opts.value)
	}
	if err != nil {
		return err
	}
	records, err := c.app.Trust.Store().List()
	if err != nil {
		return fault.Wrap(fault.Config, err, "the record of what is trusted")
	}
	found := false
	for _, r := range records {
		if r.Dir != dir && filepath.Dir(r.Dir) != dir && (r.Kind != trust.SkillKind || !trust.Below(dir, "", r.Dir)) {
			continue
		}
		if _, err := c.app.Trust.Store().Forget(ctx, r.Dir); err != nil {
			return fault.Wrap(fault.Config, err, "the record of what is trusted cannot be written")
		}
		found = true
		if err := c.say("not trusted any more: %s", text.Visible(r.Dir)); err != nil {
			return err
		}
	}
	if !found {
		return fault.New(fault.NotFound, "%s was not trusted", c.opts.value).WithHint("all directories that are: loki --list trusted")
	}
	return nil
}
