package ask_test

import (
	"errors"
	"testing"

	"loki/internal/ask"
)

func TestPrepared(t *testing.T) {
	p := ask.NewPrepared(map[string]string{"review": "accept", "review@2": "shorter", "act/1.1": "yes"}, []string{"2", "last"})
	options := []string{"accept", "reject"}
	for _, tt := range []struct {
		name string
		q    ask.Question
		want string
		none bool
	}{
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
			if tt.none != errors.Is(err, ask.ErrUnavailable) || got != tt.want {
				t.Errorf("Ask = %q, %v", got, err)
			}
		})
	}
}
