package render

import (
	"slices"
	"testing"
)

func TestResultLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{`{"output":""}`, nil},
		{`{"output":"a\nb\n\n"}`, []string{"a", "b"}},
		{`{"output":7}`, []string{`{"output":7}`}},
		{`{"tool_call_error":"no","output":"x"}`, []string{"x"}},
		{"plain\ntext\n", []string{"plain", "text"}},
	} {
		if got := resultLines(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
}

// A warning about a failed call says what the model reads, and nothing of its JSON.
func TestFailedCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{`{"tool_call_error":"fs_ls was not run: no","stderr":"why"}`, "fs_ls was not run: no: why"},
		{`{"tool_call_error":"it broke"}`, "tool fs_ls failed: it broke"},
		{`{"tool_call_loop_alert":{"error":"this is a loop: fs_ls was called twice","code":400,"hint":"stop"}}`, "this is a loop: fs_ls was called twice"},
		{"plain text", "tool fs_ls failed: plain text"},
	} {
		if got := failedCall("fs_ls", tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}
