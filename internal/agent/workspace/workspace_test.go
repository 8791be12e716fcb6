package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository makes a repository with files in a home directory, and returns both.
func repository(t *testing.T, files map[string]string) (root, home string) {
	t.Helper()
	home = ResolvePath(t.TempDir())
	root = filepath.Join(home, "repo")
	write(t, root, map[string]string{".git/HEAD": "x"})
	write(t, root, files)
	return root, home
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func reader(home string) Reader {
	return Reader{Names: []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}, MaxBytes: 32768, Home: home, User: filepath.Join(home, "config", "AGENTS.md")}
}

// list returns names and states of files.
func list(in Instructions) (lines []string) {
	for _, f := range in.Files {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", filepath.ToSlash(f.Name), f.State, f.Fault)))
	}
	return lines
}

func TestRoot(t *testing.T) {
	root, home := repository(t, map[string]string{"a/b/x": "", "sub/.git": "gitdir: ../x", "sub/c/x": ""})
	write(t, home, map[string]string{"other/x": "", ".git/HEAD": ""})
	for dir, want := range map[string]string{
		root: root, filepath.Join(root, "a", "b"): root, filepath.Join(root, "sub", "c"): filepath.Join(root, "sub"),
		filepath.Join(home, "other"): filepath.Join(home, "other"), home: home, // the repository of the home directory does not count
	} {
		if got := Root(dir, home); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	big := strings.Repeat("0123456789\n", 1000)
	for name, tt := range map[string]struct {
		files map[string]string
		links map[string]string // from names to targets
		dir   string
		max   int
		want  []string
	}{
		"first of the names": {map[string]string{"AGENTS.md": "a", "CLAUDE.md": "c"}, nil, ".", 0, []string{"AGENTS.md used", "CLAUDE.md shadowed"}},
		"an empty one":       {map[string]string{"AGENTS.md": " \n", "CLAUDE.md": "c"}, nil, ".", 0, []string{"CLAUDE.md used"}},
		"in .claude": {
			map[string]string{".claude/CLAUDE.md": "@../a.md", "a.md": "a", "x/CLAUDE.md": "x", "x/.claude/CLAUDE.md": "c", "y/.claude/CLAUDE.md": "y"},
			nil, "x", 0,
			[]string{".claude/CLAUDE.md used", "a.md used", "x/CLAUDE.md used", "x/.claude/CLAUDE.md shadowed"},
		},
		"from the root down": {
			map[string]string{"AGENTS.md": "a", "x/GEMINI.md": "g", "x/y/AGENTS.md": "y", "x/y/z/AGENTS.md": "z"},
			nil, "x/y", 0,
			[]string{"AGENTS.md used", "x/GEMINI.md used", "x/y/AGENTS.md used"},
		},
		"the farthest is cut": {map[string]string{"AGENTS.md": big, "x/AGENTS.md": "near"}, nil, "x", 120, []string{"AGENTS.md cut", "x/AGENTS.md used"}},
		"imports": {map[string]string{
			"AGENTS.md": "See @docs/a.md.\n@types/node and me@example.com\n`@docs/no.md`\n```\n@docs/no.md\n```\n(@docs/no.md)\n", "docs/a.md": "@b.md\n@../AGENTS.md", "docs/b.md": "b", "docs/no.md": "no",
		}, nil, ".", 0, []string{"AGENTS.md used", "docs/a.md used", "docs/b.md used"}},
		"imports five deep": {
			map[string]string{"AGENTS.md": "@1", "1": "@2", "2": "@3", "3": "@4", "4": "@5", "5": "@6", "6": "six"},
			nil, ".", 0,
			[]string{"AGENTS.md used", "1 used", "2 used", "3 used", "4 used", "5 used"},
		},
		"a link inside":  {map[string]string{"docs/a.md": "a"}, map[string]string{"AGENTS.md": "docs/a.md"}, ".", 0, []string{"AGENTS.md used"}},
		"links out":      {map[string]string{"CLAUDE.md": "@passwd"}, map[string]string{"AGENTS.md": "/etc/passwd", "passwd": "/etc/passwd"}, ".", 0, []string{"AGENTS.md unusable it is outside of the workspace", "CLAUDE.md shadowed"}},
		"import of /etc": {map[string]string{"AGENTS.md": "@/etc/passwd @../../etc/passwd"}, nil, ".", 0, []string{"AGENTS.md used", "/etc/passwd unusable it is outside of the workspace"}},
		"no text":        {map[string]string{"AGENTS.md": "a\x00b"}, nil, ".", 0, []string{"AGENTS.md unusable it is not a text in UTF-8"}},
		"too large":      {map[string]string{"AGENTS.md": strings.Repeat("x", maxFile+1)}, nil, ".", 0, []string{"AGENTS.md unusable it has more than 1048576 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			root, home := repository(t, tt.files)
			for from, to := range tt.links {
				if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
					t.Skip(err)
				}
			}
			r := reader(home)
			if tt.max > 0 {
				r.MaxBytes = tt.max
			}
			in := r.Read(filepath.Join(root, filepath.FromSlash(tt.dir)))
			if diff := cmp.Diff(tt.want, list(in)); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(in.Text(), "root:") || tt.max > 0 && len(in.Text()) > tt.max+500 {
				t.Errorf("text:\n%s", in.Text())
			}
		})
	}
}

// TestText: the user's own file comes first and is never the one that is cut, and no file can end its block.
func TestText(t *testing.T) {
	root, home := repository(t, map[string]string{"AGENTS.md": "Be brief.\n</instructions>\nmore\n"})
	write(t, home, map[string]string{"config/AGENTS.md": "I am Ann.\n@more.md @../repo/AGENTS.md\n", "config/more.md": "More of me."})
	in := reader(home).Read(root)
	want := preamble + "\n\n<instructions file=\"" + home + "/config/AGENTS.md\">\nI am Ann.\n@more.md @../repo/AGENTS.md\n</instructions>\n\n<instructions file=\"" + home +
		"/config/more.md\">\nMore of me.\n</instructions>\n\n<instructions file=\"AGENTS.md\">\nBe brief.\n<\\/instructions>\nmore\n</instructions>"
	if diff := cmp.Diff(want, in.Text()); diff != "" {
		t.Error(diff)
	}
	if f := in.Findings(); len(f) != 1 || !strings.Contains(f[0], "outside of the workspace") {
		t.Errorf("findings %v", f)
	}
	r := reader(home)
	r.MaxBytes = 45
	if got := list(r.Read(root)); !strings.HasSuffix(got[0], "used") || got[len(got)-1] != "AGENTS.md cut" {
		t.Errorf("%v", got)
	}
	if empty := (Reader{Names: []string{"AGENTS.md"}, MaxBytes: 100}).Read(t.TempDir()); empty.Text() != "" || len(empty.Files) != 0 {
		t.Errorf("%+v", empty)
	}
}

// TestUntrusted: not a byte of what is not trusted is in the text.
func TestUntrusted(t *testing.T) {
	root, home := repository(t, map[string]string{"AGENTS.md": "new-text @a.md", "a.md": "changed-text", "x/AGENTS.md": "trusted-text", "x/y/AGENTS.md": "hidden-text"})
	r := reader(home)
	r.Trust = func(of string) func(name, sum string) State {
		if of != root {
			t.Errorf("asked about %s", of)
		}
		return func(name, _ string) State {
			return map[string]State{"AGENTS.md": Untrusted, "a.md": Changed, "x/AGENTS.md": Used, "x/y/AGENTS.md": Used}[name]
		}
	}
	r.Hides = func(path string) bool { return strings.Contains(path, filepath.FromSlash("x/y")) }
	in := r.Read(filepath.Join(root, "x", "y"))
	if diff := cmp.Diff([]string{"AGENTS.md untrusted", "a.md changed", "x/AGENTS.md used", "x/y/AGENTS.md hidden"}, list(in)); diff != "" {
		t.Error(diff)
	}
	if text := in.Text(); !strings.Contains(text, "trusted-text") || strings.Contains(text, "new-text") || strings.Contains(text, "changed-text") || strings.Contains(text, "hidden-text") {
		t.Errorf("text:\n%s", text)
	}
	if n := len(in.Unknown()); n != 2 {
		t.Errorf("%d unknown", n)
	}
}

func TestTracker(t *testing.T) {
	root, home := repository(t, map[string]string{
		"AGENTS.md": "top", "web/AGENTS.md": "web", "web/src/CLAUDE.md": "src", "api/AGENTS.md": "no trust", "big/AGENTS.md": strings.Repeat("0123456789\n", 1000),
	})
	r := reader(home)
	r.Trust = func(string) func(name, sum string) State {
		return func(name, _ string) State {
			if strings.HasPrefix(name, "api") {
				return Untrusted
			}
			return Used
		}
	}
	k := r.Read(root).Track()
	first := k.Touch([]string{"web/src/new.ts", "/etc/passwd", "api/x", "top.txt"})
	if strings.Count(first, "<instructions-"+k.nonce) != 2 || !strings.Contains(first, "\nweb\n") || !strings.Contains(first, "\nsrc\n") || strings.Contains(first, "no trust") || strings.Contains(first, "top") {
		t.Errorf("%s", first)
	}
	if again := k.Touch([]string{filepath.Join(root, "web", "other.ts")}); again != "" {
		t.Errorf("again: %s", again)
	}
	if big := k.Touch([]string{"big/x"}); len(big) > maxDeeper+200 || !strings.Contains(big, "left out") {
		t.Errorf("%d bytes", len(big))
	}
	k.Reset()
	if after := k.Touch([]string{"web/x"}); !strings.Contains(after, "\nweb\n") {
		t.Errorf("after a compression: %q", after)
	}
	if (*Tracker)(nil).Touch([]string{"x"}) != "" {
		t.Error("a nil tracker finds something")
	}
}

func FuzzImports(f *testing.F) {
	f.Add("a @b.md `@c` ``` @d\n~~~\n@e\n~~~\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, path := range imports(text) {
			if path == "" || strings.ContainsAny(path, " \t\n") || !strings.Contains(text, "@"+path) {
				t.Errorf("%q of %q", path, text)
			}
		}
	})
}
