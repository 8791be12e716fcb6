package permission

import (
	"regexp"
	"strings"
)

// truth is whether something holds that may not be known.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// literals counts the characters of a pattern that are not wildcards.
func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }

// Words of patterns, and what is in quotes in them.
var (
	patternWord = regexp.MustCompile(`(?:'[^']*'?|"[^"]*"?|[^ \t'"])+`)
	quoted      = regexp.MustCompile(`'[^']*'?|"[^"]*"?`)
)

// patternWords splits a command pattern at blanks. Quotes keep blanks and stars together.
func patternWords(pattern string) []string {
	words := patternWord.FindAllString(pattern, -1)
	for i, w := range words {
		words[i] = quoted.ReplaceAllStringFunc(w, func(q string) string {
			return strings.ReplaceAll(strings.Trim(q, q[:1]), "*", string(rune(literalStar)))
		})
	}
	return words
}

// literalStar stands for a star that is not a wildcard in the words of patterns and
// commands. Texts with such a character are not judged.
const literalStar = '\x01'

// matchWords matches the words of a command against those of a pattern. A word * matches
// any number of words; a star at the very end of the pattern covers all further words too.
// The answer is maybe if words that are not known could make it a match.
func matchWords(pattern []string, words []word, fold bool) (best truth) {
	switch {
	case len(pattern) == 0 && len(words) == 0, len(pattern) == 1 && pattern[0] == "*":
		return yes
	case len(pattern) > 0 && pattern[0] == "*":
		for i := 0; i <= len(words) && best != yes; i++ {
			best = max(best, matchWords(pattern[1:], words[i:], fold))
		}
		return best
	case len(pattern) == 0 || len(words) == 0:
		return no
	}
	here := words[0].matches(pattern[0], fold)
	if here == no || here == maybe && words[0].many || len(pattern) == 1 && strings.HasSuffix(pattern[0], "*") {
		return here // many may be any number of words
	}
	return min(here, matchWords(pattern[1:], words[1:], false))
}
