package process

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// chunk is how much of an output is read at once, in bytes.
const chunk = 8 << 10

// eachChunk hands what r has to take, until its end, an error, or until take wants no more.
func eachChunk(r io.Reader, take func(p []byte) (more bool)) {
	buf := make([]byte, chunk)
	for {
		n, err := r.Read(buf)
		if !take(buf[:n]) || err != nil {
			return
		}
	}
}

// capture keeps the first max bytes of a stream. Its memory grows by doubling, and never beyond max.
type capture struct {
	max  int64
	text []byte
	over bool // the stream had more than max bytes
}

// write keeps p as far as there is room, and returns what it kept.
func (c *capture) write(p []byte) []byte {
	if room := c.max - int64(len(c.text)); int64(len(p)) > room {
		p, c.over = p[:room], true
	}
	if len(c.text)+len(p) > cap(c.text) {
		c.text = append(make([]byte, 0, min(max(2*cap(c.text), chunk), int(c.max))), c.text...)
	}
	c.text = append(c.text, p...)
	return p
}

// ends keeps the first and the last half of max bytes of a stream.
type ends struct {
	max   int64
	head  []byte
	tail  []byte // up to twice its half, so that old bytes are dropped in large steps
	total int64
}

func (e *ends) write(p []byte) {
	e.total += int64(len(p))
	if room := int(e.max-e.max/2) - len(e.head); room > 0 {
		n := min(room, len(p))
		e.head = append(e.head, p[:n]...)
		p = p[n:]
	}
	half := int(e.max / 2)
	if len(p) > half {
		p = p[len(p)-half:]
	}
	if len(e.tail)+len(p) > 2*half {
		keep := half - len(p)
		n := copy(e.tail, e.tail[len(e.tail)-keep:])
		e.tail = e.tail[:n]
	}
	e.tail = append(e.tail, p...)
}

// text returns what was kept as valid UTF-8 and the number of bytes left out. A rune
// that the cut went through is left out as a whole.
func (e *ends) text() (string, int64) {
	if e.total <= e.max {
		return strings.ToValidUTF8(string(e.head)+string(e.tail), "\uFFFD"), 0
	}
	head, tail := e.head, e.tail
	if half := int(e.max / 2); len(tail) > half {
		tail = tail[len(tail)-half:]
	}
	head, tail = wholeRunesBefore(head), wholeRunesAfter(tail)
	omitted := e.total - int64(len(head)+len(tail))
	return strings.ToValidUTF8(string(head), "\uFFFD") +
		fmt.Sprintf("\n... %d bytes omitted ...\n", omitted) +
		strings.ToValidUTF8(string(tail), "\uFFFD"), omitted
}

// wholeRunesBefore drops an incomplete rune from the end of p.
func wholeRunesBefore(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if rest := p[len(p)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// wholeRunesAfter drops the rest of a rune from the start of p.
func wholeRunesAfter(p []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && i < len(p); i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p[min(utf8.UTFMax-1, len(p)):]
}

// shorten returns s, or its two ends if it is longer than limit bytes.
func shorten(s string, limit int64) string {
	e := ends{max: limit}
	e.write([]byte(s))
	short, _ := e.text()
	return short
}
