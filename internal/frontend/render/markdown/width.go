package markdown

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// cluster returns how many bytes the first character of text has, as people count
// characters, and how many columns it takes.
//
// Terminals disagree about sequences of emoji: some draw 👩‍👩‍👧 in two columns, some in six.
// The second width is the larger one; text that is wrapped by it never overflows.
func cluster(text []byte) (n, columns, most int) {
	if text[0] < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf) {
		return 1, 1, 1
	}
	first, columns := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	for _, r := range string(first) {
		most += ansi.StringWidthWc(string(r))
	}
	return len(first), columns, max(columns, most)
}

// measure returns how many columns text takes, and how many where characters take the most,
// which is what rows are wrapped by. There are no escape sequences in it.
func measure(text []byte) (columns, most int) {
	for len(text) > 0 {
		n, w, m := cluster(text)
		columns, most, text = columns+w, most+m, text[n:]
	}
	return columns, most
}

// width returns how many columns text takes.
func width(text []byte) int {
	columns, _ := measure(text)
	return columns
}

// reach returns how many columns a column needs that holds text on one row.
func reach(text []byte) int {
	_, most := measure(text)
	return most
}
