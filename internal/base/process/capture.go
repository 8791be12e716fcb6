package process

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	firstChunk = 8 << 10
	largeChunk = 1 << 20
)

// capture keeps the first max bytes of a stream. It reads into chunks that are never
// moved, so that a large output is not copied again and again while it grows.
type capture struct {
	max    int64
	n      int64
	chunks [][]byte
	over   bool // the stream had more than max bytes
	probe  [1]byte
}

// readFrom reads r until its end, an error, or the byte after max, and hands what was
// kept to see.
func (c *capture) readFrom(r io.Reader, see func([]byte)) {
	for {
		room := c.room()
		n, err := r.Read(room)
		if n > 0 {
			if c.n == c.max {
				c.over = true
				return
			}
			c.n += int64(n)
			last := len(c.chunks) - 1
			c.chunks[last] = c.chunks[last][:len(c.chunks[last])+n]
			see(room[:n])
		}
		if err != nil {
			return
		}
	}
}

// room returns where the next bytes go. When all max bytes are there that is a single
// byte, which distinguishes a full output from one that is too long.
func (c *capture) room() []byte {
	if c.n == c.max {
		return c.probe[:]
	}
	last := len(c.chunks) - 1
	if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
		size := int64(firstChunk)
		if last >= 0 {
			size = min(2*int64(cap(c.chunks[last])), largeChunk)
		}
		c.chunks = append(c.chunks, make([]byte, 0, min(size, c.max-c.n)))
		last++
	}
	chunk := c.chunks[last]
	return chunk[len(chunk):cap(chunk)]
}

// bytes returns what was kept.
func (c *capture) bytes() []byte {
	if len(c.chunks) == 1 {
		return c.chunks[0]
	}
	all := make([]byte, 0, c.n)
	for _, chunk := range c.chunks {
		all = append(all, chunk...)
	}
	return all
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
