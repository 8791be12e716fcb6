package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/memory"
	"loki/internal/agent/workspace"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// Store has the worktrees of all repositories. It may be used from several goroutines.
type Store struct {
	Dir     string   // absolute
	Environ []string // of git
	// Sandbox returns what confines programs in a worktree, which reads other places; nil confines nothing.
	Sandbox func(t *Tree) (*sandbox.Sandbox, error)
	// Setup runs the command that prepares a new worktree.
	Setup func(ctx context.Context, t *Tree, s graph.Setup) error
}

// record is what is kept of a worktree beside it.
type record struct {
	Source  string       `json:"source"`           // root of the checkout, or a bare repository
	Common  string       `json:"common"`           // its git directory
	Into    string       `json:"into,omitempty"`   // the worktree that it was made from, if it was not the checkout
	Base    string       `json:"base"`             // the commit on which the work began
	Dirty   string       `json:"dirty,omitempty"`  // the commit with the uncommitted changes of the checkout
	Prefix  string       `json:"prefix,omitempty"` // the directory below the root that it was made for
	Read    []string     `json:"read"`             // places outside of it that its programs read
	Finish  graph.Finish `json:"finish,omitempty"`
	Ready   bool         `json:"ready"` // it was set up
	Created time.Time    `json:"created"`
}

// Tree is a worktree, which this process has for itself until it is closed.
type Tree struct {
	record
	Name string
	Root string // absolute

	store  *Store
	unlock func()

	kept string // see Kept
}

// Dir returns the directory to work in.
func (t *Tree) Dir() string { return filepath.Join(t.Root, t.Prefix) }

// Branch returns the name of the branch with the work.
func (t *Tree) Branch() string { return branch(t.Name) }

func branch(name string) string { return "loki/" + name }

// pin returns the reference in the source that keeps the base. Git would take "refs/loki/NAME" for the branch, too.
func pin(name string) string { return "refs/loki/pins/" + name }

// Close leaves the worktree as it is, for others to enter.
func (t *Tree) Close() { t.unlock() }

var plainName = text.Regexp(`^[a-z0-9_-][a-z0-9._-]{0,63}$`)

// CheckName returns an error if no worktree can be called name.
func CheckName(name string) error {
	if !plainName().MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") {
		return fault.New(fault.Usage, "%q cannot be the name of a worktree: a name has 1 to 64 characters (a-z, 0-9, '.', '_', '-'), does not begin or end with a dot, and has neither '..' nor '.lock' at its end", name)
	}
	return nil
}

// beside returns the path of a file of the worktree called name, beside its directory.
func beside(dir, name, kind string) string { return filepath.Join(dir, "."+name+kind) }

// lock takes a worktree for this process. The error says that another one has it.
func lock(ctx context.Context, dir, name string) (unlock func(), err error) {
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	unlock, err = atomicfile.Lock(short, beside(dir, name, ".lock"))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fault.New(fault.Failure, "the worktree %s is in use by another Loki", name).WithHint("choose another name, or wait until it ends")
	}
	return unlock, err
}

// At returns the worktree that a directory is in, to be taken for this process, and nil if it is in none.
func (s *Store) At(ctx context.Context, dir string) (*Tree, error) {
	t := s.Look(dir)
	if t == nil {
		return nil, nil
	}
	return s.enter(ctx, filepath.Dir(t.Root), t.Name)
}

// Look returns the worktree that a directory is in, which another process may have, and nil if it is in none.
func (s *Store) Look(dir string) *Tree {
	own, name, ok := s.locate(dir)
	t := &Tree{Name: name, Root: filepath.Join(own, name), store: s}
	if !ok || t.read(own) != nil {
		return nil
	}
	return t
}

// Of returns the directory of the source that belongs to a directory in a worktree, and dir itself if it is in none.
func (s *Store) Of(dir string) string {
	t := s.Look(dir)
	if t == nil {
		return dir
	}
	rel, _ := filepath.Rel(t.Root, workspace.ResolvePath(dir))
	return filepath.Join(t.Source, rel)
}

// locate returns where the worktree is that dir is in.
func (s *Store) locate(dir string) (own, name string, ok bool) {
	rel, err := filepath.Rel(workspace.ResolvePath(s.Dir), workspace.ResolvePath(dir))
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if err != nil || !filepath.IsLocal(rel) || len(parts) < 2 || CheckName(parts[1]) != nil {
		return "", "", false
	}
	return filepath.Join(workspace.ResolvePath(s.Dir), parts[0]), parts[1], true
}

// enter takes a worktree that is there.
func (s *Store) enter(ctx context.Context, own, name string) (*Tree, error) {
	unlock, err := lock(ctx, own, name)
	if err != nil {
		return nil, err
	}
	t := &Tree{Name: name, Root: filepath.Join(own, name), store: s, unlock: unlock}
	if err := t.read(own); err != nil {
		unlock()
		return nil, fault.Wrap(fault.NotFound, err, "the worktree %s cannot be entered", name)
	}
	t.unlockGit()
	return t, nil
}

// unlockGit removes the locks that git has left in the worktree, in which none runs now.
func (t *Tree) unlockGit() {
	root, err := os.OpenRoot(filepath.Join(t.Root, ".git"))
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{"index", "HEAD", "ORIG_HEAD", "MERGE_HEAD", "config", "packed-refs", "refs/heads/" + t.Branch()} {
		_ = root.Remove(name + ".lock")
	}
}

// read reads the record of a worktree in a directory.
func (t *Tree) read(own string) error {
	data, err := os.ReadFile(beside(own, t.Name, ".json"))
	if err == nil {
		err = json.Unmarshal(data, &t.record)
	}
	return err
}

func (t *Tree) write() error {
	data, err := json.MarshalIndent(t.record, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(beside(filepath.Dir(t.Root), t.Name, ".json"), append(data, '\n'), atomicfile.Options{Mode: atomicfile.Private})
}

// Entry is a worktree as lists have it.
type Entry struct {
	Name    string    `json:"name"`
	Branch  string    `json:"branch"`
	Source  string    `json:"source"`
	Dir     string    `json:"dir"`
	Created time.Time `json:"created"`
	InUse   bool      `json:"in_use"`
}

// List returns the worktrees of all repositories, by source and name.
func (s *Store) List() (entries []Entry, err error) {
	for _, file := range atomicfile.Glob(s.Dir, "*/.*.json") {
		own := filepath.Dir(file)
		t := &Tree{Name: strings.TrimSuffix(filepath.Base(file)[1:], ".json")}
		t.Root = filepath.Join(own, t.Name)
		if _, err := os.Stat(t.Root); err != nil || t.read(own) != nil { // it is being made or removed
			continue
		}
		held, err := atomicfile.HeldElseRemoved(beside(own, t.Name, ".lock"))
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Name: t.Name, Branch: t.Branch(), Source: t.Source, Dir: t.Root, Created: t.Created, InUse: held})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name)) })
	return entries, nil
}

// Beside returns the directories in worktrees that belong to a directory of their source.
func (s *Store) Beside(dir string) (dirs []string) {
	entries, _ := s.List() // without it there are none
	for _, e := range entries {
		if rel, err := filepath.Rel(e.Source, workspace.ResolvePath(dir)); err == nil && filepath.IsLocal(rel) {
			dirs = append(dirs, filepath.Join(e.Dir, rel))
		}
	}
	return dirs
}

// Find takes the worktree called name, of the repository around dir if several have the name.
func (s *Store) Find(ctx context.Context, dir, name string) (*Tree, error) {
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Name != name })
	if len(entries) > 1 {
		if r, err := openRepo(ctx, git{environ: s.Environ, dir: dir}); err == nil {
			entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Source != r.root })
		}
	}
	switch len(entries) {
	case 0:
		return nil, fault.New(fault.NotFound, "there is no worktree %s", name).WithHint("loki --list worktrees shows them")
	case 1:
		return s.enter(ctx, filepath.Dir(entries[0].Dir), name)
	}
	return nil, fault.New(fault.Usage, "several repositories have a worktree %s", name).WithHint("run the command in one of them")
}

// place returns the directory with the worktrees of a repository.
func (s *Store) place(r repo) string {
	dir := r.root
	if r.bare {
		dir = r.own
	}
	return filepath.Join(s.Dir, memory.WorkspaceName(dir))
}

// Name returns the name of a worktree of an agent, which ends with a text that tells it from others, a new one if it is empty.
func Name(agent, end string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(agent))
	return plain[:min(len(plain), 40)] + "-" + cmp.Or(end, newName())
}

// newName returns a name that no other worktree has.
func newName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// repo returns the repository of a worktree, in which git is confined. Write are places that it writes beside it.
func (t *Tree) repo(ctx context.Context, write ...string) (repo, error) {
	own := filepath.Join(t.Root, ".git")
	if info, err := os.Lstat(own); err != nil || !info.IsDir() {
		return repo{}, fault.New(fault.Failure, "the worktree %s has lost its git directory %s, and its commits with it", t.Name, own).
			WithHint("copy what you need from %s, then remove it: loki --remove-worktree %s", t.Root, t.Name)
	}
	r := repo{git: git{environ: t.store.Environ, dir: t.Root}, root: t.Root, own: own, common: own}
	r.set = map[string]string{"GIT_DIR": own, "GIT_WORK_TREE": t.Root}
	if err := r.calm(ctx); err != nil { // which reads settings and runs nothing
		return repo{}, err
	}
	if t.store.Sandbox != nil {
		box, err := t.store.Sandbox(t)
		if err != nil {
			return repo{}, err
		}
		r.confine = func() process.Confinement {
			return box.Box(sandbox.Declaration{Level: sandbox.Write}, sandbox.Needs{Write: write})
		}
	}
	return r, nil
}

// source returns the repository that the worktree was made from.
func (t *Tree) source(ctx context.Context) (repo, error) {
	return openRepo(ctx, git{environ: t.store.Environ, dir: t.Source})
}

// remove removes the worktree. Its place is free at once, whatever happens then.
func (t *Tree) remove(ctx context.Context) error {
	own := filepath.Dir(t.Root)
	gone := beside(own, t.Name, ".gone")
	_ = removeAll(gone)
	if err := os.Rename(t.Root, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r, err := t.source(ctx); err == nil { // one that is gone has no reference
		_, _ = r.run(ctx, nil, "update-ref", "-d", pin(t.Name))
	}
	err := removeAll(gone)
	_ = os.Remove(beside(own, t.Name, ".json"))
	t.unlock()
	_ = os.Remove(own) // if it is empty
	return err
}

// removeAll is os.RemoveAll, also for directories that their owner may not change.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a directory of this user
		}
		return nil
	})
	return os.RemoveAll(dir)
}
