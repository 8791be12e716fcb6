package ask_test

import (
	"errors"
	"strings"
	"testing"

	"loki/internal/base/ask"
)

func TestPrepared(t *testing.T) {
	red := ask.Given{Text: `["red"]`, List: true}
	p := ask.NewPrepared(map[string]ask.Given{"review": {Text: "accept"}, "review@2": {Text: "shorter"}, "act/1.1": {Text: "yes"}, "colors": red, "raw": {Text: `["red"]`}},
		[]ask.Given{{Text: "2"}, {Text: "last"}})
	options := []string{"accept", "reject"}
	for _, tt := range []struct {
		name  string
		q     ask.Question
		want  string
		none  bool
		fails string
	}{
		{name: "list", q: ask.Question{ID: "colors", Kind: ask.Multi, Options: []string{"red", "blue"}}, want: `["red"]`},
		{name: "list_for_a_text", q: ask.Question{ID: "colors", Kind: ask.Text}, fails: `one answer is expected, and ["red"] is a list`},
		{name: "text_of_a_list", q: ask.Question{ID: "raw", Kind: ask.Text}, want: `["red"]`},
		{name: "by_id", q: ask.Question{ID: "review@2", Node: "review", Kind: ask.Text}, want: "shorter"},
		{name: "by_node", q: ask.Question{ID: "review@3", Node: "review", Kind: ask.Choice, Options: options}, want: "accept"},
		{name: "consent_by_id", q: ask.Question{ID: "act/1.1", Node: "act", Kind: ask.Choice, Options: []string{"yes", "no"}, Consent: true}, want: "yes"},
		{name: "consent_never_by_node", q: ask.Question{ID: "review/1.1", Node: "review", Kind: ask.Choice, Consent: true}, none: true},
		{name: "first_of_list", q: ask.Question{ID: "a", Node: "a", Kind: ask.Choice, Options: options}, want: "reject"},
		{name: "second_of_list", q: ask.Question{ID: "b", Node: "b", Kind: ask.Text}, want: "last"},
		{name: "list_is_over", q: ask.Question{ID: "c", Node: "c", Kind: ask.Text}, none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.Ask(t.Context(), tt.q)
			if tt.none != errors.Is(err, ask.ErrUnavailable) || got != tt.want || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("Ask = %q, %v", got, err)
			}
		})
	}
}
