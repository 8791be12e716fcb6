// Package split cuts documents into chunks.
//
// A text is cut at the best separator that occurs in it: between sections rather than between
// paragraphs, between paragraphs rather than between words. The parts that are too long are cut at
// the next best one. Parts that follow each other are then put together again, as many as fit into
// a chunk, and the last ones of a chunk are the first of the next: its overlap.
//
// Lengths are in characters (code points). A character as a reader sees it, such as a flag or a
// letter with its accents (a grapheme cluster), is never cut.
package split

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Splitter cuts texts of one kind. Its method may be called from several goroutines.
type Splitter struct {
	size, overlap int
	separators    []string
	keep          bool // separators stay, at the start of what is behind them
	ext           string
}

// New returns a Splitter for chunks of size characters, at least 1, of which about the last
// overlap ones start the next chunk. ext is the kind of the text, as the extension of a file in
// lower case without the dot; one that is not known means plain text.
func New(size, overlap int, ext string) Splitter {
	s := Splitter{size: max(size, 1), overlap: max(overlap, 0), separators: separators(ext), ext: ext}
	s.keep = s.markdown() || slices.ContainsFunc(s.separators, func(sep string) bool { return strings.TrimSpace(sep) != "" })
	return s
}

// markdown reports whether texts are cut as Markdown.
func (s Splitter) markdown() bool { return s.ext == "md" || s.ext == "mkd" || s.ext == "markdown" }

// Piece is a chunk of a document.
type Piece struct {
	// Text is a part of the document without blanks around it. In plain text, blank lines and
	// blanks that follow each other may be fewer than in the document. In front of a part of a table, a list or
	// a block of code, it has the names of the columns, the line above the list, or the line that opens the code; see [walk.divide].
	Text string

	// Heading is "A > B > C", the headings in Markdown that it is under. In plain text with form feeds, which Text
	// leaves out, it is "page N", from 1, or "pages N-M".
	Heading string

	Start, End     int // bytes of the document, with line ends of one byte
	Line, LastLine int // from 1

	before, after int  // bytes of Text around what is in the document
	cells         bool // Text is cells with their names
}

// Split cuts text, which is valid UTF-8, in time that is linear in its length and that of the
// result. The chunks are in the order of the text, and none begins or ends before the one before
// it. None is empty, and none is longer than the size, unless a single grapheme cluster is.
//
// In source code, a separator at the very end of what is cut is lost: nothing follows it. In
// Markdown, headings for which a chunk has no room are only in its Heading.
func (s Splitter) Split(text string) []Piece {
	w := walk{Splitter: s, text: strings.ReplaceAll(text, "\r\n", "\n")}
	w.paged = s.ext == "txt" && strings.Contains(text, "\f")
	w.all()
	return w.pieces
}

// walk is one call of Split.
type walk struct {
	Splitter
	text    string
	pieces  []Piece
	outline outline // of Markdown

	heading string // of what is cut
	paged   bool   // it is plain text in pages

	// The chunk that grows.
	parts  []part // and before first, those of earlier chunks
	first  int
	joiner string // between its parts
	chars  int    // in its parts
	gaps   int    // parts with gap set, the first one aside

	start, end          cursor // of the last piece
	firstPage, lastPage cursor
	looked              int // bytes read, a measure of work
}

// part is text between two separators.
type part struct {
	start, end int
	chars      int
	gap        bool // more than the joiner is between the one before it and this one
}

// cursor counts lines or pages up to a place that only moves on.
type cursor struct{ at, count int }

// move returns the number of ends, of lines or of pages, before to.
func (c *cursor) move(text, end string, to int) int {
	if to > c.at {
		c.count += strings.Count(text[c.at:to], end)
		c.at = to
	}
	return c.count
}

// all cuts the whole text.
func (w *walk) all() {
	switch {
	case w.markdown():
		w.outline = outlineOf(w.text)
		w.sections()
	case (w.ext == "csv" || w.ext == "tsv") && w.records():
	default:
		w.split(0, len(w.text), w.separators)
	}
}

// split cuts text[start:end] at the first of the separators that occurs in it.
func (w *walk) split(start, end int, separators []string) {
	for i, sep := range separators {
		if sep == "" {
			w.graphemes(start, end)
			return
		}
		if at := w.find(sep, start, end); at >= 0 {
			w.cut(start, end, at, sep, separators[i+1:])
			return
		}
	}
}

// graphemes cuts text[start:end] between any two grapheme clusters.
func (w *walk) graphemes(start, end int) {
	w.looked += end - start
	w.joiner = ""
	for clusters := graphemes.FromString(w.text[start:end]); clusters.Next(); {
		w.part(start+clusters.Start(), start+clusters.End(), nil)
	}
	w.flush()
}

// cut cuts text[start:end] at sep, which occurs first at at.
func (w *walk) cut(start, end, at int, sep string, rest []string) {
	joiner, skip := sep, len(sep)
	if w.keep {
		joiner, skip = "", 0
	}
	for at >= 0 {
		w.joiner = joiner
		w.part(start, at, rest)
		start = at + skip
		at = w.find(sep, at+len(sep), end)
	}
	if !w.keep || w.text[start:end] != sep {
		w.joiner = joiner
		w.part(start, end, rest)
	}
	w.flush()
}

// part adds text[start:end] to the chunk. If that is too long for any chunk, it is cut at one of
// rest.
func (w *walk) part(start, end int, rest []string) {
	if start == end {
		return
	}
	n := w.length(start, end)
	if n < w.size {
		w.add(part{start: start, end: end, chars: n})
		return
	}
	w.flush()
	if len(rest) > 0 {
		w.split(start, end, rest)
		return
	}
	if text := w.text[start:end]; strings.TrimSpace(text) != "" {
		w.emit(start, end, text)
	}
}

// length returns the number of characters in text[start:end], or some number above the size if it
// is.
func (w *walk) length(start, end int) int {
	if end-start > utf8.UTFMax*w.size {
		return 2*w.size + 1
	}
	w.looked += end - start
	return utf8.RuneCountInString(w.text[start:end])
}

// add adds p to the chunk. A chunk that has no room for it ends, and the next one begins with the
// last parts of it.
func (w *walk) add(p part) {
	full := func() bool { return w.chars+p.chars+len(w.window())*len(w.joiner) > w.size }
	if len(w.window()) > 0 && full() {
		w.chunk()
		for w.chars > w.overlap || w.chars > 0 && full() {
			w.drop()
		}
	}
	if window := w.window(); len(window) > 0 && p.start-window[len(window)-1].end != len(w.joiner) {
		p.gap = true
		w.gaps++
	}
	if len(w.parts) == cap(w.parts) && w.first > len(w.parts)/2 {
		w.parts, w.first = append(w.parts[:0], w.window()...), 0
	}
	w.parts = append(w.parts, p)
	w.chars += p.chars
}

// window returns the parts of the chunk.
func (w *walk) window() []part { return w.parts[w.first:] }

// drop removes the first part of the chunk.
func (w *walk) drop() {
	w.chars -= w.parts[w.first].chars
	w.first++
	if window := w.window(); len(window) > 0 && window[0].gap {
		w.gaps--
	}
}

// flush ends the chunk. Nothing of it is in the next one.
func (w *walk) flush() {
	w.chunk()
	w.parts, w.first, w.chars, w.gaps = w.parts[:0], 0, 0, 0
}

// chunk adds the chunk as it is to the pieces, unless it is blank.
func (w *walk) chunk() {
	window := w.window()
	if len(window) == 0 {
		return
	}
	start := window[0].start
	before, after := w.blanks(w.text[start:window[len(window)-1].end])
	if before == after {
		return
	}
	text := w.text[start+before : start+after]
	if w.gaps > 0 {
		text = w.joinedText()
	}
	w.emit(start+before, start+after, text)
}

// joinedText returns the text of the chunk if that is not a part of the document as it stands there.
func (w *walk) joinedText() string {
	var b strings.Builder
	for i, p := range w.window() {
		if i > 0 {
			b.WriteString(w.joiner)
		}
		b.WriteString(w.text[p.start:p.end])
	}
	text := b.String()
	start, end := w.blanks(text)
	return text[start:end]
}

// blanks returns where text begins and ends without the blanks around it.
func (w *walk) blanks(text string) (start, end int) {
	w.looked += len(text)
	end = len(strings.TrimRightFunc(text, unicode.IsSpace))
	start = end - len(strings.TrimLeftFunc(text[:end], unicode.IsSpace))
	if start == end {
		return 0, 0
	}
	if !boundary(text, start) {
		_, n := utf8.DecodeLastRuneInString(text[:start])
		start -= n
	}
	if !boundary(text, end) {
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
	}
	return start, end
}

// emit adds a piece.
func (w *walk) emit(start, end int, text string) { w.piece(Piece{Text: text, Start: start, End: end}) }

// piece adds a piece, of which the places in bytes are known.
func (w *walk) piece(p Piece) {
	p.Heading = w.heading
	if w.paged {
		p.Text = strings.ReplaceAll(p.Text, "\f", "")
		first, last := 1+w.firstPage.move(w.text, "\f", p.Start), 1+w.lastPage.move(w.text, "\f", p.End)
		if p.Heading = fmt.Sprintf("page %d", first); last > first {
			p.Heading = fmt.Sprintf("pages %d-%d", first, last)
		}
	}
	p.Line, p.LastLine = 1+w.start.move(w.text, "\n", p.Start), 1+w.end.move(w.text, "\n", p.End)
	w.pieces = append(w.pieces, p)
}

// find returns where sep, which is not empty, occurs first in text[start:end] without cutting a
// grapheme cluster, -1 if it does not.
func (w *walk) find(sep string, start, end int) int {
	for {
		i := strings.Index(w.text[start:end], sep)
		if i < 0 {
			w.looked += end - start
			return -1
		}
		w.looked += i + len(sep)
		at := start + i
		if boundary(w.text, at) && (w.keep || boundary(w.text, at+len(sep))) {
			return at
		}
		start = at + 1
	}
}

// boundary reports whether text may be cut at i, where a blank or an ASCII character is on one side:
// whether a grapheme cluster ends there. That is known from two characters, since all rules that
// need more of them are about others.
func boundary(text string, i int) bool {
	if i == 0 || i == len(text) || text[i-1] < utf8.RuneSelf && text[i] < utf8.RuneSelf {
		return true
	}
	_, before := utf8.DecodeLastRuneInString(text[:i])
	_, after := utf8.DecodeRuneInString(text[i:])
	clusters := graphemes.FromString(text[i-before : i+after])
	return clusters.Next() && clusters.End() == before
}
