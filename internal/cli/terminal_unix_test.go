//go:build unix

package cli

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestTerminal shows a run on a real terminal: one that obeys escape sequences, and
// one that says it does not, which must get none.
func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		term    string
		escapes bool
	}{{"xterm-256color", true}, {"dumb", false}} {
		t.Run(tt.term, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "agent", "graph.yaml"), `
name: slow
start: work
nodes:
  work: {type: script, script: work.sh, next: done}
  done: {type: end, output: "the answer"}
`)
			write(t, filepath.Join(dir, "agent", "work.sh"), "sleep 0.5; echo '{}'\n") // so long that it is shown at work
			cmd := exec.Command("loki", "-a", "./agent", "x")
			cmd.Dir = dir
			cmd.Env = append(emptyHome(dir), "TERM="+tt.term, "NO_COLOR=1")
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			shown, _ := io.ReadAll(screen) // ends with an error when the program closes the terminal
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, shown)
			}
			if !strings.Contains(string(shown), "work (script) done") || !strings.Contains(string(shown), "the answer") {
				t.Errorf("the terminal shows %q", shown)
			}
			if got := strings.Contains(string(shown), "\x1b["); got != tt.escapes {
				t.Errorf("escape sequences: %v, want %v\n%q", got, tt.escapes, shown)
			}
		})
	}
}
