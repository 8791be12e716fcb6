package extract

import "testing"

func TestSplitAsk(t *testing.T) {
	const body = "Bees dance. Flowers do not."
	for _, tt := range []struct{ name, in, ask, text string }{
		{name: "empty"},
		{name: "text_only", in: body, text: body},
		{name: "colon_in_line", in: "Summarise in one sentence: " + body, ask: "Summarise in one sentence:", text: body},
		{name: "colon_at_end_of_line", in: "Three bullets:\n" + body, ask: "Three bullets:", text: body},
		{name: "colon_behind_other_colon", in: "Note: summarise this in 2 sentences: " + body, ask: "Note: summarise this in 2 sentences:", text: body},
		{name: "colon_with_request_behind", in: "Summarise this: use two sentences.\n\n" + body, ask: "Summarise this: use two sentences.", text: body},
		{name: "colon_in_address", in: "Summarise http://x.org in 2 sentences\n" + body, ask: "Summarise http://x.org in 2 sentences", text: body},
		{name: "line", in: "Summarise in two sentences\n" + body, ask: "Summarise in two sentences", text: body},
		{name: "line_wins_over_paragraph", in: "tl;dr please\n" + body + "\n\nMore.", ask: "tl;dr please", text: body + "\n\nMore."},
		{name: "lines", in: "Summarise the text.\nUse 5 bullets.\nText:\n" + body, ask: "Summarise the text.\nUse 5 bullets.\nText:", text: body},
		{name: "wrapped", in: "Summarise the text\nfor children.\n" + body, ask: "Summarise the text\nfor children.", text: body},
		{name: "paragraph", in: "Please read what follows\nand make a summary.\n\n" + body, ask: "Please read what follows\nand make a summary.", text: body},
		{name: "banner", in: "In 3 sentences, what is this?\n\n=== FILE: x ===\n" + body, ask: "In 3 sentences, what is this?", text: "=== FILE: x ===\n" + body},
		{name: "at_the_end", in: body + "\n\nSummarise the text above in 50 words.", ask: "Summarise the text above in 50 words.", text: body},
		{name: "i_want", in: "I want a summary of this.\n\n" + body, ask: "I want a summary of this.", text: body},
		{name: "noun_phrase", in: "Short summary, 2 sentences\n\n" + body, ask: "Short summary, 2 sentences", text: body},
		{name: "instruction_only", in: "Summarise this in two sentences", text: "Summarise this in two sentences"},
		{name: "instruction_with_colon_only", in: "Summarise this:", ask: "Summarise this:"},
		{name: "statement_about_sentences", in: "The court handed down two sentences.\n\n" + body, text: "The court handed down two sentences.\n\n" + body},
		{name: "statement_about_summaries", in: "We summarize results on bees.\n\n" + body, text: "We summarize results on bees.\n\n" + body},
		{name: "statement_with_colon", in: "There is one rule: bees dance.\n\n" + body, text: "There is one rule: bees dance.\n\n" + body},
		{name: "request_about_other_things", in: "Please close the door.\n\n" + body, text: "Please close the door.\n\n" + body},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ask, text := SplitAsk(tt.in)
			if ask != tt.ask || text != tt.text {
				t.Errorf("got  %q and %q\nwant %q and %q", ask, text, tt.ask, tt.text)
			}
		})
	}
}

func TestIsAsk(t *testing.T) {
	for in, want := range map[string]bool{
		"Summarise this in two sentences.":      true,
		" 3 bullets please\n":                   true,
		"Summarise this.\nBees dance.":          false,
		"Bees dance.":                           false,
		"":                                      false,
		"The judge wrote sentences all morning": false,
	} {
		if got := IsAsk(in); got != want {
			t.Errorf("IsAsk(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestReadLimits(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want Limits
	}{
		{name: "nothing", in: []string{"Summarise this."}},
		{name: "digits", in: []string{"Summarise in 4 sentences."}, want: Limits{Sentences: 4}},
		{name: "word", in: []string{"Use Seventeen sentences"}, want: Limits{Sentences: 17}},
		{name: "one_sentence", in: []string{"in one sentence"}, want: Limits{Sentences: 1}},
		{name: "a_sentence", in: []string{"write a short sentence"}, want: Limits{Sentences: 1}},
		{name: "hyphen", in: []string{"a 2-sentence summary"}, want: Limits{Sentences: 2}},
		{name: "adjectives", in: []string{"three short, simple sentences"}, want: Limits{Sentences: 3}},
		{name: "of_the", in: []string{"5 of the most important sentences"}, want: Limits{Sentences: 5}},
		{name: "range", in: []string{"2-3 sentences"}, want: Limits{Sentences: 3}},
		{name: "range_in_words", in: []string{"two to four sentences"}, want: Limits{Sentences: 4}},
		{name: "bullets", in: []string{"Give me 5 bullets"}, want: Limits{Sentences: 5, Bullets: true}},
		{name: "bullet_points", in: []string{"four key bullet points"}, want: Limits{Sentences: 4, Bullets: true}},
		{name: "points", in: []string{"the 3 main points"}, want: Limits{Sentences: 3, Bullets: true}},
		{name: "bullets_without_number", in: []string{"as bullet points"}, want: Limits{Bullets: true}},
		{name: "bullet_list", in: []string{"as a bullet list"}, want: Limits{Bullets: true}},
		{name: "bulleted_list", in: []string{"a bulleted list"}, want: Limits{Bullets: true}},
		{name: "no_bullets", in: []string{"2 sentences, don't use bullets"}, want: Limits{Sentences: 2}},
		{name: "each", in: []string{"3 bullets, one sentence each"}, want: Limits{Sentences: 3, Bullets: true}},
		{name: "per", in: []string{"one sentence per bullet"}, want: Limits{Bullets: true}},
		{name: "paragraph", in: []string{"a paragraph"}, want: Limits{Sentences: 5}},
		{name: "paragraphs", in: []string{"two paragraphs"}, want: Limits{Sentences: 10}},
		{name: "paragraph_of", in: []string{"a paragraph of two sentences"}, want: Limits{Sentences: 2}},
		{name: "words", in: []string{"in under 50 words"}, want: Limits{Words: 50}},
		{name: "thousands", in: []string{"1,000 words, 20 sentences"}, want: Limits{Words: 1000, Sentences: 20}},
		{name: "first_wins", in: []string{"2 sentences", "4 sentences and 30 words"}, want: Limits{Sentences: 2, Words: 30}},
		{name: "other_clause", in: []string{"You have 10 years of experience. Write sentences."}},
		{name: "zero", in: []string{"0 sentences"}},
		{name: "huge", in: []string{"99999999999999999999 sentences"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ReadLimits(tt.in...); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
