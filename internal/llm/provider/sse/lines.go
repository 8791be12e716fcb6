package sse

import (
	"bytes"
	"fmt"
	"io"
)

const (
	readSize      = 4 << 10
	maxEmpty      = 100 // reads in a row that may return nothing, as in package bufio
	byteOrderMark = "\uFEFF"
)

// lineReader cuts a stream into lines that end with LF, CR or CR LF.
//
// A CR ends its line at once. Whether an LF follows, which then belongs to it, is
// only seen with the next byte, and waiting for that byte would hold back an event
// that is complete.
type lineReader struct {
	r       io.Reader
	max     int // longest line, in bytes without its end
	buf     []byte
	from    int // buf[from:to] is read and not yet returned
	scanned int // buf[from:scanned] is known to hold no line end
	to      int
	err     error // what r ended with
	skipLF  bool  // the line before ended with CR
	started bool  // the first line has been returned
}

// next returns the next complete line without its end; the slice is valid until
// the next call. A last line without an end is not returned: the standard drops
// what it belongs to.
func (l *lineReader) next() ([]byte, error) {
	for {
		if l.skipLF && l.from < l.to {
			l.skipLF = false
			if l.buf[l.from] == '\n' {
				l.from++
				l.scanned = l.from
			}
		}
		if i := bytes.IndexAny(l.buf[l.scanned:l.to], "\r\n"); i >= 0 {
			return l.cut(l.scanned + i)
		}
		l.scanned = l.to
		if l.to-l.from > l.max+len(byteOrderMark) {
			return nil, l.tooLong()
		}
		if l.err != nil {
			return nil, l.err
		}
		l.fill()
	}
}

// cut returns the line that ends at buf[end].
func (l *lineReader) cut(end int) ([]byte, error) {
	line := l.buf[l.from:end]
	l.skipLF = l.buf[end] == '\r'
	l.from = end + 1
	l.scanned = l.from
	if !l.started {
		l.started = true
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	if len(line) > l.max {
		return nil, l.tooLong()
	}
	return line, nil
}

// fill reads again from r and keeps what it ends with in err.
func (l *lineReader) fill() {
	if len(l.buf)-l.to < readSize {
		l.makeRoom()
	}
	for range maxEmpty {
		n, err := l.r.Read(l.buf[l.to:])
		l.to += n
		if n > 0 || err != nil {
			l.err = err
			return
		}
	}
	l.err = io.ErrNoProgress
}

// makeRoom moves what is left to the start of a buffer with room for a read. The
// buffer grows to twice what it holds, so that a long line that comes in small
// pieces is copied a logarithmic number of times.
func (l *lineReader) makeRoom() {
	rest := l.buf[l.from:l.to]
	if want := 2*len(rest) + readSize; want > len(l.buf) {
		l.buf = make([]byte, want)
	}
	copy(l.buf, rest)
	l.scanned -= l.from
	l.from, l.to = 0, len(rest)
}

func (l *lineReader) tooLong() error {
	return fmt.Errorf("server-sent event: %w: a line of more than %d bytes", ErrTooLarge, l.max)
}
