package command

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRanked(t *testing.T) {
	for _, tt := range []struct{ name, pattern, candidates, want string }{
		{name: "empty_keeps_order", candidates: "b a", want: "b a"},
		{name: "prefix_first", pattern: "co", candidates: "decode code oracle explore-co", want: "code explore-co decode"},
		{name: "start_of_words", pattern: "g4o", candidates: "openai:gpt-4-turbo openai:gpt-4o google:4o", want: "google:4o openai:gpt-4o openai:gpt-4-turbo"},
		{name: "shorter_first", pattern: "role", candidates: ".role-x .role", want: ".role .role-x"},
		{name: "small_letters_match_both", pattern: "abc", candidates: "ABC aXbXc", want: "ABC aXbXc"},
		{name: "capitals_match_capitals", pattern: "Ab", candidates: "ab Ab", want: "Ab"},
		{name: "order_of_characters", pattern: "ba", candidates: "ab", want: ""},
		{name: "together_before_apart", pattern: "son", candidates: "s-o-m-e-n sonnet claude-sonnet", want: "sonnet claude-sonnet s-o-m-e-n"},
		{name: "equal_keep_order", pattern: "x", candidates: "xb xa", want: "xb xa"},
		{name: "longer_characters", pattern: "öß", candidates: "größe", want: "größe"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var list []Candidate
			for _, v := range strings.Fields(tt.candidates) {
				list = append(list, Candidate{Value: v})
			}
			var got []string
			for _, c := range rankCandidates(tt.pattern, list) {
				got = append(got, c.Value)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzRanked(f *testing.F) {
	f.Add("g4o", "openai:gpt-4o")
	f.Add("", "")
	f.Add("ÄÖ", "größe\xff")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if !utf8.ValidString(pattern) || len(pattern) > 100 || len(value) > 1000 {
			t.Skip()
		}
		for _, c := range rankCandidates(pattern, []Candidate{{Value: value}}) {
			if c.Value != value {
				t.Errorf("%q became %q", value, c.Value)
			}
		}
		if len(rankCandidates(value, []Candidate{{Value: value}})) != 1 && utf8.ValidString(value) {
			t.Errorf("%q does not match itself", value)
		}
	})
}
