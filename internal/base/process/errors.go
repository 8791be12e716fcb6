package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// StartError says that a program could not be started.
type StartError struct {
	Program string // base name
	Reason  string // what is wrong, for people
	Err     error  // the system's error
}

func (e *StartError) Error() string {
	if errors.Is(e.Err, exec.ErrNotFound) {
		return e.Program + " " + e.Reason
	}
	return "start " + e.Program + ": " + e.Reason
}

// Unwrap returns the system's error.
func (e *StartError) Unwrap() error { return e.Err }

// notFound is the StartError for a name that PATH does not lead to.
func notFound(program string) *StartError {
	return &StartError{Program: program, Reason: "not found on PATH", Err: exec.ErrNotFound}
}

// startError explains why the start of c, found at path, failed with err. The system
// reports most of these as the same "no such file or directory".
func startError(c *Command, path string, err error) *StartError {
	e := &StartError{Program: c.program(), Reason: err.Error(), Err: err}
	if c.Dir != "" {
		info, statErr := os.Stat(c.Dir)
		switch {
		case errors.Is(statErr, os.ErrNotExist):
			e.Reason = "its working directory " + strconv.Quote(c.Dir) + " does not exist"
			return e
		case statErr == nil && !info.IsDir():
			e.Reason = "its working directory " + strconv.Quote(c.Dir) + " is not a directory"
			return e
		}
	}
	if c.Dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(statErr, os.ErrNotExist):
		e.Reason = "no such file: " + path
	case statErr == nil && info.IsDir():
		e.Reason = path + " is a directory"
	case errors.Is(err, os.ErrNotExist):
		e.Reason = "the interpreter in its #! line does not exist"
		if c.Confinement != nil {
			e.Reason += ", or the sandbox does not show the program or the interpreter"
		}
	case errors.Is(err, os.ErrPermission):
		e.Reason = "no permission to execute " + path
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = path + " has no #! line and is not a program for this system"
	case errors.Is(err, syscall.E2BIG):
		e.Reason = "arguments and environment are larger than the system allows"
	case errors.Is(err, syscall.EAGAIN):
		e.Reason = "the system's limit of processes is reached"
	}
	return e
}

// ExitError says that a program ended by itself, but not with success.
type ExitError struct {
	Program string // base name
	Code    int    // exit status, -1 after a signal
	Signal  string // name of the signal, or empty
	Stderr  string // what it printed there, as in [Result], trimmed
}

// maxErrorStderr is how much of stderr an error message repeats, in bytes.
const maxErrorStderr = 4 << 10

func (e *ExitError) Error() string {
	var b strings.Builder
	if e.Signal != "" {
		fmt.Fprintf(&b, "%s was ended by %s", e.Program, e.Signal)
	} else {
		fmt.Fprintf(&b, "%s failed with exit status %d", e.Program, e.Code)
	}
	if e.Stderr != "" {
		b.WriteString(": ")
		b.WriteString(shorten(e.Stderr, maxErrorStderr))
	}
	return b.String()
}

// TimeoutError says that a program ran longer than its limit and was killed.
type TimeoutError struct {
	Program string // base name
	Limit   time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s timed out after %v", e.Program, max(e.Limit, 0))
}

// OutputError says that a program printed more on stdout than it may and was killed.
type OutputError struct {
	Program string // base name
	Limit   int64  // bytes
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("%s printed more than %s and was killed", e.Program, byteSize(e.Limit))
}

// byteSize prints a whole number of MiB or KiB as such and any other in bytes.
func byteSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// stopError is the error for a program that was killed because ctx ended. It wraps
// ctx's error and, if that says more, its cause.
func stopError(ctx context.Context, program string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("%s stopped: %w", program, cause)
	}
	return fmt.Errorf("%s stopped: %w: %w", program, err, cause)
}
