// Package vector finds the vectors that are nearest to a query, by comparing it with each of them.
//
// The nearness of two vectors is their dot product, which for vectors of length 1 is their cosine.
// An [Index] holds its vectors in memory, so that results are exact.
package vector

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

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
// The search uses all processors. A canceled context ends it within a millisecond or so. The other
// error is that of a query with another number of dimensions than the index.
func (x *Index) Search(ctx context.Context, query []float32, k int) ([]Match, error) {
	if x.n == 0 || x.dims == 0 || k <= 0 {
		return nil, ctx.Err()
	}
	if len(query) != x.dims {
		return nil, fmt.Errorf("the query has %d dimensions, the vectors have %d", len(query), x.dims)
	}
	k = min(k, x.n)

	block := max(1<<18/(x.dims+1), 1) // vectors; some 50 µs of work
	var next atomic.Int64
	work := func(best *top) {
		for ctx.Err() == nil {
			from := int(next.Add(1)-1) * block
			if from >= x.n {
				return
			}
			x.scan(query, best, from, min(from+block, x.n))
		}
	}
	tops := make([]top, max(min(runtime.GOMAXPROCS(0), (x.n+block-1)/block), 1))
	var others sync.WaitGroup
	for i := range tops {
		tops[i] = top{k: k}
		if i > 0 {
			others.Go(func() { work(&tops[i]) })
		}
	}
	work(&tops[0])
	others.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var found []Match
	for _, t := range tops {
		found = append(found, t.matches...)
	}
	slices.SortFunc(found, Compare)
	return found[:min(k, len(found))], nil
}

// scan puts the vectors from one position up to another into best.
func (x *Index) scan(query []float32, best *top, from, to int) {
	for i := from; i < to; i++ {
		if score := vek32.Dot(x.rows[i*x.dims:(i+1)*x.dims], query); score > best.least {
			best.add(Match{i, score})
		}
	}
}

// top keeps the k best matches, which are added by ascending position. It collects up to twice as
// many before it sorts them, so that an addition takes O(log k) on average.
type top struct {
	k       int
	least   float32 // a match with this score or a lower one does not count
	matches []Match
}

func (t *top) add(m Match) {
	if t.matches = append(t.matches, m); len(t.matches) < 2*t.k {
		return
	}
	slices.SortFunc(t.matches, Compare)
	t.matches = t.matches[:t.k]
	t.least = t.matches[t.k-1].Score
}
