package grep

import "bytes"

// needle is a text that is looked for.
type needle struct {
	text []byte // lower case if fold
	fold bool
	// rare is the index of the byte of text that is searched first if fold: the one
	// that is probably the least common.
	rare         int
	lower, upper byte
}

// common are the bytes of source text, the most common first.
const common = " etaoinrslcdupmfhgbyvk_().,=wx\"\t-/:;{}'1TSI0CE"

func newNeedle(l literal) needle {
	n := needle{text: []byte(l.text), fold: l.fold}
	if !l.fold {
		return n
	}
	best := -1
	for i, c := range n.text {
		rank := bytes.IndexByte([]byte(common), c)
		if rank < 0 {
			rank = len(common)
		}
		if rank > best {
			best, n.rare = rank, i
		}
	}
	n.lower = n.text[n.rare]
	n.upper = n.lower
	if 'a' <= n.lower && n.lower <= 'z' {
		n.upper -= 'a' - 'A'
	}
	return n
}

// index returns where the needle is first, -1 if it is not there.
func (n *needle) index(hay []byte) int {
	if !n.fold {
		return bytes.Index(hay, n.text)
	}
	// Each of the two bytes is searched again only after its last place was passed.
	lower, upper := -1, -1
	if n.upper == n.lower {
		upper = len(hay)
	}
	for at := n.rare; ; {
		if lower < at {
			lower = indexByteFrom(hay, n.lower, at)
		}
		if upper < at {
			upper = indexByteFrom(hay, n.upper, at)
		}
		found := min(lower, upper)
		if found >= len(hay) {
			return -1
		}
		start := found - n.rare
		if start+len(n.text) <= len(hay) && equalFold(hay[start:start+len(n.text)], n.text) {
			return start
		}
		at = found + 1
	}
}

// indexByteFrom returns where c is first in hay[from:], counted from the start of hay, and
// len(hay) if it is not there.
func indexByteFrom(hay []byte, c byte, from int) int {
	if from < len(hay) {
		if i := bytes.IndexByte(hay[from:], c); i >= 0 {
			return from + i
		}
	}
	return len(hay)
}

// equalFold compares hay with a text in lower case. It ignores the case of ASCII letters
// only.
func equalFold(text, lower []byte) bool {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
