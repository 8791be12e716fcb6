package patch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text"
)

// Error reports that a hunk does not fit the file. Its text says to a model how to
// correct the patch.
type Error struct {
	Hunk, Hunks int    // number of the hunk, from 1, and how many there are
	Header      string // of the hunk
	Reason      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("hunk %d of %d (%s) does not fit, so nothing was changed: %s", e.Hunk, e.Hunks, e.Header, e.Reason)
}

// Apply returns text after applying the hunks. A byte order mark at its start is kept and is not a part of the first line.
//
// They are applied in order, each after the one before: at the line that its header says, moved by the lines that earlier hunks
// added, if its old block is exactly there; or else at the first place where the block
// is. A hunk without an old block is inserted at its line or, if it has none, where the
// hunk before ended.
//
// Unchanged lines keep their line ends. An added line gets that of the line before it. A
// text without a line end at its end stays so, unless the patch says otherwise. The error
// is an *Error.
func (p Patch) Apply(text string) (string, error) {
	const mark = "\ufeff"
	hunks := p.Hunks
	if p.New && text != "" {
		return "", &Error{Hunk: 1, Hunks: len(hunks), Header: hunks[0].Header, Reason: "the patch is of a new file, but the file exists and is not empty"}
	}
	if rest, ok := strings.CutPrefix(text, mark); ok {
		out, err := Patch{Hunks: slices.Concat([]Hunk{hunks[0].without(mark)}, hunks[1:])}.Apply(rest)
		if err != nil {
			return "", err
		}
		return mark + out, nil
	}
	if strings.Contains(text, "\r") && !strings.Contains(text, "\n") { // carriage returns end the lines
		out, err := p.Apply(strings.ReplaceAll(text, "\r", "\n"))
		return strings.ReplaceAll(out, "\n", "\r"), err
	}
	if !utf8.ValidString(text) {
		for i, h := range hunks {
			if h.addsBeyondASCII() {
				return "", &Error{Hunk: i + 1, Hunks: len(hunks), Header: h.Header, Reason: "the file is not in UTF-8, and an added line is not plain ASCII, " +
					"so that the file would have two encodings. Convert the file first, as with iconv, or add ASCII only"}
			}
		}
	}
	a := &applier{lines: slices.Collect(strings.Lines(text)), total: len(hunks), end: "\n"}
	if len(a.lines) > 0 {
		a.end = cmp.Or(lineEnd(a.lines[0]), "\n")
	}
	for i, h := range hunks {
		if err := a.apply(i+1, h); err != nil {
			return "", err
		}
	}
	for _, l := range a.lines[a.next:] {
		a.put(l)
	}
	return a.out.String(), nil
}

// addsBeyondASCII reports whether an added line has a character that is not of ASCII.
func (h Hunk) addsBeyondASCII() bool {
	return slices.ContainsFunc(h.Lines, func(l Line) bool {
		return l.Op == '+' && strings.ContainsFunc(l.Text, func(r rune) bool { return r >= utf8.RuneSelf })
	})
}

// without returns h without a text at the start of its lines.
func (h Hunk) without(prefix string) Hunk {
	h.Lines = slices.Clone(h.Lines)
	for i := range h.Lines {
		h.Lines[i].Text = strings.TrimPrefix(h.Lines[i].Text, prefix)
	}
	return h
}

// applier is the state between hunks.
type applier struct {
	lines []string // of the file, with their line ends
	next  int      // the first that is not written yet
	out   strings.Builder
	end   string // line end of what was written last, or of the file
	open  bool   // what was written last has no line end
	total int
}

// lineEnd returns the line end of a line, empty if it has none.
func lineEnd(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	}
	return ""
}

// put writes a line of the file. A last line without a line end gets one if it is no
// longer the last.
func (a *applier) put(line string) {
	if a.open {
		a.out.WriteString(a.end)
	}
	a.out.WriteString(line)
	end := lineEnd(line)
	a.open = end == ""
	a.end = cmp.Or(end, a.end)
}

func (a *applier) apply(number int, h Hunk) error {
	at, h, ok := a.find(h)
	if !ok {
		return &Error{Hunk: number, Hunks: a.total, Header: h.Header, Reason: a.reason(h)}
	}
	for _, l := range a.lines[a.next:at] {
		a.put(l)
	}
	a.next = at
	unended := len(a.lines) > 0 && lineEnd(a.lines[len(a.lines)-1]) == ""
	for _, l := range h.Lines {
		switch l.Op {
		case ' ':
			a.put(a.lines[a.next])
			a.next++
		case '-':
			a.end = cmp.Or(lineEnd(a.lines[a.next]), a.end)
			a.next++
		case '+':
			a.put(l.Text + a.end)
		}
	}
	if a.next == len(a.lines) {
		a.close(h, unended)
	}
	return nil
}

// close decides how the file ends, after a hunk that reaches its end. unended is true if
// the old file has no line end there.
func (a *applier) close(h Hunk, unended bool) {
	switch {
	case h.noNewline || unended && !h.newline:
		if text := a.out.String(); !a.open && text != "" {
			a.out.Reset()
			a.out.WriteString(strings.TrimSuffix(text, lineEnd(text)))
			a.open = true
		}
	case h.newline && a.open:
		a.out.WriteString(a.end)
		a.open = false
	}
}

// find returns where a hunk belongs, and the hunk as it fits there. If it fits only
// without the empty lines at its end, they are removed: they are probably the end of the
// patch.
func (a *applier) find(h Hunk) (at int, fits Hunk, ok bool) {
	old := h.old()
	if len(old) == 0 {
		return a.insertion(h), h, true
	}
	if at, ok := a.locate(h, old); ok {
		return at, h, true
	}
	short := h
	for len(short.Lines) > 0 && short.Lines[len(short.Lines)-1] == (Line{Op: ' '}) {
		short.Lines = short.Lines[:len(short.Lines)-1]
		if old := short.old(); len(old) > 0 {
			if at, ok := a.locate(short, old); ok {
				return at, short, true
			}
		} else if len(short.Lines) > 0 {
			return a.insertion(short), short, true
		}
	}
	return 0, h, false
}

// insertion returns where a hunk without an old block goes.
func (a *applier) insertion(h Hunk) int {
	if h.Line > 0 {
		return min(max(h.Line-1, a.next), len(a.lines))
	}
	return a.next
}

// locate searches for an old block.
func (a *applier) locate(h Hunk, old []string) (int, bool) {
	if at := h.Line - 1; at >= a.next && a.matches(old, at) == len(old) {
		return at, true
	}
	for at := a.next; at+len(old) <= len(a.lines); at++ {
		if a.matches(old, at) == len(old) {
			return at, true
		}
	}
	return 0, false
}

// matches returns how many lines of a block are in the file from the line at on.
func (a *applier) matches(block []string, at int) int {
	n := 0
	for n < len(block) && at+n < len(a.lines) && content(a.lines[at+n]) == block[n] {
		n++
	}
	return n
}

// content is a line without its line end.
func content(line string) string { return strings.TrimSuffix(line, lineEnd(line)) }

func (h Hunk) old() []string { return h.block('+') }

func (h Hunk) new() []string { return h.block('-') }

// adds reports whether any line is added.
func (h Hunk) adds() bool {
	return slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Op == '+' })
}

// block returns the lines other than those of one kind.
func (h Hunk) block(without byte) []string {
	var lines []string
	for _, l := range h.Lines {
		if l.Op != without {
			lines = append(lines, l.Text)
		}
	}
	return lines
}

// reason returns why a hunk has no place.
func (a *applier) reason(h Hunk) string {
	old := h.old()
	if fresh := h.new(); h.adds() {
		for at := range a.lines {
			if a.matches(fresh, at) == len(fresh) {
				return fmt.Sprintf("its old lines are not in the file, but its new ones are at line %d. Perhaps the change was made already", at+1)
			}
		}
	}
	best, most := -1, 0
	for at := a.next; at < len(a.lines); at++ {
		if n := a.matches(old, at); n > most {
			best, most = at, n
		}
	}
	where := ""
	if a.next > 0 {
		where = fmt.Sprintf(" after line %d, where the hunk before ends", a.next)
	}
	if best < 0 {
		return fmt.Sprintf("its first line %s is not in the file%s. Read the file again and copy the lines exactly, blanks included", quote(old[0]), where)
	}
	is := "the file ends"
	if best+most < len(a.lines) {
		is = "the file has " + quote(content(a.lines[best+most]))
	}
	return fmt.Sprintf("at line %d, where it fits best%s, it has %s and %s", best+most+1, where, quote(old[most]), is)
}

// quote shows a line in a message, shortened.
func quote(line string) string {
	const most = 160
	return strconv.Quote(text.Cut(line, most))
}
