package extract

import (
	"slices"
	"strings"
)

// SplitPassages parts a message with passages of a knowledge base into the question and the passages:
// one with <context> and, at its end, <user_query>, the tags of each on lines of their own, as the
// built-in template has them. A passage follows a line with its source in brackets. There are no
// passages in other messages.
func SplitPassages(message string) (question string, passages []string) {
	rest, ok := strings.CutSuffix(strings.TrimSpace(message), "\n</user_query>")
	_, rest, opens := strings.Cut(rest, "<context>\n")
	if !ok || !opens {
		return "", nil
	}
	// The question is behind the rules, whatever it or a passage holds.
	context, rest, ok := strings.Cut(rest, "\n</context>\n\n<sources>\n")
	if !ok {
		return "", nil
	}
	_, question, ok = strings.Cut(rest, "\n</rules>\n\n<user_query>\n")
	if !ok {
		return "", nil
	}
	passage := -1
	for line := range strings.Lines(context) {
		switch {
		case isSource(strings.TrimSpace(line)):
			passages = append(passages, "")
			passage++
		case passage >= 0:
			passages[passage] += line
		}
	}
	return question, passages
}

// isSource reports whether a line heads a passage, as "[2] [Source: a.md:1-2]" does. The number may be
// missing.
func isSource(line string) bool {
	if number, rest, ok := strings.Cut(line, "] "); ok && strings.Trim(number, "[0123456789") == "" {
		line = rest
	}
	return strings.HasPrefix(line, "[Source: ") && strings.HasSuffix(line, "]")
}

// Answer is [Summarize] for passages in which an answer to a question may be: of the sentences that
// have words of it, if there are any.
func Answer(question string, passages []string, limits Limits) []string {
	words := make(map[string]bool)
	for _, term := range termsOf(question) {
		words[term] = true
	}
	var all, some []string
	for _, p := range passages {
		for _, s := range sentencesOf(p) {
			all = append(all, s)
			if slices.ContainsFunc(termsOf(s), func(term string) bool { return words[term] }) {
				some = append(some, s)
			}
		}
	}
	if len(some) > 0 {
		all = some
	}
	return summarize(all, limits)
}
