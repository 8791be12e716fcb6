package display_test

import (
	"testing"

	"loki/internal/frontend/command/display"
)

// TestTable: a cell is as wide as terminals show it, two columns for each character of Chinese
// and none for an accent.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"NAME", "N", "TEXT"}, {"漢字の旅", "10", "a"}, {"cafe\u0301", "7", "b"}, {"trip\x1b[2J", "7", "c"}}
	want := "NAME       N  TEXT\n" +
		"漢字の旅  10  a\n" +
		"cafe\u0301       7  b\n" +
		"trip␛[2J   7  c\n"
	if got := display.Table(rows, 1); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
