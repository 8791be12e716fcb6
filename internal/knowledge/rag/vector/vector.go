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
	Pos   int // number of the vector in the order of Add, from 0
	Score float32
}

// Compare orders matches by descending score, equal ones by position.
func Compare(a, b Match) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Pos, b.Pos))
}

// Dot returns the dot product of two vectors of the same length, which is not 0.
func Dot(a, b []float32) float32 { return vek32.Dot(a, b) }

// New returns an index with room for n vectors of dims dimensions, 4 bytes for each number. More
// vectors make it grow.
func New(dims, n int) *Index {
	return &Index{dims: dims, rows: make([]float32, 0, dims*n)}
}

// Len returns the number of vectors.
func (x *Index) Len() int { return x.n }

// Add adds a copy of v. It fails if v has another number of dimensions than the index.
func (x *Index) Add(v []float32) error {
	if len(v) != x.dims {
		return fmt.Errorf("vector %d has %d dimensions instead of %d", x.n, len(v), x.dims)
	}
	x.rows = append(x.rows, v...)
	x.n++
	return nil
}

// Search returns the k vectors with the highest dot products with query, in the order of [Compare].
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
	k = min(k, x.n)
	block := max(1<<18/(x.dims+1), 1) // vectors; some 50 µs of work
	var best []Match
	cut := func() { // up to twice as many are collected before they are sorted
		slices.SortFunc(best, Compare)
		best = best[:min(k, len(best))]
	}
	for i, least := 0, float32(0); i < x.n; i++ {
		if i%block == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if score := vek32.Dot(x.rows[i*x.dims:(i+1)*x.dims], query); score > least {
			if best = append(best, Match{i, score}); len(best) == 2*k {
				cut()
				least = best[k-1].Score
			}
		}
	}
	cut()
	return best, nil
}
