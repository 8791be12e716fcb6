package rag_test

import (
	"context"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// standIn has another model answer in place of all.
type standIn struct{ models }

func (s standIn) Embedder(ctx context.Context, id string) (rag.Embedder, error) {
	const own = "test:own"
	m, err := s.models.Embedder(ctx, own)
	m.StandsIn = id != own
	return m, err
}

// Vectors of a model and of the one that stands in for it are never compared, nor kept together.
func TestStandIn(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"a.md": "alpha beta", "b.md": "gamma delta"})
	b.build()
	asked := len(b.model.requests)
	b.Models = standIn{models{model: b.model}}
	base, err := rag.Open(t.Context(), "docs", b.store, b.Models)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	found, err := base.Search(event.NewContext(t.Context(), b.Events), rag.Query{Text: "gamma"})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Text != "gamma delta" || len(b.model.requests) != asked {
		t.Errorf("%+v, %v, %d requests", found.Hits, err, len(b.model.requests)-asked)
	}
	const warning = "the knowledge base docs has vectors of test:words, in whose place test:own stands, so it is searched by words only"
	if list := eventtest.Bodies[event.Warning](b.events); len(list) != 1 || list[0].Text != warning {
		t.Errorf("warnings: %+v", list)
	}
	_, err = b.Build(t.Context(), "docs", b.store, b.set)
	if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "it has vectors of test:words, and test:own, which replaces other models now, would replace them") {
		t.Error(err)
	}

	fresh := newBench(t, map[string]string{"a.md": "alpha beta"})
	fresh.Models = standIn{models{model: fresh.model}}
	if stats := fresh.build(); stats.Settings.EmbeddingModel != "test:own" {
		t.Errorf("settings %+v", stats.Settings)
	}
	fresh.build() // as does the next one
}
