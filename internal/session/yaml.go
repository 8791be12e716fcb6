package session

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// yamlWriter writes a YAML document line by line, which keeps the keys in their order.
type yamlWriter struct{ b strings.Builder }

// pair writes a key with a scalar. indent is the number of spaces in front.
func (w *yamlWriter) pair(indent int, key string, v any) {
	w.key(indent, key)
	w.b.WriteByte(' ')
	w.scalar(indent, v)
}

// key writes a key, after which a newline or a scalar has to follow.
func (w *yamlWriter) key(indent int, key string) {
	w.b.WriteString(strings.Repeat(" ", indent))
	if plain(key) {
		w.b.WriteString(key)
	} else {
		w.quoted(key)
	}
	w.b.WriteByte(':')
}

// scalar writes the rest of a line, or a block of lines. indent is that of the line.
func (w *yamlWriter) scalar(indent int, v any) {
	switch v := v.(type) {
	case string:
		w.text(indent, v)
	case float64:
		w.b.WriteString(formatFloat(v))
	case nil:
		w.b.WriteString("null")
	default: // int, bool
		fmt.Fprint(&w.b, v)
	}
	w.b.WriteByte('\n')
}

func (w *yamlWriter) text(indent int, s string) {
	switch {
	case plain(s):
		w.b.WriteString(s)
	case block(s):
		body := strings.TrimSuffix(s, "\n")
		w.b.WriteByte('|')
		if body == s {
			w.b.WriteByte('-')
		}
		for line := range strings.SplitSeq(body, "\n") {
			w.b.WriteByte('\n')
			if line != "" {
				w.b.WriteString(strings.Repeat(" ", indent+2))
				w.b.WriteString(line)
			}
		}
	default:
		w.quoted(s)
	}
}

// quoted writes a double-quoted scalar.
func (w *yamlWriter) quoted(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r == '\n':
			w.b.WriteString(`\n`)
		case r == '\t':
			w.b.WriteString(`\t`)
		case printable(r):
			w.b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&w.b, `\u%04X`, r)
		default:
			fmt.Fprintf(&w.b, `\U%08X`, r)
		}
	}
	w.b.WriteByte('"')
}

func printable(r rune) bool { return r == ' ' || unicode.IsPrint(r) }

// plain reports whether s means itself without quotes: it starts with a letter, has
// nothing in it that could be syntax, and is not a keyword. All numbers start
// otherwise, but for .inf and .nan, which have a dot in front.
func plain(s string) bool {
	switch strings.ToLower(s) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "y", "n": // the last ones for other readers
		return false
	}
	for i, r := range s {
		letter := r == '_' || r < utf8.RuneSelf && unicode.IsLetter(r)
		switch {
		case letter:
		case i == 0:
			return false
		case r >= '0' && r <= '9', strings.ContainsRune("-./,+@", r):
		case r == ':' || r == ' ': // neither ": " nor two spaces nor either at the end
			if i == len(s)-1 || s[i+1] == ' ' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// block reports whether s is a text of several lines that can be written as it is.
func block(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(body, "\n") || strings.HasSuffix(body, "\n") || !utf8.ValidString(s) {
		return false
	}
	first, _, _ := strings.Cut(body, "\n")
	if first == "" || first[0] == ' ' || first[0] == '\t' {
		return false // the indentation would be guessed wrong
	}
	for line := range strings.SplitSeq(body, "\n") {
		if strings.TrimRight(line, " \t") != line {
			return false // not all readers keep that
		}
		for _, r := range line {
			if r != '\t' && !printable(r) {
				return false
			}
		}
	}
	return true
}

func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if f == math.Trunc(f) && !strings.ContainsAny(s, "e.") {
		s += ".0"
	}
	return s
}
