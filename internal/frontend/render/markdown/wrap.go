package markdown

import (
	"bytes"
	"unicode/utf8"
)

func wordy(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// nextRow returns where the first row of text ends if it may take so many columns, and
// where the next one begins: at the end of text if all of it fits. Rows are filled as
// far as words go. They are broken at spaces, which then belong to neither row, after hyphens
// within words, and beside ideographs; words that are longer than a row, anywhere.
//
// limit is at least 1. There are no line feeds in text.
func nextRow(text []byte, limit int) (end, next int) {
	if len(text) <= limit { // no character takes more columns than bytes
		return len(text), len(text)
	}
	columns := 0
	breakEnd, breakNext := -1, -1
	started := false // something else than spaces was seen
	wide := false    // the last character was an ideograph
	for i := 0; i < len(text); {
		c := text[i]
		if c == ' ' {
			j := i + spaces(text[i:])
			if started {
				breakEnd, breakNext = i, j
			}
			if j == len(text) && columns <= limit {
				return i, j // spaces at the end do not need room
			}
			columns += j - i
			i = j
			wide = false
			continue
		}
		n, w, most := cluster(text[i:])
		ideograph := w == 2 && !hangul(text[i:i+n])
		if started && (ideograph || wide) && text[i-1] != ' ' && !clings(text[i:i+n]) {
			breakEnd, breakNext = i, i
		}
		if columns+most > limit && i > 0 {
			if breakEnd > 0 {
				return breakEnd, breakNext
			}
			return len(bytes.TrimRight(text[:i], " ")), i
		}
		started = true
		columns += most
		i += n
		wide = ideograph
		if c == '-' && i > 1 && wordy(text[i-2]) && i < len(text) && wordy(text[i]) {
			breakEnd, breakNext = i, i
		}
	}
	return len(text), len(text)
}

// hangul reports whether char is a Korean syllable: Korean has spaces between words.
func hangul(char []byte) bool {
	r, _ := utf8.DecodeRune(char)
	return r >= 0xac00 && r <= 0xd7a3
}

// clings reports whether a row must not begin with char.
func clings(char []byte) bool {
	switch r, _ := utf8.DecodeRune(char); r {
	case '。', '、', '，', '．', '：', '；', '！', '？', '）', '」', '』', '】', '〉', '》', '〕', '”', '’', '…', 'ー', '々',
		'.', ',', ':', ';', '!', '?', ')', ']', '}', '%', '"', '\'':
		return true
	}
	return false
}
