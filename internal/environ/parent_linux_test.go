package environ_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/environ"
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

	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := ask(self, p.Variable()); got != "" {
		t.Errorf("from one that has ended: %q", got)
	}
}
