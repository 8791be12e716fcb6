package cli

import (
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/render"
	"loki/internal/knowledge/rag"
)

// TestEvaluationText compares three ways to search. The best of each column has a star, also where two
// share it, and long settings do not break the table.
func TestEvaluationText(t *testing.T) {
	t.Parallel()
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	e := rag.Evaluation{Base: "notes", Questions: 4, Scores: []rag.Score{
		{Settings: asBuilt, Mode: "keyword", K: 5, Recall: 0.5, MRR: 0.25, NDCG: 0.3333, P50: ms(1), P99: ms(2.25)},
		{Settings: asBuilt, Mode: "both", K: 5, Recall: 1, MRR: 0.75, NDCG: 0.8, P50: ms(3), P99: ms(40)},
		{Settings: "chunk_size=500,neighbors=1,top_k=12", Mode: "both", K: 12, Recall: 1, MRR: 0.7, NDCG: 0.81, P50: ms(0.96), P99: ms(123.4)},
	}}
	got := new(command).evaluationText(e)
	want := `SETTINGS  SEARCH    K  RECALL     MRR    NDCG     P50       P99
as it is  keyword   5   0.500   0.250   0.333   1.0ms*    2.2ms*
          both      5   1.000*  0.750*  0.800   3.0ms    40.0ms
[1]       both     12   1.000*  0.700   0.810*  1.0ms*  123.4ms

4 questions of notes; * is the best of a column
[1] chunk_size=500,neighbors=1,top_k=12
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if len([]rune(line)) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}

// TestNumbersOfSources compares the list of sources that a user sees with that of the model: the same
// places under the same numbers.
func TestNumbersOfSources(t *testing.T) {
	t.Parallel()
	found := rag.Found{Hits: []rag.Hit{
		{Path: "/docs/b.rtf", Text: "one"},
		{Path: "/docs/a.md", Text: "two", Start: 3, End: 9},
		{Path: "/docs/b.rtf", Text: "three"},
		{Path: "/docs/a.md", Text: "four", Start: 12, End: 14},
		{Path: "/docs/a.md", Text: "five", Start: 3, End: 9},
		{Path: "https://c.test/x", Text: "six"},
	}}
	template, err := rag.ParseTemplate("__SOURCES__|__CONTEXT__|__INPUT__")
	if err != nil {
		t.Fatal(err)
	}
	list, passages, _ := strings.Cut(template.Fill("question", found), "|")
	var shown []string
	for _, line := range (render.SourceOptions{}).Sources(found.Event().Sources) {
		shown = append(shown, strings.TrimSpace(line))
	}
	if got := strings.Join(shown, "\n"); got != list || len(shown) != 4 {
		t.Errorf("the user sees\n%s\nand the model\n%s", got, list)
	}
	for _, head := range []string{"[1] [Source: /docs/b.rtf]\none", "[2] [Source: /docs/a.md:3-9]\ntwo", "[1] [Source: /docs/b.rtf]\nthree", "[3] [Source: /docs/a.md:12-14]\nfour", "[2] [Source: /docs/a.md:3-9]\nfive", "[4] [Source: https://c.test/x]\nsix"} {
		if !strings.Contains(passages, head) {
			t.Errorf("the passages lack %q:\n%s", head, passages)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30) + "\n\tend \x1b[31m\n"
	for _, tt := range []struct {
		name, in string
		whole    bool
		want     string
	}{
		{"short", "one\ntwo\n\n", false, "    | one\n    | two\n"},
		{"wrapped", long, true, "    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | word word\n    |     end ␛[31m\n"},
		{"cut", long, false, "    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | word word word word\n    | … 3 more lines; -v shows them\n"},
		{
			"row", "| fruit | price |\n|---|---|\n" + strings.Repeat("| pear | 1 |\n", 9) + "| apples | 2 |\n| plum | 3 |\n| fig | 4 |\n| nut | 5 |", false,
			"    | | fruit | price |\n    | |---|---|\n    | … 8 lines\n    | | pear | 1 |\n    | | apples | 2 |\n    | | plum | 3 |\n    | | fig | 4 |\n    | … 1 more line; -v shows them\n",
		},
		{
			"rows.csv", "fruit,price\n" + strings.Repeat("pear,1\n", 9) + "apples,2\nplum,3\n", false,
			"    | fruit,price\n    | … 6 lines\n    | pear,1\n    | pear,1\n    | pear,1\n    | apples,2\n    | plum,3\n",
		},
		{"last_line", strings.Repeat("x\n", 9) + "an apple", false, "    | … 4 lines\n    | x\n    | x\n    | x\n    | x\n    | x\n    | an apple\n"},
		{"early_line", "apples\n" + strings.Repeat("x\n", 9) + "an apple", false, "    | apples\n    | x\n    | x\n    | x\n    | x\n    | x\n    | … 5 more lines; -v shows them\n"},
		{"one_more_is_shown", "1\n2\n3\n4\n5\n6\n7", false, "    | 1\n    | 2\n    | 3\n    | 4\n    | 5\n    | 6\n    | 7\n"},
	} {
		if got := excerpt(tt.in, "the price of apples", headLines(rag.Hit{Path: tt.name, Text: tt.in}), 28, tt.whole); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	old := map[string]stamp{"/a": {size: 1}, "/b": {size: 1}, "/c": {size: 1}, "/d": {size: 1}}
	now := map[string]stamp{"/a": {size: 1}, "/b": {size: 2}, "/e": {size: 1}}
	if got, want := changes(old, now), "4 files changed: /b, /c, /d, ..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
