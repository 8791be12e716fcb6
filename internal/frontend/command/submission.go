package command

import (
	"strings"

	"loki/internal/base/text"
)

// fence surrounds a submission of several lines.
const fence = ":::"

var (
	fenced    = text.Regexp(`(?s)^\s*:::\s*(.*):::\s*$`)
	dotted    = text.Regexp(`(?s)^\s*(\.(?:\pL[\pL\pN_-]*)?)(\s.*)?$`) // a dot and a word; ./docs and "..." are text
	firstWord = text.Regexp(`(?s)^(\S*)\s*(.*)$`)
)

// Incomplete reports whether a text that is being typed continues on another line: it begins with ":::"
// and has yet to end with it.
func Incomplete(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), fence)
	return ok && !strings.HasSuffix(rest, fence)
}

// submission is a text that was entered.
type submission struct {
	name string // first word of a command, with its dot; "" for what is not a command
	args string // of a command, without blanks around them; otherwise the text itself
}

// parse takes a submission apart. The three colons around it are dropped.
func parse(text string) submission {
	if m := fenced().FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	if m := dotted().FindStringSubmatch(text); m != nil {
		return submission{name: m[1], args: strings.TrimSpace(m[2])}
	}
	return submission{args: text}
}

// cutWord returns the first word of a text, and what follows the blanks behind it.
func cutWord(text string) (word, rest string) {
	m := firstWord().FindStringSubmatch(text)
	return m[1], m[2]
}
