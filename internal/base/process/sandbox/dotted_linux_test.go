//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
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
			for _, r := range b.Refusals("", false) {
				names = append(names, r.What)
			}
			const want = "changed .eslintrc, .storybook/main.js .foo .foorc .github/x.json .storybook/new.js sub/.foorc"
			if got := strings.Join(names, " "); !tt.kept && got != want || tt.kept && got != "" {
				t.Errorf("withheld are %q", got)
			}
		})
	}
}

// TestMovedToAPlace: what a command may change stays no place that runs later because it was there before under another name.
func TestMovedToAPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	for _, path := range []string{".custom", ".other/x", ".third/hook", ".fourth", ".fifth", "real/x"} {
		w.write(t, "src/project/"+path, "mine")
	}
	for link, target := range map[string]string{"node_modules": "real", ".link": "real/x"} {
		if err := os.Symlink(target, filepath.Join(w.workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := w.run(t, write, "bash", "-ec", `echo evil >.custom; mv .custom .envrc; mkdir d r r/objects r/refs; mv .other d/.vscode; mv .third/hook sub/AGENTS.md; ln .fourth sub/.envrc
		echo ref: refs/heads/x >r/HEAD; mv .link r/config; mv node_modules r/hooks; mv .fifth sub/.fifth`)
	if err != nil {
		t.Fatal(out, err)
	}
	w.withheld(t, ".envrc", "d/.vscode", "sub/AGENTS.md", "sub/.envrc", "r/config", "r/hooks", "sub/.fifth")
}

// TestHardLinks: what runs later can have another name in the workspace, by which a command changes it. The result says so.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	w.write(t, "src/project/hook.sh", "mine")
	if err := os.Link(filepath.Join(w.workspace, "hook.sh"), filepath.Join(w.workspace, ".envrc")); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"echo evil >>hook.sh":                   "ran while .envrc changed (it runs later, and another program did that, or it has another name (a hard link) by which the command wrote it: look at it)",
		"echo x >notes; ln notes sub/AGENTS.md": "sub/AGENTS.md.withheld, which has another name (a hard link), too: copy it before it is put back",
		"echo x >other":                         "",
	} {
		b := w.box(write, sandbox.Needs{})
		if _, err := process.Run(t.Context(), process.Command{Path: "bash", Args: []string{"-ec", script}, Dir: w.workspace, Env: os.Environ(), Confinement: b}); err != nil {
			t.Fatal(err)
		}
		got := b.LeftNote()
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", script, got)
		}
	}
}

// TestStaysARepository: a command cannot have a directory of the user be no repository for a while, in which another one changes its
// settings.
func TestStaysARepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	for _, path := range []string{"HEAD", "config", "objects/x", "refs/x"} {
		w.write(t, "src/project/bare/"+path, "mine")
	}
	for _, script := range []string{"mv bare/HEAD bare/H", "rm bare/HEAD", "mv bare/objects bare/o", "rm -r bare/refs", "echo x >bare/HEAD"} {
		if out, err := w.run(t, write, "bash", "-ec", script); err == nil {
			t.Errorf("%s: %s", script, out)
		}
	}
	if out, err := w.run(t, write, "bash", "-ec", "echo x >bare/objects/y; mkdir bare/refs/heads; mv bare moved"); err != nil {
		t.Error(err, out)
	}
}
