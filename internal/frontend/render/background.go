package render

import (
	"bytes"
	"strconv"
	"strings"
)

// backgroundQuery asks for the background color (OSC 11), and then what kind of terminal
// it is (DA1). All terminals answer the second, so its answer ends the wait for one that
// does not know the first.
const backgroundQuery = "\x1b]11;?\x1b\\\x1b[c"

// splitAnswer finds the answers to [backgroundQuery] in what was read from a terminal. It
// returns them without what was typed around them, and whether the last one is complete.
func splitAnswer(got []byte) (answer, typed []byte, complete bool) {
	for len(got) > 0 {
		n := 0
		switch {
		case bytes.HasPrefix(got, []byte("\x1b]11;")):
			n = oscEnd(got)
		case bytes.HasPrefix(got, []byte("\x1b[?")):
			n = 3
			for n < len(got) && (got[n] >= '0' && got[n] <= '9' || got[n] == ';') {
				n++
			}
			if n < len(got) && got[n] == 'c' {
				n++
				complete = true
			}
		}
		if n == 0 {
			typed = append(typed, got[0])
			got = got[1:]
			continue
		}
		answer = append(answer, got[:n]...)
		got = got[n:]
	}
	return answer, typed, complete
}

// oscEnd returns the length of the operating system command that text begins with, up to
// its terminator or, if that is missing, to the end.
func oscEnd(text []byte) int {
	for i, c := range text {
		switch {
		case c == '\a':
			return i + 1
		case i > 0 && text[i-1] == '\x1b' && c == '\\':
			return i + 1
		}
	}
	return len(text)
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

// DarkEnvironment reports whether the background is dark according to COLORFGBG, which some
// terminals set to the numbers of the foreground and background colors.
func DarkEnvironment(getenv func(string) string) (dark, known bool) {
	fields := strings.Split(getenv("COLORFGBG"), ";")
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil || n < 0 || n > 15 {
		return false, false
	}
	return n < 7 || n == 8, true
}
