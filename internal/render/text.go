package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/chat"
	"loki/internal/printable"
)

// safe drops the escape sequences and control characters of text, which could move the
// cursor, change colours or the title, make the terminal answer, or show text in another
// order. Tabs and line feeds stay; broken UTF-8 becomes U+FFFD.
func safe(text string) string {
	if strings.Contains(text, "\x1b") {
		text = ansi.Strip(text)
	}
	return strings.Map(func(r rune) rune {
		if printable.Hidden(r) {
			return -1
		}
		return r
	}, text)
}

// oneLine returns the words of text with single blanks between them, without escape
// sequences and control characters, cut to limit characters and an ellipsis if there
// are more.
func oneLine(text string, limit int) string {
	if strings.Contains(text, "\x1b") {
		text = ansi.Strip(text)
	}
	var b strings.Builder
	n, gap := 0, false
	for _, r := range text {
		switch {
		case r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == 0x85 || r == 0xa0 || r == 0x2028 || r == 0x2029:
			gap = b.Len() > 0
			continue
		case printable.Hidden(r):
			continue
		}
		need := 1
		if gap {
			need++
		}
		if n+need > limit {
			b.WriteString("…")
			return b.String()
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r)
		n += need
	}
	return b.String()
}

// width returns how many columns text takes.
func width(text string) int { return ansi.StringWidth(text) }

// clip cuts text to so many columns, with an ellipsis where it cuts.
func clip(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return ansi.Truncate(text, columns, "…")
}

// took writes how long something took: 250ms, 1.40s.
func took(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return inSeconds(d)
}

// inSeconds writes d as 2.41s.
func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// running writes how long something has been going on: 0.4s, 12.3s, 1m05s, 2h03m.
func running(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// count writes n with its unit, in groups of three digits: 1 node, 3,210 tokens. The
// plural adds an s.
func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return grouped(n) + " " + unit + "s"
}

// grouped writes n, which is not negative, in groups of three digits.
func grouped(n int) string {
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

// joinComma joins names for a line of their own: all of them, or the first few and how
// many more there are.
func joinComma(names []string) string {
	const few = 5
	more := ""
	if len(names) >= manyNames {
		more = ", and " + grouped(len(names)-few) + " more"
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

// prefix returns text up to about limit bytes, at the start of a character.
func prefix(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
