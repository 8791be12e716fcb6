package extract

import (
	"slices"
	"strings"
	"testing"
)

func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string // headings start with "# "
	}{
		{name: "empty", in: " \n\t\n"},
		{name: "wrapped_paragraph", in: "one two three\nfour five\r\n\r\nsix", want: []string{"one two three four five", "six"}},
		{name: "white_space", in: "one\t two \u00a0three", want: []string{"one two three"}},
		{name: "dense_lines", in: "今天下雨，\n我们没去。", want: []string{"今天下雨，我们没去。"}},
		{name: "headings", in: "# One #\ntext\n###### Six\nTwo\n===\nThree\n---\nmore", want: []string{"# One", "text", "# Six", "# Two", "# Three", "more"}},
		{name: "no_headings", in: "#hashtag is text\n\n####### seven\n\nA sentence.\n---\nnext", want: []string{"#hashtag is text", "####### seven", "A sentence.", "next"}},
		{name: "bullets", in: "Intro:\n- one\n  goes on\n* two\n+ three\n• four\n- [x] five\n-no item", want: []string{"Intro:", "one goes on", "two", "three", "four", "five -no item"}},
		{name: "numbers", in: "1. one\n2) two\n(3) three\n\n4. four\nborn in\n12. May", want: []string{"one", "two", "three", "four born in", "May"}},
		{name: "number_in_paragraph", in: "He came on the\n12. of May", want: []string{"He came on the 12. of May"}},
		{name: "quote", in: "> quoted\n> > text\n>\n> more", want: []string{"quoted text", "more"}},
		{name: "fence", in: "before\n```go\ncode here\n````\nafter\n~~~\n```\n~~~\nend", want: []string{"before", "after", "end"}},
		{name: "fence_never_closed", in: "before\n```\nafter\n\nend", want: []string{"before", "after", "end"}},
		{name: "code_in_line", in: "```not a fence```\ntext", want: []string{"```not a fence``` text"}},
		{name: "rule_and_banner", in: "a\n\n***\n\n===== FILE: x.txt =====\nb", want: []string{"a", "b"}},
		{name: "table", in: "| a | b |\n|---|---|\n| c | d |\ntext", want: []string{"text"}},
		{name: "html", in: "<div align=\"center\">\n<b>bold</b> text\n</div>\na < b", want: []string{"<b>bold</b> text", "a < b"}},
		{name: "images", in: "![logo](a.png)\n[![ci](b.svg)](c)\n![inline](d.png) with text", want: []string{"![inline](d.png) with text"}},
		{name: "front_matter", in: "---\ntitle: x\ntags:\n- a\n---\ntext", want: []string{"text"}},
		{name: "rule_at_start", in: "---\nText.\n---\nmore: text", want: []string{"Text.", "more: text"}},
		{
			name: "deliberate_breaks", in: "Alice came.\nThen Bob arrived with a rather large box of oranges.\nwhich was heavy",
			want: []string{"Alice came.", "Then Bob arrived with a rather large box of oranges. which was heavy"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, b := range blocksOf(tt.in) {
				if b.heading {
					b.text = "# " + b.text
				}
				got = append(got, b.text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// A document in which every line seems to open a code block is read in one pass.
func TestManyUnclosedFences(t *testing.T) {
	got := blocksOf(strings.Repeat("```x\n", 300_000))
	if len(got) == 0 {
		t.Fatal("no block")
	}
}

func TestTerms(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{name: "plural_and_case", in: "The Bees, bee; cities CITY buses", want: "bee bee city city buse"},
		{name: "stop_words", in: "It is what it is, isn't it?", want: ""},
		{name: "possessive", in: "Fresnel's lens", want: "fresnel len"},
		{name: "numbers", in: "In 1973 it was 4.5 m", want: "1973"},
		{name: "address", in: "visit https://example.org/bees or [bees](https://example.org/)", want: "visit bee"},
		{name: "chinese", in: "灯塔的光", want: "灯塔 塔的 的光"},
		{name: "mixed", in: "Lua语言", want: "lua 语言"},
		{name: "one_character", in: "光.", want: "光"},
		{name: "accents", in: "Élan été", want: "élan été"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(termsOf(tt.in), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCountWords(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "one": 1, "one two, three.": 3, "- -": 0, "don't stop": 2, "灯塔的光。": 4, "Go 语言": 3,
	} {
		if got := countWords(in); got != want {
			t.Errorf("countWords(%q) = %d, want %d", in, got, want)
		}
	}
}
