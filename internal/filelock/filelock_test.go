package filelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/filelock"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := filelock.Open(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("somebody else has the lock, but the error is %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := filelock.Open(t.Context(), path)
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

func TestNowhere(t *testing.T) {
	if _, err := filelock.Open(t.Context(), filepath.Join(t.TempDir(), "a", "b")); err == nil {
		t.Error("a file was locked in a directory that is not there")
	}
}
