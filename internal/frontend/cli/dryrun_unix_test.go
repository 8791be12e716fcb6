//go:build unix

package cli

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestDryRunOffersNothingToExecute: what a dry run shows is no command.
func TestDryRunOffersNothingToExecute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it would wait for a key
	defer cancel()
	cmd := exec.CommandContext(ctx, "loki", "-m", "builtin:echo", "-e", "list the files")
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=xterm-256color", "LOKI_DRY_RUN=true")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	shown, _ := io.ReadAll(screen) // ends with an error when the program closes the terminal
	if err := cmd.Wait(); err != nil || !strings.Contains(string(shown), "list the files") || strings.Contains(string(shown), "quit") {
		t.Errorf("%v\n%q", err, shown)
	}
}

// TestDryRunDrawsNothing: what would be sent is shown as it is, Markdown or not.
func TestDryRunDrawsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const text = "# Title\r\n- **one**\r\n    - role: `x`"
	cmd := exec.CommandContext(ctx, "loki", "-m", "builtin:echo", "--dry-run", strings.ReplaceAll(text, "\r", ""))
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=", "LOKI_THEME=dark")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	shown, _ := io.ReadAll(screen) // ends with an error when the program closes the terminal
	if err := cmd.Wait(); err != nil || !strings.Contains(string(shown), text) {
		t.Errorf("%v\n%q", err, shown)
	}
}
