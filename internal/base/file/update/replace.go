package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process"
	"loki/internal/base/text"
)

const (
	workPrefix  = ".loki-update-" // of a directory beside the program while it is updated
	oldPrefix   = ".loki-old-"    // of a replaced program that Windows cannot remove while it runs
	leftoverAge = time.Hour       // how long the leftovers of others are left alone: they may be at work
)

// workDir makes a directory beside the program, on whose file system the new one must be, and removes
// what killed updates have left there.
func workDir(executable string) (string, error) {
	parent := filepath.Dir(executable)
	sweep(parent)
	dir, err := os.MkdirTemp(parent, workPrefix)
	if err != nil {
		return "", fault.Wrap(fault.Failure, err, "cannot write to %s, where this program is", parent).
			WithHint("run it as a user who may: sudo loki --update")
	}
	return dir, nil
}

// sweep removes the leftovers of updates in dir.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		old := strings.HasPrefix(e.Name(), oldPrefix)
		if !old && !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && (old || info.IsDir() && time.Since(info.ModTime()) > leftoverAge) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // an old program may still run
		}
	}
}

// tryOut runs the new program: it has to print the version of its tag within limit.
func tryOut(ctx context.Context, program, tag string, limit time.Duration) error {
	result, err := start(ctx, process.Command{Path: program, Args: []string{"--version"}, Timeout: limit, HasTimeout: true, MaxStdout: 1 << 16})
	if err != nil {
		return fault.Wrap(codeOf(err), err, "the new program does not run").WithHint("nothing was replaced")
	}
	printed := strings.TrimSpace(string(result.Stdout))
	if want := "loki " + strings.TrimPrefix(tag, "v"); semver.IsValid(tag) && printed != want {
		return fault.New(fault.Failure, "the new program says that it is %q, not %q", text.OneLine(printed, 100), want).WithHint("nothing was replaced")
	}
	return nil
}

// start runs a program that was just written. A child that another goroutine was starting at
// that moment may have the file open for writing until it has begun itself.
func start(ctx context.Context, c process.Command) (process.Result, error) {
	for try := 0; ; try++ {
		result, err := process.Run(ctx, c)
		if try == 20 || !errors.Is(err, syscall.ETXTBSY) {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// replace puts the new program in the place of the old one, with its mode.
func replace(program, executable, goos string) error {
	info, err := os.Stat(executable)
	if err != nil {
		return err
	}
	if err := os.Chmod(program, info.Mode().Perm()); err != nil {
		return err
	}
	if goos == "windows" { // does not replace a file that runs, but renames it
		return swap(program, executable)
	}
	if err := os.Rename(program, executable); err != nil {
		return err
	}
	atomicfile.SyncDir(filepath.Dir(executable))
	return nil
}

// swap moves the old program away and the new one to its place. If that fails, the old one comes
// back.
func swap(program, executable string) error {
	old := filepath.Join(filepath.Dir(executable), oldPrefix+filepath.Base(filepath.Dir(program))+"-"+filepath.Base(executable))
	if err := atomicfile.Rename(executable, old); err != nil {
		return err
	}
	if err := atomicfile.Rename(program, executable); err != nil {
		if back := atomicfile.Rename(old, executable); back != nil {
			return fmt.Errorf("%w; the old program is now %s: rename it (%w)", err, old, back)
		}
		return err
	}
	_ = os.Remove(old) // fails while it runs; the next update removes it
	return nil
}
