package command

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
)

// screen is what a console prints.
type screen struct{ strings.Builder }

func (s *screen) Print(text string)    { s.WriteString(text + "\n") }
func (s *screen) Markdown(text string) { s.WriteString(text + "\n") }
func (s *screen) Note(text string)     { s.WriteString("note: " + text + "\n") }
func (s *screen) Colored(text string)  { s.Print(text) }
func (s *screen) Reveal(text string)   { s.WriteString(text + "\n") }
func (s *screen) Warn(text string)     { s.WriteString("warning: " + text + "\n") }

func TestBundles(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	kit := filepath.Join(dir, "kit")
	for name, text := range map[string]string{"functions/tools/t.sh": "echo t\n", "roles/kind.md": "Be kind.\n"} {
		file := filepath.Join(kit, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "commit.gpgsign=false", "commit", "-qm", "one"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", kit}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	a, err := app.New(app.Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LOKI_CONFIG_DIR=" + config, "LOKI_STATE_DIR=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	answer := "no"
	shown := new(screen)
	c := New(Options{App: a, Out: shown, Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		shown.Print(q.Text)
		return answer, nil
	})})
	installed := func() string {
		files, _ := filepath.Glob(filepath.Join(config, "*", "*.md"))
		tools, _ := filepath.Glob(filepath.Join(config, "functions", "tools", "*"))
		return strings.ReplaceAll(strings.Join(append(files, tools...), " "), config+string(filepath.Separator), "")
	}
	for _, step := range []struct {
		line, answer, shown, installed string
		code                           fault.Code
	}{
		{line: ".bundle", shown: "note: no bundles are installed"},
		{line: ".install remote " + kit, answer: "no", shown: "Install bundle kit"},
		{line: ".install remote " + kit + " --dry-run", shown: "Nothing was changed. Without --dry-run:"},
		{line: ".install remote --filter roles '" + kit + "#main'", shown: "kit is installed: 1 new", installed: "roles/kind.md"},
		{line: ".install remote " + kit + " --filter=functions", answer: "yes", shown: "kit is installed: 1 new", installed: "roles/kind.md functions/tools/t.sh"},
		{line: ".bundle", shown: "kit       2        0  ", installed: "roles/kind.md functions/tools/t.sh"},
		{line: ".bundle update kit", shown: "0 new, 0 replaced, 0 kept, 2 identical", installed: "roles/kind.md functions/tools/t.sh"},
		{line: ".bundle remove kit", shown: "Bundle kit is removed: 2 files deleted."},
		{line: ".install remote " + kit + " --filter tools", code: fault.Usage},
		{line: ".install remote " + kit + " " + kit, code: fault.Usage},
		{line: ".install remote --force", code: fault.Usage},
		{line: ".install remote --forse " + kit, code: fault.Usage},
		{line: ".bundle drop kit", code: fault.Usage},
		{line: ".bundle update kit", code: fault.NotFound},
	} {
		shown.Reset()
		answer = step.answer
		err := c.Do(t.Context(), step.line)
		if fault.CodeOf(err) != step.code || !strings.Contains(shown.String(), step.shown) {
			t.Errorf("%s: %v, shown\n%s", step.line, err, shown)
		}
		if got := installed(); got != step.installed {
			t.Errorf("%s: installed %s", step.line, got)
		}
	}
	for typed, want := range map[string]string{"x --filter ": "agents|roles|macros|functions|skills|mcp_config", "x --force ": "--filter|--yes|--dry-run"} {
		if got := values(completeInstallRemote(c, t.Context(), strings.Split(typed, " "))); got != want {
			t.Errorf("%s: %s", typed, got)
		}
	}
}
