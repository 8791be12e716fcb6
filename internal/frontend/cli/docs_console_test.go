package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestConsoles runs the commands of the consoles on pages, and compares what they print with what the pages show.
func TestConsoles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pages show paths with slashes")
	}
	for name, status := range pagesConsole {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consolesOf(t, name, status)
		})
	}
}

// consolesOf runs the commands of the consoles on a page, which end with a status.
func consolesOf(t *testing.T, name string, status int) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	consoles := regexp.MustCompile("(?ms)^```console$\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(consoles) == 0 {
		t.Fatal("the page has no console")
	}
	env := emptyHome(t.TempDir())
	for _, console := range consoles {
		var want, got bytes.Buffer
		for line := range strings.Lines(console[1]) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				want.WriteString(line)
				continue
			}
			for _, args := range callsIn(command) {
				cmd := exec.CommandContext(t.Context(), "loki", args...)
				cmd.Dir, cmd.Env, cmd.Stdout = root, env, &got
				if err := cmd.Run(); cmd.ProcessState.ExitCode() != status {
					t.Errorf("loki %q: %v", args, err)
				}
			}
		}
		if got.String() != want.String() {
			t.Errorf("got\n%s\nthe page shows\n%s", got.String(), want.String())
		}
	}
}
