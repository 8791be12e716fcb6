package extract

import (
	"math"
	"slices"
)

const (
	damping   = 0.85 // of PageRank, as in both papers
	tolerance = 1e-7 // largest change of all ranks together at which the iteration ends
	maxRounds = 100

	relevance  = 0.7  // weight of centrality against novelty, the lambda of MMR
	repetition = 0.65 // cosine from which a sentence says nothing new beside one that is chosen already

	minWords, maxWords = 4, 120 // of a sentence that is worth choosing before any other
)

// term is a term of a sentence: its number in the text, and its weight.
type term struct {
	id     int
	weight float64
}

// corpus is the sentences of a text as vectors of length 1. A sentence without terms has an empty one.
type corpus struct {
	sentences [][]term
	terms     int // in all sentences
}

// newCorpus weighs the terms of each sentence by tf-idf: how often a term occurs in
// the sentence times log(1 + n/df), where df of the n sentences have the term.
func newCorpus(sentences []string) corpus {
	c := corpus{sentences: make([][]term, len(sentences))}
	ids := make(map[string]int)
	var df []float64
	for i, s := range sentences {
		places := make(map[int]int) // in c.sentences[i]
		for _, text := range termsOf(s) {
			id, known := ids[text]
			if !known {
				id = len(df)
				ids[text], df = id, append(df, 0)
			}
			place, again := places[id]
			if !again {
				place = len(places)
				places[id] = place
				c.sentences[i] = append(c.sentences[i], term{id: id})
				df[id]++
			}
			c.sentences[i][place].weight++
		}
	}
	for _, s := range c.sentences {
		sum := 0.0
		for k, t := range s {
			s[k].weight *= math.Log(1 + float64(len(sentences))/df[t.id])
			sum += s[k].weight * s[k].weight
		}
		for k := range s {
			s[k].weight /= math.Sqrt(sum)
		}
	}
	c.terms = len(df)
	return c
}

// sum returns the weights of all terms in the sentences together, each sentence multiplied by its factor.
func (c corpus) sum(factors []float64) []float64 {
	full := make([]float64, c.terms)
	for i, s := range c.sentences {
		for _, t := range s {
			full[t.id] += factors[i] * t.weight
		}
	}
	return full
}

// dot returns the product of sentence i with the weights of all terms.
func (c corpus) dot(i int, full []float64) float64 {
	sum := 0.0
	for _, t := range c.sentences[i] {
		sum += t.weight * full[t.id]
	}
	return sum
}

// centrality returns the PageRank of each sentence in the graph whose edges are
// weighted by cosine (continuous LexRank: no threshold), found by power iteration
// and scaled so that the most central sentence has 1.
//
// The matrix of similarities is never built. With the unit vectors as the rows of V
// it is V times V transposed, less the diagonal, so a round of the iteration is two
// passes over the terms instead of one over all pairs of sentences.
func (c corpus) centrality() []float64 {
	n := float64(len(c.sentences))
	all := c.sum(slices.Repeat([]float64{1}, len(c.sentences)))
	rank := slices.Repeat([]float64{1 / n}, len(c.sentences))
	degree := make([]float64, len(rank)) // the similarities to all others together
	out := make([]float64, len(rank))
	for i := range degree {
		degree[i] = c.dot(i, all) - 1
	}
	for range maxRounds {
		alone := 0.0 // rank of the sentences without neighbors, which is spread over all
		for i, d := range degree {
			out[i] = rank[i] / d
			if d < 1e-9 { // less is rounding
				out[i] = 0
				alone += rank[i]
			}
		}
		full, change := c.sum(out), 0.0
		for i := range rank {
			in := alone / n
			if out[i] > 0 {
				in += max(0, c.dot(i, full)-out[i])
			}
			next := (1-damping)/n + damping*in
			change += math.Abs(next - rank[i])
			rank[i] = next
		}
		if change < tolerance {
			break
		}
	}
	most := slices.Max(rank)
	for i := range rank {
		rank[i] = round(rank[i] / most)
	}
	return rank
}

// round makes equal sentences equal whatever order their sums were made in, so that ties are broken by position.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// choose returns at most the given number of sentences, in the order of the text,
// with at most the given number of words, or any number if words is 0.
//
// The next sentence is the one with the best maximal marginal relevance, relevance *
// centrality - (1 - relevance) * similarity to the nearest chosen sentence; of equal
// ones the earliest. Fragments and run-on sentences are last.
func choose(sentences []string, most, words int) []string {
	c := newCorpus(sentences)
	rank, nearest := c.centrality(), make([]float64, len(sentences))
	open, length := make([]int, len(sentences)), make([]int, len(sentences))
	full := make([]float64, c.terms) // the weights of the sentence chosen last
	shortest := 0
	for i, text := range sentences {
		open[i], length[i] = i, countWords(text)
		if length[i] < minWords || length[i] > maxWords {
			rank[i] -= 10 // behind every other
		}
		if length[i] < length[shortest] {
			shortest = i
		}
	}
	var chosen []int
	for left := words; len(chosen) < most; {
		best, score := -1, 0.0
		open = slices.DeleteFunc(open, func(i int) bool { return nearest[i] >= repetition || words > 0 && length[i] > left })
		for k, i := range open {
			if s := round(relevance*rank[i] - (1-relevance)*nearest[i]); best < 0 || s > score {
				best, score = k, s
			}
		}
		if best < 0 {
			break
		}
		i := open[best]
		open, chosen, left = slices.Delete(open, best, best+1), append(chosen, i), left-length[i]
		clear(full)
		for _, t := range c.sentences[i] {
			full[t.id] = t.weight
		}
		for _, j := range open {
			nearest[j] = max(nearest[j], c.dot(j, full))
		}
	}
	if len(chosen) == 0 {
		chosen = []int{shortest}
	}
	slices.Sort(chosen)
	out := make([]string, len(chosen))
	for k, i := range chosen {
		out[k] = sentences[i]
	}
	return out
}
