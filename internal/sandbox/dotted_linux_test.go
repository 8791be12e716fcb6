//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/process"
	"loki/internal/sandbox"
)

// TestNewNamesWithADot: what a command makes at level write that programs may find by a name with a dot gets another name.
func TestNewNamesWithADot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		level sandbox.Level
		kept  bool
	}{{"write", sandbox.Write, false}, {"network", sandbox.Network, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.write(t, "src/project/.storybook/main.js", "old")
			w.write(t, "src/project/.eslintrc", "old")
			b := w.box(sandbox.Declaration{Level: tt.level}, sandbox.Needs{})
			const made = ".foorc .foo/a/b sub/.foorc .storybook/new.js .github/x.json"
			const stays = ".gitignore .next/x/.y .pytest_cache/.gitignore .github/ISSUE_TEMPLATE/a.md node_modules/p/.eslintrc .x.swp plain .eslintrc .storybook/main.js"
			text := "for f in " + made + " " + stays + `; do mkdir -p "$(dirname $f)"; echo new >$f.new; mv $f.new $f; done`
			r, err := process.Run(t.Context(), process.Command{Path: "bash", Args: []string{"-c", text}, Dir: w.workspace, Confinement: b, Env: os.Environ()})
			if err != nil {
				t.Fatalf("%v: %s", err, r.Stderr)
			}
			for f := range strings.FieldsSeq(made) {
				if _, err := os.Lstat(filepath.Join(w.workspace, f)); (err == nil) != tt.kept {
					t.Errorf("%s is there: %v", f, err == nil)
				}
			}
			for f := range strings.FieldsSeq(stays) {
				if data, err := os.ReadFile(filepath.Join(w.workspace, f)); err != nil || string(data) != "new\n" {
					t.Errorf("%s: %q, %v", f, data, err)
				}
			}
			var names []string
			for _, r := range b.Refused("", false) {
				names = append(names, r.What)
			}
			const want = ".foo .foorc .github/x.json .storybook/new.js sub/.foorc"
			if got := strings.Join(names, " "); !tt.kept && got != want || tt.kept && got != "" {
				t.Errorf("withheld are %q", got)
			}
		})
	}
}
