package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// asNobody calls fn as a user without rights, if the test is run by root.
func asNobody(t *testing.T, fn func()) {
	t.Helper()
	if os.Getuid() != 0 {
		fn()
		return
	}
	// The user for files is the thread's own, and connections are opened by the
	// goroutine that needs them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setfsuid(0) }()
	fn()
}

func TestReadOnly(t *testing.T) {
	for _, tt := range []struct {
		name      string
		dir, file os.FileMode // 0 for no file
	}{
		{"directory_without_file", 0o555, 0},
		{"directory", 0o555, 0o444},
		{"file", 0o777, 0o444},
		{"unreadable_file", 0o777, 0o200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := os.MkdirTemp("", "readonly")
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, "state")
			path := filepath.Join(dir, "runs.db")
			t.Cleanup(func() {
				_ = os.Chmod(dir, 0o700)
				_ = os.RemoveAll(root)
			})
			if tt.file != 0 {
				if err := withPragma("user_version")(t, path); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, tt.file); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Chmod(root, 0o755), os.Chmod(dir, tt.dir)); err != nil {
				t.Fatal(err)
			}
			asNobody(t, func() {
				s, err := Open(path, Options{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Create(t.Context(), run.Info{}, run.Checkpoint{})
				if _, ok := errors.AsType[*fault.Error](err); !ok || fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), path) {
					t.Errorf("create: %v (code %s)", err, fault.CodeOf(err))
				}
				if !strings.Contains(fault.HintOf(err), "writable") {
					t.Errorf("hint %q", fault.HintOf(err))
				}
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}

// TestFullDisk fills a disk of one megabyte.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may mount a disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "runs.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := create(t, s, graph.State{})
	r := j.Task(1, "a")
	kept := 0
	for i := 0; err == nil && i < 1000; i++ {
		text := []byte(value.Of(prose(uint64(i), 20_000)).String())
		if err = r.Record(t.Context(), string(rune('a'+i)), steps.Step{Kind: steps.Tool}, text); err == nil {
			kept++
		}
	}
	if fault.CodeOf(err) != fault.Failure || !strings.Contains(err.Error(), path) || !strings.Contains(fault.HintOf(err), "space") {
		t.Errorf("the disk ran full after %d records: %v (hint %q)", kept, err, fault.HintOf(err))
	}
	_ = j.Close() // may fail, too
	if err := s.Close(); err != nil {
		t.Logf("close: %v", err)
	}

	// With space on the disk the run goes on, with all that was recorded.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, Options{})
	j, _, err = again.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatal(err)
	}
	for i := range kept {
		got, err := j.Task(1, "a").Lookup(t.Context(), string(rune('a'+i)), steps.Step{})
		if err != nil || string(got.Result) != value.Of(prose(uint64(i), 20_000)).String() {
			t.Fatalf("record %d of %d: %.50q, %v", i, kept, got.Result, err)
		}
	}
	if err := errors.Join(recordStep(j, "more"), j.Close()); err != nil {
		t.Error(err)
	}
}
