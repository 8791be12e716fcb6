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
	c := text[0]
	if c < utf8.RuneSelf {
		if len(text) == 1 || text[1] < utf8.RuneSelf {
			return 1, 1, 1
		}
		if r, _ := utf8.DecodeRune(text[1:]); simple(r) != 0 {
			return 1, 1, 1
		}
	} else if r, size := utf8.DecodeRune(text); simple(r) != 0 {
		w := simple(r)
		rest := text[size:]
		if len(rest) == 0 || rest[0] < utf8.RuneSelf {
			return size, w, w
		}
		if r, _ := utf8.DecodeRune(rest); simple(r) != 0 {
			return size, w, w
		}
	}
	first, w := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	_, most = ansi.FirstGraphemeCluster(text, ansi.WcWidth)
	sum := 0
	for rest := first; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if s := simple(r); s != 0 {
			sum += s
		} else {
			_, rw := ansi.FirstGraphemeCluster(rest[:size], ansi.WcWidth)
			sum += rw
		}
		rest = rest[size:]
	}
	return len(first), w, max(w, most, sum)
}

// simple returns the width of characters that combine with no neighbor, unless that is a character
// for which it returns 0: the answer for all others.
func simple(r rune) int {
	switch {
	case r >= 0xc0 && r < 0x300 && r != 0xd7 && r != 0xf7, // Latin
		r >= 0x391 && r < 0x483, // Greek, Cyrillic
		r >= 0x48a && r < 0x530,
		r >= 0x2010 && r <= 0x2027, // dashes, quotation marks, ellipsis
		r >= 0x2500 && r < 0x2580:  // box drawing
		return 1
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3041 && r <= 0x3096, r >= 0x30a1 && r <= 0x30fa, // ideographs, kana
		r >= 0x3001 && r <= 0x3029, r >= 0xff01 && r <= 0xff60, // their punctuation
		r >= 0xac00 && r <= 0xd7a3: // Hangul
		return 2
	}
	return 0
}

// width returns how many columns text takes. There are no escape sequences in it.
func width(text []byte) int {
	total := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf) {
			total++
			i++
			continue
		}
		n, w, _ := cluster(text[i:])
		total += w
		i += n
	}
	return total
}

// reach returns how many columns text takes where characters take the most, which is what
// rows are wrapped by: a column that is so wide holds text on one row.
func reach(text []byte) int {
	total := 0
	for len(text) > 0 {
		n, _, most := cluster(text)
		total += most
		text = text[n:]
	}
	return total
}
