package render

import (
	"strconv"
	"strings"

	"loki/internal/base/text"
)

// backgroundQuery asks for the background color (OSC 11), and then what kind of terminal
// it is (DA1). All terminals answer the second, so its answer ends the wait for one that
// does not know the first.
const backgroundQuery = "\x1b]11;?\x1b\\\x1b[c"

var (
	answerPattern = text.Regexp(`(?s)\x1b\]11;.*?(\a|\x1b\\|\z)|\x1b\[\?[0-9;]*c?`)
	colorPattern  = text.Regexp(`\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[/\a\x1b]`)
)

// splitAnswer finds the answers to [backgroundQuery] in what was read from a terminal. It
// returns them without what was typed around them, and whether the last one is complete.
func splitAnswer(got []byte) (answer, typed []byte, complete bool) {
	for _, part := range answerPattern().FindAll(got, -1) {
		answer = append(answer, part...)
		complete = complete || part[1] == '[' && part[len(part)-1] == 'c'
	}
	return answer, answerPattern().ReplaceAll(got, nil), complete
}

// darkAnswer reads the answer to the first question: rgb:RRRR/GGGG/BBBB with one to four
// digits each.
func darkAnswer(got []byte) (dark, known bool) {
	parts := colorPattern().FindSubmatch(got)
	if parts == nil {
		return false, false
	}
	light := 0.0 // ITU-R BT.601
	for i, weight := range []float64{0.299, 0.587, 0.114} {
		digits := string(parts[i+1])
		n, _ := strconv.ParseUint(digits, 16, 16) // these are such digits
		light += weight * float64(n) / float64(uint64(1)<<(4*len(digits))-1)
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
