package source

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/fault"
	"loki/internal/input"
	"loki/internal/text"
	"loki/internal/tool/builtin/tree"
)

// files yields the files of a path or a pattern, ascending by path. Below directories, files that ignore
// files name and the directories of version control are left out.
func (s *search) files(ctx context.Context) error {
	path := s.Input.Absolute(s.source)
	p := input.Pattern{Base: path, Depth: -1}
	info, err := os.Stat(path)
	if err != nil && strings.Contains(path, "*") {
		if p, err = input.ParsePattern(path); err != nil {
			return err
		}
		info, err = os.Stat(p.Base)
	}
	switch {
	case err != nil && os.IsNotExist(err) && isBare(beforeBranch(path)):
		return s.clone(ctx, path)
	case err != nil && os.IsNotExist(err):
		return fault.Wrap(fault.NotFound, fs.ErrNotExist, "%s", p.Base).
			WithHint("check the path; a name with a colon may be meant for a document loader that is not configured")
	case err != nil:
		return err
	case info.IsDir() && p.Plain() && isBare(path):
		return s.clone(ctx, path)
	case info.IsDir():
		return s.walk(ctx, p)
	case !p.Plain():
		return fault.New(fault.Usage, "%s: %s is a file and has nothing below it", s.source, p.Base)
	}
	s.file(file{path: p.Base, real: realPath(p.Base)}, true)
	return nil
}

// file is a file or a directory that was found.
type file struct {
	path   string // by which it was found
	real   string // without symbolic links
	linked bool   // a link below the directory of the source leads to it
}

// file yields a file unless it was found before, perhaps by another path.
func (s *search) file(f file, named bool) (ok bool) {
	key := "file " + f.real
	if s.seen[key] {
		return true
	}
	s.seen[key] = true
	return s.found(f.path, func(ctx context.Context) (*Content, error) { return s.readFile(ctx, f.path, named) })
}

func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	return real
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}

// directory is a directory to walk.
type directory struct {
	file
	depth int // how many levels of directories below it are walked, -1 for all
}

// walk yields the files of a pattern. A symbolic link to a directory is followed unless it leads to where
// the walk was already, or to a directory that holds such a place.
func (s *search) walk(ctx context.Context, p input.Pattern) error {
	var (
		files      []file
		unreadable int
		queue      = []directory{{file{path: p.Base, real: realPath(p.Base)}, p.Depth}}
		walked     []string
	)
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		if slices.ContainsFunc(walked, func(w string) bool { return within(d.real, w) || within(w, d.real) }) {
			continue
		}
		walked = append(walked, d.real)
		found, links, n, err := walkDirectory(ctx, d, p)
		if err != nil {
			return err
		}
		files, queue, unreadable = append(files, found...), append(queue, links...), unreadable+n
	}
	slices.SortFunc(files, func(a, b file) int { return tree.Compare(filepath.ToSlash(a.path), filepath.ToSlash(b.path)) })
	own := make(map[string]bool, len(files)) // by real path
	for _, f := range files {
		own[f.real] = own[f.real] || !f.linked
	}
	for _, f := range files {
		if (!f.linked || !own[f.real]) && !s.file(f, false) {
			return nil
		}
	}
	if unreadable > 0 {
		return fmt.Errorf("%s below %s cannot be read", text.Count(unreadable, "directory"), p.Base)
	}
	return nil
}

// walkDirectory returns the files of one directory tree, and the directories that its links lead to.
func walkDirectory(ctx context.Context, d directory, p input.Pattern) (files []file, links []directory, unreadable int, err error) {
	type result struct {
		files []file
		links []directory
	}
	w := tree.Walker{
		Links:   true,
		Workers: runtime.GOMAXPROCS(0),
		SkipDir: func(name string) bool { return d.depth == 0 || name == ".git" || name == ".hg" || name == ".svn" },
		Skip:    func(path string) bool { return d.depth >= 0 && strings.Count(path, "/") > d.depth },
	}
	results := make([]result, w.Workers) // each worker has its own
	unreadable, err = w.Walk(ctx, d.real, func(worker int, f tree.File) {
		r := &results[worker]
		shown := filepath.Join(d.path, filepath.FromSlash(f.Path))
		if f.Entry.Type().IsRegular() {
			if p.Matches(f.Entry.Name()) {
				r.files = append(r.files, file{shown, f.Full, d.linked})
			}
			return
		}
		info, err := os.Stat(f.Full)
		if err != nil {
			return // it leads nowhere
		}
		left := d.depth - strings.Count(f.Path, "/") - 1
		switch to := realPath(f.Full); {
		case info.Mode().IsRegular() && p.Matches(f.Entry.Name()):
			r.files = append(r.files, file{shown, to, true})
		case info.IsDir() && (d.depth < 0 || left >= 0):
			r.links = append(r.links, directory{file{shown, to, true}, max(left, min(d.depth, 0))})
		}
	})
	for _, r := range results {
		files, links = append(files, r.files...), append(links, r.links...)
	}
	slices.SortFunc(links, func(a, b directory) int { return cmp.Compare(a.path, b.path) })
	return files, links, unreadable, err
}
