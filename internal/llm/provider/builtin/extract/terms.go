package extract

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isDense reports whether r is of a script that is written without blanks between
// words: Han and the two Japanese syllabaries, with their punctuation.
func isDense(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff0f || r == 'ー' || r == '：' || r == '；' || r == '？')
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r)
}

// termsOf yields the terms of a sentence: words in lower case without their plural
// ending and without stop words, and pairs of neighboring characters where a
// script has no blanks. Addresses are not terms.
func termsOf(sentence string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for field := range strings.FieldsSeq(sentence) {
			field, _, _ = strings.Cut(field, "](") // the target of a Markdown link
			if strings.Contains(field, "://") || strings.HasPrefix(field, "www.") {
				continue
			}
			for field != "" {
				var run string
				run, field = cutRun(field)
				if !yieldTerms(run, yield) {
					return
				}
			}
		}
	}
}

// cutRun cuts the first run of word characters from s; dense and spaced scripts are
// separate runs. The run is empty if none is left.
func cutRun(s string) (run, rest string) {
	start := strings.IndexFunc(s, isWordRune)
	if start < 0 {
		return "", ""
	}
	s = s[start:]
	first, _ := utf8.DecodeRuneInString(s)
	dense := isDense(first)
	end := strings.IndexFunc(s, func(r rune) bool { return !isWordRune(r) || isDense(r) != dense })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

func yieldTerms(run string, yield func(string) bool) bool {
	first, width := utf8.DecodeRuneInString(run)
	switch {
	case run == "":
		return true
	case !isDense(first):
		word := strings.ToLower(run)
		if len(word) == 1 || lexicon().stop[word] {
			return true
		}
		return yield(singular(word))
	case width == len(run):
		return yield(run)
	}
	prev := 0
	for i := width; i < len(run); {
		_, w := utf8.DecodeRuneInString(run[i:])
		if !yield(run[prev : i+w]) {
			return false
		}
		prev, i = i, i+w
	}
	return true
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
