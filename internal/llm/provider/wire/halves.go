package wire

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// Some servers cut texts between the halves of a surrogate pair and send these as the escapes \ud83d and \ude0b
// of two events. A decoder of JSON replaces each by U+FFFD. [Halves] therefore writes a lone half as a private
// character, and [JoinHalves] joins two of them that meet.

// halfOffset is the distance of the private characters from the halves. U+10D800 to U+10DFFF have no meaning in
// any font that is known.
const halfOffset = 0x100000

// halfMark begins the UTF-8 of the private characters, and of some others.
const halfMark = "\xf4\x8d"

// Halves returns a reader of r, which sends JSON in any framing, that keeps the lone halves of surrogate pairs.
func Halves(r io.Reader) io.Reader { return transform.NewReader(r, halves{}) }

type halves struct{ transform.NopResetter }

// Transform implements [transform.Transformer].
func (halves) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		text := src[nSrc:]
		n := bytes.IndexByte(text, '\\')
		half := rune(0)
		switch {
		case n < 0:
			n = len(text)
		case n == 0:
			var whole bool
			if n, half, whole = escape(text); !whole && !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
		}
		if half != 0 {
			if len(dst)-nDst < utf8.UTFMax {
				return nDst, nSrc, transform.ErrShortDst
			}
			nDst += utf8.EncodeRune(dst[nDst:], half+halfOffset)
			nSrc += n
			continue
		}
		copied := copy(dst[nDst:], text[:n])
		if copied < n && text[0] == '\\' { // an escape stays in one piece
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst, nSrc = nDst+copied, nSrc+copied
		if copied < n {
			return nDst, nSrc, transform.ErrShortDst
		}
	}
	return nDst, nSrc, nil
}

// escape returns the length of the escape, or pair of escapes, that text begins with, and the half that it is, 0 for
// none. If whole is false, more bytes may change that.
func escape(text []byte) (n int, half rune, whole bool) {
	if len(text) < 2 {
		return len(text), 0, false
	}
	if text[1] != 'u' {
		return 2, 0, true
	}
	first, whole := hex4(text)
	if !whole || !utf16.IsSurrogate(first) {
		return min(len(text), 6), 0, whole
	}
	if first >= 0xDC00 {
		return 6, first, true
	}
	rest := text[6:]
	switch {
	case len(rest) == 0, len(rest) == 1 && rest[0] == '\\':
		return 6, first, false
	case rest[0] != '\\' || rest[1] != 'u':
		return 6, first, true
	}
	second, whole := hex4(rest)
	if utf16.DecodeRune(first, second) != utf8.RuneError {
		return 12, 0, true
	}
	return 6, first, whole
}

// hex4 returns the code unit of an escape; whole is false if text is too short for one.
func hex4(text []byte) (unit rune, whole bool) {
	if len(text) < 6 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0, true
	}
	return rune(v), true
}

// JoinHalves returns text with the halves that meet joined, and U+FFFD for each of the others.
func JoinHalves(text string) string {
	if !strings.Contains(text, halfMark) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		if utf16.IsSurrogate(r - halfOffset) {
			next, m := utf8.DecodeRuneInString(text[n:])
			if r = utf16.DecodeRune(r-halfOffset, next-halfOffset); r != utf8.RuneError {
				n += m
			}
			b.WriteRune(r)
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// CutHalf returns text without a first half at its end, and that half, which the next piece may complete.
func CutHalf(text string) (before, half string) {
	if n := len(text) - utf8.UTFMax; n >= 0 && strings.HasPrefix(text[n:], halfMark) {
		if r, _ := utf8.DecodeRuneInString(text[n:]); r-halfOffset >= 0xD800 && r-halfOffset < 0xDC00 {
			return text[:n], text[n:]
		}
	}
	return text, ""
}
