package sse

import (
	"bufio"
	"bytes"
	"fmt"
)

const byteOrderMark = "\uFEFF"

// lineReader cuts a stream into lines that end with LF, CR or CR LF.
//
// A CR ends its line at once. Whether an LF follows, which then belongs to it, is
// only seen with the next byte, and waiting for that byte would hold back an event
// that is complete.
type lineReader struct {
	r       *bufio.Reader
	max     int // longest line, in bytes without its end
	line    []byte
	skipLF  bool // the line before ended with CR
	started bool // the first line has been returned
}

// next returns the next complete line without its end; the slice is valid until
// the next call. A last line without an end is not returned: the standard drops
// what it belongs to.
func (l *lineReader) next() ([]byte, error) {
	for l.line = l.line[:0]; len(l.line) <= l.max+len(byteOrderMark); {
		c, err := l.r.ReadByte()
		if err != nil {
			return nil, err
		}
		skip := l.skipLF && c == '\n'
		l.skipLF = c == '\r'
		switch {
		case skip:
		case c == '\r' || c == '\n':
			return l.end()
		default:
			l.line = append(l.line, c)
		}
	}
	return nil, l.tooLong()
}

// end returns the line that has been read.
func (l *lineReader) end() ([]byte, error) {
	line := l.line
	if !l.started {
		l.started = true
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	if len(line) > l.max {
		return nil, l.tooLong()
	}
	return line, nil
}

func (l *lineReader) tooLong() error {
	return fmt.Errorf("server-sent event: %w: a line of more than %d bytes", ErrTooLarge, l.max)
}
