// Package tree walks directory trees without the files that version control ignores and
// without the directories that tools fill.
//
// A [Glob] is a pattern for paths. [Rules] are those of .gitignore and .ignore files. [Walker.Walk]
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
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &walk{Walker: w, ctx: inner, batches: make(chan []File, n)}
	var workers sync.WaitGroup
	panics := make(chan any, n)
	for i := range n {
		workers.Go(func() { // ends when batches is closed
			defer func() {
				if v := recover(); v != nil {
					panics <- v
					cancel()
				}
			}()
			for batch := range r.batches {
				r.visit(batch, func(f File) { visit(i, f) })
			}
		})
	}
	top := directory{full: root, slashed: withSlashes(abs)}
	if !w.All {
		top.rules = rulesAbove(abs)
	}
	r.enter(top, entries)
	close(r.batches)
	workers.Wait()
	if len(panics) > 0 {
		panic(<-panics)
	}
	return r.unreadable, ctx.Err()
}

// directory is a directory of the walk.
type directory struct {
	full    string
	slashed string // absolute, in the form of Rules.dir
	path    string // relative to the root, empty for that itself
	rules   *Rules // that hold in it, without its own ignore files
}

// join returns the directory that an entry is, or would be.
func (d *directory) join(name string) directory {
	sub := directory{d.full + string(filepath.Separator) + name, d.slashed + "/" + name, name, d.rules}
	if d.path != "" {
		sub.path = d.path + "/" + name
	}
	return sub
}

// walk is a running walk. One goroutine reads directories, and others visit what it finds.
type walk struct {
	Walker
	ctx        context.Context
	batches    chan []File
	unreadable int
}

// visit calls visit for files that need it.
func (r *walk) visit(files []File, visit func(File)) {
	for _, f := range files {
		if r.ctx.Err() != nil {
			return
		}
		if r.Skip == nil || !r.Skip(f.Path) {
			visit(f)
		}
	}
}

// send passes files to the workers.
func (r *walk) send(files []File) {
	if len(files) == 0 {
		return
	}
	select {
	case r.batches <- files:
	case <-r.ctx.Done():
	}
}

// enter goes through the entries of a directory.
func (r *walk) enter(d directory, entries []fs.DirEntry) {
	if !r.All {
		d.rules = readRules(d.full, d.slashed, func(name string) bool {
			_, found := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
			return found
		}, d.rules)
	}
	var files []File
	for _, e := range entries {
		isDir := e.IsDir()
		isLink := r.Links && e.Type()&fs.ModeSymlink != 0
		if !isDir && !isLink && !e.Type().IsRegular() || isDir && r.SkipDir != nil && r.SkipDir(e.Name()) {
			continue
		}
		at := d.join(e.Name())
		if d.rules.Ignored(at.slashed, isDir) {
			continue
		}
		if !isDir {
			files = append(files, File{Path: at.path, Full: at.full, Entry: e})
		}
		if isDir || len(files) == batch {
			r.send(files)
			files = nil
		}
		if isDir {
			r.read(at)
		}
	}
	r.send(files)
}

// read reads a directory.
func (r *walk) read(d directory) {
	if r.ctx.Err() != nil || r.Skip != nil && r.Skip(d.path) {
		return
	}
	entries, err := os.ReadDir(d.full)
	if err != nil {
		r.unreadable++
		return
	}
	r.enter(d, entries)
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
