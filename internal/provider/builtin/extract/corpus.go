package extract

import (
	"math"
	"slices"
)

// corpus is the sentences of a text as vectors, and the terms they share.
type corpus struct {
	vectors  []vector    // of sentence i; empty if it has no terms
	postings [][]posting // of term t: the sentences it occurs in, ascending
}

// vector is a sparse vector of length 1: its terms, ascending, and their weights.
type vector struct {
	terms   []int32
	weights []float64
}

// posting is one sentence that a term occurs in, with its weight there.
type posting struct {
	sentence int32
	weight   float64
}

// newCorpus weighs the terms of each sentence by tf-idf: how often a term occurs in
// the sentence times log(1 + n/df), where df of the n sentences have the term.
func newCorpus(sentences []string) *corpus {
	c := &corpus{vectors: make([]vector, len(sentences))}
	ids := make(map[string]int32)
	var sizes []int // of each term's postings
	var terms []int32
	for i, s := range sentences {
		terms = terms[:0]
		for term := range termsOf(s) {
			id, ok := ids[term]
			if !ok {
				id = int32(len(ids))
				ids[term] = id
				sizes = append(sizes, 0)
			}
			terms = append(terms, id)
		}
		c.vectors[i] = countTerms(terms)
		for _, t := range c.vectors[i].terms {
			sizes[t]++
		}
	}
	idf := make([]float64, len(sizes))
	c.postings = make([][]posting, len(sizes))
	for t, df := range sizes {
		idf[t] = math.Log(1 + float64(len(sentences))/float64(df))
		c.postings[t] = make([]posting, 0, df)
	}
	for i, v := range c.vectors {
		v.weigh(idf)
		for k, t := range v.terms {
			c.postings[t] = append(c.postings[t], posting{int32(i), v.weights[k]})
		}
	}
	return c
}

// countTerms returns the vector of term frequencies. It sorts terms.
func countTerms(terms []int32) vector {
	slices.Sort(terms)
	var v vector
	for i, t := range terms {
		if i == 0 || t != terms[i-1] {
			v.terms = append(v.terms, t)
			v.weights = append(v.weights, 0)
		}
		v.weights[len(v.weights)-1]++
	}
	return v
}

// weigh multiplies each weight by the idf of its term and scales the vector to
// length 1.
func (v vector) weigh(idf []float64) {
	sum := 0.0
	for k, t := range v.terms {
		v.weights[k] *= idf[t]
		sum += v.weights[k] * v.weights[k]
	}
	length := math.Sqrt(sum)
	for k := range v.weights {
		v.weights[k] /= length
	}
}

// dot returns the product of v with a full vector.
func (v vector) dot(full []float64) float64 {
	sum := 0.0
	for k, t := range v.terms {
		sum += v.weights[k] * full[t]
	}
	return sum
}

// addTo adds v, scaled, to a full vector.
func (v vector) addTo(full []float64, scale float64) {
	for k, t := range v.terms {
		full[t] += scale * v.weights[k]
	}
}
