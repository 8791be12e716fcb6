package pdf

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
)

// The objects of PDF: nil, bool, float64, string, name, array, dict, ref, *stream, and operator, which is
// any other word.
type (
	name     string
	operator string
	array    []any
	dict     map[name]any
	ref      int // the number of an object; its generation does not matter here

	// stream is a dictionary with data.
	stream struct {
		dict
		raw []byte // with its filters applied
	}
)

// maxNesting bounds how deep arrays and dictionaries lie in each other.
const maxNesting = 64

// lexer reads objects.
type lexer struct {
	data []byte
	pos  int
	refs bool // "1 0 R" is a reference, as it is everywhere but in the content of pages
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

func (l *lexer) skipSpace() {
	for l.pos < len(l.data) {
		switch c := l.data[l.pos]; {
		case isSpace(c):
			l.pos++
		case c == '%':
			for l.pos < len(l.data) && l.data[l.pos] != '\n' && l.data[l.pos] != '\r' {
				l.pos++
			}
		default:
			return
		}
	}
}

// word returns the regular characters at the position.
func (l *lexer) word() []byte {
	from := l.pos
	for l.pos < len(l.data) && !isSpace(l.data[l.pos]) && !isDelimiter(l.data[l.pos]) {
		l.pos++
	}
	return l.data[from:l.pos]
}

// next returns the next object. ok is false at the end.
func (l *lexer) next(depth int) (obj any, ok bool) {
	l.skipSpace()
	if l.pos >= len(l.data) || depth > maxNesting {
		return nil, false
	}
	switch c := l.data[l.pos]; c {
	case '/':
		l.pos++
		return name(unhash(l.word())), true
	case '(':
		return l.literal(), true
	case '<':
		if l.pos+1 < len(l.data) && l.data[l.pos+1] == '<' {
			l.pos += 2
			return l.dictionary(depth), true
		}
		return l.hex(), true
	case '[':
		l.pos++
		list := array{}
		for {
			item, ok := l.next(depth + 1)
			if !ok || item == operator("]") {
				return list, true
			}
			list = append(list, item)
		}
	case '>':
		l.pos++
		if l.pos < len(l.data) && l.data[l.pos] == '>' {
			l.pos++
			return operator(">>"), true
		}
		return operator(">"), true
	case ']', '{', '}', ')':
		l.pos++
		return operator(c), true
	}
	word := l.word()
	if number, ok := number(word); ok {
		if l.refs && number >= 0 {
			if r, ok := l.reference(int(number)); ok {
				return r, true
			}
		}
		return number, true
	}
	switch string(word) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "null":
		return nil, true
	}
	return operator(word), true
}

// number reads a number; real ones are sometimes malformed, like 1.-2 or --3.
func number(word []byte) (float64, bool) {
	if len(word) == 0 || word[0] != '-' && word[0] != '+' && word[0] != '.' && (word[0] < '0' || word[0] > '9') {
		return 0, false
	}
	for _, c := range word { // not infinite, hexadecimal and the like
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
			return 0, false
		}
	}
	if f, err := strconv.ParseFloat(string(word), 64); err == nil {
		return f, true
	}
	clean := bytes.TrimLeft(word, "-+")
	if i := bytes.IndexAny(clean, "-+"); i >= 0 {
		clean = clean[:i]
	}
	f, err := strconv.ParseFloat(string(clean), 64)
	return f, err == nil
}

// reference reads the rest of "1 0 R".
func (l *lexer) reference(n int) (ref, bool) {
	from := l.pos
	l.skipSpace()
	generation := l.word()
	if _, err := strconv.ParseUint(string(generation), 10, 16); err == nil {
		l.skipSpace()
		if l.pos < len(l.data) && l.data[l.pos] == 'R' && (l.pos+1 == len(l.data) || isSpace(l.data[l.pos+1]) || isDelimiter(l.data[l.pos+1])) {
			l.pos++
			return ref(n), true
		}
	}
	l.pos = from
	return 0, false
}

func (l *lexer) dictionary(depth int) dict {
	d := dict{}
	for {
		key, ok := l.next(depth + 1)
		if !ok || key == operator(">>") || key == operator("endobj") || key == operator("stream") {
			return d
		}
		k, isName := key.(name)
		if !isName {
			continue
		}
		value, ok := l.next(depth + 1)
		if !ok || value == operator(">>") {
			return d
		}
		d[k] = value
	}
}

// unhash resolves #xx in a name.
func unhash(word []byte) []byte {
	if bytes.IndexByte(word, '#') < 0 {
		return word
	}
	var out []byte
	for i := 0; i < len(word); i++ {
		if word[i] == '#' && i+2 < len(word) {
			if n, err := strconv.ParseUint(string(word[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, word[i])
	}
	return out
}

// literal reads a string in parentheses.
func (l *lexer) literal() string {
	var out []byte
	depth := 0
	for ; l.pos < len(l.data); l.pos++ {
		switch c := l.data[l.pos]; c {
		case '(':
			if depth++; depth > 1 {
				out = append(out, c)
			}
		case ')':
			if depth--; depth == 0 {
				l.pos++
				return string(out)
			}
			out = append(out, c)
		case '\\':
			out = l.escape(out)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// escapes are the characters that letters behind a backslash mean.
var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f'}

// escape takes what is behind a backslash, up to its last character.
func (l *lexer) escape(out []byte) []byte {
	l.pos++
	if l.pos >= len(l.data) {
		return out
	}
	switch c := l.data[l.pos]; c {
	case '\r':
		if l.pos+1 < len(l.data) && l.data[l.pos+1] == '\n' {
			l.pos++
		}
		return out
	case '\n':
		return out
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 0
		for i := 0; i < 3 && l.pos < len(l.data) && l.data[l.pos] >= '0' && l.data[l.pos] <= '7'; i++ {
			n = n*8 + int(l.data[l.pos]-'0')
			l.pos++
		}
		l.pos--
		return append(out, byte(n))
	default:
		return append(out, cmp.Or(escapes[c], c))
	}
}

// hex reads a string in angle brackets.
func (l *lexer) hex() string {
	l.pos++
	end := bytes.IndexByte(l.data[l.pos:], '>')
	if end < 0 {
		end = len(l.data) - l.pos
	}
	text := unhex(l.data[l.pos : l.pos+end])
	l.pos = min(l.pos+end+1, len(l.data))
	return string(text)
}

// unhex decodes hexadecimal digits, and leaves out what is none. A last digit that is missing is 0.
func unhex(text []byte) []byte {
	digits := slices.DeleteFunc(bytes.Clone(text), func(c byte) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F')
	})
	if len(digits)%2 != 0 {
		digits = append(digits, '0')
	}
	n, _ := hex.Decode(digits, digits)
	return digits[:n]
}
