package atomicfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "x.lock")
	var (
		wg   sync.WaitGroup
		held int
		most int
		mu   sync.Mutex
	)
	enter := func(d int) {
		mu.Lock()
		defer mu.Unlock()
		held += d
		most = max(most, held)
	}
	for range 8 {
		wg.Go(func() {
			for range 20 {
				unlock, err := Lock(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				enter(1)
				runtime.Gosched()
				enter(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d held the lock at once", most)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows" {
		t.Errorf("the lock file is still there: %v", err)
	}
}

func TestLockWaitsAsLongAsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.lock")
		unlock, err := Lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
		unlock()
		unlock, err = Lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}

// TestLockOfAnotherProcess runs this test program again as the other process.
func TestLockOfAnotherProcess(t *testing.T) {
	const variable = "ATOMICFILE_TEST_LOCK"
	if path := os.Getenv(variable); path != "" {
		if _, err := Lock(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("locked\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until killed
		return
	}
	path := filepath.Join(t.TempDir(), "x.lock")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockOfAnotherProcess$")
	cmd.Env = append(os.Environ(), variable+"="+path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two processes hold the lock: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	unlock, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatalf("after the death of its holder: %v", err)
	}
	unlock()
}
