//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExecuteShowsWhatRuns has a model write commands that look harmless on a terminal.
func TestExecuteShowsWhatRuns(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		shown         []string
		runs          bool // when Enter is pressed
	}{
		{"plain", "touch ran", []string{"touch ran"}, true},
		{"erased", "touch ran #\x1b[2K\x1b[1Gls -la", []string{`touch ran #\u001b[2K\u001b[1Gls -la`, "Enter does not execute it"}, false},
		{"return", "touch ran #\rls -la", []string{`touch ran #\u000dls -la`, "Enter does not execute it"}, false},
		{"reordered", "touch ran # \u202esl", []string{`\u202e`, "Enter does not execute it"}, false},
		{"long", "touch ran" + strings.Repeat("\n", 60) + "ls", []string{"touch ran", "61 lines", "Enter does not execute it"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "rules.yaml"), fmt.Sprintf("default:\n  reply: %q\n", tt.command))
			cmd := exec.Command("loki", "-m", "builtin:script/rules.yaml", "-e", "list")
			cmd.Dir = dir
			cmd.Env = append(emptyHome(dir), "TERM=xterm-256color")
			term := newTerminal(t, cmd)
			term.wait(append(tt.shown, "quit: ")...)
			term.send("\r")
			term.end()
			if _, err := os.Stat(filepath.Join(dir, "ran")); (err == nil) != tt.runs {
				t.Errorf("Enter executed it: %v", err == nil)
			}
			if strings.Contains(tt.name, "erased") && strings.Contains(term.seen.String(), "\x1b[2K") {
				t.Errorf("the command acts on the terminal: %q", term.seen.String())
			}
		})
	}
}
