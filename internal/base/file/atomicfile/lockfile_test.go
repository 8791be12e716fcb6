package atomicfile_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/base/file/atomicfile"
)

func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := atomicfile.OpenLocked(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := atomicfile.OpenLocked(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("somebody else has the lock, but the error is %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := atomicfile.OpenLocked(t.Context(), path)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestLockNowhere(t *testing.T) {
	if _, err := atomicfile.OpenLocked(t.Context(), filepath.Join(t.TempDir(), "a", "b")); err == nil {
		t.Error("a file was locked in a directory that is not there")
	}
}
