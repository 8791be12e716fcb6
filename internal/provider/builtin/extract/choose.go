package extract

import "slices"

const (
	// relevance is the weight of centrality against novelty, the lambda of MMR.
	relevance = 0.7

	// repetition is the cosine from which a sentence says nothing new beside one
	// that is chosen already.
	repetition = 0.65

	minWords, maxWords = 4, 120 // of a sentence that is worth choosing before any other
)

// choose returns at most the given number of sentences, in the order of the text,
// with at most the given number of words, or any number if words is 0.
//
// The next sentence is the one with the best maximal marginal relevance, relevance *
// centrality - (1 - relevance) * similarity to the nearest chosen sentence; of equal
// ones the earliest. Fragments and run-on sentences are last.
//
// Source: Carbonell and Goldstein, SIGIR 1998.
func choose(sentences []string, c *corpus, most, words int) []string {
	s := selection{corpus: c, rank: c.centrality(), nearest: make([]float64, len(sentences))}
	s.open = make([]int, len(sentences))
	length := make([]int, len(sentences))
	for i, text := range sentences {
		s.open[i] = i
		length[i] = countWords(text)
		if length[i] < minWords || length[i] > maxWords {
			s.rank[i] -= 10 // behind every other
		}
	}
	left := words
	for len(s.chosen) < most {
		if words > 0 {
			s.open = slices.DeleteFunc(s.open, func(i int) bool { return length[i] > left })
		}
		i, ok := s.next()
		if !ok {
			break
		}
		left -= length[i]
	}
	if len(s.chosen) == 0 {
		shortest := 0
		for i, n := range length {
			if n < length[shortest] {
				shortest = i
			}
		}
		return []string{sentences[shortest]}
	}
	slices.Sort(s.chosen)
	out := make([]string, len(s.chosen))
	for k, i := range s.chosen {
		out[k] = sentences[i]
	}
	return out
}

// selection is the state of [choose].
type selection struct {
	corpus  *corpus
	rank    []float64
	nearest []float64 // highest similarity to a chosen sentence
	open    []int     // sentences that may still be chosen, ascending
	chosen  []int

	similarity []float64 // all 0 between the calls of compare
	touched    []int32
}

// next chooses a sentence, or reports that none is left.
func (s *selection) next() (int, bool) {
	s.open = slices.DeleteFunc(s.open, func(i int) bool { return s.nearest[i] >= repetition })
	if len(s.open) == 0 {
		return 0, false
	}
	best, bestScore := 0, 0.0
	for k, i := range s.open {
		score := round(relevance*s.rank[i] - (1-relevance)*s.nearest[i])
		if k == 0 || score > bestScore {
			best, bestScore = k, score
		}
	}
	i := s.open[best]
	s.open = slices.Delete(s.open, best, best+1)
	s.chosen = append(s.chosen, i)
	s.compare(i)
	return i, true
}

// compare brings nearest up to date with the newly chosen sentence i. Only
// sentences that share a term with it are visited.
func (s *selection) compare(i int) {
	if s.similarity == nil {
		s.similarity = make([]float64, len(s.rank))
	}
	s.touched = s.touched[:0]
	v := s.corpus.vectors[i]
	for k, t := range v.terms {
		for _, p := range s.corpus.postings[t] {
			if s.similarity[p.sentence] == 0 {
				s.touched = append(s.touched, p.sentence)
			}
			s.similarity[p.sentence] += v.weights[k] * p.weight
		}
	}
	for _, j := range s.touched {
		s.nearest[j] = max(s.nearest[j], s.similarity[j])
		s.similarity[j] = 0
	}
}
