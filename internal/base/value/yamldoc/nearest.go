package yamldoc

import "strings"

// Nearest returns the element of known that name is most likely a misspelling of:
// one within two edits, or else one that begins with name or that name begins with.
// It returns "" if there is none. Case does not count; of equally near ones the
// first wins.
//
// Edits are insertions, deletions, substitutions and transpositions of neighbours
// (Damerau, CACM 1964, in the restricted form known as optimal string alignment).
func Nearest(name string, known []string) string {
	const maxEdits, minPrefix = 2, 3
	best, bestEdits := "", maxEdits+1
	lower := strings.ToLower(name)
	for _, k := range known {
		candidate := strings.ToLower(k)
		// Two edits turn any two-letter word into any other.
		if n := edits(lower, candidate, maxEdits); n < bestEdits && n < max(len(lower), len(candidate))-1 {
			best, bestEdits = k, n
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		candidate := strings.ToLower(k)
		if min(len(lower), len(candidate)) >= minPrefix && (strings.HasPrefix(candidate, lower) || strings.HasPrefix(lower, candidate)) {
			return k
		}
	}
	return ""
}

// Misspells reports whether name is one edit away from a word; see [Nearest]. Case does not count.
func Misspells(name, word string) bool {
	return edits(strings.ToLower(name), strings.ToLower(word), 1) <= 1
}

// edits returns the optimal string alignment distance of a and b, or limit+1 if it
// is larger than limit.
func edits(a, b string, limit int) int {
	s, t := []rune(a), []rune(b)
	if d := len(s) - len(t); d > limit || -d > limit {
		return limit + 1
	}
	width := len(t) + 1
	before, last, row := make([]int, width), make([]int, width), make([]int, width)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(t)], limit+1)
}
