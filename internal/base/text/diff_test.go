package text_test

import (
	"strings"
	"testing"

	"loki/internal/base/text"
)

func TestPaintDiffs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"none", "- a list\n+ of points", "- a list\n+ of points"},
		{"hunk", "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+three\n\n- after", "--- a\n+++ a\nc@@ -1,3 +1,3 @@z\n one\nr-twoz\ng+threez\n\n- after"},
		{"one_line", "@@ -1 +1 @@\n-a\n+b\n+ more", "c@@ -1 +1 @@z\nr-az\ng+bz\n+ more"},
		{"indented", "x\n    @@ -0,0 +1,2 @@\n    +a\n  +b", "x\nc    @@ -0,0 +1,2 @@z\ng    +az\n  +b"},
		{"no_line_feed", "@@ -1 +1 @@\n-a\n\\ No newline\n+b", "c@@ -1 +1 @@z\nr-az\n\\ No newline\ng+bz"},
		{"cut", "@@ -1,9 +1,9 @@\n-a\n[8 more lines are not shown]\n-b", "c@@ -1,9 +1,9 @@z\nr-az\n[8 more lines are not shown]\n-b"},
		{"two", "@@ -1 +0,0 @@\n-a\n--- b\n+++ b\n@@ -1 +0,0 @@\n-c", "c@@ -1 +0,0 @@z\nr-az\n--- b\n+++ b\nc@@ -1 +0,0 @@z\nr-cz"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.NewReplacer("\x1b[32m", "g", "\x1b[31m", "r", "\x1b[36m", "c", "\x1b[0m", "z").Replace(text.PaintDiffs(tt.in))
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
