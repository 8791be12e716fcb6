package draft_test

import (
	"testing"

	"loki/internal/agent/validate/draft"
)

// TestEndOnFailure: a definition that does not say what a failure does gets the setting, on a line of its own if possible.
func TestEndOnFailure(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"none", "name: x\nstart: a\n", "name: x\nstart: a\nsettings: {on_failure: fail}\n"},
		{"flow", "name: x\nsettings: {timeout: 3}\nstart: a\n", "name: x\nsettings: {on_failure: fail, timeout: 3}\nstart: a\n"},
		{"empty", "settings: {}\nstart: a\n", "settings: {on_failure: fail}\nstart: a\n"},
		{"block", "settings: # of a run\n\n  timeout: 3\nstart: a\n", "settings: # of a run\n\n  on_failure: fail\n  timeout: 3\nstart: a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := draft.EndOnFailure(tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
