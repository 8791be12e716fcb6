package extract

import (
	"slices"
	"strings"
	"testing"
)

// Each case is a block with its sentences separated by "|". Joining them with
// blanks, or without where a case is dense, gives the input back.
func TestSplitSentences(t *testing.T) {
	for _, tt := range []struct {
		name  string
		want  string
		dense bool
	}{
		{name: "plain", want: "It rained.|We stayed in.|Nobody minded!"},
		{name: "no_mark", want: "a line that just ends"},
		{name: "questions", want: "Why?|Because it rained.|Really?!|Yes."},
		{name: "mark_in_mid_sentence", want: "The Yahoo! portal closed.|“Stop!” he said and left.|Who? me, of course."},
		{name: "decimals", want: "Pi is 3.14159, or about 3.1.|A pound is .45 kilograms.|It grew by 4.5 percent."},
		{name: "version", want: "Install version 1.2.3.|Then run it."},
		{name: "year", want: "That was in 1999.|The next year was 2000."},
		{name: "titles", want: "Dr. Ada Byron met Mr. and Mrs. Babbage.|Prof. Turing came later."},
		{name: "initials", want: "J. R. R. Tolkien and George W. Bush never met.|J.K. Rowling did not either."},
		{name: "latin", want: "Take fruit, e.g. apples, i.e. Malus, cf. Fig. 3 and p. 12.|Then eat it."},
		{name: "et_al", want: "Erkan et al. Showed this.|See also Smith et al. 2004 for more."},
		{name: "abbreviation_before_sentence", want: "He works for Apple Inc.|The firm is in the U.S.|It moved there at 5 p.m.|We left."},
		{name: "abbreviation_before_name", want: "The U.S. Army bought it from Acme Corp. Germany in the D.C. Metro area."},
		{name: "etc", want: "Bring pens, paper, etc.|They are not provided."},
		{name: "number_word", want: "He said no.|She left.|Take the No. 5 bus, see nos. 6 and 7."},
		{name: "street", want: "She lives in St. Petersburg on Main St.|The house is red."},
		{name: "month", want: "On Jan. 5 it snowed.|It stopped in Feb.|People cheered."},
		{name: "ellipsis", want: "Well... maybe not.|He waited…|Nothing came.|Wait . . . what"},
		{name: "url", want: "See https://example.org/a.b?c=d!e.f for more.|Or go to example.com.|Mail a.b@example.org."},
		{name: "files", want: "Edit main.go and .env first.|Then build."},
		{name: "double_quotes", want: `"I came. I saw. I conquered," he said.|"Did he?" asked Brutus.|"Yes."|Nobody laughed.`},
		{name: "curly_quotes", want: "“It rained. We left.”|They never came back.|„Es regnet. Wir gehen.“|Das war alles."},
		{name: "inches", want: `A 5" pipe is wide.|A 3" one is not.`},
		{name: "parenthesis", want: "It failed (see Sect. 2. There is more.) and stopped.|(It rained. We left.)|Then he came."},
		{name: "open_parenthesis", want: "A face :( is sad.|It stays so."},
		{name: "emphasis", want: "**It works.**|_Nobody knew why._|`x.y` is code."},
		{name: "note_numbers", want: "Bees dance.[1]|They also fly.[12][13]|See [3]. for that"},
		{name: "enumeration", want: "1. First comes the egg.|Then comes the hen."},
		{name: "lower_case_text", want: "hello there.|how are you?|fine, e.g. not ill."},
		{name: "spanish", want: "¿Qué pasa?|¡Nada!|Vale."},
		{name: "german", want: "Das ist z.B. gut, d.h. nicht schlecht.|Er kam am 5. Mai nicht.|Nr. 7 lebt."},
		{name: "chinese", want: "今天下雨。|我们没去！|为什么？|他说：“我走了。”|然后他走了。", dense: true},
		{name: "japanese", want: "「行く。帰る。」と言った。|雨だった。|『本。』|終わり", dense: true},
		{name: "mixed_scripts", want: "Go 1.26 发布了。|It is fast.", dense: false},
		{name: "full_width_stop", want: "これはペンです．|それは本です．", dense: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.Split(tt.want, "|")
			sep := " "
			if tt.dense {
				sep = ""
			}
			got := splitSentences(strings.Join(want, sep))
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestLongQuotationIsCut(t *testing.T) {
	quote := "“" + strings.Repeat("It rained all day. ", 40) + "Then it stopped.”"
	if n := len(splitSentences(quote)); n != 41 {
		t.Errorf("%d sentences, want 41", n)
	}
}
