//go:build unix

package input

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// beat is how often [Ready] looks whether its context has ended.
const beat = 250 * time.Millisecond

// Ready waits until f has bytes to read or its end, and reports whether it has. It waits for d at most, and not for what is no
// file of the system. The error is that of the context.
func Ready(ctx context.Context, f *os.File, d time.Duration) (bool, error) {
	deadline := time.Now().Add(d)
	for {
		left := time.Until(deadline)
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(0, min(left, beat)).Milliseconds()))
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case n > 0 || err != nil && !errors.Is(err, unix.EINTR): // reading says what is wrong
			return true, nil
		case left <= 0:
			return false, nil
		}
	}
}
