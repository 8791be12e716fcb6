package chat_test

import (
	"testing"

	"loki/internal/llm/chat"
)

func TestNearestEffort(t *testing.T) {
	for _, tt := range []struct {
		effort chat.Effort
		list   []chat.Effort
		want   chat.Effort
	}{
		{"high", []chat.Effort{"low", "high"}, "high"},
		{"max", []chat.Effort{"low", "medium", "high"}, "high"},
		{"xhigh", []chat.Effort{"high", "max"}, "high"},
		{"medium", []chat.Effort{"low", "high"}, "high"},
		{"high", []chat.Effort{"low", "max"}, "low"},
		{"xhigh", []chat.Effort{"max"}, "max"},
		{"minimal", []chat.Effort{"none", "low"}, "low"},
		{"minimal", []chat.Effort{"none", "max"}, "max"},
		{"low", []chat.Effort{"none"}, "none"},
		{"none", []chat.Effort{"low", "high"}, "low"},
		{"none", []chat.Effort{"high", "none"}, "none"},
		{"high", nil, ""},
	} {
		if got := tt.effort.Nearest(tt.list); got != tt.want {
			t.Errorf("nearest to %s in %v is %q, want %q", tt.effort, tt.list, got, tt.want)
		}
	}
	for _, e := range chat.Efforts() {
		if !e.Valid() || e.Nearest(chat.Efforts()) != e {
			t.Errorf("%s is not itself", e)
		}
	}
	if chat.Effort("").Valid() || chat.Effort("much").Valid() {
		t.Error("what is no effort is valid")
	}
}
