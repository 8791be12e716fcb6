package source

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
	"loki/internal/tool/builtin/tree"
)

// files yields the files of a path or a pattern, ascending by path. Below directories, files that ignore
// files name and the directories of version control are left out.
func (s *search) files(ctx context.Context) error {
	path := s.Input.Absolute(s.source)
	p, err := input.ParsePattern(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(p.Base)
	switch {
	case err != nil && os.IsNotExist(err) && isBare(beforeBranch(path)):
		return s.yieldClone(ctx, path)
	case err != nil && os.IsNotExist(err):
		return fault.Wrap(fault.NotFound, fs.ErrNotExist, "%s", p.Base).WithHint("%s", input.PathHint(s.source))
	case err != nil:
		return err
	case info.IsDir() && p.Plain() && isBare(path):
		return s.yieldClone(ctx, path)
	case info.IsDir():
		return s.walk(ctx, p)
	case !p.Plain():
		return fault.New(fault.Usage, "%s: %s is a file and has nothing below it", s.source, p.Base)
	}
	s.file(file{path: p.Base, real: realPath(p.Base)}, true)
	return nil
}

// file is a file that was found, or a link that leads out of the directory of the source.
type file struct {
	path   string // by which it was found
	real   string // without symbolic links
	linked bool   // path is that of a link
}

// file yields a file unless it was found before, perhaps by another path.
func (s *search) file(f file, named bool) (ok bool) {
	key := "file " + f.real
	if s.seen[key] {
		return true
	}
	s.seen[key] = true
	named = named || slices.ContainsFunc(s.sources, func(source string) bool { // another source may name it
		return s.kindOf(source) == local && s.Input.Absolute(strings.TrimSpace(source)) == f.path
	})
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

// walk yields the files of a pattern, ascending by path. A symbolic link to a file is followed if the file is
// below the directory, too. What a link out of it leads to is skipped, unless a source names the link.
func (s *search) walk(ctx context.Context, p input.Pattern) error {
	root := realPath(p.Base)
	files, unreadable, err := walkDirectory(ctx, p, root)
	if err != nil {
		return err
	}
	own := make(map[string]bool, len(files)) // by real path
	for _, f := range files {
		own[f.real] = own[f.real] || !f.linked
	}
	for _, f := range files {
		ok := true
		switch {
		case f.linked && !within(f.real, root):
			ok = s.out(f, p.Base)
		case !f.linked || !own[f.real]:
			ok = s.file(f, false)
		}
		if !ok {
			return nil
		}
	}
	if unreadable > 0 {
		return fmt.Errorf("%s below %s cannot be read", text.Count(unreadable, "directory"), p.Base)
	}
	return nil
}

// out yields a link that leads out of dir, to be skipped.
func (s *search) out(link file, dir string) (ok bool) {
	named := func(source string) bool {
		p, err := input.ParsePattern(s.Input.Absolute(strings.TrimSpace(source)))
		return err == nil && within(filepath.Clean(p.Base), link.path)
	}
	if slices.ContainsFunc(s.sources, named) {
		return true // that source yields what is there
	}
	return s.found(link.path, func(context.Context) (*Content, error) {
		return nil, passOver(false, fmt.Errorf("%s is a link that leads out of %s", link.path, dir))
	})
}

// walkDirectory returns the files of a pattern below root, and the links there that lead to files of the
// pattern or out of root.
func walkDirectory(ctx context.Context, p input.Pattern, root string) (files []file, unreadable int, err error) {
	w := tree.Walker{
		Links:   true,
		Workers: runtime.GOMAXPROCS(0),
		SkipDir: func(name string) bool { return name == ".git" || name == ".hg" || name == ".svn" },
		Skip:    func(path string) bool { return !p.Reaches(path) && !p.Matches(path) },
	}
	results := make([][]file, w.Workers) // each worker has its own
	unreadable, err = w.Walk(ctx, root, func(worker int, f tree.File) {
		found := file{path: filepath.Join(p.Base, filepath.FromSlash(f.Path)), real: f.Full}
		matches := p.Matches(f.Path)
		if !f.Entry.Type().IsRegular() {
			info, err := os.Stat(f.Full)
			if err != nil {
				return // it leads nowhere
			}
			found.real, found.linked = realPath(f.Full), true
			if info.IsDir() { // within root, the walk comes to its files by itself
				matches = !within(found.real, root) && p.Reaches(f.Path)
			} else if !info.Mode().IsRegular() {
				matches = matches && !within(found.real, root)
			}
		}
		if matches {
			results[worker] = append(results[worker], found)
		}
	})
	files = slices.Concat(results...)
	slices.SortFunc(files, func(a, b file) int { return tree.Compare(filepath.ToSlash(a.path), filepath.ToSlash(b.path)) })
	return files, unreadable, err
}
