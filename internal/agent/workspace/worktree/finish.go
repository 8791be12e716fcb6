package worktree

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent/workspace"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
)

// Change is the work in a worktree.
type Change struct {
	Branch  string   `json:"branch"`
	Commits int      `json:"commits"`
	Stat    string   `json:"diffstat"` // as git shows it
	Files   []string `json:"-"`

	// Unresolved are the files with marks of conflicts that the work added. It is not to be merged with them.
	Unresolved []string `json:"unresolved,omitempty"`

	Unfinished string `json:"unfinished,omitempty"` // the operation of git that was begun and not ended, "" for none

	tip string
	all []string // the ends of all branches
}

// Commit commits what is open in the worktree, and returns the work in it; that without commits is none.
func (t *Tree) Commit(ctx context.Context) (c Change, err error) {
	c.Branch = t.Branch()
	r, err := t.repo(ctx)
	if err != nil {
		return c, err
	}
	if _, err = r.run(ctx, nil, "add", "--all", ".", ":(exclude,glob)**/*"+sandbox.Withheld); err != nil {
		return c, err
	}
	// A merge is concluded by its commit, also if that has the files of the worktree as they were.
	if _, err = r.run(ctx, nil, "diff-index", "--cached", "--quiet", "--no-ext-diff", "HEAD"); failed(err, 1) || err == nil && r.unfinishedOperation() == merging {
		_, err = r.run(ctx, nil, "commit", "--quiet", "--no-verify", "--message", "Open work in the worktree "+t.Name)
	}
	if err != nil {
		return c, err
	}
	c.Unfinished = r.unfinishedOperation()
	if c.tip, err = r.commit(ctx, "HEAD"); err != nil {
		return c, err
	}
	ends, err := r.line(ctx, "for-each-ref", "--format=%(objectname)", "refs/heads")
	if err != nil {
		return c, err
	}
	c.all = append([]string{c.tip}, strings.Fields(ends)...)
	from := t.begin()
	for _, not := range []string{from, t.Base} { // with work, what was taken along is merged, too
		count, err := r.run(ctx, nil, append(append([]string{"rev-list"}, c.all...), "--not", not)...)
		if c.Commits = len(strings.Fields(string(count))); err != nil || c.Commits == 0 {
			return c, err
		}
	}
	if c.Files, err = r.changedFiles(ctx, from, c.tip, false); err == nil {
		c.Stat, err = r.line(ctx, "diff-tree", "--stat=100", "--no-ext-diff", "--no-textconv", from, c.tip)
	}
	c.Stat = text.Visible(c.Stat)
	if err == nil {
		c.Unresolved, err = r.unresolvedFiles(ctx, from, c.tip)
	}
	return c, err
}

// unresolvedFiles returns the files in which marks of conflicts are new between two commits.
func (r repo) unresolvedFiles(ctx context.Context, from, to string) ([]string, error) {
	return r.marks(ctx, "diff-tree", "-r", from, to)
}

// marks returns the files in which a command of git that compares finds new marks of conflicts.
func (r repo) marks(ctx context.Context, command string, of ...string) (files []string, err error) {
	out, err := r.run(ctx, nil, append([]string{command, "--check", "--no-ext-diff", "--no-textconv"}, of...)...)
	if failed(err, 2) { // it has found something
		err = nil
	}
	for line := range strings.Lines(string(out)) {
		place, marked := strings.CutSuffix(strings.TrimSpace(line), ": leftover conflict marker")
		if !marked {
			continue
		}
		if name := place[:max(strings.LastIndexByte(place, ':'), 0)]; !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files, err
}

// begin returns the commit before the first one of the work.
func (t *Tree) begin() string { return cmp.Or(t.Dirty, t.Base) }

// Diff returns the work as a patch.
func (t *Tree) Diff(ctx context.Context, c Change) (string, error) {
	r, err := t.repo(ctx)
	if err != nil {
		return "", err
	}
	return r.line(ctx, "diff-tree", "-p", "--no-ext-diff", "--no-textconv", t.begin(), c.tip)
}

// Keep puts the branch into the source, and removes the worktree. Other branches that were made in the worktree and have commits of their
// own are kept with their names after that of the branch.
func (t *Tree) Keep(ctx context.Context, c Change) error {
	return t.leave(ctx, c, "refs/heads/"+t.Branch())
}

// leave removes the worktree when its repository has the work: as the reference ref, or merged if that is empty.
func (t *Tree) leave(ctx context.Context, c Change, ref string) error {
	r, err := t.repo(ctx)
	if err != nil {
		return err
	}
	source, err := t.source(ctx)
	if err != nil {
		return err
	}
	err = t.keep(ctx, r, source, c, ref)
	switch {
	case err != nil && ref != "":
		return fault.Wrap(fault.Failure, err, "the branch %s cannot be kept, so its worktree stays at %s", t.Branch(), t.Root)
	case err != nil:
		return err
	}
	return t.remove(ctx)
}

// keep copies the end of the work to a branch of the source, if it is to have one, and other branches of the worktree.
func (t *Tree) keep(ctx context.Context, r, source repo, c Change, ref string) error {
	others, err := r.line(ctx, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "--no-merged="+c.tip, "refs/heads")
	if err != nil || ref == "" && others == "" {
		return err
	}
	if err := send(ctx, r.git, source.git, c.all, []string{t.Base}); err != nil {
		return err
	}
	refs := map[string]string{}
	if ref != "" {
		refs[ref] = c.tip
	}
	for line := range strings.Lines(others) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs["refs/heads/"+t.Branch()+"-"+strings.ReplaceAll(name, "/", "-")] = id
	}
	for name, id := range refs {
		ref := name
		before, err := source.line(ctx, "for-each-ref", "--format=%(objectname) %(worktreepath)", ref)
		old, used, _ := strings.Cut(before, " ")
		if err == nil && old != "" {
			if _, err := source.run(ctx, nil, "merge-base", "--is-ancestor", old, id); err != nil || used != "" {
				ref += "-" + id[:8] // that branch has other work, or is checked out
			}
		}
		_, err = source.run(ctx, nil, "update-ref", "-m", "loki: kept", ref, id)
		if err != nil { // the user has a branch loki, or one whose name continues this one
			ref = "refs/heads/" + strings.ReplaceAll(strings.TrimPrefix(name, "refs/heads/"), "/", "-") + "-" + id[:8]
			if _, again := source.run(ctx, nil, "update-ref", "-m", "loki: kept", ref, id); again != nil {
				return err
			}
		}
		if name == "refs/heads/"+t.Branch() {
			t.kept = strings.TrimPrefix(ref, "refs/heads/")
		}
	}
	return nil
}

// KeptBranch returns the branch of the source that Keep has made. It has another name than that of the worktree if there was one with other work.
func (t *Tree) KeptBranch() string { return cmp.Or(t.kept, t.Branch()) }

// Discard removes the worktree with all that was done in it.
func (t *Tree) Discard(ctx context.Context) error { return t.remove(ctx) }

// Offer is what can be done with the work in the checkout or, of a worktree in another one, in that. Each list has the files that are
// in the way; with none it can be done.
type Offer struct {
	Merge, Apply []string
	Bare         bool // there is no checkout, so neither can be done

	merged, applied string // the commit to be merged, and the tree to be applied
	now             string // tree of the checkout as it is
	checkout        repo
	head            string
	at              git // that writes objects to store
}

// Try finds out what can be done with the work. It changes nothing in the checkout. The offer is valid until done is called.
func (t *Tree) Try(ctx context.Context, c Change) (o *Offer, done func(), err error) {
	dir := beside(filepath.Dir(t.Root), t.Name, ".try")
	r, err := t.repo(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	checkout, err := t.target(ctx, dir)
	if err != nil {
		return nil, func() {}, err
	}
	return try(ctx, checkout, dir, func(g git) error { return send(ctx, r.git, g, []string{c.tip}, []string{t.Base}) }, t.Name, c.tip, t.Dirty)
}

// try is [Tree.Try] for the commit tip, with a directory for what it makes. Bring gives git there the commits.
func try(ctx context.Context, checkout repo, dir string, bring func(g git) error, name, tip, dirty string) (o *Offer, done func(), err error) {
	done = func() { _ = removeAll(dir) }
	done()
	o = &Offer{Bare: checkout.bare, checkout: checkout}
	index, store := filepath.Join(dir, "index"), filepath.Join(dir, "objects")
	if err := os.MkdirAll(filepath.Join(store, "pack"), 0o700); err != nil || o.Bare {
		return o, done, err
	}
	o.at = checkout.into(index, store)
	if o.head, err = checkout.commit(ctx, "HEAD"); err == nil {
		err = bring(o.at)
	}
	if err == nil {
		o.now, err = checkout.stage(ctx, index, store)
	}
	if err == nil {
		err = o.tryMerge(ctx, name, tip)
	}
	if err == nil {
		err = o.tryApply(ctx, tip, dirty)
	}
	return o, done, err
}

// target returns the repository that gets the work.
func (t *Tree) target(ctx context.Context, write ...string) (repo, error) {
	if t.Into == "" {
		return t.source(ctx)
	}
	parent := t.store.Look(t.Into)
	if parent == nil {
		return repo{}, fault.New(fault.NotFound, "the worktree that %s was made from is gone", t.Name)
	}
	return parent.repo(ctx, write...)
}

// mergeTree merges two commits. It returns the tree, or the files in conflict.
func mergeTree(ctx context.Context, g git, ours, theirs string) (tree string, conflicts []string, err error) {
	out, err := g.names(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
	if err != nil && !failed(err, 1) || len(out) == 0 {
		return "", nil, fault.Wrap(fault.Tool, err, "the work cannot be merged on trial").WithHint("install git 2.38 or newer")
	}
	if err != nil {
		slices.Sort(out[1:])
		return "", slices.Compact(out[1:]), nil
	}
	return out[0], nil, nil
}

func (o *Offer) tryMerge(ctx context.Context, name, tip string) (err error) {
	base, err := o.at.line(ctx, "merge-base", o.head, tip)
	if err != nil && !failed(err, 1) {
		return err
	}
	o.merged = tip
	if base != o.head {
		var tree string
		if tree, o.Merge, err = mergeTree(ctx, o.at, o.head, tip); err != nil || len(o.Merge) > 0 {
			return err
		}
		if o.merged, err = o.at.line(ctx, "commit-tree", tree, "-p", o.head, "-p", tip, "-m", "Merge the worktree "+name); err != nil {
			return err
		}
	}
	dirty, err := o.at.changedFiles(ctx, o.head, o.now, false)
	if err == nil {
		o.Merge, err = o.obstacles(ctx, o.head, o.merged, dirty)
	}
	return err
}

func (o *Offer) tryApply(ctx context.Context, tip, uncommitted string) error {
	now, err := o.at.line(ctx, "commit-tree", o.now, "-p", o.head, "-m", "the checkout")
	if err != nil {
		return err
	}
	if o.applied, o.Apply, err = mergeTree(ctx, o.at, now, tip); err != nil || len(o.Apply) > 0 {
		return err
	}
	dirty, err := o.at.changedFiles(ctx, o.head, o.now, false)
	if err == nil && uncommitted != "" { // what was taken along is not in the way
		var since []string
		since, err = o.at.changedFiles(ctx, uncommitted, o.now, false)
		dirty = both(dirty, since)
	}
	if err == nil {
		o.Apply, err = o.obstacles(ctx, o.now, o.applied, dirty)
	}
	return err
}

// obstacles returns what is in the way of changing the checkout: uncommitted changes of the same files, files that git does not track, and files
// that a filter of the user would have to change.
func (o *Offer) obstacles(ctx context.Context, from, to string, dirty []string) ([]string, error) {
	touched, err := o.at.changedFiles(ctx, from, to, false)
	if err != nil {
		return nil, err
	}
	in := both(touched, dirty)
	added, err := o.at.changedFiles(ctx, o.now, to, true)
	for _, file := range added {
		if _, err := os.Lstat(filepath.Join(o.checkout.root, file)); err == nil {
			in = append(in, file)
		}
	}
	if err != nil {
		return nil, err
	}
	filtered, err := o.checkout.filteredFiles(ctx, touched)
	in = append(in, filtered...)
	slices.Sort(in)
	return slices.Compact(in), err
}

// both returns what is in both lists.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// inTheWay says why something cannot be done.
func inTheWay(name, verb string, files []string) error {
	if len(files) == 0 {
		return nil
	}
	shown := files[:min(len(files), 10)]
	return fault.New(fault.Failure, "the worktree %s cannot be %s: in the way are %s", name, verb, text.Visible(strings.Join(shown, ", ")))
}

// merge makes the merge that was tried.
func (o *Offer) merge(ctx context.Context, name string) error {
	if o.Bare {
		return fault.New(fault.Usage, "the repository has no checkout to merge into")
	}
	if err := inTheWay(name, "merged", o.Merge); err != nil {
		return o.why(err)
	}
	if err := send(ctx, o.at, o.checkout.git, []string{o.merged}, []string{o.head}); err != nil {
		return err
	}
	if _, err := o.checkout.run(ctx, nil, "merge", "--ff-only", "--quiet", "--no-stat", "--no-overwrite-ignore", o.merged); err != nil {
		return o.why(fault.Wrap(fault.Failure, err, "the worktree %s cannot be merged", name))
	}
	return nil
}

// lock returns the lock that a git which works in the checkout holds, or one that was killed has left; "" without one.
func (r repo) lock() string {
	head, _ := os.ReadFile(filepath.Join(r.own, "HEAD")) // a detached one names no branch
	branch, _ := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	for _, lock := range []string{filepath.Join(r.own, "index.lock"), filepath.Join(r.own, "HEAD.lock"), filepath.Join(r.own, "ORIG_HEAD.lock"), filepath.Join(r.common, branch+".lock")} {
		if _, err := os.Lstat(lock); err == nil {
			return lock
		}
	}
	return ""
}

// LockNote says that git is at work in the checkout, or was killed there, and what to do then; "" if it is neither.
func (o *Offer) LockNote() string {
	if lock := o.checkout.lock(); lock != "" {
		return "The checkout is locked by " + lock + ". If no git works there, one was killed: remove that file, look at git status, and take back what it had begun to change (git checkout HEAD -- FILE; new files are removed)."
	}
	return ""
}

// why adds to the error of a change of the checkout what [Offer.LockNote] says.
func (o *Offer) why(err error) error {
	if locked := o.LockNote(); err != nil && locked != "" {
		return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", locked)
	}
	return err
}

// Merge merges the work into the branch of the checkout, and removes the worktree.
func (t *Tree) Merge(ctx context.Context, c Change) error {
	o, done, err := t.Try(ctx, c)
	if err == nil {
		err = o.merge(ctx, t.Name)
	}
	done()
	if err != nil {
		return err
	}
	return t.leave(ctx, c, "")
}

// MergeBranch merges a branch that was kept into the checkout or the worktree around a directory, and deletes it.
func (s *Store) MergeBranch(ctx context.Context, dir, ref string) error {
	t := &Tree{Name: strings.TrimPrefix(ref, "loki/"), store: s}
	if _, err := s.into(ctx, dir, t); err != nil {
		return err
	}
	source, err := t.source(ctx)
	if err != nil {
		return err
	}
	own := s.place(source)
	unlock, err := lock(ctx, own, t.Name)
	if err != nil {
		return err
	}
	defer unlock()
	tip, err := source.commit(ctx, "refs/heads/"+ref)
	if err != nil {
		return fault.New(fault.NotFound, "there is no branch %s: it was merged or deleted", ref)
	}
	temp := beside(workspace.ResolvePath(own), t.Name, ".try")
	checkout, err := t.target(ctx, temp)
	if err != nil {
		return err
	}
	o, done, err := try(ctx, checkout, temp, func(git) error { return nil }, t.Name, tip, "") // the source has all commits
	if err == nil {
		err = o.merge(ctx, t.Name)
	}
	done()
	if err == nil {
		_, err = source.run(ctx, nil, "update-ref", "-d", "refs/heads/"+ref, tip)
	}
	return err
}

// Apply makes the changes in the checkout, without a commit, and removes the worktree.
func (t *Tree) Apply(ctx context.Context, c Change) error {
	o, done, err := t.Try(ctx, c)
	defer done()
	if err == nil {
		err = o.why(inTheWay(t.Name, "applied", o.Apply))
	}
	if err != nil {
		return err
	}
	if o.Bare || t.Into != "" {
		return fault.New(fault.Usage, "there is no checkout to apply it to")
	}
	if _, err := o.at.run(ctx, nil, "read-tree", "-m", "-u", o.now, o.applied); err != nil {
		return o.why(fault.Wrap(fault.Failure, err, "the worktree %s cannot be applied", t.Name))
	}
	done()
	return t.leave(ctx, c, "")
}

// Renew merges what the checkout has meanwhile into the worktree, and returns the files in conflict, which have marks then.
func (t *Tree) Renew(ctx context.Context) ([]string, error) {
	into, err := t.target(ctx)
	if err != nil {
		return nil, err
	}
	head, err := into.commit(ctx, "HEAD")
	if err != nil {
		return nil, err
	}
	source, err := t.source(ctx)
	if err == nil && t.Into != "" {
		err = send(ctx, into.git, source.git, []string{head}, knownCommits(ctx, into.git, source))
	}
	if err == nil {
		_, err = source.run(ctx, nil, "update-ref", pin(t.Name), head)
	}
	if err != nil {
		return nil, err
	}
	r, err := t.repo(ctx)
	if err != nil {
		return nil, err
	}
	if op := r.unfinishedOperation(); op != "" {
		return nil, t.unfinishedError(op)
	}
	if t.Dirty != "" {
		tree, conflicts, failure := mergeTree(ctx, r.git, head, t.Dirty)
		if err = failure; err == nil && len(conflicts) == 0 {
			t.Dirty, err = r.commitDirty(ctx, tree, head, "-p", t.Dirty)
		}
	}
	if t.Base = head; err == nil { // what is compared is only the work
		err = t.write()
	}
	if err != nil {
		return nil, err
	}
	head = t.begin()
	_, conflict := r.run(ctx, nil, "merge", "--quiet", "--no-stat", "--no-verify", "--message", "Merge what came meanwhile", head)
	if conflict == nil {
		return nil, nil
	}
	files, err := r.names(ctx, "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--diff-filter=U")
	if err == nil && len(files) == 0 {
		err = conflict
	}
	return files, err
}
