package rank

import (
	"strings"
	"sync"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// Tokens returns the tokens of text in order.
func Tokens(text string) []string {
	var list []string
	add := func(word string) {
		if word = fold(word); word == "" || stopWords()[word] {
			return
		}
		list = append(list, Stem(word))
	}
	// Word boundaries are those of Unicode (UAX #29), by which a_b and server:x are one word.
	for segments := words.FromString(strings.ToValidUTF8(text, " ")); segments.Next(); {
		word := segments.Value()
		if !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			continue
		}
		add(word)
		if parts := split(word); len(parts) > 1 {
			for _, part := range parts {
				add(part)
			}
		}
	}
	return list
}

// split cuts a name into its parts: at characters that are neither letters nor digits,
// except for an apostrophe, and where a capital begins a word (searchIssues,
// HTTPServer).
func split(name string) []string {
	var parts []string
	var part []rune
	flush := func() {
		if len(part) > 0 {
			parts = append(parts, string(part))
			part = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && r != '\'' && r != '’' {
			flush()
			continue
		}
		if i > 0 && unicode.IsUpper(r) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])) {
			flush()
		}
		part = append(part, r)
	}
	flush()
	return parts
}

// fold returns a word in lower case and without accents.
func fold(word string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(word)) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r == '’':
			b.WriteByte('\'')
		case r < unicode.MaxASCII:
			b.WriteRune(r)
		default:
			if ascii, ok := letters[r]; ok {
				b.WriteString(ascii)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// letters are the letters of Latin alphabets that do not decompose into a
// letter and an accent.
var letters = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ı': "i", 'ħ': "h",
}

// stopWords are the words that NLTK lists for English.
var stopWords = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(`
		i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him his
		himself she she's her hers herself it it's its itself they them their theirs themselves what which who whom
		this that that'll these those am is are was were be been being have has had having do does did doing a an the
		and but if or because as until while of at by for with about against between into through during before after
		above below to from up down in out on off over under again further then once here there when where why how all
		any both each few more most other some such no nor not only own same so than too very s t can will just don
		don't should should've now d ll m o re ve y ain aren aren't couldn couldn't didn didn't doesn doesn't hadn
		hadn't hasn hasn't haven haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn
		shouldn't wasn wasn't weren weren't won won't wouldn wouldn't`) {
		set[word] = true
	}
	return set
})
