// Package printable makes text of others safe to print: a control character in it could
// move the cursor, change the title, or make the terminal type for the user.
//
// Nothing is dropped, so that nobody can hide text between two control characters. The
// characters U+0000 to U+001F and U+007F become their pictures (U+2400 to U+2421: ESC is
// ␛), the controls U+0080 to U+009F, the embeddings and overrides of the bidirectional
// algorithm (U+202A to U+202E, U+2066 to U+2069), which show text in another order than
// it has, and bytes that are no UTF-8 become U+FFFD. Tabs and line feeds stay. A carriage
// return ends a line, alone or before a line feed.
package printable

import "unicode/utf8"

// Filter makes a stream safe that may be cut anywhere, also within a character. The
// zero value is ready.
type Filter struct {
	part [utf8.UTFMax]byte // the beginning of a character
	n    int
	cr   bool // the last character was a carriage return
}

const (
	replacement = "\uFFFD"
	pictures    = 0x2400
	deletePic   = 0x2421
)

// Append appends what can be said of src so far to dst: the beginning of a character
// waits for its end.
func (f *Filter) Append(dst, src []byte) []byte {
	for f.n > 0 && len(src) > 0 {
		if src[0] < utf8.RuneSelf || utf8.RuneStart(src[0]) {
			dst = f.Flush(dst)
			break
		}
		f.part[f.n] = src[0]
		f.n++
		src = src[1:]
		if utf8.FullRune(f.part[:f.n]) {
			part := f.part
			n := f.n
			f.n = 0
			dst = f.append(dst, part[:n])
		}
	}
	return f.append(dst, src)
}

// Flush ends the stream: the beginning of a character that has no end is shown as one
// that is broken.
func (f *Filter) Flush(dst []byte) []byte {
	for range f.n {
		dst = append(dst, replacement...)
	}
	f.n = 0
	f.cr = false
	return dst
}

func (f *Filter) append(dst, src []byte) []byte {
	if f.cr && len(src) > 0 {
		f.cr = false
		if src[0] == '\n' {
			src = src[1:]
		}
	}
	clean := 0 // what lies before i and is not copied yet
	for i := 0; i < len(src); {
		c := src[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				if !utf8.FullRune(src[i:]) {
					dst = append(dst, src[clean:i]...)
					f.n = copy(f.part[:], src[i:])
					return dst
				}
			} else if !Hidden(r) {
				i += n
				continue
			}
			dst = append(append(dst, src[clean:i]...), replacement...)
			i += n
			clean = i
			continue
		}
		dst = append(dst, src[clean:i]...)
		i++
		switch {
		case c != '\r':
			dst = utf8.AppendRune(dst, picture(c))
		case i == len(src):
			f.cr = true
			dst = append(dst, '\n')
		default:
			dst = append(dst, '\n')
			if src[i] == '\n' {
				i++
			}
		}
		clean = i
	}
	return append(dst, src[clean:]...)
}

// Text returns s safe to print.
func Text(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			var f Filter
			return string(f.Flush(f.Append(nil, []byte(s))))
		}
	}
	return s
}

// Hidden reports whether r controls what is shown instead of being shown. Tabs and line feeds
// are shown.
func Hidden(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func picture(c byte) rune {
	if c == 0x7f {
		return deletePic
	}
	return pictures + rune(c)
}
