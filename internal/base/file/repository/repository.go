// Package repository reads Git repositories of others.
//
// A repository is cloned by the program git, so that the user's keys, credential helpers, proxies
// and certificates count. Nothing that it contains runs or asks: hooks, templates and submodules
// are left out, git gets no terminal, and only protocols that git itself serves are allowed. A
// bare clone has no working tree either, so that no attribute, filter, symbolic link or name of
// its files has an effect: [Git.List] and [Git.Read] take files from the objects.
package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/text"
)

// timeout bounds the cloning of a repository, and each reading from a clone.
const timeout = 10 * time.Minute

// Git runs git. It may be used from several goroutines.
type Git struct {
	Environ []string // of git, as KEY=value; variables that would lead it elsewhere are left out
}

// CloneOptions say what is cloned. The zero value is a working tree of the last commit.
type CloneOptions struct {
	Branch   string // or a tag; empty for the branch that the repository prefers
	History  bool   // all branches with their history
	Bare     bool   // without a working tree
	MaxBytes int64  // on the disk; 0 means no limit
}

// Clone clones the repository at a to dir, which must not exist. The error has code Tool, or Limit
// if the clone grows beyond o.MaxBytes; what is there of the clone then is left to the caller.
func (g Git) Clone(ctx context.Context, a Address, dir string, o CloneOptions) error {
	args := []string{"clone", "--quiet", "--template="}
	if o.Bare {
		args = append(args, "--bare")
	} else {
		args = append(args, "--no-recurse-submodules")
	}
	if !o.History {
		args = append(args, "--depth=1", "--single-branch", "--no-tags")
	}
	if o.Branch != "" {
		args = append(args, "--branch="+o.Branch)
	}
	watched, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() { // ends when stop is called
		defer close(ended)
		limitSize(watched, stop, dir, o.MaxBytes)
	}()
	_, err := g.run(watched, a, filepath.Dir(dir), nil, 0, append(args, "--", a.url, dir)...)
	cause := context.Cause(watched)
	stop(nil)
	<-ended
	if err == nil && exceeds(dir, o.MaxBytes) {
		cause = errTooLarge
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(cause, errTooLarge):
		return fault.New(fault.Limit, "%s cannot be cloned: it takes more than %d MiB", a, o.MaxBytes>>20)
	case err == nil:
		return nil
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		said := text.Visible(strings.TrimSpace(strings.ReplaceAll(exit.Stderr, "\r", "\n"))) // the server has a say in it
		return fault.New(fault.Tool, "%s cannot be cloned: %s", a, said).WithHint("git ls-remote %s shows whether git reaches it without asking", text.Word(a.url))
	}
	return fault.Wrap(fault.Tool, err, "%s cannot be cloned", a)
}

var errTooLarge = errors.New("the clone is too large")

// limitSize calls stop with errTooLarge when the files below dir take more than limit bytes. It
// returns when ctx ends.
func limitSize(ctx context.Context, stop context.CancelCauseFunc, dir string, limit int64) {
	if limit == 0 {
		return
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if exceeds(dir, limit) {
				stop(errTooLarge)
			}
		}
	}
}

// exceeds reports whether the files below dir take more than limit bytes; 0 is no limit.
func exceeds(dir string, limit int64) bool {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // git moves files while this looks
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return limit > 0 && sum > limit
}

// run runs git in dir and returns what it prints, at most limit bytes.
func (g Git) run(ctx context.Context, a Address, dir string, stdin []byte, limit int64, args ...string) ([]byte, error) {
	settings := []string{
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.symlinks=false", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false",
		"-c", "fetch.recurseSubmodules=false", "-c", "transfer.bundleURI=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "core.bigFileThreshold=8m", // larger files are not taken into memory
	}
	c := process.Command{Path: "git", Args: append(settings, args...), Dir: dir, Env: g.environ(a, dir), MaxStdout: limit, Timeout: timeout, HasTimeout: true}
	if stdin != nil {
		c.Stdin = bytes.NewReader(stdin)
	}
	result, err := process.Run(ctx, c)
	if _, ok := errors.AsType[*process.StartError](err); ok {
		return nil, fault.New(fault.Tool, "git is needed to read repositories, and it cannot be started").WithHint("install git, and see to it that it is on the PATH")
	}
	return result.Stdout, err
}

// environ returns the environment of git. The variables of git itself that stay say how to reach
// a repository.
func (g Git) environ(a Address, dir string) []string {
	allowed := "git:http:https:ssh"
	if a.IsLocal() {
		allowed = "file"
	}
	set := map[string]string{
		"GIT_ALLOW_PROTOCOL": allowed, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GIT_LFS_SKIP_SMUDGE": "1",
		"GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_CEILING_DIRECTORIES": dir, "LC_ALL": "C",
	}
	if a.header != "" { // not among the arguments, which every user of the machine may read
		maps.Copy(set, map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http." + a.origin() + ".extraHeader", "GIT_CONFIG_VALUE_0": a.header})
	}
	var unset []string
	for _, entry := range g.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, ours := set[name]; !ours && strings.HasPrefix(name, "GIT_") && !reaches(name) {
			unset = append(unset, name)
		}
	}
	return environ.Merge(g.Environ, set, unset...)
}

// reaches reports whether a variable says how git reaches a repository.
func reaches(name string) bool {
	switch name {
	case "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM":
		return true
	}
	return strings.HasPrefix(name, "GIT_SSL_") || strings.HasPrefix(name, "GIT_PROXY_")
}

// Commit returns the id of the commit that ref names in the bare clone at dir: a branch, a tag, or
// the beginning of an id. An empty ref is the branch that was cloned.
func (g Git) Commit(ctx context.Context, dir, ref string) (string, error) {
	if ref == "" {
		ref = "HEAD"
	}
	out, err := g.run(ctx, Address{}, dir, nil, 1<<10, "--git-dir="+dir, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if _, ok := errors.AsType[*process.ExitError](err); ok {
		return "", fault.New(fault.NotFound, "the repository has no commit %s", ref)
	}
	return strings.TrimSpace(string(out)), err
}

// File is a file in a commit.
type File struct {
	Path   string // with slashes; as the repository has it, which may be anything but empty
	Object string // its id
	Size   int64  // in bytes; 0 for a submodule
	Kind   Kind
}

// Kind is what a [File] is.
type Kind int

// The kinds.
const (
	Regular Kind = iota
	Link         // a symbolic link
	Module       // a submodule
)

// maxList bounds the list of files in a commit, in bytes.
const maxList = 16 << 20

// List returns the files of a commit in the bare clone at dir that are at one of paths or below
// it, in the order of their paths. The error has code Limit if the list is too long.
func (g Git) List(ctx context.Context, dir, commit string, paths ...string) ([]File, error) {
	args := append([]string{"--git-dir=" + dir, "ls-tree", "-r", "-z", "--long", "--full-tree", commit, "--"}, paths...)
	out, err := g.run(ctx, Address{}, dir, nil, maxList, args...)
	if _, ok := errors.AsType[*process.OutputError](err); ok {
		return nil, fault.New(fault.Limit, "the repository has too many files")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Tool, err, "the files of the repository cannot be listed")
	}
	return parseList(out)
}

// parseList reads what ls-tree prints: mode, type, id and size with blanks between them, a tab, the
// path and a NUL.
func parseList(out []byte) ([]File, error) {
	var files []File
	for entry := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(entry) == 0 {
			continue
		}
		head, path, ok := strings.Cut(string(entry), "\t")
		fields := strings.Fields(head)
		if !ok || path == "" || len(fields) != 4 {
			return nil, fault.New(fault.Tool, "the list of files that git printed is malformed")
		}
		f := File{Path: path, Object: fields[2]}
		switch fields[0] {
		case "120000":
			f.Kind = Link
		case "160000":
			f.Kind = Module
		}
		if f.Kind != Module {
			size, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil || size < 0 {
				return nil, fault.New(fault.Tool, "git does not say how large a file is")
			}
			f.Size = size
		}
		files = append(files, f)
	}
	return files, nil
}

// Read returns the contents of files of the bare clone at dir, in their order. All of them are in
// memory at once.
func (g Git) Read(ctx context.Context, dir string, files []File) ([][]byte, error) {
	var in bytes.Buffer
	limit := int64(1)
	for _, f := range files {
		in.WriteString(f.Object + "\n")
		limit += f.Size + 128 // for the line in front of it
	}
	out, err := g.run(ctx, Address{}, dir, in.Bytes(), limit, "--git-dir="+dir, "cat-file", "--batch")
	if err != nil {
		return nil, fault.Wrap(fault.Tool, err, "the files of the repository cannot be read")
	}
	contents := make([][]byte, len(files))
	for i, f := range files {
		head, rest, _ := bytes.Cut(out, []byte{'\n'})
		if string(head) != fmt.Sprintf("%s blob %d", f.Object, f.Size) || int64(len(rest)) <= f.Size {
			return nil, fault.New(fault.Tool, "the files of the repository cannot be read: %s is damaged", f.Object)
		}
		contents[i], out = rest[:f.Size:f.Size], rest[f.Size+1:]
	}
	return contents, nil
}
