package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// safe returns s without what a terminal would obey.
func safe(s string) string { return text.Clean(s) }

// oneLine returns s on one line of at most limit characters, with the mark of a cut on top.
func oneLine(s string, limit int) string { return text.OneLine(s, limit+1) }

// width returns how many columns s takes.
func width(s string) int { return ansi.StringWidth(s) }

// clip cuts s to so many columns.
func clip(s string, columns int) string { return text.CutColumns(s, columns) }

// duration writes how long a call took: 250ms, 1.40s.
func duration(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return inSeconds(d)
}

// inSeconds writes d as 2.41s.
func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// elapsedText writes how long a task has been running: 0.4s, 12.3s, 1m05s, 2h03m.
func elapsedText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// embeddingUsage returns what a build used: its tokens, and what they cost if they are not free.
func embeddingUsage(u chat.Usage) []string {
	var parts []string
	if u.InputTokens > 0 {
		parts = append(parts, count(u.InputTokens, "token"))
	}
	if cost := Dollars(u); cost != "" {
		parts = append(parts, cost)
	}
	return parts
}

// count writes n with its unit, in groups of three digits: 1 node, 3,210 tokens.
func count(n int, unit string) string { return Thousands(n) + " " + text.Plural(n, unit) }

// Thousands writes n, which is not negative, in groups of three digits.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Dollars writes what u cost, "" for nothing and "cost unknown" if that is all there is to
// say. A cost that rests on estimates begins with a tilde, and one that leaves calls out whose
// price is unknown ends with a plus.
func Dollars(u chat.Usage) string {
	switch {
	case u.Cost == 0 && u.CostUnknown:
		return "cost unknown"
	case u.Cost == 0:
		return ""
	}
	text := fmt.Sprintf("$%.4f", u.Cost)
	if u.Cost < 0.0001 {
		text = "<$0.0001"
	}
	if u.Estimated {
		text = "~" + text
	}
	if u.CostUnknown {
		text += "+"
	}
	return text
}

// manyNames is the number of names from which on a list of them is cut.
const manyNames = 12

// joinComma joins names for a line: all of them, or the first few and how
// many more there are.
func joinComma(names []string) string {
	const few = 5
	more := ""
	if len(names) >= manyNames {
		more = ", and " + Thousands(len(names)-few) + " more"
		names = names[:few]
	}
	return oneLine(strings.Join(names, ", "), 2000) + more
}

// lastByte returns the last byte of text, 0 if there is none.
func lastByte(text string) byte {
	if text == "" {
		return 0
	}
	return text[len(text)-1]
}
