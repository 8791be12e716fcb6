package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/repository"
	"loki/internal/base/process/tempdir"
	"loki/internal/knowledge/input"
	"loki/internal/tool/builtin/tree"
)

// clone is the source of a Git repository.
type clone struct {
	address repository.Address
	shown   string // the source without branch, directory and password
	branch  string // empty for the one that the repository prefers
	dir     string // within it, with slashes; empty for all
}

// beforeBranch returns a source without #branch.
func beforeBranch(source string) string {
	address, _, _ := strings.Cut(source, "#")
	return address
}

// parseRepository reads the source of a repository: an address, or the absolute path of a bare one.
func parseRepository(source string) (clone, error) {
	address, rest, _ := strings.Cut(source, "#")
	r := clone{shown: strings.TrimRight(input.WithoutPassword(address), "/")}
	r.branch, r.dir, _ = strings.Cut(rest, ":")
	r.dir = strings.Trim(r.dir, "/")
	var err error
	r.address, err = repository.ParseAddress(strings.TrimPrefix(address, "git+"))
	switch {
	case err != nil:
	case strings.HasPrefix(r.branch, "-"):
		err = errors.New("a branch does not begin with -")
	case r.dir != "" && !filepath.IsLocal(filepath.FromSlash(r.dir)):
		err = errors.New("the directory leads out of the repository")
	}
	if err != nil {
		return clone{}, fault.Wrap(fault.Usage, err, "%s", input.WithoutPassword(source)).
			WithHint("repositories are git+https://host/path, https://host/path.git and git@host:path, with #branch or #branch:directory behind them")
	}
	return r, nil
}

// isBare reports whether dir is a bare repository.
func isBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// yieldClone yields the files of a repository, ascending by path. They are read at once, since the clone is
// deleted in the end.
func (s *search) yieldClone(ctx context.Context, source string) error {
	r, err := parseRepository(source)
	if err != nil {
		return err
	}
	temp, err := tempdir.Make("", "git")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	root := filepath.Join(temp, "repository")
	git := repository.Git{Environ: s.Input.Programs.Environ}
	if err := git.Clone(ctx, r.address, root, repository.CloneOptions{Branch: r.branch}); err != nil {
		return err
	}
	root = filepath.Join(root, filepath.FromSlash(r.dir))
	base := r.shown
	if r.branch != "" {
		base += "#" + r.branch
	}
	if r.dir != "" {
		base += "/" + r.dir
	}
	files, err := filesOf(ctx, root)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.NotFound, fs.ErrNotExist, "%s: %s", r.shown, r.dir)
	}
	if err != nil {
		return err
	}
	defer func() { s.held = 0 }()
	for _, f := range files {
		path := base + "/" + f.Path
		content, err := s.readClone(ctx, path, f)
		if s.held = 0; content != nil {
			s.held = content.size
		}
		if ctx.Err() != nil || !s.found(path, func(context.Context) (*Content, error) { return content, err }) {
			return ctx.Err()
		}
	}
	return nil
}

// filesOf returns the files below a directory that is a clone, or below one in it, ascending by path.
func filesOf(ctx context.Context, root string) ([]tree.File, error) {
	if info, err := os.Stat(root); err == nil && info.Mode().IsRegular() {
		return nil, fault.New(fault.Usage, "%s is a file, not a directory", filepath.Base(root))
	}
	w := tree.Walker{All: true, Workers: runtime.GOMAXPROCS(0), SkipDir: func(name string) bool { return name == ".git" }}
	results := make([][]tree.File, w.Workers) // each worker has its own
	_, err := w.Walk(ctx, root, func(worker int, f tree.File) { results[worker] = append(results[worker], f) })
	files := slices.Concat(results...)
	slices.SortFunc(files, func(a, b tree.File) int { return tree.Compare(a.Path, b.Path) })
	return files, err
}

// readClone reads a file of a clone, which may be gone later.
func (s *search) readClone(ctx context.Context, path string, f tree.File) (*Content, error) {
	if s.Input.HasLoader(extOf(f.Path)) {
		data, err := readLimited(f.Full)
		if err != nil {
			return nil, err
		}
		return s.content(path, extOf(f.Path), hashOf(data), data)
	}
	return s.readFile(ctx, f.Full, false)
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if len(data) > MaxSize {
		return nil, ErrPassedOver
	}
	return data, err
}
