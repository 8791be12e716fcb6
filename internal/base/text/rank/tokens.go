package rank

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"

	"loki/internal/base/text"
)

// Tokens returns the tokens of text in order.
func Tokens(text string) []string { return new(Tokenizer).Append(nil, text) }

// Tokenizer finds the tokens of many texts. It remembers those of words that it has seen, which
// makes it several times as fast as [Tokens]. The zero value is ready. It belongs to one goroutine.
type Tokenizer struct {
	seen map[string][]string
}

// What a Tokenizer remembers, about 15 MB.
const (
	remembered = 1 << 16 // words; with more of them it starts to learn anew
	longest    = 64      // bytes of a word; longer ones are data rather than words
)

// Append appends the tokens of text to list, in order.
func (z *Tokenizer) Append(list []string, text string) []string {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && classes[text[i]]&inWord == 0 {
			i++
			continue
		}
		end, ok := word(text, i)
		if ok {
			list = z.word(list, text[i:end])
		} else { // a blank ends a word of any script
			if n := strings.IndexAny(text[i:], " \t\r\n"); n >= 0 {
				end = i + n
			} else {
				end = len(text)
			}
			list = z.field(list, strings.ToValidUTF8(text[i:end], " "))
		}
		i = end
	}
	return list
}

// Classes of ASCII characters, by what Unicode calls them in UAX #29.
const (
	letter     = 1 << iota // ALetter
	digit                  // Numeric
	connector              // ExtendNumLet
	midLetter              // MidLetter, MidNumLet or Single_Quote: within a word between letters
	midNumeric             // MidNum, MidNumLet or Single_Quote: within a word between digits
	inWord     = letter | digit | connector
)

var classes = func() (c [utf8.RuneSelf]uint8) {
	for i := range c {
		switch b := byte(i); {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
			c[i] = letter
		case '0' <= b && b <= '9':
			c[i] = digit
		}
	}
	c['_'] = connector
	c[':'] = midLetter
	c['.'], c['\''] = midLetter|midNumeric, midLetter|midNumeric
	c[','], c[';'] = midNumeric, midNumeric
	return c
}()

// word returns where the word that begins at text[i] ends, by the rules of UAX #29 for ASCII. It
// reports false if that is not enough, as other characters are in it or next to it.
func word(text string, i int) (end int, ok bool) {
	class := func(i int) uint8 {
		if i >= len(text) {
			return 0
		}
		if text[i] >= utf8.RuneSelf {
			ok = false
			return 0
		}
		return classes[text[i]]
	}
	ok = true
	for ; ; i++ {
		switch c := class(i); {
		case c&inWord != 0:
			continue
		case c&midLetter != 0 && class(i-1) == letter && class(i+1) == letter,
			c&midNumeric != 0 && class(i-1) == digit && class(i+1) == digit:
			continue
		}
		return i, ok
	}
}

// field appends the tokens of text that is not ASCII alone and has no blanks. Scripts that are
// written without spaces have no words that could be told apart without a dictionary: their tokens
// are pairs of characters, each of which overlaps with the next. Invisible characters, such as soft hyphens, are ignored.
func (z *Tokenizer) field(list []string, s string) []string {
	s = text.WithoutInvisible(s)
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return unicode.Is(unspaced, r) })
		if end < 0 {
			end = len(s)
		}
		// Word boundaries are those of Unicode (UAX #29), by which a_b and server:x are one word.
		for segments := words.FromString(s[:end]); segments.Next(); {
			list = z.word(list, segments.Value())
		}
		s = s[end:]
		end = strings.IndexFunc(s, func(r rune) bool { return !unicode.Is(unspaced, r) && !unicode.Is(unicode.M, r) })
		if end < 0 {
			end = len(s)
		}
		list = pairs(list, s[:end])
		s = s[end:]
	}
	return list
}

// unspaced are the characters of scripts that are written without spaces, and those of Korean,
// whose particles are written together with the word they follow.
var unspaced = rangetable.Merge(
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
	rangetable.New('ー', 'ｰ', 'ﾞ', 'ﾟ'),
)

// pairs appends the pairs of characters in run, or run itself if it is one character. A character
// is a letter with the marks behind it.
func pairs(list []string, run string) []string {
	run = norm.NFKC.String(run)
	var starts []int
	for i, r := range run {
		if !unicode.Is(unicode.M, r) {
			starts = append(starts, i)
		}
	}
	starts = append(starts, len(run))
	if len(starts) <= 2 {
		if run != "" {
			list = append(list, run)
		}
		return list
	}
	for i := range starts[2:] {
		list = append(list, run[starts[i]:starts[i+2]])
	}
	return list
}

// word appends the tokens of a word.
func (z *Tokenizer) word(list []string, word string) []string {
	if len(word) > longest {
		return append(list, wordTokens(word)...)
	}
	tokens, ok := z.seen[word]
	if !ok {
		tokens = wordTokens(word)
		if z.seen == nil || len(z.seen) == remembered {
			z.seen = make(map[string][]string)
		}
		z.seen[strings.Clone(word)] = tokens
	}
	return append(list, tokens...)
}

// wordTokens returns the tokens of a word: its own and those of its parts. What has neither letters
// nor digits is not a word.
func wordTokens(word string) (list []string) {
	if !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return nil
	}
	add := func(word string) {
		if word = fold(word); word != "" && !stopWords()[word] {
			list = append(list, strings.Clone(Stem(word)))
		}
	}
	add(word)
	if parts := split(word); len(parts) > 1 {
		for _, part := range parts {
			add(part)
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
	lower := strings.ToLower(word)
	if isASCII(lower) {
		return lower
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(lower) {
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

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
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
