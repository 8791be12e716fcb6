package normalize_test

import (
	"slices"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

func TestLacks(t *testing.T) {
	all := normalize.Lacks{Seed: true, Penalties: true, Choice: true}
	everything := chat.Constraints{Seed: new(int64(7)), PresencePenalty: 1, Choice: chat.ToolChoice{Required: true}}
	for _, tt := range []struct {
		name  string
		lacks normalize.Lacks
		asked chat.Constraints
		notes int
	}{
		{"nothing_asked", all, chat.Constraints{}, 1},
		{"everything_asked", all, everything, 4},
		{"all_passed_on", normalize.Lacks{}, everything, 1},
		{"penalty", normalize.Lacks{Penalties: true}, chat.Constraints{FrequencyPenalty: -1}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := []string{"before"}
			if notes := tt.lacks.Notes(before, provider.Request{Constraints: tt.asked}); len(notes) != tt.notes || notes[0] != "before" || slices.Contains(notes, "") {
				t.Errorf("%q, want %d notes", notes, tt.notes)
			}
		})
	}
}
