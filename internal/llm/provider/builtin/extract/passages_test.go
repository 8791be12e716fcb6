package extract

import (
	"slices"
	"testing"
)

func TestSplitPassages(t *testing.T) {
	const rest = "\n</context>\n\n<sources>\n1. a.md:1-2\n</sources>\n\n<rules>\n- Cite it.\n</rules>\n\n<user_query>\n"
	for _, tt := range []struct {
		name, in, question string
		passages           []string
	}{
		{name: "none", in: "What is <context>\nx\n</context>?"},
		{
			name: "two", in: "Answer.\n\n<context>\n[1] [Source: a.md:1-2]\nBees dance.\n\n[12] [Source: b.md]\nCats\n[Source: c]\ndo not." + rest + "Who\n\ndances?\n</user_query>",
			question: "Who\n\ndances?", passages: []string{"Bees dance.\n\n", "Cats\n", "do not."},
		},
		{name: "no_question", in: "<context>\n[Source: a.md:1-2]\nBees dance." + rest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			question, passages := SplitPassages(tt.in)
			if question != tt.question || !slices.Equal(passages, tt.passages) {
				t.Errorf("got %q, %q", question, passages)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	passages := []string{"```\nlost: yes\n```\n\n# Bees\n\nBees dance in the hive. Flowers wait.", "The hive is warm.\n```"}
	for question, want := range map[string][]string{
		"How warm is a hive?":          {"Bees dance in the hive.", "The hive is warm."},
		"warmth in 1 sentence, hive":   {"Bees dance in the hive."},
		"What do dogs like at school?": {"Bees dance in the hive.", "Flowers wait.", "The hive is warm."},
	} {
		if got := Answer(question, passages, ReadLimits(question)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", question, got, want)
		}
	}
}
