package markdown

import (
	"bytes"
	"unicode/utf8"

	"loki/internal/base/text"
)

// Auto wraps at the edge of the window.
const Auto = -1

const (
	maxLine = 64 << 10 // bytes of a line of source
	maxHeld = 4 << 10  // bytes of a paragraph that wait for the end of an inline
	maxRows = 32       // lines of a paragraph that do
)

// Options configure New.
type Options struct {
	// Styles says how things look. Nil shows the source itself, without any style.
	Styles *Styles

	// Wrap is the number of columns at which text is wrapped, if the window has as
	// many; Auto is the edge of the window, and 0 leaves it to the terminal. Tables and
	// rules fit the window in any case.
	Wrap int

	WrapCode   bool // code is wrapped as well
	Hyperlinks bool // the terminal knows OSC 8; otherwise a link's address follows its text
}

// Renderer renders one document after the other. Its methods must not be called at the
// same time. The columns they take are those of the window; 0 means 80.
type Renderer struct {
	o      Options
	filter text.Filter
	src    []byte // source that is not a block yet
	done   int    // what of src is
	m      machine
	tail   machine // a copy of m that renders the tail
}

// New returns a Renderer at the start of a document.
func New(o Options) *Renderer {
	r := &Renderer{o: o}
	r.m.o = &r.o
	r.tail.o = &r.o
	return r
}

// Write adds a piece of the source.
func (r *Renderer) Write(p []byte) {
	r.compact()
	r.src = r.filter.Append(r.src, p)
}

// Commit appends the rows to dst that have become final. Each ends with a line feed.
func (r *Renderer) Commit(dst []byte, columns int) []byte {
	r.m.resize(columns)
	for i := bytes.IndexByte(r.src[r.done:], '\n'); i >= 0; i = bytes.IndexByte(r.src[r.done:], '\n') {
		end := r.done + i
		dst = r.cut(dst, end)
		dst = r.m.line(dst, r.src[r.done:end])
		r.m.severed = false
		r.done = end + 1
	}
	return r.cut(dst, len(r.src))
}

// cut takes as much of the line that reaches to end as a line may not have.
func (r *Renderer) cut(dst []byte, end int) []byte {
	for end-r.done > maxLine {
		n := maxLine
		if i := bytes.LastIndexByte(r.src[r.done+maxLine/2:r.done+maxLine], ' '); i >= 0 {
			n = maxLine/2 + i + 1
		}
		for !utf8.RuneStart(r.src[r.done+n]) {
			n--
		}
		dst = r.m.line(dst, r.src[r.done:r.done+n])
		r.m.severed = true
		r.done += n
	}
	return dst
}

// Tail appends the rows of the unfinished block to dst, as they would be if the source
// ended here. Marks that are still open count as closed, and the beginning of a line
// that may turn out to be a mark is left out. Between rows are line feeds; there is none
// at the end.
func (r *Renderer) Tail(dst []byte, columns int) []byte {
	before := len(dst)
	r.tail.from(&r.m)
	r.tail.resize(columns)
	r.tail.live = true
	if part := r.src[r.done:]; len(part) > 0 && (r.tail.severed || !mayChange(part, r.tail.leaf)) {
		dst = r.tail.line(dst, part)
	}
	dst = r.tail.close(dst, 0)
	if n := len(dst); n > before && dst[n-1] == '\n' {
		dst = dst[:n-1]
	}
	return dst
}

// End appends the remaining rows, each with a line feed, and begins a new document.
func (r *Renderer) End(dst []byte, columns int) []byte {
	r.src = r.filter.Flush(r.src)
	dst = r.Commit(dst, columns)
	if r.done < len(r.src) {
		dst = r.m.line(dst, r.src[r.done:])
	}
	dst = r.m.close(dst, 0)
	r.m.reset()
	r.src, r.done = r.src[:0], 0
	return dst
}

// Pending reports whether there is source that is not in final rows yet.
func (r *Renderer) Pending() bool { return r.done < len(r.src) || r.m.leaf != noLeaf }

// compact drops the source that has become rows.
func (r *Renderer) compact() {
	r.src, r.done = append(r.src[:0], r.src[r.done:]...), 0
	if len(r.src) == 0 && cap(r.src) > 4*maxLine {
		r.src = nil
	}
}

// mayChange reports whether part, the beginning of a line, is made of marks only, and so
// may become something else with the next character.
func mayChange(part []byte, l leaf) bool {
	marks := " \t-=*_+#~`|:>.)([]0123456789"
	switch l {
	case fenced:
		marks = " `~"
	case table:
		marks = "|"
	case rawHTML:
		return false
	}
	return len(part) <= 12 && len(bytes.Trim(part, marks)) == 0
}
