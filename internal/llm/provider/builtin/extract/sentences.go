package extract

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"
)

// maxQuoted is the length in bytes up to which a quotation or a parenthesis is
// kept in one sentence. Sentences end inside a longer one.
const maxQuoted = 400

const (
	closers      = "\"'”’“»›)]}」』》】）*_`"        // may follow the mark that ends a sentence
	openers      = "\"'“‘«‹„([{「『《【（*_`¿¡#"     // may precede the first word of a sentence
	opening      = "\"([“„«「『（"                 // of a quotation or parenthesis
	closings     = "\")]”“»」』）"                 // the closing marks of these
	denseStops   = "。！？｡．"                      // end a sentence with no blank behind them
	quoteTails   = "とっなのはがをにでも、，,"              // continue the sentence after a quotation
	straightPrev = " ([{“‘«„—–-/:　、，。：「『（《【*_`" // before a straight quote that opens
)

// splitSentences cuts a block into its sentences, leaving out the blanks between
// them.
//
// A full stop ends a sentence unless it belongs to a number, an address, an
// abbreviation, an initial or an enumeration, or what follows is not the start of a
// sentence. Question and exclamation marks and ellipses end one unless the text continues in lower
// case. No sentence ends inside a short quotation or parenthesis.
func splitSentences(s string) []string {
	var out []string
	x := splitter{s: s, lower: !strings.ContainsFunc(s, unicode.IsUpper)}
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		if !isStop(r) {
			x.open(i, r, w)
			i += w
			continue
		}
		stop := x.stopAt(i)
		if !x.ends(stop) {
			i = stop.end
			continue
		}
		out = append(out, s[x.start:stop.after])
		i = stop.after
		for i < len(s) && s[i] == ' ' {
			i++
		}
		x.start, x.quoted = i, 0
	}
	if x.start < len(s) {
		out = append(out, s[x.start:])
	}
	return out
}

// splitter is the state of [splitSentences].
type splitter struct {
	s      string
	lower  bool // the block has no capital, so a lower-case word may start a sentence
	start  int  // of the sentence that is being read
	quoted int  // end of the quotation or parenthesis that is being read
}

// stop is a run of marks that may end a sentence.
type stop struct {
	begin, end int  // of the run
	after      int  // of the run with its closing quotes, brackets and note numbers
	first      rune // of the run
	dense      bool // the run ends in a mark that needs no blank behind it
	ellipsis   bool
}

func isStop(r rune) bool {
	return r == '.' || r == '!' || r == '?' || r == '…' || strings.ContainsRune(denseStops, r)
}

// open notes that a quotation or a parenthesis opens at i.
func (x *splitter) open(i int, r rune, width int) {
	closing := ""
	if n := strings.IndexRune(opening, r); n >= 0 {
		closing = string([]rune(closings)[utf8.RuneCountInString(opening[:n])])
	}
	before, _ := utf8.DecodeLastRuneInString(x.s[:i])
	if closing == "" || r == '"' && i > 0 && !strings.ContainsRune(straightPrev, before) {
		return
	}
	if i < x.quoted {
		return
	}
	from := i + width
	if n := strings.Index(x.s[from:min(len(x.s), from+maxQuoted)], closing); n >= 0 {
		x.quoted = from + n + len(closing)
	}
}

// marks matches the marks that may end a sentence, also the ellipsis of typewriters, and what belongs to them.
var marks = text.Regexp("^((?:[.!?…" + denseStops + "]|\\. \\.)(?:[.!?…" + denseStops + "]| \\.)*)(?:\\[[0-9]{1,3}\\]|[" + regexp.QuoteMeta(closers) + "])*")

// stopAt reads the marks at i and what belongs to them.
func (x *splitter) stopAt(i int) stop {
	found := marks().FindStringSubmatchIndex(x.s[i:])
	st := stop{begin: i, end: i + found[3], after: i + found[1]}
	run := x.s[st.begin:st.end]
	st.first, _ = utf8.DecodeRuneInString(run)
	last, _ := utf8.DecodeLastRuneInString(run)
	st.dense = strings.ContainsRune(denseStops, last)
	st.ellipsis = strings.Contains(run, "…") || strings.Count(run, ".") > 1
	return st
}

// ends reports whether the sentence ends at st.
func (x *splitter) ends(st stop) bool {
	rest := x.s[st.after:]
	if rest == "" {
		return true
	}
	if x.quoted > st.after {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest)
	if st.dense {
		return st.after == st.end || !strings.ContainsRune(quoteTails, next)
	}
	if next != ' ' {
		return isDense(next)
	}
	rest = strings.TrimLeft(rest, " "+openers)
	next, _ = utf8.DecodeRuneInString(rest)
	if unicode.IsLower(next) && !x.lower && !startsCode(x.s[st.after:]) {
		return false
	}
	if st.first != '.' || st.ellipsis {
		return true
	}
	return x.fullStop(st, rest)
}

// startsCode reports whether s continues with code, which may start a sentence in
// lower case.
func startsCode(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " *_("), "`")
}

// fullStop reports whether the single full stop st, before the word that rest
// starts with, is more than the end of an abbreviation.
func (x *splitter) fullStop(st stop, rest string) bool {
	from := x.start + strings.LastIndexByte(x.s[x.start:st.begin], ' ') + 1
	word := strings.TrimLeft(x.s[from:st.begin], openers)
	if word == "" {
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest)
	if from == x.start && strings.Trim(word, "0123456789") == "" {
		return false // "1. First"
	}
	words := lexicon()
	lower := strings.ToLower(word)
	switch {
	case words.neverLast[lower]:
		return false
	case strings.Trim(word, "0123456789") == "" && words.behindOrdinal[strings.ToLower(leadingWord(rest))]:
		return false
	case words.beforeNumber[lower]:
		return !unicode.IsDigit(next)
	case words.maybeLast[lower], isInitials(word):
		return words.stop[strings.ToLower(leadingWord(rest))]
	}
	return true
}

// isInitials reports whether word, without its last full stop, is an initial or an
// abbreviation of initials: J, U.S, a.m, Ph.D.
func isInitials(word string) bool {
	if !strings.Contains(word, ".") {
		r, w := utf8.DecodeRuneInString(word)
		return w == len(word) && unicode.IsUpper(r)
	}
	for part := range strings.SplitSeq(word, ".") {
		if n := utf8.RuneCountInString(part); n == 0 || n > 2 || strings.ContainsFunc(part, isNotLetter) {
			return false
		}
	}
	return true
}

func isNotLetter(r rune) bool { return !unicode.IsLetter(r) }

// leadingWord returns the letters that s starts with.
func leadingWord(s string) string {
	if n := strings.IndexFunc(s, isNotLetter); n >= 0 {
		return s[:n]
	}
	return s
}
