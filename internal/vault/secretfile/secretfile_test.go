package secretfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	const variable = "SECRETFILE_TEST_LOCK"
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

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "file")
	for _, text := range []string{"first", "second, longer", ""} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	onlyFile(t, filepath.Join(dir, "new"), "file")
}

func TestWriteTightensTheMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files are a Unix matter")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestWriteThroughALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := Write(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link became %v, %v", info, err)
	}
	if got, _ := os.ReadFile(target); string(got) != "new" {
		t.Errorf("got %q", got)
	}
}

func TestWriteFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "a directory in its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x")); err == nil {
		t.Error("no error")
	}
	onlyFile(t, dir, "file")
}

func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// TestWriteRemovesLeftovers finds what killed processes left: an old one's, and one that may
// be at work.
func TestWriteRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for name, age := range map[string]time.Time{
		".vault.yml-17": old, ".vault.yml-18": time.Now(), ".vault.yml-a": old, "vault.yml-19": old, ".other.yml-20": old,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chtimes(file, age, age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(filepath.Join(dir, "vault.yml"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{".other.yml-20", ".vault.yml-18", ".vault.yml-a", "vault.yml", "vault.yml-19"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}
