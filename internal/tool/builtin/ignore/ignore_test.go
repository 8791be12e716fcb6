package ignore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/text/sample"
	"loki/internal/tool/builtin/ignore"
)

// tree makes files, and directories for names that end with a slash.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// hidden returns which of the paths are hidden, with the places of the patterns. A star marks what is hidden from programs, too.
func hidden(f ignore.Files, paths ...string) (found []string) {
	r := f.Rules()
	for _, path := range paths {
		abs := path
		if !filepath.IsAbs(path) {
			abs = filepath.Join(f.Root, path)
		}
		info, err := os.Stat(abs)
		m, ok := r.Hides(abs)
		closed, programs := r.HidesFromPrograms(abs, err == nil && info.IsDir())
		switch {
		case programs && closed != m:
			found = append(found, fmt.Sprintf("%s %s, but %s for programs", path, m, closed))
		case programs:
			found = append(found, path+" "+m.String()+"*")
		case ok:
			found = append(found, path+" "+m.String())
		}
	}
	return found
}

// Each case is what users of other programs reported as broken there, or a promise of the documentation.
func TestHides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		user  string
		paths []string
		want  []string
	}{
		"a name in every directory": {
			map[string]string{".aiignore": "# secrets\n\n.env\n", "a/b/": ""},
			"",
			[]string{".env", "a/b/.env", ".env.example", ".env/x"},
			[]string{".env .aiignore:3*", "a/b/.env .aiignore:3*", ".env/x .aiignore:3*"},
		},
		"two stars": {map[string]string{".aiignore": "**/.env\n", "a/b/": ""}, "", []string{".env", "a/b/.env"}, []string{".env .aiignore:1*", "a/b/.env .aiignore:1*"}},
		"an anchored directory": {
			map[string]string{".aiignore": "/poc\n", "poc/": "", "a/poc/": ""},
			"",
			[]string{"poc", "poc/x/y", "a/poc/x"},
			[]string{"poc .aiignore:1*", "poc/x/y .aiignore:1*"},
		},
		"all but one directory": {
			map[string]string{".aiignore": "*\n!/tools/\n!/tools/**\n", "tools/sub/h.js": "", "src/x": ""},
			"",
			[]string{"tools", "tools/sub", "tools/sub/h.js", "src/x", "README"},
			[]string{"src/x .aiignore:1*", "README .aiignore:1*"},
		},
		"an example is taken back": {
			map[string]string{".aiignore": ".env*\n!.env.example\n"},
			"",
			[]string{".env", ".env.local", ".env.example"},
			[]string{".env .aiignore:1*", ".env.local .aiignore:1*"},
		},
		"the deeper decides": {
			map[string]string{".aiignore": "*.key\n", "test/.aiignore": "!*.key\n/only\n"},
			"",
			[]string{"a.key", "test/a.key", "test/only", "test/x/only"},
			[]string{"a.key .aiignore:1*", "test/only test/.aiignore:2*"},
		},
		"what is in a hidden directory is not taken back": {map[string]string{".aiignore": "s/\n!s/x\n", "s/.aiignore": "!*\n"}, "", []string{"s/x"}, []string{"s/x .aiignore:1*"}},
		"a directory that does not exist":                 {map[string]string{".aiignore": "s/\n"}, "", []string{"s", "s/x"}, []string{"s .aiignore:1", "s/x .aiignore:1*"}},
		"other names": {
			map[string]string{".cursorignore": "go.sum\n", ".aiignore": "x\n", ".geminiignore": "!x\n"},
			"",
			[]string{"go.sum", "x"},
			[]string{"go.sum .cursorignore:1", "x .aiignore:1*"},
		},
		"what builds fill": {
			map[string]string{".aiignore": "node_modules/\n*.pem\n", "node_modules/a/x.pem": "", "b/vendor/x.pem": ""},
			"",
			[]string{"node_modules", "node_modules/a/x.pem", "b/vendor/x.pem", "b/x.pem"},
			[]string{"node_modules .aiignore:1", "node_modules/a/x.pem .aiignore:1", "b/vendor/x.pem .aiignore:2", "b/x.pem .aiignore:2*"},
		},
		"the user's own": {
			map[string]string{".aiignore": "!*.pem\n!/etc\n"},
			"*.pem\n!ca.pem\n/etc/shadow\n",
			[]string{"a.pem", "ca.pem", "/srv/x.pem", "/etc/shadow", "etc/shadow", "/etc/passwd"},
			[]string{"a.pem USER:1*", "/srv/x.pem USER:1*", "/etc/shadow USER:3*", "etc/shadow USER:3*"},
		},
		"no rules of others outside": {map[string]string{".aiignore": "*\n"}, "", []string{"/etc/passwd", ".."}, nil},
		"byte order mark and CRLF":   {map[string]string{".aiignore": "\ufeffa.txt\r\nb.txt\r\n"}, "", []string{"a.txt", "b.txt"}, []string{"a.txt .aiignore:1*", "b.txt .aiignore:2*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := ignore.Files{Root: tree(t, tt.files), Others: []string{".cursorignore", ".geminiignore"}}
			if tt.user != "" {
				f.User = filepath.Join(tree(t, map[string]string{"ignore": tt.user}), "ignore")
			}
			got := hidden(f, tt.paths...)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], f.User+":", "USER:")
			}
			if f.User == "" {
				got = hidden(f, tt.paths...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A link to a directory is hidden as one is, unlike in git.
func TestLinkToDirectory(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{".aiignore": "data/\n", "real/x": ""})
	if err := os.Symlink("real", filepath.Join(root, "data")); err != nil {
		t.Skip(err)
	}
	if got := hidden(ignore.Files{Root: root}, "data", "data/x", "real/x"); !slices.Equal(got, []string{"data .aiignore:1*", "data/x .aiignore:1*"}) {
		t.Errorf("got %q", got)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	big := "first\n" + strings.Repeat("x", 1<<20) + "\nlast\n"
	root := tree(t, map[string]string{".aiignore": "ok\n[x\n/\n!\n", "a/.aiignore": big, "b/.aiignore/": "", "ok": "", "a/first": "", "a/last": ""})
	list := ignore.Files{Root: root, Others: []string{".cursorignore"}}.List()
	want := []ignore.Listed{
		{".aiignore", 1, 1, true, []ignore.Finding{{".aiignore", 2, "is not a pattern"}, {".aiignore", 3, "is not a pattern"}, {".aiignore", 4, "is not a pattern"}}},
		{"a/.aiignore", 1, 1, true, []ignore.Finding{{"a/.aiignore", 0, "only its first 1048576 bytes count"}}},
		{"b/.aiignore", 0, 0, true, []ignore.Finding{{"b/.aiignore", 0, "it is not a regular file"}}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if list := (ignore.Files{Root: tree(t, nil)}).List(); len(list) != 0 {
		t.Errorf("got %v", list)
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	r := ignore.Files{Root: "/r", User: "/c/ignore", Others: []string{".cursorignore"}}.Rules()
	for path, want := range map[string]bool{"/r/.aiignore": true, "/r/a/.cursorignore": true, "/c/ignore": true, "/r/ignore": false, "/x/.aiignore": false, "/r/.gitignore": false} {
		if r.Is(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// Git itself says the same of random trees.
func TestRulesAreThoseOfGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	root := tree(t, nil)
	run := func(in string, args ...string) []byte {
		c := exec.CommandContext(t.Context(), git, append([]string{"-C", root}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		c.Stdin = strings.NewReader(in)
		out, err := c.Output()
		if e, ok := err.(*exec.ExitError); err != nil && (!ok || e.ExitCode() > 1) {
			t.Fatal(args, err)
		}
		return out
	}
	run("", "init", "-q")
	hiddenInAll := 0
	for i := 0; i < 2000; i += sample.Step(40) {
		paths := randomTree(t, root, rand.New(rand.NewPCG(1, uint64(i))))
		want := make(map[string]string)
		fields := strings.Split(string(run(strings.Join(paths, "\x00"), "check-ignore", "-v", "-z", "--no-index", "--stdin")), "\x00")
		for f := fields; len(f) >= 4; f = f[4:] {
			if !strings.HasPrefix(f[2], "!") {
				want[f[3]] = f[0] + ":" + f[1]
			}
		}
		rules := ignore.Files{Root: root, Others: []string{".gitignore"}}.Rules()
		got := make(map[string]string)
		for _, path := range paths {
			if m, ok := rules.Hides(filepath.Join(root, path)); ok {
				got[path] = m.String()
			}
		}
		hiddenInAll += len(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tree %d: %s\n%s", i, diff, ignoreFilesOf(root))
		}
	}
	if hiddenInAll == 0 {
		t.Error("no file of any tree is hidden")
	}
}

// randomTree replaces what is in root, but for .git, and returns the paths of files and directories.
func randomTree(t *testing.T, root string, r *rand.Rand) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	of := func(list ...string) string { return list[r.IntN(len(list))] }
	name := func() string { return of("a", "b", "c", "ab", "abc", "a.x", "b.x", "c.y", ".e", "x y") }
	pattern := func() string {
		part := func() string {
			return of(name(), name(), "*", "a*", "*b", "*.x", "?", "?b*", "[ab]", "[!a]", "[a-b]*", "**", "**", `\a`, `a\*`)
		}
		if r.IntN(12) == 0 {
			return "a**" // not before a slash: git 2.39 then compares pointers into two texts
		}
		p := part()
		for range r.IntN(3) {
			p += "/" + part()
		}
		return of("", "", "", "!", "/", "!/", "**/") + p + of("", "", "", "/", "/**", " ", "/*")
	}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		if depth == 0 || r.IntN(3) == 0 {
			lines := []string{"# patterns"}
			for range 1 + r.IntN(5) {
				lines = append(lines, pattern())
			}
			if err := os.WriteFile(filepath.Join(root, dir, ".gitignore"), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 + r.IntN(4) {
			path := filepath.Join(dir, name())
			full := filepath.Join(root, path)
			if _, err := os.Lstat(full); err == nil {
				continue
			}
			paths = append(paths, filepath.ToSlash(path))
			if depth < 3 && r.IntN(2) == 0 {
				if err := os.Mkdir(full, 0o755); err != nil {
					t.Fatal(err)
				}
				fill(path, depth+1)
			} else if err := os.WriteFile(full, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill("", 0)
	return paths
}

// ignoreFilesOf returns the ignore files below root, for messages.
func ignoreFilesOf(root string) string {
	var b strings.Builder
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".gitignore" {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%s:\n%s\n", path, text)
		}
		return nil
	})
	return b.String()
}
