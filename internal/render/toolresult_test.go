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
