package render

import (
	"strings"
	"testing"
)

// TestFoldKeepsQuestions makes do with few rows of which some are of agents that wait for an answer.
func TestFoldKeepsQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rows string // a letter each: r runs, o is over, q waits for an answer
		room int
		want string
		text string
	}{
		{"rrrrq", 4, "rrq", "+2 more running"},
		{"rrqrq", 3, "qq", "+3 more running"},
		{"oqrro", 4, "qrr", "+2 finished"},
		{"qqqq", 3, "qq", "+2 more running"},
		{"rqo", 1, "", "2 more running, 1 finished"},
	} {
		var rows []treeRow
		for _, c := range tt.rows {
			rows = append(rows, treeRow{name: string(c), over: c == 'o', asks: c == 'q'})
		}
		kept, text := fold(rows, tt.room)
		got := ""
		for _, r := range kept {
			got += r.name
		}
		if got != tt.want || strings.TrimSpace(text) != tt.text {
			t.Errorf("%s in %d: %q, %q, want %q, %q", tt.rows, tt.room, got, text, tt.want, tt.text)
		}
	}
}
