package process

import (
	"bytes"
	"strings"
)

// maxLine is the longest line that an observer sees in one piece, in bytes.
const maxLine = 64 << 10

// lines cuts a stream into lines for an observer.
type lines struct {
	emit func(line string) // nil: lines are dropped
	part []byte            // a line whose end has not come yet
}

func (l *lines) write(p []byte) {
	if l.emit == nil {
		return
	}
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		if room := maxLine - len(l.part); len(line) > room {
			l.part = append(l.part, p[:room]...)
			l.split()
			p = p[room:]
			continue
		}
		l.part = append(l.part, line...)
		if ended {
			l.flush(l.part)
			l.part = l.part[:0]
		}
		p = rest
	}
}

// split hands over all of a line that is too long but a rune it has only a part of.
func (l *lines) split() {
	whole := wholeRunesBefore(l.part)
	l.flush(whole)
	l.part = append(l.part[:0], l.part[len(whole):]...)
}

// end hands over a last line that has no line end.
func (l *lines) end() {
	if len(l.part) > 0 {
		l.flush(l.part)
	}
}

func (l *lines) flush(line []byte) {
	l.emit(strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte{'\r'})), "\uFFFD"))
}
