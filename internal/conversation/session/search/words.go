package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"

	"loki/internal/base/text"
)

// unspaced are the characters that are words of their own.
var unspaced = rangetable.Merge(
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
	rangetable.New('ー', 'ｰ', 'ﾞ', 'ﾟ'),
)

// maxWord is the length of the longest word, in bytes; longer ones are data, of which the beginning counts.
const maxWord = 64

// eachWord calls word with the words of s in order, and where in s they are, in bytes. Invisible characters inside a word, such as
// soft hyphens, are ignored.
func eachWord(s string, word func(start, end int, w string)) {
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf && !asciiWord(b) {
			i++
			continue
		}
		start, ascii, lower := i, true, true
	run:
		for i < len(s) {
			b := s[i]
			switch {
			case b >= utf8.RuneSelf:
				r, size := utf8.DecodeRuneInString(s[i:])
				single := unicode.Is(unspaced, r)
				if single && i > start || !single && !inWord(r) && (i == start || !text.Invisible(r)) {
					break run
				}
				ascii = false
				i += size
				if single {
					i += marks(s[i:])
					break run
				}
			case asciiWord(b):
				lower = lower && (b < 'A' || b > 'Z')
				i++
			default:
				break run
			}
		}
		if i == start { // a character that is in no word
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
			continue
		}
		w := s[start:i]
		if !ascii {
			w = text.WithoutInvisible(w)
		}
		if len(w) > maxWord {
			w = strings.ToValidUTF8(w[:maxWord], "")
		}
		switch {
		case ascii && !lower:
			w = strings.ToLower(w)
		case !ascii:
			w = fold(w)
		}
		if w != "" {
			word(start, i, w)
		}
	}
}

func asciiWord(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}

// marks returns how many bytes at the beginning of text are marks on the character before it.
func marks(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsMark(r) })
	if n < 0 {
		return len(text)
	}
	return n
}

// fold returns a word in lower case, without accents.
func fold(w string) string {
	w = norm.NFKD.String(strings.ToLower(w))
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		if 0x300 <= r && r <= 0x36f || r < utf8.RuneSelf && !asciiWord(byte(r)) {
			return -1
		}
		return unicode.ToLower(r)
	}, w))
}

// words returns the words of text.
func words(text string) (list []string) {
	eachWord(text, func(_, _ int, w string) { list = append(list, w) })
	return list
}

// indexText returns the words of text as the index has them, with blanks in between.
func indexText(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	eachWord(text, func(_, _ int, w string) {
		b.WriteString(w)
		b.WriteByte(' ')
	})
	return b.String()
}
