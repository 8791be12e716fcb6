// Package rank finds the texts that match some words best.
//
// A document is a text. A token is one of its words in a normal form: in lower case,
// without accents, and reduced to its stem, so that "searching" finds "searches". Stop
// words, such as "the", are not tokens. A name in several parts, such as search_issues or
// searchIssues, is a token as a whole, and so is each of its parts. Chinese, Japanese, Korean,
// Thai and the like become pairs of characters.
package rank

import (
	"cmp"
	"math"
	"slices"
)

// The parameters of BM25 for the chunks of a knowledge base.
const (
	K1 = 1.5
	B  = 0.75
)

// listK1 is k1 in [Index.Search].
const listK1 = 1.2

// IDF returns the weight of a token that with of total documents have. It is above 0.
func IDF(total, with float64) float64 { return math.Log(1 + (total-with+0.5)/(with+0.5)) }

// Score returns what a token adds to the score of a document that has it times times. The relative
// length is that of the document in tokens divided by the average.
//
// The sum of the scores is Okapi BM25 (Robertson and Zaragoza, The Probabilistic Relevance
// Framework, 2009), with an idf that is never negative.
func Score(idf, times, k1, relative float64) float64 {
	return idf * times * (k1 + 1) / (times + k1*(1-B+B*relative))
}

// Index ranks a list of documents. It is immutable.
type Index struct {
	postings map[string][]posting
	lengths  []float64 // in tokens
	average  float64
}

// posting says how often a token is in a document.
type posting struct {
	doc       int
	frequency float64
}

// New indexes docs.
func New(docs []string) *Index {
	x := &Index{postings: make(map[string][]posting), lengths: make([]float64, len(docs))}
	total := 0.0
	var z Tokenizer
	var list []string
	for i, doc := range docs {
		list = z.Append(list[:0], doc)
		x.lengths[i] = float64(len(list))
		total += x.lengths[i]
		for _, t := range list {
			p := x.postings[t]
			if n := len(p); n > 0 && p[n-1].doc == i {
				p[n-1].frequency++
				continue
			}
			x.postings[t] = append(p, posting{i, 1})
		}
	}
	if len(docs) > 0 {
		x.average = total / float64(len(docs))
	}
	return x
}

// Search returns the numbers of the documents that have a token of query, at most limit,
// best first. Among equally good ones the earlier comes first.
func (x *Index) Search(query string, limit int) []int {
	best := x.SearchScored(query, listK1, limit)
	found := make([]int, len(best))
	for i, s := range best {
		found[i] = s.Doc
	}
	return found
}

// Scored is a document that was found.
type Scored struct {
	Doc   int // its number
	Score float64
}

// SearchScored is like Search, and returns the scores. k1 says how much more a token counts that is
// in a document several times; Search uses 1.2. A token that appears in the query twice counts
// twice.
func (x *Index) SearchScored(query string, k1 float64, limit int) []Scored {
	scores := make(map[int]float64)
	n := float64(len(x.lengths))
	for _, t := range Tokens(query) {
		list := x.postings[t]
		idf := IDF(n, float64(len(list)))
		for _, p := range list {
			scores[p.doc] += Score(idf, p.frequency, k1, x.lengths[p.doc]/x.average)
		}
	}
	found := make([]Scored, 0, len(scores))
	for doc, score := range scores {
		found = append(found, Scored{doc, score})
	}
	slices.SortFunc(found, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc))
	})
	return found[:min(len(found), max(limit, 0))]
}
