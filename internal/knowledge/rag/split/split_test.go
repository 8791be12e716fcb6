package split

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

func texts(pieces []Piece) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = p.Text
	}
	return out
}

func TestSplit(t *testing.T) {
	const flag, family, accent = "🇩🇪", "👩‍👩‍👧", "e\u0301"
	for _, tt := range []struct {
		name          string
		size, overlap int
		ext, text     string
		want          []string
	}{
		{name: "empty", size: 9, text: ""},
		{name: "blank", size: 9, text: " \n\n\t "},
		{name: "whole_text_is_trimmed", size: 99, text: " \n one\n", want: []string{"one"}},
		{name: "blank_lines_collapse", size: 99, text: "one\n\n\n\n\ntwo", want: []string{"one\n\n\ntwo"}},
		{name: "blanks_stay_in_lines", size: 99, text: "one  two\n\n\n\nthree", want: []string{"one  two\n\nthree"}},
		{name: "paragraphs_first", size: 9, text: "a b c\n\nd e f", want: []string{"a b c", "d e f"}},
		{name: "paragraphs_join_if_they_fit", size: 12, text: "a b c\n\nd e f", want: []string{"a b c\n\nd e f"}},
		{name: "lines_of_a_long_paragraph", size: 8, text: "a b\nc d\ne f\n\ng", want: []string{"a b\nc d", "e f", "g"}},
		{name: "words_of_a_long_line", size: 8, text: "aa bb cc dd", want: []string{"aa bb cc", "dd"}},
		{name: "characters_of_a_long_word", size: 3, text: "abcdefgh", want: []string{"abc", "def", "gh"}},
		{name: "exactly_the_size_is_too_long", size: 5, text: "ab cd\nx", want: []string{"ab cd", "x"}},
		{name: "exactly_the_size_without_blank", size: 4, text: "abcd e", want: []string{"abcd", "e"}},
		{name: "size_one_keeps_blanks", size: 1, text: "a b", want: []string{"a", "b"}},
		{name: "characters_not_bytes", size: 5, text: "éé éé éé", want: []string{"éé éé", "éé"}},
		{name: "overlap_of_whole_words", size: 8, overlap: 4, text: "aa bb cc dd ee", want: []string{"aa bb cc", "bb cc dd", "cc dd ee"}},
		{name: "overlap_at_most", size: 8, overlap: 3, text: "aa bb cc dd ee", want: []string{"aa bb cc", "cc dd ee"}},
		{name: "overlap_gives_way_to_what_is_next", size: 8, overlap: 4, text: "aa bb cc ddddddd", want: []string{"aa bb cc", "ddddddd"}},
		{name: "no_overlap_with_what_is_cut", size: 6, overlap: 3, text: "aa bb\ncccccccc", want: []string{"aa bb", "cccccc", "ccccc"}},
		{name: "overlap_above_the_size", size: 2, overlap: 9, text: "abcd", want: []string{"ab", "bc", "cd"}},
		{name: "graphemes", size: 3, text: flag + flag + accent + accent, want: []string{flag, flag, accent, accent}},
		{name: "grapheme_above_the_size", size: 3, text: "ab" + family + "c", want: []string{"ab", family, "c"}},
		{name: "blank_with_an_accent", size: 4, text: "ab \u0301cd", want: []string{"ab \u0301", "cd"}},
		{name: "crlf", size: 9, text: "one\r\ntwo\r\n\r\nthree\r\n", want: []string{"one\ntwo", "three"}},

		{
			name: "go_keeps_separators", ext: "go", size: 24, text: "package a\n\nfunc A() {}\n\nfunc B() {}\nvar X int\n",
			want: []string{"package a\n\nfunc A() {}", "func B() {}\nvar X int"},
		},
		{name: "go_blank_lines_stay", ext: "go", size: 99, text: "a\n\n\n\nb", want: []string{"a\n\n\n\nb"}},
		{name: "go_last_separator_is_lost", ext: "go", size: 99, text: "a\nfunc b\nfunc ", want: []string{"a\nfunc b"}},
		{name: "tex_last_separator_is_lost", ext: "tex", size: 99, text: "a $b$", want: []string{"a $b"}},
		{name: "tex_first_separator_is_kept", ext: "tex", size: 99, text: "$b$ c", want: []string{"$b$ c"}},
		{name: "md_sections", ext: "md", size: 12, text: "# A\nx\n## B\nyy\n### C\nz", want: []string{"# A\nx", "## B\nyy", "### C\nz"}},
		{name: "html_tags", ext: "html", size: 8, text: "<p>a b</p><p>cd</p>", want: []string{"<p>a", "b</p>", "<p>cd</p", ">"}},
		{name: "python_methods", ext: "py", size: 20, text: "class A:\n\tdef a(self):\n\t\tx\n\tdef b(self):\n\t\ty", want: []string{"class A:", "def a(self):\n\t\tx", "def b(self):\n\t\ty"}},
		{name: "unknown_ext_is_plain_text", ext: "ts", size: 20, text: "function a(){}\nfunction b(){}", want: []string{"function a(){}", "function b(){}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.size, tt.overlap, tt.ext)
			pieces := s.Split(tt.text)
			if got := texts(pieces); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			check(t, s, tt.text, pieces)
		})
	}
}

func TestPlaces(t *testing.T) {
	const text = "\none\ntwo\n\n\n\nthree\n\nfour\n"
	want := []Piece{
		{Text: "one\ntwo\n\nthree", Start: 1, End: 17, Line: 2, LastLine: 7},
		{Text: "three\n\nfour", Start: 12, End: 23, Line: 7, LastLine: 9},
	}
	if got := New(15, 5, "").Split(text); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPages(t *testing.T) {
	const text = "\fone\n\n\ftwo\n\nmore\n\n\f\ffive"
	for _, tt := range []struct {
		ext  string
		size int
		want []string
	}{
		{"txt", 7, []string{"page 2", "page 3", "page 3", "page 5"}},
		{"txt", 99, []string{"pages 2-5"}},
		{"c", 99, []string{""}}, // form feeds divide parts of some programs
	} {
		var got []string
		for _, p := range New(tt.size, 0, tt.ext).Split(text) {
			got = append(got, p.Heading)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, %d: got %q, want %q", tt.ext, tt.size, got, tt.want)
		}
	}
	if got := New(99, 0, "txt").Split("no pages"); got[0].Heading != "" {
		t.Errorf("got %q", got[0].Heading)
	}
}

// check reports what must hold for any text.
func check(t *testing.T, s Splitter, text string, pieces []Piece) {
	t.Helper()
	text = strings.ReplaceAll(text, "\r\n", "\n")
	borders := map[int]bool{0: true}
	single := map[string]bool{}
	for g := graphemes.FromString(text); g.Next(); {
		borders[g.End()] = true
		single[g.Value()] = true
	}
	var o outline
	if s.markdown() {
		o = outlineOf(text)
	}
	// cut returns a part of the text without what Markdown may lose: headings that are the Heading of a
	// chunk, and lines that close code.
	cut := func(start, end int) string {
		part := []byte(text[start:end])
		if strings.TrimSpace(string(part)) == "" {
			return ""
		}
		blank := func(from, to int) {
			for i := max(from, start); i < min(to, end); i++ {
				part[i-start] = ' '
			}
		}
		for _, h := range o.headings {
			if h.start < end && h.end > start && slices.ContainsFunc(pieces, func(p Piece) bool { return strings.Contains(p.Heading, h.title) }) {
				blank(h.start, h.end)
			}
		}
		for _, c := range o.code {
			blank(c.foot, c.end)
		}
		return string(part)
	}
	covered := 0
	last := Piece{Line: 1}
	for _, p := range pieces {
		switch {
		case p.Start < last.Start || p.End < last.End || p.Start >= p.End:
			t.Fatalf("%d:%d behind %d:%d", p.Start, p.End, last.Start, last.End)
		case !utf8.ValidString(p.Text):
			t.Fatalf("broken text %q", p.Text)
		case utf8.RuneCountInString(p.Text) > s.size && !single[p.Text]:
			t.Fatalf("%q has more than %d characters", p.Text, s.size)
		case !borders[p.Start] || !borders[p.End]:
			t.Fatalf("%q cuts a grapheme cluster of the text", p.Text)
		case !p.cells && strings.Join(strings.Fields(p.Text[p.before:len(p.Text)-p.after]), "") != strings.Join(strings.Fields(text[p.Start:p.End]), ""):
			t.Fatalf("%q is not %q", p.Text, text[p.Start:p.End])
		case strings.TrimSpace(p.Text) == "":
			t.Fatalf("blank piece %q", p.Text)
		case p.Line != 1+strings.Count(text[:p.Start], "\n") || p.LastLine != 1+strings.Count(text[:p.End], "\n"):
			t.Fatalf("%q: lines %d to %d", p.Text, p.Line, p.LastLine)
		}
		if p.Start > covered && !p.cells { // names of columns are with the cells
			s.checkLost(t, cut(covered, p.Start))
		}
		covered, last = max(covered, p.End), p
	}
	s.checkLost(t, cut(covered, len(text)))
}

// checkLost checks that a part of a document that is in no piece has nothing but separators.
func (s Splitter) checkLost(t *testing.T, text string) {
	t.Helper()
	for text = strings.TrimSpace(text); text != ""; {
		was := text
		for _, sep := range s.separators {
			if sep = strings.TrimSpace(sep); sep != "" {
				text = strings.TrimSpace(strings.TrimPrefix(text, sep))
			}
		}
		if text == was {
			t.Fatalf("%q is lost", text)
		}
	}
}

// kinds has a kind of text with each list of separators.
var kinds = strings.Fields("txt c go java js php proto py rst rb rs scala swift md tex html sol markdown csv tsv")

func TestKinds(t *testing.T) {
	for _, ext := range kinds {
		seps := separators(ext)
		if n := len(seps); n < 4 && ext != "html" || seps[n-1] != "" || seps[n-2] != " " {
			t.Errorf("%s: %q", ext, seps)
		}
	}
	if got := separators("sol"); got[0] != "\npragma " || !slices.Contains(got, "\ndo while ") || len(got) != 22 {
		t.Errorf("sol: %q", got)
	}
}

func TestOwnDocuments(t *testing.T) {
	files, err := filepath.Glob("../../../../docs/*.md")
	code, _ := filepath.Glob("*.go")
	if files = append(files, code...); err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ext := strings.TrimPrefix(filepath.Ext(file), ".")
		for _, size := range []int{3, 100, 2000} {
			s := New(size, size/20, ext)
			check(t, s, string(data), s.Split(string(data)))
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"one\n\n\n\ntwo three", "# A\n\n## B\nx\n```\n# c\n```\n\nD\n===\nd", "a\r\n\r\nb", " \u0301 \u0301x", "\u0600 \u0600\n",
		"👩‍👩‍👧🇩🇪🇩🇪", "<p><br><p>", "$$a$b$$", "---\na: b\n---\n# A\nB\n---\nc", "\u0085\u2028x\u3000", "```\n\n```\n\n",
	} {
		f.Add(seed, 5, 2, 0)
		f.Add(seed, 12, 0, 13)
		f.Add(seed, 9, 9, 17)
	}
	f.Fuzz(func(t *testing.T, text string, size, overlap, kind int) {
		text = strings.ToValidUTF8(text, "?")
		if len(text) > 1<<12 {
			return
		}
		size, overlap = size%100, overlap%100
		s := New(size, overlap, kinds[uint(kind)%uint(len(kinds))])
		check(t, s, text, s.Split(text))
	})
}

// hostile returns texts of n bytes that a careless splitter takes long for.
func hostile(n int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	return map[string]string{
		"no_separator":      fill("x"),
		"blanks":            fill(" "),
		"empty_lines":       fill("\n"),
		"blank_lines":       fill("\n \n\t"),
		"one_line":          fill("word and "),
		"short_lines":       fill("a\n"),
		"short_paragraphs":  fill("a\n\n"),
		"one_grapheme":      fill("\u0301"),
		"blanks_of_accents": fill(" \u0301"),
		"flags":             fill("🇩🇪"),
		"wide":              fill("字"),
		"almost_separators": fill("\nfun\nif\n#"),
		"nested":            fill("\n## a\n### b\n#### c\n##### d\nif \nfunc $<p>"),
		"fences":            fill("```\n# a\n```\n\n"),
		"headings":          fill("# a\n"),
		"setext":            fill("a\n=\n"),
		"many_lines_setext": fill("a\n") + "===",
		"hashes":            fill("#"),
		"open_fences":       fill("~~~ x\n"),
		"tables":            fill("a|b\n-|-\nc|d\n"),
		"rows":              "|a|b|\n|-|-|\n" + fill("|c|d|\n"),
		"one_row":           "|a|b|\n|-|-|\n" + fill("c|"),
		"records":           "a,b\n" + fill("c,\"d\n"),
		"items":             fill("- a\n"),
		"nested_items":      fill("- a\n  - b\n\n    c\n"),
		"lines_of_code":     "```go\n" + fill("x\n\n"),
	}
}

// TestWork counts the bytes that are read, which does not depend on the machine.
func TestWork(t *testing.T) {
	const n = 1 << 15
	for name, text := range hostile(n) {
		for _, ext := range kinds {
			s := New(2000, 100, ext)
			w := walk{Splitter: s, text: text}
			w.all()
			out := 0
			for _, p := range w.pieces {
				out += len(p.Text) + len(p.Heading)
			}
			// Each separator is searched for once in each part of the text, and the length of a part
			// is counted once for each.
			if limit := n * (2*len(s.separators) + 4); w.looked > limit {
				t.Errorf("%s as %s: %.1f times the text read, more than %.1f", name, ext, float64(w.looked)/n, float64(limit)/n)
			}
			if out > 5*n { // the names of cells
				t.Errorf("%s as %s: %.1f times the text in the result", name, ext, float64(out)/n)
			}
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	data, err := os.ReadFile("../../../../docs/graph.md")
	if err != nil {
		b.Fatal(err)
	}
	const n = 10 << 20
	inputs := hostile(n)
	inputs["docs"] = strings.Repeat(string(data), n/len(data))
	inputs["russian"] = strings.Repeat("Поиск по базе знаний, слово за словом.\n", n/68)
	for _, name := range []string{"docs", "russian", "no_separator", "one_line", "blanks", "empty_lines", "short_lines", "flags", "nested"} {
		for _, ext := range []string{"txt", "md", "html"} {
			b.Run(name+"_"+ext, func(b *testing.B) {
				b.SetBytes(int64(len(inputs[name])))
				b.ReportAllocs()
				for b.Loop() {
					New(2000, 100, ext).Split(inputs[name])
				}
			})
		}
	}
}
