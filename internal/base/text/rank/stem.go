package rank

import (
	"slices"
	"strings"
)

// Stem returns the stem of an English word in lower case.
//
// It is the English stemmer of Snowball, also known as Porter 2
// (https://snowballstem.org/algorithms/english/stemmer.html). Any character that is not one
// of its vowels counts as a consonant.
func Stem(word string) string {
	if len(word) < 3 {
		return word
	}
	word = strings.TrimPrefix(word, "'")
	if stem, ok := exception(word); ok {
		return stem
	}
	s := newStemmer(word)
	s.step0()
	s.step1a()
	if !afterStep1a(s.String()) {
		s.step1b()
		s.step1c()
		s.step2()
		s.step3()
		s.step4()
		s.step5()
	}
	return strings.ReplaceAll(s.String(), "Y", "y")
}

// exception returns the stems of words for which the rules are wrong.
func exception(word string) (string, bool) {
	switch word {
	case "skis":
		return "ski", true
	case "skies":
		return "sky", true
	case "dying":
		return "die", true
	case "lying":
		return "lie", true
	case "tying":
		return "tie", true
	case "idly":
		return "idl", true
	case "gently":
		return "gentl", true
	case "ugly":
		return "ugli", true
	case "early":
		return "earli", true
	case "only":
		return "onli", true
	case "singly":
		return "singl", true
	case "sky", "news", "howe", "atlas", "cosmos", "bias", "andes":
		return word, true
	}
	return "", false
}

// afterStep1a reports whether a word stays as it is from there on.
func afterStep1a(word string) bool {
	switch word {
	case "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed":
		return true
	}
	return false
}

// stemmer is a word during stemming. A Y is a y that is a consonant.
type stemmer struct {
	word   []byte
	r1, r2 int // where the regions after the first and second syllable begin
}

func (s *stemmer) String() string { return string(s.word) }

func vowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

func newStemmer(word string) *stemmer {
	s := &stemmer{word: []byte(word)}
	for i, c := range s.word {
		if c == 'y' && (i == 0 || vowel(s.word[i-1])) {
			s.word[i] = 'Y'
		}
	}
	s.r1 = len(s.word)
	special := false
	for _, prefix := range [...]string{"gener", "commun", "arsen"} {
		if strings.HasPrefix(word, prefix) {
			s.r1, special = len(prefix), true
		}
	}
	if !special {
		s.r1 = s.region(0)
	}
	s.r2 = s.region(s.r1)
	return s
}

// region returns where the part after the first consonant that follows a vowel begins.
func (s *stemmer) region(from int) int {
	for i := from + 1; i < len(s.word); i++ {
		if !vowel(s.word[i]) && vowel(s.word[i-1]) {
			return i + 1
		}
	}
	return len(s.word)
}

func (s *stemmer) ends(suffix string) bool {
	n := len(s.word) - len(suffix)
	return n >= 0 && s.word[len(s.word)-1] == suffix[len(suffix)-1] && string(s.word[n:]) == suffix
}

// longest returns the longest of suffixes that the word ends in, or nothing.
func (s *stemmer) longest(suffixes ...string) string {
	best := ""
	for _, suffix := range suffixes {
		if len(suffix) > len(best) && s.ends(suffix) {
			best = suffix
		}
	}
	return best
}

func (s *stemmer) cut(n int) { s.word = s.word[:len(s.word)-n] }

func (s *stemmer) replace(suffix, by string) {
	s.cut(len(suffix))
	s.word = append(s.word, by...)
}

func (s *stemmer) inR1(suffix string) bool { return len(s.word)-len(suffix) >= s.r1 }
func (s *stemmer) inR2(suffix string) bool { return len(s.word)-len(suffix) >= s.r2 }

// hasVowel reports whether the word has a vowel before the last n letters.
func (s *stemmer) hasVowel(n int) bool {
	return slices.ContainsFunc(s.word[:max(len(s.word)-n, 0)], vowel)
}

// shortSyllable reports whether the first n letters end in a short syllable.
func (s *stemmer) shortSyllable(n int) bool {
	w := s.word[:n]
	switch {
	case n >= 3:
		c := w[n-1]
		return !vowel(w[n-3]) && vowel(w[n-2]) && !vowel(c) && c != 'w' && c != 'x' && c != 'Y'
	case n == 2:
		return vowel(w[0]) && !vowel(w[1])
	}
	return false
}

func (s *stemmer) step0() {
	s.cut(len(s.longest("'", "'s", "'s'")))
}

func (s *stemmer) step1a() {
	switch suffix := s.longest("sses", "ied", "ies", "s", "us", "ss"); suffix {
	case "sses":
		s.replace(suffix, "ss")
	case "ied", "ies":
		if len(s.word) > 4 {
			s.replace(suffix, "i")
		} else {
			s.replace(suffix, "ie")
		}
	case "s":
		if s.hasVowel(2) {
			s.cut(1)
		}
	}
}

func (s *stemmer) step1b() {
	suffix := s.longest("eed", "eedly", "ed", "edly", "ing", "ingly")
	switch suffix {
	case "":
		return
	case "eed", "eedly":
		if s.inR1(suffix) {
			s.replace(suffix, "ee")
		}
		return
	}
	if !s.hasVowel(len(suffix)) {
		return
	}
	s.cut(len(suffix))
	n := len(s.word)
	switch {
	case s.ends("at"), s.ends("bl"), s.ends("iz"):
		s.word = append(s.word, 'e')
	case n >= 2 && s.word[n-1] == s.word[n-2] && strings.IndexByte("bdfgmnprt", s.word[n-1]) >= 0:
		s.cut(1)
	case s.r1 >= n && s.shortSyllable(n):
		s.word = append(s.word, 'e')
	}
}

func (s *stemmer) step1c() {
	n := len(s.word)
	if n > 2 && (s.word[n-1] == 'y' || s.word[n-1] == 'Y') && !vowel(s.word[n-2]) {
		s.word[n-1] = 'i'
	}
}

func (s *stemmer) step2() {
	rules := [...][2]string{
		{"tional", "tion"},
		{"enci", "ence"},
		{"anci", "ance"},
		{"abli", "able"},
		{"entli", "ent"},
		{"izer", "ize"},
		{"ization", "ize"},
		{"ational", "ate"},
		{"ation", "ate"},
		{"ator", "ate"},
		{"alism", "al"},
		{"aliti", "al"},
		{"alli", "al"},
		{"fulness", "ful"},
		{"ousli", "ous"},
		{"ousness", "ous"},
		{"iveness", "ive"},
		{"iviti", "ive"},
		{"biliti", "ble"},
		{"bli", "ble"},
		{"ogi", "og"},
		{"fulli", "ful"},
		{"lessli", "less"},
		{"li", ""},
	}
	suffix, by := s.rule(rules[:])
	if suffix == "" || !s.inR1(suffix) {
		return
	}
	before := s.word[len(s.word)-len(suffix)-min(1, len(s.word)-len(suffix)) : len(s.word)-len(suffix)]
	switch suffix {
	case "ogi":
		if string(before) != "l" {
			return
		}
	case "li":
		if len(before) == 0 || strings.IndexByte("cdeghkmnrt", before[0]) < 0 {
			return
		}
	}
	s.replace(suffix, by)
}

func (s *stemmer) step3() {
	rules := [...][2]string{
		{"tional", "tion"},
		{"ational", "ate"},
		{"alize", "al"},
		{"icate", "ic"},
		{"iciti", "ic"},
		{"ical", "ic"},
		{"ful", ""},
		{"ness", ""},
		{"ative", ""},
	}
	suffix, by := s.rule(rules[:])
	if suffix == "" || !s.inR1(suffix) || suffix == "ative" && !s.inR2(suffix) {
		return
	}
	s.replace(suffix, by)
}

func (s *stemmer) rule(rules [][2]string) (suffix, by string) {
	for _, r := range rules {
		if len(r[0]) > len(suffix) && s.ends(r[0]) {
			suffix, by = r[0], r[1]
		}
	}
	return suffix, by
}

func (s *stemmer) step4() {
	suffix := s.longest("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate",
		"iti", "ous", "ive", "ize", "ion")
	if suffix == "" || !s.inR2(suffix) {
		return
	}
	if suffix == "ion" {
		if n := len(s.word) - 3; n == 0 || s.word[n-1] != 's' && s.word[n-1] != 't' {
			return
		}
	}
	s.cut(len(suffix))
}

func (s *stemmer) step5() {
	n := len(s.word)
	switch {
	case s.ends("e"):
		if s.inR2("e") || s.inR1("e") && !s.shortSyllable(n-1) {
			s.cut(1)
		}
	case s.ends("ll") && s.inR2("l"):
		s.cut(1)
	}
}
