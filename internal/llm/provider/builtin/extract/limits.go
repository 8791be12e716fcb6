package extract

import (
	"slices"
	"strconv"
	"strings"
)

// numberReach is how many words may stand between a number and what it counts, as
// in "5 of the most important sentences".
const numberReach = 5

// ReadLimits reads the length and the layout of a summary from instructions. What an
// earlier instruction says wins over the later ones.
//
// It understands "N sentences", "N bullets", "N bullet points", "N points", "N words"
// and "a paragraph", with N in digits or the words one to twenty, and takes the
// upper end of "2 to 3 sentences". A paragraph is five sentences, "bullets" without a
// number only the layout. What is said of each part ("one sentence each") or denied
// ("no bullets") does not count.
func ReadLimits(instructions ...string) Limits {
	var l Limits
	paragraphs := 0
	for _, s := range instructions {
		for _, clause := range clausesOf(s, ".;:!?\n") {
			for i := range clause {
				l.read(clause, i, &paragraphs)
			}
		}
	}
	if l.Sentences == 0 && l.Words == 0 {
		l.Sentences = paragraphs * paragraphSentences
	}
	return l
}

// read takes in what word i of a clause says.
func (l *Limits) read(clause []string, i int, paragraphs *int) {
	word := clause[i]
	n := countBefore(clause, i)
	if i+1 < len(clause) && (clause[i+1] == "each" || clause[i+1] == "per" || clause[i+1] == "apiece") {
		return
	}
	switch {
	case isUnit(word, "sentence"):
		setFirst(&l.Sentences, n)
	case word == "bulleted", isUnit(word, "bullet"):
		if isDenied(clause[:i]) {
			return
		}
		l.Bullets = true
		if i+1 == len(clause) || clause[i+1] != "list" { // "a bullet list" counts no bullets
			setFirst(&l.Sentences, n)
		}
	case isUnit(word, "point") && n > 1:
		l.Bullets = true
		setFirst(&l.Sentences, n)
	case isUnit(word, "word"):
		setFirst(&l.Words, n)
	case isUnit(word, "paragraph"):
		setFirst(paragraphs, n)
	}
}

func setFirst(field *int, n int) {
	if *field == 0 {
		*field = n
	}
}

func isUnit(word, unit string) bool { return strings.TrimSuffix(word, "s") == unit }

// isDenied reports whether the words before a bullet forbid it.
func isDenied(before []string) bool {
	return slices.ContainsFunc(before[max(0, len(before)-3):], func(w string) bool {
		return w == "no" || w == "not" || w == "without" || w == "don" || w == "t" || w == "avoid" || w == "never"
	})
}

// countBefore returns the number that counts word i of a clause, 0 if there is none.
func countBefore(clause []string, i int) int {
	for k := i - 1; k >= 0 && k >= i-1-numberReach; k-- {
		if n := number(clause[k]); n > 0 {
			return n
		}
		if countsOther(clause[k]) && k < i-1 {
			return 0
		}
		if (clause[k] == "a" || clause[k] == "an" || clause[k] == "single") && i-k <= 2 && !strings.HasSuffix(clause[i], "s") {
			return 1
		}
	}
	return 0
}

// countsOther reports whether word is a unit that a number before it belongs to.
func countsOther(word string) bool {
	return isUnit(word, "sentence") || isUnit(word, "bullet") || isUnit(word, "word") || isUnit(word, "paragraph")
}

// number returns the value of a number in digits or words, 0 if word is none or
// larger than any text has sentences.
func number(word string) int {
	if n, err := strconv.Atoi(word); err == nil && n > 0 && n < 1_000_000 {
		return n
	}
	return 1 + slices.Index(numberWords, word)
}

// numberWords are the numbers from one to twenty, in order.
var numberWords = []string{
	"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
	"thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
}
