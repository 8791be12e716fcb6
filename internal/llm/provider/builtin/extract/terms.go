package extract

import (
	"strings"
	"unicode"
)

// isDense reports whether r is of a script that is written without blanks between
// words: Han and the two Japanese syllabaries, with their punctuation.
func isDense(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff0f || r == 'ー' || r == '：' || r == '；' || r == '？')
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r)
}

// termsOf returns the terms of a sentence: words in lower case without their plural
// ending and without stop words, and pairs of neighboring characters where a
// script has no blanks. Addresses are not terms.
func termsOf(sentence string) (terms []string) {
	for field := range strings.FieldsSeq(sentence) {
		field, _, _ = strings.Cut(field, "](") // the target of a Markdown link
		if strings.Contains(field, "://") || strings.HasPrefix(field, "www.") {
			continue
		}
		spaced := strings.FieldsFunc(field, func(r rune) bool { return !isWordRune(r) || isDense(r) })
		for _, word := range spaced {
			if word = strings.ToLower(word); len(word) > 1 && !lexicon().stop[word] {
				terms = append(terms, singular(word))
			}
		}
		dense := strings.FieldsFunc(field, func(r rune) bool { return !isWordRune(r) || !isDense(r) })
		for _, run := range dense {
			chars := []rune(run)
			for i := range max(1, len(chars)-1) {
				terms = append(terms, string(chars[i:min(i+2, len(chars))]))
			}
		}
	}
	return terms
}

// singular removes the English plural ending of word, which is in lower case.
//
// Source: the S stemmer of Harman, How effective is suffixing?, JASIS 42, 1991.
func singular(word string) string {
	end := func(s string) bool { return strings.HasSuffix(word, s) }
	switch {
	case len(word) < 4 || !end("s"):
		return word
	case end("ies") && !end("eies") && !end("aies"):
		return word[:len(word)-3] + "y"
	case end("es") && !end("aes") && !end("ees") && !end("oes"):
		return word[:len(word)-1]
	case end("us") || end("ss"):
		return word
	}
	return word[:len(word)-1]
}

// countWords counts the words of s; a character of a dense script counts as one.
func countWords(s string) int {
	n := 0
	inWord := false
	for _, r := range s {
		switch {
		case isDense(r):
			if isWordRune(r) {
				n++
			}
			inWord = false
		case unicode.IsSpace(r):
			inWord = false
		case !inWord && isWordRune(r):
			n++
			inWord = true
		}
	}
	return n
}
