package extract

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The central sentences of a text are chosen, the one that has nothing to do with it
// is not, even in a summary that takes more than half of the text.
func TestSummaryIsAboutTheText(t *testing.T) {
	for _, tt := range []struct {
		file    string
		central []string // in a summary of three
		planted string   // in none of six
	}{
		{"lighthouses.txt", []string{"His lens bent the light", "light of a lighthouse steadier", "sailors still value the light"}, "marmalade"},
		{"bees.txt", []string{"dances on the comb", "angle of the dance", "follow the dance closely"}, "copper"},
		{"minutes.md", []string{"met to decide about the old water main", "proposed to replace the water main"}, "Coffee"},
	} {
		t.Run(strings.Trim(filepath.Base(tt.file), ".txmd"), func(t *testing.T) {
			text := read(t, tt.file)
			short := strings.Join(Summarize(text, Limits{Sentences: 3}), "\n")
			for _, want := range tt.central {
				if !strings.Contains(short, want) {
					t.Errorf("%q is not in the summary:\n%s", want, short)
				}
			}
			long := Summarize(text, Limits{Sentences: 6})
			if len(long) != 6 {
				t.Fatalf("%d sentences, want 6: %q", len(long), long)
			}
			if s := strings.Join(long, "\n"); strings.Contains(s, tt.planted) {
				t.Errorf("%q is in the summary:\n%s", tt.planted, s)
			}
		})
	}
}

func TestRepetitionIsLeftOut(t *testing.T) {
	text := `The dam holds back the lake above the town. Many people like cheese.
		The dam holds back the lake above the old town. Engineers inspect the dam and the lake each spring.
		The dam, it holds back the lakes above the town! Rain filled the lake to the top of the dam.`
	got := Summarize(text, Limits{Sentences: 5})
	dams := 0
	for _, s := range got {
		if strings.Contains(s, "holds back") {
			dams++
		}
	}
	if dams != 1 || len(got) != 4 {
		t.Errorf("want one of the three equal sentences and the other three, got %q", got)
	}
}

func TestSummarizeLimits(t *testing.T) {
	const text = "# Title\n\nBees dance in the hive. Bees fly from the hive to flowers in the field far away. " +
		"No. Flowers feed the bees.\n\n- item without mark"
	all := []string{
		"Bees dance in the hive.", "Bees fly from the hive to flowers in the field far away.", "No.",
		"Flowers feed the bees.", "item without mark",
	}
	for _, tt := range []struct {
		name   string
		text   string
		limits Limits
		want   []string
	}{
		{name: "empty"},
		{name: "no_prose", text: "```\ncode. code.\n```\n\n---\n"},
		{name: "headings_only", text: "# One\n## Two", want: []string{"One", "Two"}},
		{name: "fewer_than_asked", text: text, limits: Limits{Sentences: 9}, want: all},
		{name: "as_many_as_asked", text: text, limits: Limits{Sentences: 5}, want: all},
		{name: "words_suffice", text: text, limits: Limits{Words: 25}, want: all},
		{name: "words", text: text, limits: Limits{Words: 11}, want: []string{all[0], all[2], all[3]}},
		{name: "words_and_sentences", text: text, limits: Limits{Words: 11, Sentences: 1}, want: []string{all[0]}},
		{name: "no_sentence_within_words", text: "Bees dance in the hive. Bees dance.", limits: Limits{Words: 1}, want: []string{"Bees dance."}},
		{name: "fragments_last", text: text, limits: Limits{Sentences: 3}, want: []string{all[0], all[1], all[3]}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Summarize(tt.text, tt.limits)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestDefaultLength(t *testing.T) {
	if got := Summarize(read(t, "bees.txt"), Limits{}); len(got) != DefaultSentences {
		t.Errorf("%d sentences, want %d", len(got), DefaultSentences)
	}
}

func TestLayout(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits Limits
		in     []string
		want   string
	}{
		{name: "none"},
		{name: "paragraph", in: []string{"One.", "“Two!”", "Three"}, want: "One. “Two!” Three"},
		{name: "without_marks", in: []string{"one", "two"}, want: "one\ntwo"},
		{name: "dense", in: []string{"一。", "二。"}, want: "一。二。"},
		{name: "bullets", limits: Limits{Bullets: true}, in: []string{"One.", "two"}, want: "- One.\n- two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pieces := tt.limits.Layout(tt.in)
			if len(pieces) != len(tt.in) || strings.Join(pieces, "") != tt.want {
				t.Errorf("got %q, want %d pieces of %q", pieces, len(tt.in), tt.want)
			}
		})
	}
}

// randomText makes a text of sentences from a small vocabulary, so that they
// resemble and sometimes repeat each other.
func randomText(r *rand.Rand, sentences int) string {
	words := strings.Fields("bees dance flowers hive Dr. U.S. 3.5 light lighthouse lens ship the of and to oil lamp " +
		"“sun” (moon) e.g. etc. sea https://x.org/a?b 灯塔的光 island storm wind keeper glass beam night 1999")
	ends := []string{". ", "! ", "? ", "... ", ".\n", ".\n\n", "\n\n", "。", ".\n- ", ".\n# A heading\n"}
	var b strings.Builder
	for range sentences {
		b.WriteString("Then")
		for range 1 + r.IntN(15) {
			b.WriteByte(' ')
			b.WriteString(words[r.IntN(len(words))])
		}
		b.WriteString(ends[r.IntN(len(ends))])
	}
	return b.String()
}

func TestSummaryProperties(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := randomText(r, r.IntN(60))
		limits := Limits{Sentences: r.IntN(12), Words: r.IntN(2) * r.IntN(80)}
		if problem := brokenPromise(text, limits); problem != "" {
			t.Fatalf("seed %d, limits %+v: %s\n%s", seed, limits, problem, text)
		}
	}
}

// brokenPromise says what is wrong with the summary of text, empty if nothing is.
func brokenPromise(text string, limits Limits) string {
	got := Summarize(text, limits)
	if again := Summarize(text, limits); !slices.Equal(got, again) {
		return fmt.Sprintf("a second summary differs: %q and %q", got, again)
	}
	most := limits.Sentences
	if most == 0 && limits.Words == 0 {
		most = DefaultSentences
	}
	if most > 0 && len(got) > most {
		return fmt.Sprintf("%d sentences are more than %d", len(got), most)
	}
	words := 0
	for _, s := range got {
		words += countWords(s)
	}
	if limits.Words > 0 && words > limits.Words && len(got) > 1 {
		return fmt.Sprintf("%d words are more than %d", words, limits.Words)
	}
	all := sentencesOf(text)
	if len(all) > 0 && len(got) == 0 {
		return "the summary is empty"
	}
	if limits.Words == 0 && len(all) <= most && !slices.Equal(got, all) {
		return fmt.Sprintf("got %q, want all of %q", got, all)
	}
	// Marks at the start of lines are left out, so only letters are compared. Each
	// sentence is looked for behind the one before it.
	rest := letters(text)
	for _, s := range got {
		n := strings.Index(rest, letters(s))
		if n < 0 {
			return fmt.Sprintf("%q is not in the text, or in another order", s)
		}
		rest = rest[n+len(letters(s)):]
		if strings.TrimSpace(s) != s || strings.ContainsAny(s, "\n\t") {
			return fmt.Sprintf("%q has stray white space", s)
		}
	}
	return ""
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func FuzzSummarize(f *testing.F) {
	for _, name := range []string{"lighthouses.txt", "bees.txt", "minutes.md"} {
		f.Add(read(f, name), 3, 0)
	}
	f.Add("“A. B.” (c. D.) 1. x... e.g. Y!", 2, 10)
	f.Add("今天下雨。「行く。」と言った。", 1, 0)
	f.Add("```\n~~~\n> - 1. # x\n---\n===\n", 1, 1)
	f.Add("\xff. \xfe! a\xff?", 1, 0)
	f.Fuzz(func(t *testing.T, text string, sentences, words int) {
		limits := Limits{Sentences: max(0, sentences), Words: max(0, words)}
		if problem := brokenPromise(text, limits); problem != "" {
			t.Error(problem)
		}
	})
}

func FuzzSplitAsk(f *testing.F) {
	f.Add("Summarise in 2 sentences:\nBees dance.")
	f.Add("tl;dr\n\nBees dance.\n\n3 bullets, please")
	f.Add("a:\n: b: summarise :")
	f.Fuzz(func(t *testing.T, message string) {
		ask, text := SplitAsk(message)
		if got, want := letters(ask+text), letters(message); len(got) != len(want) {
			t.Errorf("%q becomes %q and %q", message, ask, text)
		}
		if l := ReadLimits(ask); l.Sentences < 0 || l.Words < 0 {
			t.Errorf("limits %+v of %q", l, ask)
		}
		IsAsk(message)
	})
}

func BenchmarkSummarize(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000} {
		text := randomText(rand.New(rand.NewPCG(1, 2)), size/60)
		for len(text) < size {
			text += text
		}
		text = strings.ToValidUTF8(text[:size], "")
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				Summarize(text, Limits{Sentences: 10})
			}
		})
	}
}
