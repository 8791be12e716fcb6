package command

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// rankCandidates returns the candidates whose values have the characters of a pattern in its order, the best
// first; equally good ones stay in order. The case of letters counts only if the pattern has a capital.
// An empty pattern keeps all.
func rankCandidates(pattern string, candidates []Candidate) []Candidate {
	if pattern == "" {
		return candidates
	}
	m := matcher{pattern: []rune(pattern), exact: strings.ContainsFunc(pattern, unicode.IsUpper)}
	type match struct {
		Candidate
		score int
	}
	var found []match
	for _, c := range candidates {
		if score, ok := m.score(c.Value); ok {
			found = append(found, match{c, score})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int {
		return cmp.Or(b.score-a.score, len(a.Value)-len(b.Value))
	})
	list := make([]Candidate, len(found))
	for i, f := range found {
		list[i] = f.Candidate
	}
	return list
}

// What a match of a pattern is worth. Each character of the pattern that follows the one before, or
// begins a word, is worth more; each character of the text between them costs.
const (
	startBonus = 20 // at the start of the text
	wordBonus  = 12 // at the start of a word in it
	nextBonus  = 10 // right behind the character before
	gapCost    = 6
	moreCost   = 1 // each further character of a gap
	impossible = -1 << 30
)

// matcher compares texts with a pattern. Its rows are kept for the next text.
type matcher struct {
	pattern     []rune
	exact       bool // the case of letters counts
	text        []rune
	row, before []int // row[j]: the best score with the last character of the pattern so far at text[j]
}

// score returns how well the best way to find the pattern in a text is; ok is false if there is none.
func (m *matcher) score(text string) (best int, ok bool) {
	m.text = append(m.text[:0], []rune(text)...)
	if !m.contained() {
		return 0, false
	}
	for len(m.row) < len(m.text) {
		m.row, m.before = append(m.row, 0), append(m.before, 0)
	}
	for i, p := range m.pattern {
		m.row, m.before = m.before, m.row
		far := impossible // the best of the row before that ends before the neighbor, less the gap since
		for j := range m.text {
			if i > 0 && j > 1 {
				far = max(far-moreCost, m.before[j-2]-gapCost)
			}
			m.row[j] = impossible
			if !m.equal(p, m.text[j]) {
				continue
			}
			switch {
			case i == 0:
				m.row[j] = m.bonus(j) - min(j, 10)/3
			case j > 0:
				m.row[j] = max(m.before[j-1]+max(nextBonus, m.bonus(j)), far+m.bonus(j))
			}
		}
	}
	return slices.Max(m.row[:len(m.text)]), true
}

// contained reports whether the text has the characters of the pattern in its order.
func (m *matcher) contained() bool {
	rest := m.pattern
	for _, r := range m.text {
		if len(rest) > 0 && m.equal(rest[0], r) {
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

func (m *matcher) equal(p, r rune) bool { return p == r || !m.exact && p == unicode.ToLower(r) }

// bonus is what a match at text[j] is worth for its place.
func (m *matcher) bonus(j int) int {
	switch {
	case j == 0:
		return startBonus
	case !isWord(m.text[j-1]) && isWord(m.text[j]), unicode.IsLower(m.text[j-1]) && unicode.IsUpper(m.text[j]):
		return wordBonus
	}
	return 0
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
