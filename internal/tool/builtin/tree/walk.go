// Package tree walks directory trees without the files that version control ignores and
// without the directories that tools fill.
//
// A [Glob] is a pattern for paths. [Rules] are those of .gitignore and .ignore files. [Walk]
// visits the files of a tree from several goroutines at once. Paths are relative to the
// root of the walk and have slashes on every system. The order of paths compares them
// segment by segment, see [Compare].
package tree

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// batch is how many files of one directory are a piece of work.
const batch = 32

// Walker configures a walk. The zero value of a field is its default.
type Walker struct {
	// SkipDir reports by its name that a directory is not entered. The root always
	// is.
	SkipDir func(name string) bool
	// Skip reports whether a path, a file or a whole directory, need not be visited. It
	// may become true for more paths during the walk. Calls may overlap.
	Skip func(path string) bool
	// All visits the files that ignore files name, too.
	All bool
	// Links visits symbolic links, too. They are not followed.
	Links bool
	// Workers is how many goroutines visit; 0 means one for each processor.
	Workers int
}

// File is a regular file of a tree, or a symbolic link if the walk visits them.
type File struct {
	Path  string // relative to the root, with slashes
	Full  string // to open it
	Entry fs.DirEntry
}

// Walk calls visit for the files below root, with the number of the worker, from 0. Calls
// of one worker do not overlap. Directories that cannot be read are counted and skipped,
// except root. Files are begun roughly in the order of their paths. It ends early, with
// its error, if ctx does. A panic of visit is one of Walk.
func (w Walker) Walk(ctx context.Context, root string, visit func(worker int, f File)) (unreadable int, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return 0, err
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return 0, err
	}
	n := w.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	r := &walk{Walker: w, ctx: ctx, visit: visit}
	r.wake.L = &r.mu
	var rules *Rules
	if !w.All {
		rules = rulesAbove(abs)
	}
	r.push([]task{{dir: directory{full: root, slashed: withSlashes(abs), rules: rules}, entries: entries, read: true}})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { r.work(i) })
	}
	wg.Wait()
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.unreadable, ctx.Err()
}

// directory is a directory of the walk.
type directory struct {
	full    string
	slashed string // absolute, in the form of Rules.dir
	path    string // relative to the root, empty for that itself
	rules   *Rules // that hold in it, without its own ignore files until it has been read
}

// join returns the paths of an entry.
func (d *directory) join(name string) (full, slashed, path string) {
	full, slashed, path = d.full+string(filepath.Separator)+name, d.slashed+"/"+name, name
	if d.path != "" {
		path = d.path + "/" + name
	}
	return full, slashed, path
}

// task is a directory to read, or files of one to visit.
type task struct {
	dir     directory
	entries []fs.DirEntry
	read    bool   // entries are all of the directory
	files   []File // to visit
}

// walk is a running walk. Tasks are a stack, so that files near the start of the tree
// come first and the stack stays small.
type walk struct {
	Walker
	ctx   context.Context
	visit func(int, File)

	mu         sync.Mutex
	wake       sync.Cond
	stack      []task
	busy       int // workers that may still push
	unreadable int
	panicked   any
}

// push adds tasks; the first of them is taken first.
func (r *walk) push(tasks []task) {
	if len(tasks) == 0 {
		return
	}
	slices.Reverse(tasks)
	r.mu.Lock()
	r.stack = append(r.stack, tasks...)
	r.mu.Unlock()
	r.wake.Broadcast()
}

// take returns the next task; ok is false when there will be none.
func (r *walk) take() (t task, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.stack) == 0 && r.busy > 0 && r.panicked == nil {
		r.wake.Wait()
	}
	if len(r.stack) == 0 || r.panicked != nil || r.ctx.Err() != nil {
		r.stack = nil
		r.wake.Broadcast()
		return task{}, false
	}
	last := len(r.stack) - 1
	t = r.stack[last]
	r.stack[last] = task{}
	r.stack = r.stack[:last]
	r.busy++
	return t, true
}

func (r *walk) finish(panicked any) {
	r.mu.Lock()
	r.busy--
	if panicked != nil {
		r.panicked = panicked
	}
	idle := r.busy == 0 || panicked != nil
	r.mu.Unlock()
	if idle {
		r.wake.Broadcast()
	}
}

func (r *walk) work(worker int) {
	for {
		t, ok := r.take()
		if !ok {
			return
		}
		r.do(worker, t)
	}
}

func (r *walk) do(worker int, t task) {
	defer func() { r.finish(recover()) }()
	for _, f := range t.files {
		if r.ctx.Err() != nil {
			return
		}
		if r.Skip == nil || !r.Skip(f.Path) {
			r.visit(worker, f)
		}
	}
	if t.files == nil {
		r.push(r.open(t))
	}
}

// open reads a directory and returns the tasks in it, in order.
func (r *walk) open(t task) []task {
	d, entries := t.dir, t.entries
	if !t.read {
		if r.Skip != nil && r.Skip(d.path) {
			return nil
		}
		var err error
		if entries, err = os.ReadDir(d.full); err != nil {
			r.mu.Lock()
			r.unreadable++
			r.mu.Unlock()
			return nil
		}
	}
	if !r.All {
		d.rules = readRules(d.full, d.slashed, func(name string) bool {
			_, found := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
			return found
		}, d.rules)
	}
	var tasks []task
	var files []File
	flush := func() {
		if len(files) > 0 {
			tasks = append(tasks, task{files: files})
			files = nil
		}
	}
	for _, e := range entries {
		isDir := e.IsDir()
		isLink := r.Links && e.Type()&fs.ModeSymlink != 0
		if !isDir && !isLink && !e.Type().IsRegular() || isDir && r.SkipDir != nil && r.SkipDir(e.Name()) {
			continue
		}
		full, slashed, path := d.join(e.Name())
		if d.rules.Ignored(slashed, isDir) {
			continue
		}
		if isDir {
			flush()
			tasks = append(tasks, task{dir: directory{full: full, slashed: slashed, path: path, rules: d.rules}})
			continue
		}
		if files = append(files, File{Path: path, Full: full, Entry: e}); len(files) == batch {
			flush()
		}
	}
	flush()
	return tasks
}

// Compare orders paths segment by segment: the entries of a directory come directly
// after its name, unlike in the order of strings.
func Compare(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	switch {
	case n == len(a) || n == len(b):
		return len(a) - len(b)
	case a[n] == '/':
		return -1
	case b[n] == '/':
		return 1
	}
	return int(a[n]) - int(b[n])
}
