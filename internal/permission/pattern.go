package permission

import "strings"

// truth is whether something holds that may not be known.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// glob reports whether text matches pattern, in which * stands for any text, perhaps
// none. It backtracks to the last * only, which is enough and takes at most quadratic time.
func glob(pattern, text string) bool {
	p, t, star, resume := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// literals counts the characters of a pattern that are not wildcards.
func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }

// patternWords splits a command pattern at blanks. Quotes keep blanks and stars together.
func patternWords(pattern string) []string {
	var words []string
	var b strings.Builder
	quote, open := byte(0), false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if open {
				words = append(words, b.String())
				b.Reset()
				open = false
			}
		case quote != 0 && c == '*':
			b.WriteByte(literalStar)
			open = true
		default:
			b.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, b.String())
	}
	return words
}

// literalStar stands for a star that is not a wildcard in the words of patterns and
// commands. Texts with such a character are not judged.
const literalStar = '\x01'

// matchWords matches the words of a command against those of a pattern. A word * matches
// any number of words; a star at the very end of the pattern covers all further words too.
// The answer is maybe if words that are not known could make it a match.
func matchWords(pattern []string, words []word, fold bool) truth {
	if len(pattern) == 0 {
		if len(words) == 0 {
			return yes
		}
		return no
	}
	p := pattern[0]
	if p == "*" {
		if len(pattern) == 1 {
			return yes
		}
		best := no
		for i := 0; i <= len(words) && best != yes; i++ {
			best = max(best, matchWords(pattern[1:], words[i:], fold))
		}
		return best
	}
	if len(words) == 0 {
		return no
	}
	w := words[0]
	here := w.matches(p, fold)
	if here == no && !w.many {
		return no
	}
	if here == maybe && w.many {
		return maybe // it may be any number of words
	}
	if len(pattern) == 1 && strings.HasSuffix(p, "*") {
		return here
	}
	return min(here, matchWords(pattern[1:], words[1:], false))
}
