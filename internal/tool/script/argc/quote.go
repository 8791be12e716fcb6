package argc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Quote returns text as one word of bash that means exactly these bytes, whatever the
// locale. What is no valid UTF-8, and control characters that a shell may drop, are written
// as escapes, so the word itself is plain text. A NUL, which bash cannot hold, is left out.
func Quote(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+") == "" {
		return text
	}
	return quote(text)
}

// quote is Quote with quotes in any case, for words that begin a command or could be
// keywords.
func quote(text string) string {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	if utf8.ValidString(text) && strings.IndexFunc(text, control) < 0 {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == 0:
		case r == utf8.RuneError && size == 1 || control(r):
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(text[0])
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String() + "'"
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}
