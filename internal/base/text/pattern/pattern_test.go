package pattern

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, yes, not string }{
		{"*.go", "a.go .go", "x/a.go a.gox"},
		{"docs/*", "docs/a docs/.b", "docs docs/a/b adocs/a"},
		{"docs/**", "docs docs/a docs/a/b", "docsa/b"},
		{"**/a", "a x/a x/y/a", "xa a/x"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/xb"},
		{"a?c", "abc aéc", "ac abbc a/c"},
		{"[a-c]x[!0-9]", "axx cxé", "dxx ax1 ax/"},
		{"[]]x", "]x", "x"},
		{"[!]a]x", "bx", "]x ax"},
		{"*.{go,txt}", "a.go b.txt", "a.md a.{go,txt}"},
		{"{a,b{c,d}}", "a bc bd", "b bcd"},
		{"{src,docs/**}/*.md", "src/a.md docs/a.md docs/x/a.md", "src/x/a.md"},
		{"{x}", "x", "{x}"},
		{"a}b", "a}b", "ab"},
		{"a]b", "a]b", "ab"},
		{`a\*b\[\{`, "a*b[{", "axb[{"},
		{"./a//b/./c/", "a/b/c", "a/b"},
		{"/a/b", "/a/b", "a/b /a/b/c"},
		{"/**", "/ /a /a/b", "a"},
		{"b***", "b bx", "b/x"},
		{"e\u0301*", "\u00e9a e\u0301a", "ea"},
	} {
		p, err := Compile(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		check(t, "matches", tt.pattern, p.Match, tt.yes, tt.not)
	}
}

func check(t *testing.T, verb, pattern string, match func(string) bool, yes, not string) {
	t.Helper()
	for path := range strings.FieldsSeq(yes) {
		if !match(path) {
			t.Errorf("not: %s %s %s", pattern, verb, path)
		}
	}
	for path := range strings.FieldsSeq(not) {
		if match(path) {
			t.Errorf("%s %s %s", pattern, verb, path)
		}
	}
}

func TestCompileBoth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, covers, not string }{
		{"app/[id]/**", "app/[id] app/[id]/x/y app/i/x app/d", "app/x/y app/[i]"},
		{"{draft}/**", "{draft}/a draft/a", "drafts/a"},
		{"app/[id]/*.{ts,tsx}", "app/[id]/a.ts app/[id]/a.{ts,tsx} app/i/a.tsx", "app/[id]/a.js"},
		{"secrets", "secrets secrets/a/b", "secrets2 a/secrets"},
		{"secrets/", "secrets secrets/a", "secret"},
		{`a\b`, `ab a\b a\b/c`, "a/b"},
		{`a\[b`, `a[b a\[b`, "ab"},
		{"{a,{b,[cd]}}e", "ae be ce {a,b}e {a,{b,[cd]}}e", "fe"},
		{strings.Repeat("[ab]", 30), strings.Repeat("a", 30) + " " + strings.Repeat("[ab]", 30), strings.Repeat("c", 30)},
		{"*", "a a/b", "/a"},
	} {
		p, err := CompileBoth(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		check(t, "covers", tt.pattern, p.Covers, tt.covers, tt.not)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[a": "bracket", "[]": "bracket", "[a/b]": "bracket", "{a": "brace", "{a{b}": "brace", `a\`: "backslash",
		strings.Repeat("{a,b}", 9): "alternatives", strings.Repeat("a", maxText+1): "bytes",
	} {
		for _, compile := range []func(string) (*Pattern, error){Compile, CompileBoth} {
			if p, err := compile(text); err == nil {
				t.Errorf("%.20s is %v, not an error of %s", text, p.Branches(), want)
			}
		}
	}
}

func TestReaches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, yes, not string }{
		{"*.md", "", "a a/b"},
		{"a/*/c", "a a/x", "b a/x/y"},
		{"a/**/c", "a a/x a/x/y", "b"},
		{"{a,b/c}/*", "a b b/c", "c a/x b/d"},
		{"a/b/c", "a a/b", "a/b/c x"},
	} {
		p, err := Compile(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "reaches", tt.pattern, p.Reaches, tt.yes, tt.not)
		if !p.Reaches("") {
			t.Errorf("%s reaches nothing", tt.pattern)
		}
	}
}

func TestLiteral(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"app/[id]/{a,b}", "*", "x"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Skipf("the file system of the test has no such names: %v", err)
		}
	}
	for in, want := range map[string]string{
		"app/[id]/*.tsx":       `app/\[id\]/*.tsx`,
		"app/[id]/{a,b}/[c]":   `app/\[id\]/\{a,b\}/[c]`,
		"app/[ix]/{a,b}":       "app/[ix]/{a,b}",
		"*":                    `\*`,
		"*/x":                  `\*/x`,
		"x/*":                  "x/*",
		"./x/../app/[id]":      `./x/../app/\[id\]`,
		dir + "/app/[id]/*":    dir + `/app/\[id\]/*`,
		"**/[id]/x":            "**/[id]/x",
		"app/\\[id\\]/x":       `app/\[id\]/x`,
		"[x":                   "[x",
		"app/[id]/{a,b}/{c,d}": `app/\[id\]/\{a,b\}/{c,d}`,
	} {
		if got := Literal(dir, in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// FuzzPattern: whatever a pattern is, matching ends; what is escaped matches itself and nothing else; both readings match what
// the plain one does, and the text itself.
func FuzzPattern(f *testing.F) {
	for _, s := range [][2]string{
		{"*.go", "a.go"},
		{"a/**/b", "a/x/b"},
		{"{a,b}[!c]?", "axy"},
		{`\*`, "*"},
		{"**/**/*a*a*a*b", "aaaaaaaaaaaa"},
		{"[[]", "["},
		{"[a-", "-"},
		{"app/[id]/**", "app/[id]/x"},
		{"{{{{x}}}}", "{x}"},
		{"[/]", "/"},
		{`\`, `\`},
		{"e\u0301", "\u00e9"},
		{"a//./b/", "a/b"},
		{"\xff[\xfe-\xff]", "\xff\xff"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := Compile(text)
		both, errBoth := CompileBoth(text)
		if (err == nil) != (errBoth == nil) {
			t.Fatalf("%q: %v, and for both readings %v", text, err, errBoth)
		}
		if err == nil {
			if p.Match(name) && (!both.Match(name) || !both.Covers(name) || !p.Covers(name)) {
				t.Errorf("%q matches %q, but not in both readings", text, name)
			}
			if own := path.Clean(text); text != "" && !strings.Contains("/"+text+"/", "/../") && own == text && !both.Covers(text) {
				t.Errorf("%q is not protected from itself", text)
			}
			for _, b := range p.Branches() {
				if again, err := Compile(Escape(b.Dir)); b.Dir != "" && (err != nil || !again.Match(b.Dir)) {
					t.Errorf("%q: the directory %q does not match itself", text, b.Dir)
				}
			}
		}
		if name == "" || path.Clean(name) != name || strings.Contains("/"+name+"/", "/../") || len(name) > maxText/2 {
			return
		}
		exact, err := Compile(Escape(name))
		if err != nil || !exact.Match(name) || exact.Match(name+"x") || !Exactly(name).Match(name) {
			t.Errorf("%q: escaped it does not match itself alone: %v", name, err)
		}
	})
}
