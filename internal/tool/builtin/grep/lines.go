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
	places := make([]int, len(c.needles)) // where each needle is next
	for i := range places {
		places[i] = -1
	}
	for at := 0; at < len(block); {
		found := len(block)
		for i := range c.needles {
			if places[i] < at {
				if places[i] = c.needles[i].index(block[at:]); places[i] < 0 {
					places[i] = len(block)
				} else {
					places[i] += at
				}
			}
			found = min(found, places[i])
		}
		if found == len(block) {
			return
		}
		start, end := lineAround(block, at, found)
		if (c.exact || c.re.Match(block[start:end])) && !yield(start, end) {
			return
		}
		at = end + 1
	}
}

func (c *compiled) linesByRegexp(block []byte, yield func(start, end int) bool) {
	for at := 0; at < len(block); {
		stop := min(at+piece, len(block))
		if stop < len(block) {
			stop = indexByteFrom(block, '\n', stop)
		}
		for at < stop {
			found := c.re.FindIndex(block[at:stop])
			if found == nil || at+found[0] == len(block) && block[len(block)-1] == '\n' {
				break
			}
			start, end := lineAround(block, at, at+found[0])
			if !yield(start, end) {
				return
			}
			at = end + 1
		}
		at = max(at, stop+1)
	}
}

// lineAround returns where the line with the byte at starts and ends; no line before from
// is looked at.
func lineAround(block []byte, from, at int) (start, end int) {
	return from + bytes.LastIndexByte(block[from:at], '\n') + 1, indexByteFrom(block, '\n', at)
}
