package rag_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"loki/internal/knowledge/rag/vector"
)

// BenchmarkMillionVectors searches 1,000,000 vectors of 384 dimensions, in 10,000 clusters, for the ten
// nearest to another vector of a cluster. x_data is the memory of the index, as a multiple of the
// bytes of its vectors.
func BenchmarkMillionVectors(b *testing.B) {
	const n, dims, k = 1_000_000, 384, 10
	c := newClusters(10_000, dims)
	index := func() (*vector.Index, float64) {
		before := heap()
		x := vector.New(dims, n)
		r := rand.New(rand.NewPCG(3, 4))
		for range n {
			copy(x.Room(1), c.vector(r))
		}
		return x, float64(heap()-before) / (n * dims * 4)
	}
	exact, exactBytes := index()
	r := rand.New(rand.NewPCG(5, 6))
	var queries [][]float32
	for range 50 {
		queries = append(queries, slices.Clone(c.vector(r)))
	}
	search := func(b *testing.B, x *vector.Index, i int) []vector.Match {
		found, err := x.Search(b.Context(), queries[i%len(queries)], k)
		if err != nil {
			b.Fatal(err)
		}
		return found
	}
	b.Run("float32", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			search(b, exact, i)
		}
		b.ReportMetric(exactBytes, "x_data")
	})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// clusters makes vectors of length 1 around centers; the cosine of the two is about 0.8.
type clusters struct {
	centers [][]float32
	last    []float32
}

func newClusters(n, dims int) *clusters {
	r := rand.New(rand.NewPCG(1, 2))
	c := &clusters{last: make([]float32, dims)}
	for range n {
		center := make([]float32, dims)
		for i := range center {
			center[i] = float32(r.NormFloat64())
		}
		c.centers = append(c.centers, center)
	}
	return c
}

// vector returns one that is valid until the next call.
func (c *clusters) vector(r *rand.Rand) []float32 {
	for i, x := range c.centers[r.IntN(len(c.centers))] {
		c.last[i] = x + .75*float32(r.NormFloat64())
	}
	length := float32(math.Sqrt(float64(vector.Dot(c.last, c.last))))
	for i := range c.last {
		c.last[i] /= length
	}
	return c.last
}
