package extract

import (
	"strings"
	"unicode/utf8"
)

// Layout returns the pieces that sentences are written in, one for each, and that
// put together are the summary: a list if limits.Bullets is set, else a paragraph.
// A sentence that ends without a mark, such as a list item, ends its line.
func (l Limits) Layout(sentences []string) []string {
	pieces := make([]string, len(sentences))
	for i, s := range sentences {
		switch {
		case l.Bullets && i > 0:
			pieces[i] = "\n- " + s
		case l.Bullets:
			pieces[i] = "- " + s
		case i > 0:
			pieces[i] = gap(sentences[i-1]) + s
		default:
			pieces[i] = s
		}
	}
	return pieces
}

// gap is what stands between a sentence and the next.
func gap(sentence string) string {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(sentence, closers))
	switch {
	case !isStop(last):
		return "\n"
	case strings.ContainsRune(denseStops, last):
		return ""
	}
	return " "
}
