package render

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// backgroundQuery asks for the background colour (OSC 11), and then what kind of
// terminal it is (DA1). All terminals answer the second, so that nobody waits long for one
// that does not know the first.
const backgroundQuery = "\x1b]11;?\x1b\\\x1b[c"

// maxAnswer is how many bytes of an answer are read: it is about forty.
const maxAnswer = 1 << 10

// DarkBackground asks a terminal whether its background is dark, and waits for the answer
// so long at most. known is false if it does not say, or if in and out are not both a
// terminal that this process may use now; nothing is written then but the question. What
// the user types in that time is lost, so this is for programs that have just started.
//
// Source: XTerm Control Sequences (OSC 11, DA1).
func DarkBackground(in, out *os.File, wait time.Duration) (dark, known bool) {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) || !foreground(in) {
		return false, false
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return false, false
	}
	defer func() { _ = term.Restore(int(in.Fd()), state) }()
	r, err := cancelreader.NewReader(in)
	if err != nil {
		return false, false
	}
	defer r.Close()
	if _, err := out.WriteString(backgroundQuery); err != nil {
		return false, false
	}
	answer := make(chan []byte, 1)
	go func() { // ends when r is cancelled, which is waited for below
		var got []byte
		buf := make([]byte, 256)
		for !answered(got) && len(got) < maxAnswer {
			n, err := r.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				break
			}
		}
		answer <- got
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var got []byte
	select {
	case got = <-answer:
	case <-timer.C:
		if r.Cancel() {
			got = <-answer
		}
	}
	return darkAnswer(got)
}

// answered reports whether got ends with the answer to the second question.
func answered(got []byte) bool {
	i := bytes.LastIndex(got, []byte("\x1b[?"))
	return i >= 0 && bytes.IndexByte(got[i:], 'c') > 0
}

// darkAnswer reads the answer to the first question: rgb:RRRR/GGGG/BBBB with one to four
// digits each.
func darkAnswer(got []byte) (dark, known bool) {
	_, rest, ok := strings.Cut(string(got), "\x1b]11;rgb")
	if !ok {
		return false, false
	}
	rest = strings.TrimPrefix(rest, "a") // rgba
	rest, ok = strings.CutPrefix(rest, ":")
	if end := strings.IndexAny(rest, "\x07\x1b"); !ok || end < 0 {
		return false, false
	} else {
		rest = rest[:end]
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 3 {
		return false, false
	}
	light := 0.0 // ITU-R BT.601
	for i, weight := range []float64{0.299, 0.587, 0.114} {
		n, err := strconv.ParseUint(parts[i], 16, 16)
		if err != nil || len(parts[i]) > 4 {
			return false, false
		}
		light += weight * float64(n) / float64(uint64(1)<<(4*len(parts[i]))-1)
	}
	return light < 0.5, true
}

// DarkEnvironment tells whether the background is dark from COLORFGBG, which some
// terminals set to the numbers of the foreground and background colours.
func DarkEnvironment(getenv func(string) string) (dark, known bool) {
	fields := strings.Split(getenv("COLORFGBG"), ";")
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil || n < 0 || n > 15 {
		return false, false
	}
	return n < 7 || n == 8, true
}
