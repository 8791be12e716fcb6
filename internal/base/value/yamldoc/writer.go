package yamldoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/value"
)

// Writer writes a YAML document line by line, which keeps the keys in their order. What it has
// no method for is written to the Builder.
type Writer struct{ strings.Builder }

// Pair writes a key with a scalar. indent is the number of spaces in front.
func (w *Writer) Pair(indent int, key string, v any) {
	w.Key(indent, key)
	w.WriteByte(' ')
	w.Scalar(indent, v)
}

// Key writes a key, after which a newline or a scalar has to follow.
func (w *Writer) Key(indent int, key string) {
	w.WriteString(strings.Repeat(" ", indent))
	if plain(key) {
		w.WriteString(key)
	} else {
		w.writeQuoted(key)
	}
	w.WriteByte(':')
}

// Scalar writes the rest of a line, or a block of lines. indent is that of the line.
func (w *Writer) Scalar(indent int, v any) {
	switch v := v.(type) {
	case string:
		w.text(indent, v)
	case float64:
		w.WriteString(FloatText(v))
	case nil:
		w.WriteString("null")
	default: // int, bool
		fmt.Fprint(w, v)
	}
	w.WriteByte('\n')
}

func (w *Writer) text(indent int, s string) {
	switch {
	case plain(s):
		w.WriteString(s)
	case block(s):
		body := strings.TrimSuffix(s, "\n")
		w.WriteByte('|')
		if body == s {
			w.WriteByte('-')
		}
		for line := range strings.SplitSeq(body, "\n") {
			w.WriteByte('\n')
			if line != "" {
				w.WriteString(strings.Repeat(" ", indent+2))
				w.WriteString(line)
			}
		}
	default:
		w.writeQuoted(s)
	}
}

// Members writes the members of an object, one after another. indent is the number of spaces in
// front of their names.
func (w *Writer) Members(indent int, o *value.Object) {
	for name, v := range o.All() {
		w.Key(indent, name)
		w.value(indent, v)
	}
}

// value writes the value of a key, or of an item of a list, up to the end of its last line.
func (w *Writer) value(indent int, v value.Value) {
	if list, ok := v.AsList(); ok && list.Len() > 0 {
		w.WriteByte('\n')
		for _, item := range list.All() {
			w.item(indent+2, item)
		}
		return
	}
	if o := v.AsObject(); o.Len() > 0 {
		w.WriteByte('\n')
		w.Members(indent+2, o)
		return
	}
	w.WriteByte(' ')
	switch s, isText := v.AsString(); {
	case isText:
		w.Scalar(indent, s)
	case v.Kind() == value.Float:
		f, _ := v.AsFloat()
		w.Scalar(indent, f)
	default: // JSON is YAML
		w.WriteString(v.String() + "\n")
	}
}

// item writes an item of a list.
func (w *Writer) item(indent int, v value.Value) {
	var inner Writer
	if o := v.AsObject(); o.Len() > 0 {
		inner.Members(indent+2, o)
		w.WriteString(strings.Repeat(" ", indent) + "- " + strings.TrimLeft(inner.String(), " "))
		return
	}
	w.WriteString(strings.Repeat(" ", indent) + "-")
	w.value(indent, v)
}

// writeQuoted writes a double-quoted scalar.
func (w *Writer) writeQuoted(s string) {
	w.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == '\n':
			w.WriteString(`\n`)
		case r == '\t':
			w.WriteString(`\t`)
		case printable(r):
			w.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(w, `\u%04X`, r)
		default:
			fmt.Fprintf(w, `\U%08X`, r)
		}
	}
	w.WriteByte('"')
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

// FloatText returns a number as it is written, with a fraction.
func FloatText(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if f == math.Trunc(f) && !strings.ContainsAny(s, "e.") {
		s += ".0"
	}
	return s
}
