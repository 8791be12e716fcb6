package tempdir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"loki/internal/base/process/tempdir"
)

// TestMain makes a directory and ends at once, as a process that is killed.
func TestMain(m *testing.M) {
	if parent := os.Getenv("LOKI_TEST_LEAVE"); parent != "" {
		if _, err := tempdir.Make(parent, "left-behind"); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSweep(t *testing.T) {
	parent := t.TempDir()
	leave := exec.Command(os.Args[0])
	leave.Env = append(os.Environ(), "LOKI_TEST_LEAVE="+parent)
	if out, err := leave.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	left, _ := filepath.Glob(filepath.Join(parent, "loki-left-behind-*"))
	if len(left) != 1 {
		t.Fatalf("left behind are %q", left)
	}
	name := filepath.Base(left[0])
	parts := strings.Split(name, "-")
	other := strings.Replace(name, parts[4], "00000000"+parts[4][8:], 1)
	for _, kept := range []string{other, "loki-of-mine", "loki-left-behind-1-x", "else"} { // of another machine, or of another program
		if err := os.Mkdir(filepath.Join(parent, kept), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(left[0], "output"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	mine, err := tempdir.Make(parent, "eval")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(mine, "loki-eval-"+strconv.Itoa(os.Getpid())+"-") {
		t.Errorf("the directory is %s", mine)
	}
	tempdir.Sweep(parent)
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 5 {
		t.Errorf("%d directories are there, %v", len(entries), err)
	}
	if _, err := os.Stat(left[0]); !os.IsNotExist(err) {
		t.Errorf("the directory of the process that has ended: %v", err)
	}
}
