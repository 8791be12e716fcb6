package split

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

func headings(doc string) []string {
	var out []string
	for _, h := range outlineOf(doc).headings {
		out = append(out, fmt.Sprintf("%d:%d %s", 1+strings.Count(doc[:h.start], "\n"), h.level, h.title))
	}
	return out
}

func TestHeadings(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		want      []string
	}{
		{name: "empty"},
		{name: "levels", doc: "# A\n## B\n###### C\n####### D", want: []string{"1:1 A", "2:2 B", "3:6 C"}},
		{name: "needs_a_blank", doc: "#A\n#\tB\n#", want: []string{"2:1 B", "3:1 "}},
		{name: "marks_at_the_end", doc: "# A ##\n# B#\n## C #\\\n# #", want: []string{"1:1 A", "2:1 B#", "3:2 C #\\", "4:1 "}},
		{name: "indented", doc: "   # A\n\n    # B\n\t# C\n  \t# D", want: []string{"1:1 A"}},
		{name: "crlf", doc: "# A\r\nB\r\n===\r\n", want: []string{"1:1 A", "2:1 B"}},
		{name: "setext", doc: "A\n===\n\nB\n-\nC\nD\n---\n", want: []string{"1:1 A", "4:2 B", "6:2 C D"}},
		{name: "setext_needs_a_paragraph", doc: "===\n\n---\n\n# A\n---\n\n```\na\n```\n---", want: []string{"5:1 A"}},
		{name: "rulers", doc: "* * *\nA\n---\n***\n___\n", want: []string{"2:2 A"}},
		{name: "lists", doc: "- a\n---\n1. b\nc\n---\n> d\n---\n", want: nil},
		{name: "table", doc: "| a |\n|---|\n| b |\n---\n", want: nil},
		{name: "fences", doc: "```sh\n# a\n~~~\n# b\n```` \n# C\n~~~~ ```\n# d\n```\n~~~\n# e\n~~~~~\n# F", want: []string{"6:1 C", "13:1 F"}},
		{name: "code_in_a_line", doc: "```# a``` b\n# C", want: []string{"2:1 C"}},
		{name: "open_fence", doc: "# A\n```\n# b\n", want: []string{"1:1 A"}},
		{name: "comment", doc: "<!-- # a\n# b\n-->\n# C\n<!-- -->\n# D", want: []string{"4:1 C", "6:1 D"}},
		{name: "html", doc: "<PRE>\n# a\n</Pre>\n# B\n", want: []string{"4:1 B"}},
		{name: "front_matter", doc: "---\na: b\n---\n# C\n", want: []string{"4:1 C"}},
		{name: "front_matter_toml", doc: "+++\n# a\n+++\n# C\n", want: []string{"4:1 C"}},
		{name: "front_matter_without_end", doc: "---\na\n# B", want: []string{"3:1 B"}},
		{name: "long", doc: "# " + strings.Repeat("x", 1000), want: []string{"1:1 " + strings.Repeat("x", 119) + "…"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := headings(tt.doc); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestHeadingsLikeGoldmark compares with a whole parser of CommonMark.
func TestHeadingsLikeGoldmark(t *testing.T) {
	files, err := filepath.Glob("../../../../docs/*.md")
	more, _ := filepath.Glob("../../../../docs/*/*.md")
	if files = append(files, more...); err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		_ = ast.Walk(goldmark.New().Parser().Parse(text.NewReader(data)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if h, ok := n.(*ast.Heading); ok && entering && h.Lines().Len() > 0 {
				at := h.Lines().At(0)
				want = append(want, fmt.Sprintf("%d:%d %s", 1+strings.Count(string(data[:at.Start]), "\n"), h.Level, at.Value(data)))
			}
			return ast.WalkContinue, nil
		})
		if got := headings(string(data)); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", file, got, want)
		}
	}
}

// TestRecords cuts CSV and TSV between records, each chunk with the names of the columns.
func TestRecords(t *testing.T) {
	const head, rest = "name,note\n", "bolt,\"one, two\nthree\"\nnut,four\nrod,five\n"
	for _, tt := range []struct {
		name, ext string
		size      int
		doc       string
		want      []string // lines: text
	}{
		{"whole", "csv", 99, head + rest, []string{"1-5: name,note\nbolt,\"one, two\nthree\"\nnut,four\nrod,five"}},
		{"parts", "csv", 32, head + rest, []string{"1-3: name,note\nbolt,\"one, two\nthree\"", "4-5: name,note\nnut,four\nrod,five"}},
		{"long_record", "csv", 24, head + rest, []string{"2-3: name: bolt", "2-3: note: one, two\nthree", "4-4: name,note\nnut,four", "5-5: name,note\nrod,five"}},
		{"semicolons", "csv", 26, "name;price, net\nbolt;1,50\nnut;2,50\n", []string{"1-2: name;price, net\nbolt;1,50", "3-3: name;price, net\nnut;2,50"}},
		{"tabs", "tsv", 26, "name\tprice, net\nbolt\t1,50\nnut\t2,50\n", []string{"1-2: name\tprice, net\nbolt\t1,50", "3-3: name\tprice, net\nnut\t2,50"}},
		{"tabs_in_csv", "csv", 20, "a\tb\none\ttwo\nthree\tfour\n", []string{"1-2: a\tb\none\ttwo", "3-3: a\tb\nthree\tfour"}},
		{"title", "csv", 30, "Prices\n\nname,note\nbolt,one\nnut,two\nrod,three\n", []string{"1-4: Prices\n\nname,note\nbolt,one", "5-6: name,note\nnut,two\nrod,three"}},
		{"no_names", "csv", 20, "1,2,3\n4,5,6\n7,8,9\n10,11,12\n", []string{"1-3: 1,2,3\n4,5,6\n7,8,9", "4-4: 10,11,12"}},
		{"stray_quotation_mark", "csv", 24, "name,size\nbolt,\"\n" + strings.Repeat("nut,5\n", 300), nil},
		{"no_table", "csv", 20, "only text in words here", []string{"1-1: only text in words", "1-1: here"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.size, 0, tt.ext)
			pieces := s.Split(tt.doc)
			check(t, s, tt.doc, pieces)
			var got []string
			for _, p := range pieces {
				got = append(got, fmt.Sprintf("%d-%d: %s", p.Line, p.LastLine, p.Text))
				if tt.want == nil && !strings.HasPrefix(p.Text, "name,size\n") {
					t.Errorf("%q has no names", p.Text)
				}
			}
			if tt.want != nil && !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestMarkdown(t *testing.T) {
	const doc = "intro\n\n# A\n\n## B\n\nbbb bbb\n\n## C\n\nccc ccc ccc\n\nddd ddd ddd\n### D\n\nd\n# E\n\n## F\n"
	var got []string
	s := New(20, 0, "md")
	pieces := s.Split(doc)
	check(t, s, doc, pieces)
	for _, p := range pieces {
		got = append(got, fmt.Sprintf("%d-%d %s: %s", p.Line, p.LastLine, p.Heading, p.Text))
	}
	want := []string{
		"1-1 : intro",
		"3-7 A > B: # A\n\n## B\n\nbbb bbb",
		"9-11 A > C: ## C\n\nccc ccc ccc",
		"13-13 A > C: ddd ddd ddd",
		"14-16 A > C > D: ### D\n\nd",
		"17-19 E > F: # E\n\n## F",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = nil
	for _, p := range New(100, 0, "md").Split("\n# A\n## B\nb\n### C\nc\n## D\n" + strings.Repeat("d ", 15) + "\n# E\n## F\nf\n# G\n") {
		got = append(got, fmt.Sprintf("%d-%d %s", p.Line, p.LastLine, p.Heading))
	}
	if want := []string{"2-6 A", "7-8 A > D", "9-12 "}; !slices.Equal(got, want) { // small ones stay together
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := New(20, 0, "go").Split("# A\n# B"); len(got) != 1 || got[0].Heading != "" {
		t.Errorf("another kind of text: %+v", got)
	}
}

// TestBlocks cuts what belongs together only where there is no room for it, and says again what it is.
func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		name string
		size int
		doc  string
		want []string // lines heading: text
	}{
		{name: "heading_joins", size: 24, doc: "intro intro intro in\n## A\n### B\nbbb\n### C\nccc ccc ccc ccc", want: []string{
			"1-1 : intro intro intro in", "2-4 A > B: ## A\n### B\nbbb", "5-6 A > C: ### C\nccc ccc ccc ccc",
		}},
		{name: "heading_without_room", size: 20, doc: "## A\n\nbbb bbb bbb bbb bbb\n\ncc", want: []string{"3-3 A: bbb bbb bbb bbb bbb", "5-5 A: cc"}},
		{name: "headings_without_room", size: 20, doc: "## A A A A A A\n\n### B B B B B\n\nbbb bbb bbb bbb bb", want: []string{"5-5 A A A A A A > B B B B B: bbb bbb bbb bbb bb"}},
		{name: "markdown_without_room", size: 20, doc: "# T\n## A\n\nbbb bbb bbb bbb bbb\n\ncc", want: []string{"4-4 T > A: bbb bbb bbb bbb bbb", "6-6 T > A: cc"}},
		{name: "heading_at_the_end", size: 8, doc: "aaa aaa\n## B", want: []string{"1-1 : aaa aaa", "2-2 B: ## B"}},
		{name: "comment_in_code", size: 12, doc: "```\n# a\n```\n\nb b b b b b", want: []string{"1-3 : ```\n# a\n```", "5-5 : b b b b b b"}},
		{name: "fence_joins", size: 16, doc: "```sh\nls\n```\n\nbbb bbb bbb", want: []string{"1-3 : ```sh\nls\n```", "5-5 : bbb bbb bbb"}},
		{name: "code_in_parts", size: 24, doc: "Run this:\n\n```sh\nls one\nls two\n\nls three\n```\n\nbbb", want: []string{
			"1-1 : Run this:", "3-5 : ```sh\nls one\nls two\n```", "7-7 : ```sh\nls three\n```", "10-10 : bbb",
		}},
		{name: "list_in_parts", size: 60, doc: "Never do this:\n\n- open the door\n- close\n  it\n\n  again\n- leave the window open at night\n\nEnd.", want: []string{
			"1-7 : Never do this:\n\n- open the door\n- close\n  it\n\n  again", "8-8 : Never do this:\n- leave the window open at night", "10-10 : End.",
		}},
		{name: "table_in_parts", size: 60, doc: "# T\n\nPrices:\n\n| part | price |\n|---|---|\n| bolt | 1 |\n| nut | 2 |\n| rod | 3 |\n| gear | 4 |\n\nAfter.", want: []string{
			"1-3 T: # T\n\nPrices:", "5-8 T: | part | price |\n|---|---|\n| bolt | 1 |\n| nut | 2 |", "9-10 T: | part | price |\n|---|---|\n| rod | 3 |\n| gear | 4 |", "12-12 T: After.",
		}},
		{name: "table_with_what_is_above", size: 66, doc: "# T\n\nPrices:\n\n| part | price |\n|---|---|\n| bolt | 1 |\n| nut | 2 |\n| rod | 3 |\n| gear | 4 |\n", want: []string{
			"1-8 T: # T\n\nPrices:\n\n| part | price |\n|---|---|\n| bolt | 1 |\n| nut | 2 |", "9-10 T: | part | price |\n|---|---|\n| rod | 3 |\n| gear | 4 |",
		}},
		{name: "row_in_parts", size: 40, doc: "| part | text |\n|---|---|\n| bolt | one two three four five six seven eight nine |\n| nut | sm\\|all |", want: []string{
			"3-3 : part: bolt\ntext: one two three four five", "3-3 : part: bolt\ntext: six seven eight nine", "4-4 : part: nut\ntext: sm|all",
		}},
		{name: "fence_opens", size: 10, doc: "aaa aaa\n\n```\nls\n```\n", want: []string{"1-1 : aaa aaa", "3-5 : ```\nls\n```"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.size, 0, "md")
			pieces := s.Split(tt.doc)
			check(t, s, tt.doc, pieces)
			var got []string
			for _, p := range pieces {
				got = append(got, fmt.Sprintf("%d-%d %s: %s", p.Line, p.LastLine, p.Heading, p.Text))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
