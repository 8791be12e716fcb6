package grep

import "bytes"

// piece is how many bytes the regular expression gets at once if no needle is known.
// Package regexp is several times as fast on short texts, because it then remembers
// visited states.
const piece = 4 << 10

// lines calls yield for each line of block that matches, in order, with its start and
// end, until yield returns false. The block starts with a line.
func (c *compiled) lines(block []byte, yield func(start, end int) bool) {
	if len(c.needles) == 0 {
		c.linesByRegexp(block, yield)
		return
	}
	hay := block
	if c.fold {
		hay = lower(block)
	}
	places := make([]int, len(c.needles)) // where each needle is next
	for at := 0; at < len(block); {
		found := len(block)
		for i, needle := range c.needles {
			if places[i] < at || at == 0 {
				before, _, _ := bytes.Cut(hay[at:], []byte(needle)) // all of it without the needle
				places[i] = at + len(before)
			}
			found = min(found, places[i])
		}
		if found == len(block) {
			return
		}
		start, end := lineAround(block, at, found)
		if c.re.Match(block[start:end]) && !yield(start, end) {
			return
		}
		at = end + 1
	}
}

func (c *compiled) linesByRegexp(block []byte, yield func(start, end int) bool) {
	for at := 0; at < len(block); {
		_, stop := lineAround(block, at, min(at+piece, len(block)))
		found := c.re.FindIndex(block[at:stop])
		if found == nil || at+found[0] == len(block) && block[len(block)-1] == '\n' {
			at = stop + 1
			continue
		}
		start, end := lineAround(block, at, at+found[0])
		if !yield(start, end) {
			return
		}
		at = end + 1
	}
}

// lineAround returns where the line with the byte at starts and ends; no line before from
// is looked at.
func lineAround(block []byte, from, at int) (start, end int) {
	start = from + bytes.LastIndexByte(block[from:at], '\n') + 1
	if i := bytes.IndexByte(block[at:], '\n'); i >= 0 {
		return start, at + i
	}
	return start, len(block)
}
