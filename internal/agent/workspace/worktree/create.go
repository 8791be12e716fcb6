package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/workspace"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/workflow/graph"
)

// Open takes the worktree called name of the repository around a directory for this process. It is made if it is not there; an empty
// name is a new one. In a worktree the new one begins with the last commit of that one, and is merged into it.
func (s *Store) Open(ctx context.Context, from, name string, o graph.Worktree) (*Tree, error) {
	if name == "" {
		name = newName()
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	t := &Tree{Name: name, store: s, record: record{Finish: o.Finish, Created: time.Now().UTC().Truncate(time.Second)}}
	into, err := s.into(ctx, from, t)
	if err != nil {
		return nil, err
	}
	source, err := openRepo(ctx, git{environ: s.Environ, dir: t.Source})
	if err != nil {
		return nil, err
	}
	own := s.place(source)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, err
	}
	own = workspace.ResolvePath(own)
	t.Root, t.Common = filepath.Join(own, name), source.common
	if t.unlock, err = lock(ctx, own, name); err != nil {
		return nil, err
	}
	s.sweep(ctx, own, source)
	if _, err := os.Stat(t.Root); err == nil {
		t.unlock()
		if t, err = s.enter(ctx, own, name); err != nil {
			return nil, err
		}
		if _, err = t.repo(ctx); err == nil && !t.Ready { // Loki was killed before
			err = t.prepare(ctx, o.Setup)
		}
		if err != nil {
			t.Close()
		}
		return t, err
	}
	if err := t.create(ctx, into, source, o); err != nil {
		_ = t.remove(context.WithoutCancel(ctx))
		return nil, err
	}
	return t, nil
}

// into sets where t comes from, and returns the repository with its base: the one around a directory, which may be a worktree.
func (s *Store) into(ctx context.Context, from string, t *Tree) (into repo, err error) {
	if parent := s.Look(from); parent != nil {
		t.Source, t.Into = parent.Source, parent.Root
		t.Prefix, _ = filepath.Rel(parent.Root, workspace.ResolvePath(from))
		return parent.repo(ctx)
	}
	if into, err = openRepo(ctx, git{environ: s.Environ, dir: from}); err != nil {
		return into, err
	}
	if _, err := os.Lstat(filepath.Join(into.root, ".git")); err != nil && !into.bare { // its settings lead elsewhere
		return into, fault.New(fault.Usage, "the settings of the repository %s name the checkout %s, which has no .git", into.own, into.root)
	}
	t.Source, t.Prefix = into.root, into.prefix
	return into, nil
}

// sweep removes what worktrees have left that were being made or removed when Loki was killed.
func (s *Store) sweep(ctx context.Context, own string, source repo) {
	for _, left := range slices.Concat(atomicfile.Glob(own, ".*.new"), atomicfile.Glob(own, ".*.gone"), atomicfile.Glob(own, ".*.json"), atomicfile.Glob(own, ".*.try"), atomicfile.Glob(own, ".*.lock")) {
		kind := filepath.Ext(left)
		name := strings.TrimSuffix(filepath.Base(left)[1:], kind)
		if held, err := atomicfile.HeldElseRemoved(beside(own, name, ".lock")); held || err != nil {
			continue // also the one that is being made
		}
		_, there := os.Stat(filepath.Join(own, name))
		gone := errors.Is(there, fs.ErrNotExist)
		if gone || kind != ".json" {
			_ = removeAll(left)
		}
		if gone {
			_, _ = source.run(ctx, nil, "update-ref", "-d", pin(name))
		}
	}
	atomicfile.Sweep(own, ".json")
}

// create makes the worktree. The directory gets its name when all is there.
func (t *Tree) create(ctx context.Context, into, source repo, o graph.Worktree) error {
	first, start := cmp.Or(o.Base, "HEAD"), pin(t.Name)
	if kept, err := source.commit(ctx, "refs/heads/"+t.Branch()); err == nil && t.Into == "" && o.Base == "" { // work on it continues
		first = kept
	}
	var err error
	if t.Base, err = into.commit(ctx, first); err != nil {
		if failed(err, 1) || failed(err, 128) {
			return fault.New(fault.Usage, "a worktree begins with a commit, and %s has none that is called %s", t.Source, first)
		}
		return err
	}
	if t.Into != "" {
		if err := send(ctx, into.git, source.git, []string{t.Base}, knownCommits(ctx, into.git, source)); err != nil {
			return err
		}
	}
	if _, err := source.run(ctx, nil, "update-ref", start, t.Base); err != nil {
		return err
	}
	made := beside(filepath.Dir(t.Root), t.Name, ".new")
	if err := removeAll(made); err != nil {
		return err
	}
	tree, err := t.initialize(ctx, made, source)
	if err != nil {
		return err
	}
	if o.Dirty == graph.Include && !into.bare {
		if t.Dirty, err = into.snapshot(ctx, tree, t.Base); err != nil {
			return err
		}
	}
	if _, err := tree.run(ctx, nil, "update-ref", "refs/heads/"+t.Branch(), t.begin()); err != nil {
		return err
	}
	if _, err := tree.run(ctx, nil, "read-tree", "-u", "--reset", t.begin()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(made, t.Prefix), 0o700); err != nil {
		return err
	}
	if err := t.share(ctx, made, source, o.Share); err != nil {
		return err
	}
	if err := t.write(); err != nil { // a record without a directory is removed, and no directory is without a record
		return err
	}
	if err := os.Rename(made, t.Root); err != nil {
		return err
	}
	return t.prepare(ctx, o.Setup)
}

// prepare runs the command that sets the worktree up.
func (t *Tree) prepare(ctx context.Context, s graph.Setup) error {
	if s.Command != "" && t.store.Setup != nil {
		if err := t.store.Setup(ctx, t, s); err != nil {
			return fault.Wrap(fault.Tool, err, "the command that sets up the worktree %s failed", t.Name)
		}
	}
	t.Ready = true
	return t.write()
}

// knownCommits returns what of the history of a worktree the source has already.
func knownCommits(ctx context.Context, from git, source repo) []string {
	out, _ := source.run(ctx, nil, "for-each-ref", "--format=%(objectname)", "refs/loki")
	var all []string
	for _, id := range strings.Fields(string(out)) {
		if _, err := from.run(ctx, nil, "cat-file", "-e", id); err == nil {
			all = append(all, id)
		}
	}
	return all
}

// initialize makes an empty repository that borrows the objects of the source.
func (t *Tree) initialize(ctx context.Context, made string, source repo) (git, error) {
	format, err := source.line(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return git{}, err
	}
	g := git{environ: t.store.Environ, dir: filepath.Dir(made), quiet: source.quiet}
	if _, err := g.run(ctx, nil, "init", "--quiet", "--template=", "--object-format="+format, "--initial-branch="+t.Branch(), made); err != nil {
		return git{}, err
	}
	own := filepath.Join(made, ".git")
	t.Read = objects(filepath.Join(source.common, "objects"), 5)
	files := map[string]string{filepath.Join("objects", "info", "alternates"): quotePath(t.Read[0]) + "\n"}
	for _, name := range []string{"shallow", filepath.Join("info", "exclude")} {
		if data, err := os.ReadFile(filepath.Join(source.common, name)); err == nil {
			files[name] = string(data)
		}
	}
	for name, content := range files {
		path := filepath.Join(own, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return git{}, err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return git{}, err
		}
	}
	g.dir = made
	settings, err := source.settings(ctx, `^core\.(autocrlf|eol|ignorecase|filemode)$`)
	if err != nil {
		return git{}, err
	}
	settings["user.name"], settings["user.email"], settings["gc.auto"] = source.who[0], source.who[1], "0"
	for key, value := range settings {
		if value == "" {
			continue
		}
		if _, err := g.run(ctx, nil, "config", key, value); err != nil {
			return git{}, err
		}
	}
	return g, nil
}

// snapshot returns a commit in tree with the tracked files of a checkout as they are, on the commit base, and "" if they are as in base. It leaves
// the checkout as it is.
func (r repo) snapshot(ctx context.Context, tree git, base string) (string, error) {
	dir, err := os.MkdirTemp("", "loki-worktree-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	id, err := r.stage(ctx, filepath.Join(dir, "index"), filepath.Join(tree.dir, ".git", "objects"))
	if err != nil {
		return "", err
	}
	return tree.commitDirty(ctx, id, base)
}

// commitDirty returns a commit of the tree id, with what a checkout has beyond the commit base, "" if the tree is that of base. More are options of git.
func (g git) commitDirty(ctx context.Context, id, base string, more ...string) (string, error) {
	if same, err := g.line(ctx, "rev-parse", base+"^{tree}"); err != nil || same == id {
		return "", err
	}
	return g.line(ctx, append([]string{"commit-tree", id, "-m", "Uncommitted changes of the checkout", "-p", base}, more...)...)
}

// stage returns the tree of the tracked files of a checkout as they are. It works on a copy of the index at the path index, and writes objects to store.
func (r repo) stage(ctx context.Context, index, store string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.own, "index"))
	if err == nil {
		err = os.WriteFile(index, data, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	g := r.into(index, store)
	if _, err := g.run(ctx, nil, "add", "--update", "--ignore-errors", "."); err != nil {
		return "", err
	}
	return g.line(ctx, "write-tree")
}

// into returns git in the repository with another index, which writes objects to a directory.
func (r repo) into(index, store string) git {
	set := map[string]string{"GIT_DIR": r.own, "GIT_WORK_TREE": r.root, "GIT_INDEX_FILE": index}
	set["GIT_OBJECT_DIRECTORY"], set["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = store, quotePath(filepath.Join(r.common, "objects"))
	return r.with(set)
}

// share puts ignored files and directories of the source into the worktree: as copies, or as links that its programs read.
func (t *Tree) share(ctx context.Context, made string, source repo, all []graph.SharedPath) error {
	var ignored strings.Builder
	ignored.WriteString(".loki-project.json\n") // agents write down there how a project is built
	for _, s := range all {
		from, to := filepath.Join(source.root, s.Path), filepath.Join(made, s.Path)
		if _, err := source.run(ctx, nil, "check-ignore", "--quiet", "--", s.Path); err != nil {
			return fault.New(fault.Config, "worktree.share: git does not ignore %s, so it is not shared", s.Path)
		}
		info, err := os.Stat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		switch {
		case s.Link:
			real := workspace.ResolvePath(from)
			t.Read = append(t.Read, real)
			err = os.Symlink(real, to)
		case info.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			var data []byte
			if data, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, data, info.Mode().Perm())
			}
		}
		if err != nil {
			return fault.Wrap(fault.Failure, err, "worktree.share: %s", s.Path)
		}
		ignored.WriteString("/" + filepath.ToSlash(s.Path) + "\n")
	}
	path := filepath.Join(made, ".git", "info", "exclude")
	before, _ := os.ReadFile(path)
	return os.WriteFile(path, append(append(before, '\n'), ignored.String()...), 0o600)
}
