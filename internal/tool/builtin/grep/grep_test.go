package grep

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/internal/tool/builtin/tree"
)

// slow finds the lines that match, one after the other with the expression as it is.
func slow(expr, text string) []int {
	re := regexp.MustCompile(expr)
	var numbers []int
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	for i, l := range lines {
		if re.MatchString(l) || re.MatchString(strings.TrimSuffix(l, "\r")) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// numbers are the lines that the package finds in a file.
func numbers(t testing.TB, expr, text string) []int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := Search(t.Context(), file, Query{Expr: expr})
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, l := range found.Lines {
		list = append(list, l.Number)
	}
	return list
}

func TestSearchFindsWhatTheExpressionMatches(t *testing.T) {
	t.Parallel()
	var big strings.Builder // several blocks and pieces
	for i := range 9_000 {
		fmt.Fprintf(&big, "line %d of the file, with Some words\n", i)
	}
	big.WriteString(strings.Repeat("long ", 20_000) + "needle\nthe end")
	texts := []string{"", "\n", "a", "a\n", "a\nb\nab\n", "foo\r\nbar\r\n\r\nFOO bar\n", "x_1\nAB_12\nab_\n\xff\xfe\nKelvin \u212a\n", big.String()}
	for _, expr := range []string{
		"a", "^a$", "^$", "", "foo|bar|x_", "(?i)foo", "(?i)kelvin", "(?i)LINE 899\\d", `[A-Z]+_[0-9]+`, `\bbar\b`, `\s`, `[^a]`, `(?s).`, `\Afoo\z`, "needle$", "e\\s+e", "8999|needle",
		"(foo|b)ar?", "o{2}", "x*", `a\nb`, "end$", "(?m)^the", "zzz",
	} {
		for i, text := range texts {
			if got, want := numbers(t, expr, text), slow(expr, text); !slices.Equal(got, want) {
				t.Errorf("%q in text %d: %d lines %.40v, want %d %.40v", expr, i, len(got), got, len(want), want)
			}
		}
	}
}

func TestSearchLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 40 {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d", i%7))
		os.MkdirAll(sub, 0o755)
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%02d", i)), []byte("x\nneedle äöü\nneedle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Search(t.Context(), dir, Query{Expr: "needle"})
	if err != nil || len(all.Lines) != 80 || all.More {
		t.Fatalf("%d lines, more %v, %v", len(all.Lines), all.More, err)
	}
	for limit := 1; limit < 85; limit += 7 {
		for _, workers := range []int{1, 4} {
			got, err := Search(t.Context(), dir, Query{Expr: "needle", MaxLines: limit, Tree: tree.Walker{Workers: workers}})
			if want := all.Lines[:min(limit, 80)]; err != nil || !slices.Equal(got.Lines, want) || got.More != (limit < 80) {
				t.Errorf("limit %d: %d lines, more %v, %v", limit, len(got.Lines), got.More, err)
			}
		}
	}
	cut, err := Search(t.Context(), dir, Query{Expr: "ä", MaxBytes: 8})
	if err != nil || cut.Lines[0].Text != "needle " || cut.Lines[0].Cut != 6 {
		t.Errorf("got %+v, %v", cut.Lines[0], err)
	}
}

func TestSearchPassesOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "needle\n", "binary": "needle\n\x00", "late": "needle\n" + strings.Repeat("x\n", blockSize) + "\x00", "endless": "needle\n" + strings.Repeat("x", maxLine+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("text", filepath.Join(dir, "link"))
	found, err := Search(t.Context(), dir, Query{Expr: "needle"})
	if err != nil || len(found.Lines) != 1 || found.Lines[0] != (Line{Path: "text", Number: 1, Text: "needle"}) {
		t.Errorf("got %+v, %v", found.Lines, err)
	}
	if _, err := Search(t.Context(), dir, Query{Expr: "("}); err == nil || !strings.Contains(err.Error(), "RE2") {
		t.Errorf("got %v", err)
	}
}

// The filters never lose a line.
func FuzzSearch(f *testing.F) {
	for _, s := range [][2]string{{"a|b", "xa\nb"}, {"(?i)ks", "KS\nſ"}, {"x+y?", "xx\ny"}, {"[^x]", "x\n\ny"}, {"$", "a\r\n"}, {"(ab){2}c|d", "ababc\nd"}, {"\\Bx", "xx\nx"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		// A carriage return is a part of the line for all but $, which the slow way says
		// too only if there is none elsewhere.
		if strings.ContainsAny(text, "\r\x00") || strings.ContainsAny(expr, "\r\n") || len(expr) > 60 {
			t.Skip()
		}
		if _, err := regexp.Compile(expr); err != nil {
			t.Skip()
		}
		if got, want := numbers(t, expr, text), slow(expr, text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: got %v, want %v", expr, text, got, want)
		}
	})
}
