package highlight

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"loki/internal/sample"
)

// groupsOf returns what p matches at a place: where the match ends and each of its groups, in bytes.
func groupsOf(p *program, text string, at int) string {
	m := matcher{text: []byte(text), hi: len(text), budget: 1 << 22}
	end := m.match(p, at)
	if m.budget < 0 {
		return "given up"
	}
	if end < 0 {
		return "nothing"
	}
	out := fmt.Sprint(end)
	for g := 2; g < 2*p.groups; g += 2 {
		if from, to := m.regs[g], m.regs[g+1]; to > from {
			out += fmt.Sprintf(" %d:%d-%d", g/2, from, to)
		}
	}
	return out
}

// libraryGroupsOf is groupsOf by the library that the patterns are written for.
func libraryGroupsOf(re *regexp2.Regexp, text string, at int) string {
	m, err := re.FindRunesMatchStartingAt([]rune(text), utf8.RuneCountInString(text[:at]))
	if err != nil {
		return "given up"
	}
	if m == nil {
		return "nothing"
	}
	var offsets []int
	for i := range text {
		offsets = append(offsets, i)
	}
	offsets = append(offsets, len(text))
	out := fmt.Sprint(offsets[m.RuneIndex+m.RuneLength])
	for i := 1; i < m.GroupCount(); i++ {
		if g := m.GroupByNumber(i); g.RuneLength > 0 {
			out += fmt.Sprintf(" %d:%d-%d", i, offsets[g.RuneIndex], offsets[g.RuneIndex+g.RuneLength])
		}
	}
	return out
}

// mayBegin reports whether a match of p may begin with a byte.
func mayBegin(p *program, b byte) bool {
	may := false
	p.first.each(func(c int) { may = may || c == min(int(b), jumpWide) })
	return may
}

// comparePattern compares the two at every step-th place of text.
func comparePattern(t *testing.T, pattern, text string, step int) {
	t.Helper()
	pattern = "(?:" + pattern + ")"
	re, err := regexp2.Compile(`\G`+pattern, regexp2.OptionMaxBacktrackingStackSize(-1))
	if err != nil {
		return
	}
	re.MatchTimeout = time.Second
	p, err := compile(pattern, true, classes{})
	if err != nil {
		t.Errorf("%s: %v", pattern, err)
		return
	}
	for at := 0; at < len(text); at += step {
		if !utf8.RuneStart(text[at]) {
			continue
		}
		got, want := groupsOf(p, text, at), "nothing"
		if want = libraryGroupsOf(re, text, at); got != want && got != "given up" && want != "given up" {
			t.Errorf("%s at %q: got %s, want %s", pattern, text[at:], got, want)
			return
		}
		if want != "nothing" && !p.first.empty && !mayBegin(p, text[at]) {
			t.Errorf("%s cannot begin with %q, but does", pattern, text[at])
		}
	}
}

// TestLikeRegexp2 compares what the patterns of all lexers match with what the library finds that they
// are written for.
func TestLikeRegexp2(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		t.Skip("the go command does not find the chroma module:", err)
	}
	examples := filepath.Join(strings.TrimSpace(string(out)), "lexers", "testdata")
	const common = "if (x == \"a b\") { return 0x1F + .5e3; } # c\n\t'é' // 日本 \\n\n<b c=\"d\">&amp;</b>\n  select * FROM t;\r\n$a@b:\n"
	seen := map[string]bool{}
	for i, file := range lexerFiles(t) {
		l := parseFile(t, file)
		example, _ := os.ReadFile(filepath.Join(examples, file+".actual"))
		text := common + strings.ToValidUTF8(string(example[:min(len(example), 400)]), "?")
		for _, s := range l.states {
			for _, r := range s.rules {
				pattern := r.expression(l)
				if r.include != "" || seen[pattern] {
					continue
				}
				seen[pattern] = true
				if len(seen)%sample.Step(8) != 0 {
					continue
				}
				comparePattern(t, pattern, text, 3+(i+len(pattern))%16)
			}
		}
	}
	if len(seen) < 5000 {
		t.Errorf("only %d patterns", len(seen))
	}
}

// lexerFiles returns the names of the lexers' files.
func lexerFiles(t *testing.T) []string {
	t.Helper()
	list, err := files.ReadDir("lexers")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		if name, ok := strings.CutSuffix(f.Name(), ".xml"); ok {
			names = append(names, name)
		}
	}
	return names
}

func parseFile(t *testing.T, name string) *Lexer {
	t.Helper()
	data, err := files.ReadFile("lexers/" + name + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	l, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	l.all = &library{classes: classes{}}
	return l
}

// TestMatch compares the two on what lexers seldom have.
func TestMatch(t *testing.T) {
	const text = "aAbB cab aabbcc\nbab \"x\\\"y\" éa日 K\u212a ſs 0x1f\n--aa bb aa"
	for _, pattern := range []string{
		``, `a*`, `(a|ab)(c|bcd)?`, `(a*)*b`, `(a*?)*?b`, `(a|b)*c`, `(?:a?b?)+c`, `(?:a|)*b`, `(a{1,2}b?){2,3}`, `(?:ab?){0,2}?c`,
		`(?>a+)b`, `(?>a+?)a`, `(?:(?>a|ab))*c`, `(?=(a+))\1`, `(?!ab)a`, `(?<=a)b`, `(?<!a)b`, `(?<=^|\s)a+`, `(?<=(a|b)+)c`, `(\w)\1`, `(?i)(\w)\1`, `(?i)k+`, `(?i)s+`,
		`^.`, `.$`, `(?m)^.`, `(?m).$`, `\A.`, `.\z`, `.\Z`, `\b\w+\b`, `\B\w`, `[^\d\W]\w*`, `\p{L}+`, `[^a]*?b`, `"(\\.|[^"\\])*"`, `.*\n`, `.*?\n`, `[a-c-[b]]+`,
		`(?i)(?:select|sel|self|set|aa|ab|b)\b`, `(?:aa|a|aab|ab)b?`, `(?:a(b)|a(A)|(a)a)`, `(?s).*a`, `(?s).*?K`, `(?x) a # b
			b`, `(a)|(b)|(c)`, `((a)|b)*`, `(?:(a)|b)*\1`, `(?:a|b|c|\w)+?\s`,
	} {
		comparePattern(t, pattern, text, 1)
		comparePattern(t, pattern, "", 1)
	}
}

// TestUnsupported has what no lexer needs.
func TestUnsupported(t *testing.T) {
	for _, pattern := range []string{`(?(a)b|c)`, `(?<a>x)(?<-a>y)`, `(?:ab){1000}`, `(`} {
		if _, err := compile(pattern, false, classes{}); err == nil {
			t.Errorf("%s is compiled", pattern)
		}
	}
}

// TestBudget gives up a pattern that would go back for ever.
func TestBudget(t *testing.T) {
	p, err := compile(`(a*b?)*c`, false, classes{})
	if err != nil {
		t.Fatal(err)
	}
	if got := groupsOf(p, strings.Repeat("a", 100), 0); got != "given up" {
		t.Errorf("got %s", got)
	}
}

// FuzzMatch compares the two.
func FuzzMatch(f *testing.F) {
	f.Add(`(a|b)*?c`, "abac")
	f.Add(`(?i)(?<=k)\b[^x]+(?!\w)`, "KABÉ x")
	f.Add(`(?:a{1,2}|b\B)+(\s|$)`, "aabb\n")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 60 || len(text) > 60 || !utf8.ValidString(text) {
			return
		}
		if _, err := compile(pattern, true, classes{}); err != nil {
			return
		}
		comparePattern(t, pattern, text, 1)
	})
}
