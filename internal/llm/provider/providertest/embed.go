package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"loki/internal/llm/provider"
)

// RunEmbedder checks, as subtests of t, what [provider.Embedder] promises. The model of e turns any
// text into a vector, equal texts into equal ones and others into others, like a model would.
func RunEmbedder(t *testing.T, e provider.Embedder, model string) {
	t.Helper()
	embed := func(t *testing.T, query bool, texts ...string) [][]float32 {
		t.Helper()
		vectors, usage, err := e.Embed(t.Context(), provider.EmbedRequest{Model: model, Texts: texts, Query: query})
		if err != nil {
			t.Fatal(err)
		}
		if len(vectors) != len(texts) {
			t.Fatalf("%d vectors for %d texts", len(vectors), len(texts))
		}
		if len(texts) > 0 && usage.InputTokens == 0 {
			t.Errorf("usage = %+v", usage)
		}
		return vectors
	}
	const one, two = "The first of the texts.", "Something else"
	t.Run("order", func(t *testing.T) {
		v, w := embed(t, false, one, two, one), embed(t, false, two)
		if !slices.Equal(v[0], v[2]) || !slices.Equal(v[1], w[0]) || slices.Equal(v[0], v[1]) {
			t.Error("vectors are not those of the texts, in order")
		}
		if len(v[0]) == 0 || len(v[0]) != len(v[1]) {
			t.Errorf("vectors have %d and %d numbers", len(v[0]), len(v[1]))
		}
		if q := embed(t, true, one)[0]; len(q) != len(v[0]) {
			t.Errorf("the vector of a query has %d numbers, that of a document %d", len(q), len(v[0]))
		}
	})
	t.Run("no_texts", func(t *testing.T) { embed(t, false) })
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := e.Embed(ctx, provider.EmbedRequest{Model: model, Texts: []string{one}}); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want one that is context.Canceled", err)
		}
	})
	t.Run("at_once", func(t *testing.T) {
		want := embed(t, false, one, two)
		var g sync.WaitGroup
		for range 8 {
			g.Go(func() {
				got, _, err := e.Embed(t.Context(), provider.EmbedRequest{Model: model, Texts: []string{one, two}})
				if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("another answer than before, err = %v", err)
				}
			})
		}
		g.Wait()
	})
}
