// Package userfile opens files that a user names, who may name what never ends.
package userfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
)

// Check returns an error with code Usage for a named pipe, a device and the like: opening or reading one might never end. What
// the process has open already, such as /dev/stdin and the pipe of <(command) in a shell, is no error, nor are the null device, a
// directory and what is not there.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode().IsRegular() || path == os.DevNull || Inherited(path) {
		return nil
	}
	return fault.New(fault.Usage, "%s is %s, not a file", path, text.FileKind(info.Mode()))
}

// Open opens what [Check] accepts. Reading from a pipe ends with ctx, and then the error is that of ctx.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeNamedPipe {
		flags |= syscall.O_NONBLOCK // so that the deadline counts
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	// A file has no deadlines, and ends.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	return &file{f, ctx, stop}, nil
}

// ReadFile reads what [Open] opens.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	f, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

type file struct {
	f    *os.File
	ctx  context.Context
	stop func() bool
}

// Read implements [io.Reader].
func (f *file) Read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = f.ctx.Err()
	}
	return n, err
}

// Close implements [io.Closer].
func (f *file) Close() error {
	f.stop()
	return f.f.Close()
}

// Inherited reports whether path names an open file of the process.
func Inherited(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}
