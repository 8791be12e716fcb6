package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"
)

// place is a word of a text.
type place struct {
	start, end int // bytes
	word       string
}

// Snippet is the part of a text that shows best why it was found.
type Snippet struct {
	Text  string   // one line, with one blank for several; where something is left out there is an ellipsis
	Marks [][2]int // what was looked for: from and to, in characters of Text, in order
}

// snippetLength is about how long a snippet is, in characters, and lead how much of it is in front of
// the first hit.
const (
	snippetLength = 160
	lead          = 40
)

// snippet returns the part of text that has most of the terms.
func snippet(body string, terms []term) Snippet {
	var list []place
	eachWord(body, func(start, end int, w string) { list = append(list, place{start, end, w}) })
	type hit struct{ start, end, term int }
	var hits []hit
	for i := range list {
		for n, t := range terms {
			if t.at(list, i) {
				hits = append(hits, hit{list[i].start, list[i+len(t.words)-1].end, n})
				break
			}
		}
	}
	// The window begins at the hit from which on most terms are near, the earliest of several.
	best, most := 0, 0
	for i := range hits {
		seen := make(map[int]bool)
		for _, h := range hits[i:] {
			if h.end-hits[i].start > snippetLength {
				break
			}
			seen[h.term] = true
		}
		if len(seen) > most {
			best, most = i, len(seen)
		}
	}
	from := 0
	if len(hits) > 0 {
		from = back(body, hits[best].start, lead)
	}
	to := forward(body, from, snippetLength)
	var b strings.Builder
	var s Snippet
	if from > 0 {
		b.WriteString("…")
	}
	blank := false // the last character is one
	write := func(part string) {
		b.WriteString(strings.Map(func(r rune) rune {
			if !unicode.IsSpace(r) {
				blank = false
				return r
			}
			if blank {
				return -1
			}
			blank = true
			return ' '
		}, text.Printable(part)))
	}
	at := from
	for _, h := range hits[min(best, len(hits)):] {
		if h.start < at || h.start >= to {
			continue
		}
		write(body[at:h.start])
		start := utf8.RuneCountInString(b.String())
		at = min(h.end, to)
		write(body[h.start:at])
		s.Marks = append(s.Marks, [2]int{start, utf8.RuneCountInString(b.String())})
	}
	write(body[at:to])
	if to < len(body) {
		b.WriteString("…")
	}
	s.Text = b.String()
	return s
}

// back returns a place in text at most n characters before i, behind a blank if there is one.
func back(body string, i, n int) int {
	j := i
	for range n {
		_, size := utf8.DecodeLastRuneInString(body[:j])
		if size == 0 {
			return 0
		}
		j -= size
	}
	if k := strings.IndexFunc(body[j:i], unicode.IsSpace); k >= 0 && j > 0 {
		_, size := utf8.DecodeRuneInString(body[j+k:])
		return j + k + size
	}
	return j
}

// forward returns a place in text at most n characters behind i, at a blank if there is one near.
func forward(body string, i, n int) int {
	j := i
	for range n {
		_, size := utf8.DecodeRuneInString(body[j:])
		if size == 0 {
			return len(body)
		}
		j += size
	}
	if j < len(body) {
		if k := strings.LastIndexFunc(body[i:j], unicode.IsSpace); k > (j-i)*3/4 {
			return i + k
		}
	}
	return j
}
