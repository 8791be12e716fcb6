package vector_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loki/internal/knowledge/rag/vector"
)

// unit returns n vectors of length 1 around centers, or everywhere if there are none.
func unit(r *rand.Rand, n, dims, centers int) [][]float32 {
	var around [][]float32
	if centers > 0 {
		around = unit(r, centers, dims, 0)
	}
	all := make([][]float32, n)
	for i := range all {
		v := make([]float32, dims)
		length := 0.0
		for j := range v {
			v[j] = float32(r.NormFloat64() / math.Sqrt(float64(dims)))
			if centers > 0 {
				v[j] = v[j]*0.7 + around[i%centers][j]
			}
			length += float64(v[j]) * float64(v[j])
		}
		for j := range v {
			v[j] /= float32(math.Sqrt(length))
		}
		all[i] = v
	}
	return all
}

func index(t testing.TB, x *vector.Index, rows [][]float32) *vector.Index {
	t.Helper()
	for _, v := range rows {
		copy(x.Room(1), v)
	}
	return x
}

// naive returns the k best rows.
func naive(rows [][]float32, query []float32, k int) []vector.Match {
	var all []vector.Match
	for i, v := range rows {
		if score := vector.Dot(v, query); score > 0 {
			all = append(all, vector.Match{Pos: i, Score: float64(score)})
		}
	}
	slices.SortStableFunc(all, func(a, b vector.Match) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return all[:min(k, len(all))]
}

func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for dims := 1; dims < 70; dims++ {
		a, b := make([]float32, dims), make([]float32, dims)
		want := 0.0
		for i := range a {
			a[i], b[i] = r.Float32()-.5, r.Float32()-.5
			want += float64(a[i]) * float64(b[i])
		}
		if got := vector.Dot(a, b); math.Abs(float64(got)-want) > 1e-5 {
			t.Errorf("%d dimensions: %v, want %v", dims, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	random := unit(r, 20_000, 48, 0)
	small := unit(r, 50, 5, 0)
	equal := make([][]float32, 30_000)
	for i := range equal {
		equal[i] = []float32{.6, .8, 0}
	}
	odd := [][]float32{
		{nan, 1, 1},
		{0, 0, 0},
		{1, 0, 0},
		{inf, 1, 0},
		{-inf, inf, 0},
		{1e-40, 1e-45, 0},
		{-1, 0, 0},
		{1, 0, 0},
		{math.MaxFloat32, math.MaxFloat32, 0},
		{nan, nan, nan},
		{1, 1e-30, 0},
	}
	for _, tt := range []struct {
		name  string
		rows  [][]float32
		query []float32
		k     int
	}{
		{"random", random, random[77], 10},
		{"small", small, small[3], 3},
		{"all", small, small[3], 1000},
		{"equal", equal, equal[0], 25},
		{"opposite", equal, []float32{-1, 0, 0}, 5},
		{"odd", odd, []float32{1, 0, 0}, 20},
		{"odd_query", odd, []float32{nan, 0, 0}, 20},
		{"zero_query", random, make([]float32, 48), 20},
		{"one", [][]float32{{1}}, []float32{1}, 1},
		{"none", nil, []float32{1}, 1},
		{"zero_k", small, small[3], 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := naive(tt.rows, tt.query, tt.k)
			dims := len(tt.query)
			got, err := index(t, vector.New(dims, len(tt.rows)), tt.rows).Search(t.Context(), tt.query, tt.k)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	x := vector.New(3, 1)
	index(t, x, [][]float32{{1, 0, 0}})
	if _, err := x.Search(t.Context(), []float32{1, 0}, 1); err == nil || !strings.Contains(err.Error(), "the query has 2 dimensions") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(ctx, []float32{1, 0, 0}, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func BenchmarkSearch(b *testing.B) {
	const n, dims = 20_000, 384
	rows := unit(rand.New(rand.NewPCG(1, 2)), n, dims, 100)
	x := index(b, vector.New(dims, n), rows)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Search(b.Context(), rows[5], 10); err != nil {
			b.Fatal(err)
		}
	}
}
