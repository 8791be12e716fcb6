package text

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filter makes a stream printable, as [Printable] does a text. The stream may be cut
// anywhere, also within a character. The zero value is ready.
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

// Append appends the printable form of src to dst, except for the beginning of a
// character at the end, which waits for its rest.
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

// Printable returns s in a form that a terminal does not obey. Nothing is dropped, so that
// nothing can be hidden between two control characters: U+0000 to U+001F and U+007F become
// their pictures (U+2400 to U+2421: ESC is ␛), other [Hidden] characters and bytes that are
// not UTF-8 become U+FFFD. Tabs and line feeds stay. A carriage return ends a line, alone
// or before a line feed.
func Printable(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			var f Filter
			return string(f.Flush(f.Append(nil, []byte(s))))
		}
	}
	return s
}

// Hidden reports whether r controls what is shown instead of being shown: a control
// character, except for tab and line feed, or an embedding or override of the
// bidirectional algorithm (U+202A to U+202E, U+2066 to U+2069), which shows text in
// another order than it has.
func Hidden(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func picture(c byte) rune {
	if c == 0x7f {
		return deletePic
	}
	return pictures + rune(c)
}

// Visible returns s, which a user is to decide about, with an escape such as \u001b in place
// of every character that could hide or rearrange a part of it on a terminal: the [Hidden]
// ones, other characters of Unicode's classes for controls and formats, separators of lines and
// paragraphs, characters that look like a blank or like nothing, and U+FFFD, which bytes that are not UTF-8 become. Line feeds, tabs
// and blanks stay.
func Visible(s string) string {
	hidden := func(r rune) bool {
		switch r {
		case '\n', '\t', ' ':
			return false
		case '\u2028', '\u2029', '\u2800', unicode.ReplacementChar:
			return true
		}
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point)
	}
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// WithoutInvisible returns s without format characters (category Cf), such as soft hyphens, zero-width spaces and word joiners: the
// text as a reader sees it.
func WithoutInvisible(s string) string {
	if !strings.ContainsFunc(s, Invisible) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if Invisible(r) {
			return -1
		}
		return r
	}, s)
}

// Invisible reports whether r is a format character (category Cf).
func Invisible(r rune) bool { return unicode.Is(unicode.Cf, r) }

// Name returns the name of a file, an address or a command on one line, as [Visible] has it, with
// escapes such as \n and \xe9 for line feeds, tabs and bytes that are not UTF-8, so that two names
// differ.
func Name(s string) string {
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			b.WriteString(Visible(s[:size]))
		}
		s = s[size:]
	}
	return b.String()
}

// PrintableColored returns s as [Printable] does, but with the sequences that set colors and
// weights (CSI ... m). Where there are any, they end with s.
func PrintableColored(s string) string {
	var b strings.Builder
	colored, clean := false, 0
	for i := 0; i+1 < len(s); i++ {
		if s[i] != 0x1b || s[i+1] != '[' {
			continue
		}
		n := i + 2 + len(s[i+2:]) - len(strings.TrimLeft(s[i+2:], "0123456789;:"))
		if n == len(s) || s[n] != 'm' {
			continue
		}
		b.WriteString(Printable(s[clean:i]) + s[i:n+1])
		colored, clean, i = true, n+1, n
	}
	if !colored {
		return Printable(s)
	}
	b.WriteString(Printable(s[clean:]) + "\x1b[0m")
	return b.String()
}

// FileKind returns what is at a path that is not a regular file, such as "a socket".
func FileKind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
