// Package vector finds the vectors that are nearest to a query, by comparing it with each of them.
//
// The nearness of two vectors is their dot product, which for vectors of length 1 is their cosine.
// An [Index] holds its vectors in memory, so that results are exact.
package vector

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/viterin/vek/vek32"
)

// Index holds vectors of the same number of dimensions. Once all of them are added, it may be
// searched from several goroutines.
type Index struct {
	dims int
	n    int
	rows []float32 // of all vectors, one behind the other
}

// Match is a vector that a search found.
type Match struct {
	Pos   int // number of the vector, from 0
	Score float64
}

// Best collects the matches with the highest scores above 0. Call [Best.Add] in the order of their positions.
type Best struct {
	k     int
	least float64 // a later match has to have more
	list  []Match // up to twice as many as k before they are sorted
}

// NewBest returns a collection of up to k matches, at least 1.
func NewBest(k int) *Best { return &Best{k: k} }

// Add adds a match if it is one of the best so far.
func (b *Best) Add(pos int, score float64) {
	if !(score > b.least) { // NaN neither
		return
	}
	if b.list = append(b.list, Match{pos, score}); len(b.list) == 2*b.k {
		b.least = b.List()[b.k-1].Score
	}
}

// List returns the matches, best first, equal ones by position.
func (b *Best) List() []Match {
	slices.SortFunc(b.list, func(x, y Match) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.Pos, y.Pos))
	})
	b.list = b.list[:min(b.k, len(b.list))]
	return b.list
}

// Dot returns the dot product of two vectors of the same length, which is not 0.
func Dot(a, b []float32) float32 { return vek32.Dot(a, b) }

// New returns an index with room for n vectors of dims dimensions, 4 bytes for each number.
func New(dims, n int) *Index {
	return &Index{dims: dims, rows: make([]float32, 0, dims*n)}
}

// Room adds n vectors, one behind the other, which the caller fills before the index is searched. [New] must have made
// room for them.
func (x *Index) Room(n int) []float32 {
	from := len(x.rows)
	x.rows, x.n = x.rows[:from+n*x.dims], x.n+n
	return x.rows[from:]
}

// Search returns the k vectors with the highest dot products with query, in the order of [Best.List].
// Products that are 0, negative or not a number do not count.
//
// A canceled context ends the search within a millisecond or so. The other error is that of a query with another number of
// dimensions than the index.
func (x *Index) Search(ctx context.Context, query []float32, k int) ([]Match, error) {
	if x.n == 0 || x.dims == 0 || k <= 0 {
		return nil, ctx.Err()
	}
	if len(query) != x.dims {
		return nil, fmt.Errorf("the query has %d dimensions, the vectors have %d", len(query), x.dims)
	}
	best := NewBest(min(k, x.n))
	block := max(1<<18/(x.dims+1), 1) // vectors; some 50 µs of work
	for i := range x.n {
		if i%block == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		best.Add(i, float64(vek32.Dot(x.rows[i*x.dims:(i+1)*x.dims], query)))
	}
	return best.List(), nil
}
