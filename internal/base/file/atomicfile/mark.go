package atomicfile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Mark reports to other processes that this one works with what a directory is about, until it calls end or dies. The directory has a
// file for each such process, PID-RANDOM.lock, which the process holds locked.
func Mark(ctx context.Context, dir string) (end func(), err error) {
	return Lock(ctx, filepath.Join(dir, fmt.Sprintf("%d-%s.lock", os.Getpid(), rand.Text())))
}

// MarkedBy returns the id of a process that has marked a directory, "" if there is none. It removes the marks of processes that died.
func MarkedBy(dir string) (pid string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		pid, _, marks := strings.Cut(e.Name(), "-")
		if !marks || filepath.Ext(e.Name()) != ".lock" {
			continue
		}
		held, err := HeldElseRemoved(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if held {
			return pid, nil
		}
	}
	return "", nil
}
