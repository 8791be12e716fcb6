package tree

import (
	"context"
	"os"
	"os/exec"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern  string
		yes, not []string
	}{
		{"*.go", []string{"a.go", "x/y/a.go", ".go"}, []string{"a.gox", "a.go/x"}},
		{"a?c", []string{"abc", "x/aéc"}, []string{"ac", "abbc"}},
		{"[a-c]x[!0-9]", []string{"axx", "cxé"}, []string{"dxx", "ax1"}},
		{"[]]x", []string{"]x"}, []string{"x"}},
		{"[!]a]x", []string{"bx"}, []string{"]x", "ax"}},
		{"a[!b]c", []string{"axc"}, []string{"abc", "a/c"}},
		{"x/a[^b]c", []string{"x/adc"}, []string{"x/abc", "x/a/c"}},
		{"b***", []string{"b", "bx", "x/bx"}, []string{"ab"}},
		{"x/***", []string{"x/a"}, []string{"x/a/b"}},
		{"a}b", []string{"a}b"}, []string{"ab"}},
		{"*.{go,txt}", []string{"a.go", "b.txt", "a.{go,txt}"}, []string{"a.md"}},
		{"app/[id]/*", []string{"app/[id]/x", "app/i/x"}, []string{"app/x/x"}},
		{"{a,b{c,d}}", []string{"a", "bc", "bd"}, []string{"b", "bcd"}},
		{`a\*b`, []string{"a*b"}, []string{"axb"}},
		{"src/*.go", []string{"src/a.go"}, []string{"src/x/a.go", "a.go", "x/src/a.go"}},
		{"src/**/*.go", []string{"src/a.go", "src/x/y/a.go"}, []string{"a.go", "src/a.c"}},
		{"**/a", []string{"a", "x/a", "x/y/a"}, []string{"xa", "a/x"}},
		{"a/**", []string{"a/x", "a/x/y"}, []string{"b/a"}},
		{"**/x/**/y", []string{"x/y", "a/x/b/x/c/y"}, []string{"x", "y/x"}},
		{"/a", []string{"a"}, []string{"b/a"}},
		{"a*b*c*d", []string{"abcd", "axbxbxcxd"}, []string{"abcx", "abdc"}},
		{"*", []string{"x", "a/b", ".x"}, nil},
	} {
		g, err := Compile("", tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, path := range tt.yes {
			if !g.Match(path) {
				t.Errorf("%s does not match %s", tt.pattern, path)
			}
		}
		for _, path := range tt.not {
			if g.Match(path) {
				t.Errorf("%s matches %s", tt.pattern, path)
			}
		}
	}
	for _, bad := range []string{"[a", "{a", "[]", `a\`, strings.Repeat("{a,b}", 9)} {
		if _, err := Compile("", bad); err == nil {
			t.Errorf("%s is taken for a pattern", bad)
		}
	}
}

// ignoreCases are ignore files by directory, and paths (directories end with a slash).
var ignoreCases = []struct {
	name  string
	files map[string]string
	paths []string
}{
	{"names", map[string]string{"": "*.log\n# no\n\n\\#yes\ntmp/\n"}, []string{"a.log", "x/b.log", "#yes", "tmp/", "x/tmp/", "no"}},
	{"negation", map[string]string{"": "*.log\n!keep.log\n!x/\n"}, []string{"a.log", "keep.log", "x/keep.log"}},
	{"anchored", map[string]string{"": "/a\nb/c\n/d/*\n!/d/e\n"}, []string{"a", "x/a", "b/c", "x/b/c", "d/e", "d/f"}},
	{"stars", map[string]string{"": "**/a/b\nc/**\ne/**/f\n*.t?t\n[ab]x\n"}, []string{"a/b", "x/a/b", "c/d", "e/f", "e/g/h/f", "a.txt", "ax", "cx"}},
	{"nested", map[string]string{"": "*.a\n", "s": "!k.a\n/only\n*.b\n"}, []string{"x.a", "s/k.a", "s/j.a", "s/only", "s/t/only", "s/x.b", "x.b"}},
	{"directories_only", map[string]string{"": "d/\n"}, []string{"d", "x/d/"}},
	{"blanks", map[string]string{"": "a \nb\\ \n"}, []string{"a", "a ", "b ", "b"}},
	{"braces", map[string]string{"": "{x}.a\n{y\n"}, []string{"{x}.a", "{y", "y"}},
	{"invalid", map[string]string{"": "[x\nok\n"}, []string{"[x", "ok"}},
}

// want are the ignored paths of each case.
var ignored = map[string][]string{
	"names":            {"a.log", "x/b.log", "#yes", "tmp/", "x/tmp/"},
	"negation":         {"a.log"},
	"anchored":         {"a", "b/c", "d/f"},
	"stars":            {"a/b", "x/a/b", "c/d", "e/f", "e/g/h/f", "a.txt", "ax"},
	"nested":           {"x.a", "s/j.a", "s/only", "s/x.b"},
	"directories_only": {"x/d/"},
	"blanks":           {"a", "b "},
	"braces":           {"{x}.a", "{y"},
	"invalid":          {"ok"},
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tt := range ignoreCases {
		var got []string
		for _, path := range tt.paths {
			rules, _ := ParseRules("", "/r", []byte(tt.files[""]), nil)
			if sub, ok := tt.files["s"]; ok && strings.HasPrefix(path, "s/") {
				rules, _ = ParseRules("", "/r/s", []byte(sub), rules)
			}
			plain, isDir := strings.CutSuffix(path, "/")
			if rules.Ignored("/r/"+plain, isDir) {
				got = append(got, path)
			}
		}
		if !slices.Equal(got, ignored[tt.name]) {
			t.Errorf("%s: got %q, want %q", tt.name, got, ignored[tt.name])
		}
	}
}

// Git itself says the same.
func TestRulesAreThoseOfGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	for _, tt := range ignoreCases {
		dir := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), git, "init", "-q", dir).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		for sub, text := range tt.files {
			os.MkdirAll(filepath.Join(dir, sub), 0o755)
			os.WriteFile(filepath.Join(dir, sub, ".gitignore"), []byte(text), 0o644)
		}
		var got []string
		for _, path := range tt.paths {
			// Only the path itself: the directories on the way do not exist.
			c := exec.CommandContext(t.Context(), git, "-C", dir, "check-ignore", "-q", "--no-index", path)
			c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			if c.Run() == nil {
				got = append(got, path)
			}
		}
		if !slices.Equal(got, ignored[tt.name]) {
			t.Errorf("%s: git says %q, not %q", tt.name, got, ignored[tt.name])
		}
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, text := range map[string]string{
		".git/HEAD": "x", ".git/info/exclude": "private\n", ".gitignore": "*.log\n/sub/no\n", "a": "", "b.log": "", "sub/no": "", "sub/yes": "", "sub/private": "",
		"sub/deep/.ignore": "!z.log\nq\n", "sub/deep/z.log": "", "sub/deep/q": "", "skip/x": "",
	} {
		full := filepath.Join(dir, path)
		os.MkdirAll(filepath.Dir(full), 0o755)
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	walk := func(root string, w Walker) []string {
		var mu sync.Mutex
		var got []string
		if _, err := w.Walk(t.Context(), root, func(_ int, f File) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, f.Path)
		}); err != nil {
			t.Error(err)
		}
		slices.SortFunc(got, Compare)
		return got
	}
	skip := func(name string) bool { return name == ".git" || name == "skip" }
	if got, want := walk(dir, Walker{SkipDir: skip}), []string{".gitignore", "a", "sub/deep/.ignore", "sub/deep/z.log", "sub/yes"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := walk(filepath.Join(dir, "sub"), Walker{SkipDir: skip}), []string{"deep/.ignore", "deep/z.log", "yes"}; !slices.Equal(got, want) {
		t.Errorf("below a repository: got %q, want %q", got, want)
	}
	if got := walk(dir, Walker{All: true, Workers: 7}); len(got) != 12 {
		t.Errorf("all: got %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Walker{}).Walk(ctx, dir, func(int, File) {}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if _, err := (Walker{}).Walk(t.Context(), filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a directory that is not there was walked")
	}
	func() {
		defer func() {
			if v := recover(); v != "oops" {
				t.Errorf("recovered %v", v)
			}
		}()
		Walker{}.Walk(t.Context(), dir, func(int, File) { panic("oops") })
	}()
}

func TestCompare(t *testing.T) {
	t.Parallel()
	paths := []string{"a", "a/b", "a/b/c", "a-b", "a.b", "ab", "b"}
	shuffled := []string{"b", "ab", "a.b", "a-b", "a/b/c", "a", "a/b"}
	if slices.SortFunc(shuffled, Compare); !slices.Equal(shuffled, paths) {
		t.Errorf("got %q", shuffled)
	}
}

// Matching ends, and a path without special characters matches itself.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"*.go", "a.go"}, {"a/**/b", "a/x/b"}, {"{a,b}[!c]?", "axy"}, {`\*`, "*"}, {"**/**/*a*a*a*b", "aaaaaaaaaaaa"}, {"[[]", "["}, {"[a-", "-"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if g, err := Compile("", pattern); err == nil {
			g.Match(path)
		}
		if strings.ContainsAny(path, `*?[\{}`) || strings.HasPrefix(path, "/") || path != pathpkg.Clean(path) || path == "." {
			return
		}
		if g, err := Compile("", path); err != nil || !g.Match(path) {
			t.Errorf("%q does not match itself: %v", path, err)
		}
	})
}

// Whatever an ignore file holds, a rule and its negation behind it ignore nothing.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"*.log", "/a/b/", "**/x", "a/**", "!x", "\\#", "[a-z]*", "a\\ ", "\xef\xbb\xbfa", "//", "a//b"} {
		f.Add(s, "a/b.log")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		rules, _ := ParseRules("", "/r", []byte(text), nil)
		rules.Ignored("/r/"+path, false)
		if strings.ContainsAny(text, "\n\r!") || strings.HasPrefix(text, "\xef\xbb\xbf") || strings.HasPrefix(text, "#") {
			return
		}
		if both, _ := ParseRules("", "/r", []byte(text+"\n!"+text), nil); both.Ignored("/r/"+path, true) {
			t.Errorf("%q and its negation ignore %q", text, path)
		}
	})
}
