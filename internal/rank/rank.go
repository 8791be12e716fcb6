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

// The usual parameters of BM25.
const (
	k1 = 1.2
	b  = 0.75
)

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
	for i, doc := range docs {
		list := Tokens(doc)
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
	best := x.Scored(query, k1, limit)
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

// Scored is like Search, and returns the scores. k1 says how much more a token counts that is
// in a document several times; Search uses 1.2.
//
// The score is Okapi BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework,
// 2009) with the idf ln(1 + (N-n+0.5)/(n+0.5)), which is never negative. A token that
// appears in the query twice counts twice.
func (x *Index) Scored(query string, k1 float64, limit int) []Scored {
	scores := make(map[int]float64)
	n := float64(len(x.lengths))
	for _, t := range Tokens(query) {
		list := x.postings[t]
		with := float64(len(list))
		idf := math.Log(1 + (n-with+0.5)/(with+0.5))
		for _, p := range list {
			length := 1 - b + b*x.lengths[p.doc]/x.average
			scores[p.doc] += idf * p.frequency * (k1 + 1) / (p.frequency + k1*length)
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
