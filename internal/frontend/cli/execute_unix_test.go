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
		keys          []string // each with what is waited for before it
		runs          bool
	}{
		{"plain", "touch ran", []string{"touch ran"}, []string{"quit: ", "e"}, true},
		{"enter", "touch ran", []string{"touch ran"}, []string{"quit: ", "\r", "quit: ", "q"}, false},
		{"erased", "touch ran #\x1b[2K\x1b[1Gls -la", []string{`touch ran #\u001b[2K\u001b[1Gls -la`}, []string{"quit: ", "e", "not shown? |: ", "\r", "quit: ", "q"}, false},
		{"return", "touch ran #\rls -la", []string{`touch ran #\u000dls -la`}, []string{"quit: ", "e", "not shown? |: ", "\r", "quit: ", "q"}, false},
		{"reordered", "touch ran # \u202esl", []string{`\u202e`}, []string{"quit: ", "e", "not shown? |: ", "\r", "quit: ", "q"}, false},
		{"long", "touch ran" + strings.Repeat("\n", 60) + "ls", []string{"touch ran", "61 lines"}, []string{"quit: ", "\r", "quit: ", "q"}, false},
		{"sure", "touch ran #\x1b[2K", []string{`touch ran #\u001b[2K`}, []string{"quit: ", "e", "not shown? |: ", "y"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "rules.yaml"), fmt.Sprintf("default:\n  reply: %q\n", tt.command))
			cmd := exec.Command("loki", "-m", "builtin:script/rules.yaml", "-e", "list")
			cmd.Dir = dir
			cmd.Env = append(emptyHome(dir), "TERM=xterm-256color")
			term := newTerminal(t, cmd)
			term.wait(append(tt.shown, tt.keys[0])...)
			for i, key := range tt.keys {
				switch {
				case i%2 == 1:
					term.send(key)
				case i > 0:
					term.wait(strings.Split(key, "|")...)
				}
			}
			term.end()
			if _, err := os.Stat(filepath.Join(dir, "ran")); (err == nil) != tt.runs {
				t.Errorf("it was executed: %v", err == nil)
			}
			if strings.Contains(tt.name, "erased") && strings.Contains(term.seen.String(), "\x1b[2K") {
				t.Errorf("the command acts on the terminal: %q", term.seen.String())
			}
		})
	}
}
