package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"
)

// maxAskWords is the length up to which a line or paragraph can be an instruction.
const maxAskWords = 60

// SplitAsk parts a message into the instruction to summarize and the text to
// summarize. Either may be empty.
//
// An instruction mentions a summary, sentences, bullets or a number of words, has at
// most 60 words, and asks: it ends in a colon, says please, or begins a clause with a
// request such as "summarize", "give", "in two sentences". The first of these
// that is one is taken for the instruction, and the rest of the message is the text:
//
//   - the start of the first line up to a colon,
//   - the first line, with the lines that continue the instruction,
//   - the first paragraph,
//   - the last paragraph.
//
// A message without such a part, and one that has nothing else, is all text.
func SplitAsk(message string) (instruction, text string) {
	message = strings.TrimSpace(message)
	if ask, tail, ok := cutColon(message); ok {
		return ask, tail
	}
	if ask, tail := cutLines(message); ask != "" && tail != "" {
		return ask, tail
	}
	gaps := blankLines().FindAllStringIndex(message, -1)
	if len(gaps) == 0 {
		return "", message
	}
	if first := gaps[0]; isAsk(message[:first[0]]) {
		return message[:first[0]], message[first[1]:]
	}
	if last := gaps[len(gaps)-1]; isAsk(message[last[1]:]) {
		return message[last[1]:], message[:last[0]]
	}
	return "", message
}

// IsAsk reports whether message is nothing but an instruction to summarize.
func IsAsk(message string) bool {
	_, rest := cutLines(strings.TrimSpace(message))
	return rest == "" && isAsk(message)
}

// cutColon cuts a message at the first colon in its first line that ends an
// instruction. A line whose instruction continues after the colon is left to cutLines.
func cutColon(message string) (ask, tail string, ok bool) {
	line, rest := cutLine(message)
	for i := 0; ; {
		n := strings.IndexByte(line[i:], ':')
		if n < 0 {
			return "", "", false
		}
		i += n + 1
		ends := i == len(line)
		if !ends && line[i] != ' ' && line[i] != '\t' {
			continue // an address or a time
		}
		if isLong(line[:i]) {
			return "", "", false
		}
		if isAsk(line[:i]) && (ends || !isAsk(line[i:])) {
			return line[:i], strings.TrimSpace(line[i:] + "\n" + rest), true
		}
	}
}

// cutLines cuts a message behind the lines at its start that ask.
func cutLines(message string) (ask, tail string) {
	tail = message
	for last := ""; tail != ""; {
		line, rest := cutLine(tail)
		if !isAsk(line) && (last == "" || !goesOn(last, line) && !isLabel(line)) {
			break
		}
		last, tail = line, rest
	}
	return strings.TrimSpace(message[:len(message)-len(tail)]), strings.TrimSpace(tail)
}

// cutLine returns the first line of s without its end, and what follows it.
func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(line), rest
}

// goesOn reports whether next continues the sentence that line begins.
func goesOn(line, next string) bool {
	first, _ := utf8.DecodeRuneInString(next)
	return unicode.IsLower(first) && !endsSentence(line) && !strings.HasSuffix(line, ":")
}

// isLabel reports whether line only announces the text, as "Text:" does.
func isLabel(line string) bool {
	return strings.HasSuffix(line, ":") && strings.Count(line, " ") < 3
}

// blankLines matches what is between two paragraphs.
var blankLines = text.Regexp(`\n\s*\n`)

// isLong reports whether s is too long for an instruction.
func isLong(s string) bool { return len(strings.SplitN(s, " ", maxAskWords+2)) > maxAskWords+1 }

// isAsk reports whether s is an instruction to summarize.
func isAsk(s string) bool {
	if isLong(s) {
		return false
	}
	words := lexicon()
	mentions, asks := false, strings.HasSuffix(s, ":")
	for k, clause := range clausesOf(s, ".,;:!?\n()\"“”") {
		for i, w := range clause {
			mentions = mentions || words.summary[w] || words.parts[w] ||
				isUnit(w, "word") && i > 0 && number(clause[i-1]) > 0
			asks = asks || w == "please" || k == 0 && i < 3 && (w == "summary" || w == "tldr" || w == "bullets")
		}
		asks = asks || isRequest(clause)
	}
	return mentions && asks
}

// isRequest reports whether a clause begins as a request does.
func isRequest(clause []string) bool {
	words := lexicon()
	for len(clause) > 0 && words.leadIns[clause[0]] {
		clause = clause[1:]
	}
	if len(clause) == 0 {
		return false
	}
	first, second := clause[0], ""
	if len(clause) > 1 {
		second = clause[1]
	}
	switch first {
	case "in", "as", "with":
		return number(second) > 0 || words.summary[second] || words.parts[second]
	case "i", "we":
		return second == "want" || second == "need" || second == "would" || second == "d"
	case "can", "could", "would", "will":
		return second == "you"
	}
	return words.summary[first] || words.requests[first] ||
		number(first) > 0 && len(clause) < 6 // "3 bullets"
}

// clausesOf returns the words of s in lower case, cut at the given marks. The comma
// in 1,000 is not a mark.
func clausesOf(s, marks string) [][]string {
	s = strings.ReplaceAll(strings.ToLower(s), "tl;dr", "tldr")
	var clauses [][]string
	var clause []string
	var word []rune
	endWord := func() {
		if len(word) > 0 {
			clause = append(clause, string(word))
			word = word[:0]
		}
	}
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			word = append(word, r)
			continue
		case r == ',' && 0 < i && i+1 < len(runes) && unicode.IsDigit(runes[i-1]) && unicode.IsDigit(runes[i+1]):
			continue
		}
		endWord()
		if strings.ContainsRune(marks, r) && len(clause) > 0 {
			clauses, clause = append(clauses, clause), nil
		}
	}
	if endWord(); len(clause) > 0 {
		clauses = append(clauses, clause)
	}
	return clauses
}
