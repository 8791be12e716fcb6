package extract

import "math"

const (
	damping   = 0.85 // of PageRank, as in both papers
	tolerance = 1e-7 // largest change of all ranks together at which the iteration ends
	maxRounds = 100
)

// centrality returns the PageRank of each sentence in the graph whose edges are
// weighted by cosine (continuous LexRank: no threshold), found by power iteration
// and scaled so that the most central sentence has 1.
//
// The matrix of similarities is never built. With the unit vectors as the rows of V
// it is V times V transposed, less the diagonal, so a round of the iteration is two
// passes over the terms instead of one over all pairs of sentences.
func (c *corpus) centrality() []float64 {
	n := float64(len(c.vectors))
	degree := c.degrees()
	rank := make([]float64, len(c.vectors))
	next := make([]float64, len(c.vectors))
	for i := range rank {
		rank[i] = 1 / n
	}
	full := make([]float64, len(c.postings))
	for range maxRounds {
		clear(full)
		alone := 0.0 // rank of the sentences without neighbors, which is spread over all
		for i, v := range c.vectors {
			if degree[i] == 0 {
				alone += rank[i]
			} else {
				v.addTo(full, rank[i]/degree[i])
			}
		}
		change := 0.0
		for i, v := range c.vectors {
			in := alone / n
			if degree[i] > 0 {
				in += max(0, v.dot(full)-rank[i]/degree[i])
			}
			next[i] = (1-damping)/n + damping*in
			change += math.Abs(next[i] - rank[i])
		}
		rank, next = next, rank
		if change < tolerance {
			break
		}
	}
	return scale(rank)
}

// degrees returns the sum of each sentence's similarities to the others, 0 for one
// that shares no term with any.
func (c *corpus) degrees() []float64 {
	full := make([]float64, len(c.postings))
	for _, v := range c.vectors {
		v.addTo(full, 1)
	}
	degree := make([]float64, len(c.vectors))
	for i, v := range c.vectors {
		if d := v.dot(full) - 1; d > 1e-9 { // less is rounding
			degree[i] = d
		}
	}
	return degree
}

// scale divides by the largest rank. It rounds, so that equal sentences have equal
// ranks whatever order their sums were made in, and ties are broken by position.
func scale(rank []float64) []float64 {
	most := 0.0
	for _, r := range rank {
		most = max(most, r)
	}
	for i := range rank {
		rank[i] = round(rank[i] / most)
	}
	return rank
}

func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
