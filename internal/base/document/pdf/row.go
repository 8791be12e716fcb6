package pdf

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// placed is a text at its place in a line, from its left to its right end.
type placed struct {
	text     string
	from, to float64
	em       float64 // the size of the font
	exact    bool    // the text is an ActualText, which is as it is read
}

// row is a line of a page, in the order of the program of the page. Blanks are part of it.
type row []placed

// Distances between words in parts of the size of the text.
const (
	wordDistance  = 0.1  // in TeX, words of a line that is set tight are 0.14 to 0.17 apart
	widest        = 0.4  // between letters that are spaced out
	blankDistance = 0.07 // if there is a blank as well; some programs move what follows over it
)

// accentMarks are the accents that fonts have as characters of their own, and the characters that combine with a letter.
var accentMarks = map[rune]string{
	'`': "\u0300", '´': "\u0301", 'ˆ': "\u0302", '˜': "\u0303", '¯': "\u0304", 'ˉ': "\u0304", '˘': "\u0306", '˙': "\u0307",
	'¨': "\u0308", '˚': "\u030a", '˝': "\u030b", 'ˇ': "\u030c", '¸': "\u0327", '˛': "\u0328",
}

// markOf returns the combining character that text is, as an accent; "" if it is not one.
func markOf(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case n != len(text):
		return ""
	case unicode.Is(unicode.Mn, r):
		return text
	}
	return accentMarks[r]
}

// compose joins p with the last glyph if one of them is an accent of the other, which lies over or under it.
func (l row) compose(p placed) bool {
	if len(l) == 0 {
		return false
	}
	last := &l[len(l)-1]
	mark, base := markOf(p.text), *last
	if mark == "" { // it may be the other way round: in TeX with accents, and in Hebrew and Arabic with all marks
		if mark, base = markOf(last.text), p; mark == "" || mark == last.text && direction(p.text) != bidi.R && direction(p.text) != bidi.AL {
			return false
		}
		p = *last
	}
	center, margin := (p.from+p.to)/2, 0.05*p.em
	first, _ := utf8.DecodeRuneInString(base.text)
	if !unicode.IsLetter(first) || center < base.from-margin || center > base.to+margin {
		return false
	}
	if letter, ok := map[string]string{"ı": "i", "ȷ": "j"}[base.text]; ok {
		base.text = letter
	}
	base.text = norm.NFC.String(base.text + mark)
	*last = base
	return true
}

// text returns the line as it is read. balance counts the letters of the file so far that are read from right to left,
// less the others; the line adds its own.
func (l row) text(balance *int) string {
	right, left := 0, 0
	for _, p := range l {
		switch direction(p.text) {
		case bidi.R, bidi.AL:
			right++
		case bidi.L:
			left++
		}
	}
	*balance += right - left
	if right > 0 { // programs write them in either direction
		slices.SortStableFunc(l, func(a, b placed) int { return cmp.Compare(a.from, b.from) })
	}
	words := l.words()
	if right > 0 {
		rightward := right >= left || *balance > 0 && left < 3*right
		first, last := isStop(words[0].text), isStop(words[len(words)-1].text)
		if left > 0 && first != last { // it ends with a stop
			rightward = first
		}
		logical(words, rightward)
	}
	var out strings.Builder
	for _, w := range words {
		out.WriteString(w.text)
	}
	return strings.TrimSpace(out.String())
}

// isStop reports whether text is a mark that ends a sentence.
func isStop(text string) bool { return len(text) > 0 && strings.Trim(text, ".,:;!?؟،؛׃") == "" }

// words returns the glyphs with a blank where a word ends.
func (l row) words() []placed {
	limit := l.wordLimit()
	var out []placed
	var last *placed
	blank, known, raised := false, true, true // raised: all so far are digits, as of the number of a footnote
	for i := range l {
		p := &l[i]
		if strings.TrimSpace(p.text) == "" {
			blank, known = true, known && p.to > p.from
			continue
		}
		if last != nil {
			gap := (p.from - last.to) / p.em
			footnote := raised && last.em < 0.8*p.em && direction(p.text) != bidi.EN
			if gap > limit || gap < -2*backDistance || blank && (gap > blankDistance || !known) || footnote {
				out = append(out, placed{text: " "})
			}
		}
		if p.text == "\u00ad" { // a hyphen that is seen at the end of a line only
			p.text = "-"
		}
		raised = raised && direction(p.text) == bidi.EN
		out, last, blank, known = append(out, *p), p, false, true
	}
	return out
}

// wordLimit returns how far apart the words of the line are at least. Where letters are spaced out, that is more than
// usual: the gaps within words are more than half of all gaps.
func (l row) wordLimit() float64 {
	var gaps []float64
	for i := 1; i < len(l); i++ {
		if strings.TrimSpace(l[i].text) != "" && strings.TrimSpace(l[i-1].text) != "" {
			gaps = append(gaps, (l[i].from-l[i-1].to)/l[i].em)
		}
	}
	if len(gaps) < 6 {
		return wordDistance
	}
	slices.Sort(gaps)
	within := gaps[len(gaps)/2]
	if gaps[len(gaps)/4] < wordDistance/2 || within > widest {
		return wordDistance
	}
	return max(wordDistance, 1.6*within)
}

// direction returns the class of the first character of a text in the algorithm of UAX #9.
func direction(text string) bidi.Class {
	p, _ := bidi.LookupString(text)
	return p.Class()
}

// mirrored are characters besides brackets that look to the other side in text from right to left.
var mirrored = strings.NewReplacer("<", ">", ">", "<", "«", "»", "»", "«", "‹", "›", "›", "‹", "≤", "≥", "≥", "≤")

// logical puts a line with letters that are read from right to left from the order on the page into the order of
// reading: the algorithm of UAX #9 backwards. rightward is whether the line as a whole is read from right to left.
func logical(line []placed, rightward bool) {
	levels := levelsOf(classesOf(line), rightward)
	for level := 1; level <= 2; level++ {
		for i := 0; i < len(line); i++ {
			from := i
			for i < len(line) && levels[i] >= level {
				i++
			}
			slices.Reverse(line[from:i])
			slices.Reverse(levels[from:i])
		}
	}
	for i := range line {
		switch c := direction(line[i].text); {
		case c == bidi.AL || c == bidi.R:
			line[i].text = usualForms(line[i].text)
		case levels[i] == 1 && !line[i].exact:
			line[i].text = mirrored.Replace(bidi.ReverseString(line[i].text))
		}
	}
}

// usualForms returns a text with the usual letters in place of the forms that they have beside each other.
func usualForms(text string) string {
	for _, r := range text {
		if r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff {
			return norm.NFKC.String(text)
		}
	}
	return text
}

// classesOf returns L, R, or EN and AN for numbers, and ON for others, by the rules W2 to W7 of UAX #9.
func classesOf(line []placed) []bidi.Class {
	class := make([]bidi.Class, len(line))
	afterL := make([]bool, len(line)) // of the letters around it, the one to the left is read from left to right
	for i, p := range line {
		class[i] = direction(p.text)
		afterL[i] = i > 0 && afterL[i-1] && class[i] != bidi.R && class[i] != bidi.AL || class[i] == bidi.L
	}
	strong := bidi.L
	for i := len(line) - 1; i >= 0; i-- { // what is read from right to left is read before what is to its left
		switch {
		case class[i] == bidi.EN && strong == bidi.AL && !afterL[i]:
			class[i] = bidi.AN
		case class[i] == bidi.AL:
			class[i], strong = bidi.R, bidi.AL
		case class[i] == bidi.L || class[i] == bidi.R:
			strong = class[i]
		}
	}
	at := func(i int) bidi.Class {
		if i < 0 || i >= len(class) {
			return bidi.ON
		}
		return class[i]
	}
	for i, c := range class {
		before, after := at(i-1), at(i+1)
		switch {
		case c == bidi.L || c == bidi.R || c == bidi.EN || c == bidi.AN:
		case c == bidi.CS && before == after && (before == bidi.EN || before == bidi.AN):
			class[i] = before
		case c == bidi.ES && before == bidi.EN && after == bidi.EN, c == bidi.ET && (before == bidi.EN || after == bidi.EN):
			class[i] = bidi.EN
		default:
			class[i] = bidi.ON
		}
	}
	return class
}

// levelsOf returns the levels of what has these classes: 1 for what is read from right to left; 2 for what is read from
// left to right within it, and, if the line is read rightward, for all that is; otherwise 0.
func levelsOf(class []bidi.Class, rightward bool) []int {
	outer, inner, other := 0, 1, bidi.R
	if rightward {
		outer, inner, other = 1, 2, bidi.L
	}
	levels := make([]int, len(class))
	last := len(class) // where letters of the other direction ended; what is between two of them is read as they are
	for i, c := range class {
		levels[i] = outer
		switch {
		case c == other || c == bidi.EN && last < i && rightward:
			for ; last < i; last++ {
				levels[last] = inner
			}
			levels[i], last = inner, i
		case c == bidi.L || c == bidi.R:
			last = len(class)
		}
	}
	for i, c := range class {
		if (c == bidi.EN || c == bidi.AN) && levels[i] == 1 {
			levels[i] = 2
		}
	}
	return levels
}
