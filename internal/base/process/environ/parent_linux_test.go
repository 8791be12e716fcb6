package environ_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/process/environ"
)

// asker is the variable that makes the test binary ask its parent.
const asker = "ENVIRON_TEST_ASKS"

func TestMain(m *testing.M) {
	if os.Getenv(asker) != "" {
		os.Stdout.WriteString(strings.Join(environ.Inherit(context.Background(), os.Environ()), "\n"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The same program gets what was withheld, wherever its file is reached by; another does not.
func TestParent(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link, other := filepath.Join(dir, "link"), filepath.Join(dir, "copy")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, code, 0o700); err != nil {
		t.Fatal(err)
	}
	secrets := []string{"A_KEY=1", "B_TOKEN=x=y"}
	p, err := environ.Listen(secrets)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(program string, entries ...string) string {
		c := exec.Command(program)
		c.Env = append([]string{asker + "=1"}, entries...)
		c.Stderr = t.Output() // a binary that measures coverage warns here
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	want := strings.Join(secrets, "\n")
	for program, want := range map[string]string{self: want, link: want, other: ""} {
		if diff := cmp.Diff(want, ask(program, p.Variable())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", program, diff)
		}
	}
	if got := ask(self); got != "" {
		t.Errorf("without an address: %q", got)
	}

	t.Run("another_user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can start a process of another user")
		}
		shared, err := os.MkdirTemp("", "environ-parent-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(shared)
		same := filepath.Join(shared, "same")
		if err := errors.Join(os.Chmod(shared, 0o711), os.Link(self, same)); err != nil {
			t.Skip(err)
		}
		c := exec.Command(same)
		c.Dir, c.Stderr = "/", t.Output()
		c.Env = []string{asker + "=1", p.Variable()}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := c.Output(); err != nil || len(out) > 0 {
			t.Errorf("%q, %v", out, err)
		}
	})
	if got := ask(self, environ.ParentVariable+"="+impostor(t)); got != "" {
		t.Errorf("from a socket with a file: %q", got)
	}

	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := ask(self, p.Variable()); got != "" {
		t.Errorf("from one that has ended: %q", got)
	}
}

// impostor returns the path of a socket in the file system that gives an entry to all who ask.
func impostor(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { // until l is closed
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(`["PATH=/forged"]`))
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		served.Wait()
	})
	return l.Addr().String()
}
