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
	"time"

	"loki/internal/environ"
	"loki/internal/fault"
	"loki/internal/input"
	"loki/internal/process"
	"loki/internal/tool/builtin/tree"
)

// cloneTimeout bounds the cloning of a repository.
const cloneTimeout = 10 * time.Minute

// repository is the source of a Git repository.
type repository struct {
	url    string // as git reads it
	shown  string // the source without branch, directory and password
	branch string // empty for the one that the repository prefers
	dir    string // within it, with slashes; empty for all
}

// beforeBranch returns a source without #branch.
func beforeBranch(source string) string {
	address, _, _ := strings.Cut(source, "#")
	return address
}

// parseRepository reads the source of a repository: an address, or the absolute path of a bare one.
func parseRepository(source string) (repository, error) {
	address, rest, _ := strings.Cut(source, "#")
	r := repository{url: strings.TrimPrefix(address, "git+"), shown: strings.TrimRight(input.WithoutPassword(address), "/")}
	r.branch, r.dir, _ = strings.Cut(rest, ":")
	r.dir = strings.Trim(r.dir, "/")
	scheme, host, isURL := strings.Cut(r.url, "://")
	host = host[strings.LastIndexByte(host, '@')+1:]
	invalid := func(reason string) (repository, error) {
		return repository{}, fault.New(fault.Usage, "%s: %s", input.WithoutPassword(source), reason).
			WithHint("repositories are git+https://host/path, https://host/path.git and git@host:path, with #branch or #branch:directory behind them")
	}
	switch {
	case strings.HasPrefix(r.url, "-") || strings.HasPrefix(host, "-") || strings.HasPrefix(r.branch, "-"):
		return invalid("neither an address nor a branch begins with -")
	case r.dir != "" && !filepath.IsLocal(filepath.FromSlash(r.dir)):
		return invalid("the directory leads out of the repository")
	case isURL && !slices.Contains([]string{"https", "http", "ssh", "git", "file"}, scheme):
		return invalid("git cannot be asked for " + scheme + " addresses")
	case isURL || strings.HasPrefix(r.url, "git@") && strings.Contains(r.url, ":"):
	case filepath.IsAbs(r.url):
		r.url = "file://" + filepath.ToSlash(r.url)
	default:
		return invalid("it is not the address of a repository")
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

// clone yields the files of a repository, ascending by path. They are read at once, since the clone is
// deleted in the end.
func (s *search) clone(ctx context.Context, source string) error {
	r, err := parseRepository(source)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "loki-git-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	root := filepath.Join(temp, "repository")
	if err := s.fetchRepository(ctx, r, root); err != nil {
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

// fetchRepository clones the last commit of a repository. What it contains must not run programs or ask
// questions: no hooks, no submodules, no links, and only protocols that start no programs of its choice.
func (s *search) fetchRepository(ctx context.Context, r repository, to string) error {
	args := []string{
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.symlinks=false", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never",
		"clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--template=",
	}
	if r.branch != "" {
		args = append(args, "--branch="+r.branch)
	}
	_, err := process.Run(ctx, process.Command{
		Path: "git", Args: append(args, "--", r.url, to),
		Env: environ.Merge(s.Input.Child.Environ, map[string]string{
			"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never",
			"GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C",
		}, "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_TEMPLATE_DIR"),
		Timeout: cloneTimeout, HasTimeout: true,
	})
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := errors.AsType[*process.StartError](err); ok {
		return fault.New(fault.Tool, "%s: git is needed to read repositories, and it cannot be started", r.shown).WithHint("install git, or list a directory with a clone")
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		said := exit.Stderr
		if secret, _, ok := strings.Cut(strings.TrimPrefix(r.url, strings.SplitAfter(r.url, "://")[0]), "@"); ok && strings.Contains(secret, ":") {
			said = strings.ReplaceAll(said, secret+"@", "")
		}
		return fault.New(fault.Tool, "%s cannot be cloned: %s", r.shown, strings.TrimSpace(said))
	}
	return fault.Wrap(fault.Tool, err, "%s cannot be cloned", r.shown)
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
