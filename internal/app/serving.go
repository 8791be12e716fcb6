package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/atomicfile"
)

// servingDir has a file for each server that works with the files of a state directory: PID-RANDOM.lock, which the
// server holds locked.
const servingDir = "serving"

// markServing says to other processes that this one is a server that works with the files, until it calls end or dies.
func (a *App) markServing(ctx context.Context) (end func(), err error) {
	name := fmt.Sprintf("%d-%s.lock", os.Getpid(), rand.Text())
	end, err = atomicfile.Lock(ctx, filepath.Join(a.Paths.StateDir, servingDir, name))
	if err != nil {
		return nil, fmt.Errorf("marking the files as those of a server: %w", err)
	}
	return end, nil
}

// serving returns the process id of a server that works with the files, "" if there is none. It removes the marks of
// servers that died.
func (a *App) serving() (pid string, err error) {
	dir := filepath.Join(a.Paths.StateDir, servingDir)
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
		held, err := atomicfile.HeldElseRemoved(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if held {
			return pid, nil
		}
	}
	return "", nil
}
