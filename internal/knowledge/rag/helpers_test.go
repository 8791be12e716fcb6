package rag_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
	"loki/internal/knowledge/rag/source"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// model is an embedding model and a reranker. A vector has a number for each of some words: how
// often the text has it.
type model struct {
	dimensions int  // 0 means 64
	zeros      bool // in all vectors

	// answer is called before the model answers; an error is its answer. It may be nil.
	answer func(ctx context.Context, req provider.EmbedRequest) error
	order  []provider.Ranked // of the reranker

	mu       sync.Mutex
	requests []provider.EmbedRequest
	reranks  []provider.RerankRequest
}

func (m *model) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	if m.answer != nil {
		if err := m.answer(ctx, req); err != nil {
			return nil, chat.Usage{}, err
		}
	}
	dimensions := 64
	if m.dimensions > 0 {
		dimensions = m.dimensions
	}
	vectors := make([][]float32, len(req.Texts))
	for i, text := range req.Texts {
		vectors[i] = make([]float32, dimensions)
		if m.zeros {
			continue
		}
		for word := range strings.FieldsSeq(text) {
			h := fnv.New32a()
			h.Write([]byte(word))
			vectors[i][h.Sum32()%uint32(dimensions)]++
		}
	}
	return vectors, chat.Usage{InputTokens: 10 * len(req.Texts)}, nil
}

func (m *model) Rerank(_ context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	m.reranks = append(m.reranks, req)
	return m.order, chat.Usage{InputTokens: 1000}, nil
}

// texts returns what was embedded, without the questions, ascending.
func (m *model) texts() []string {
	var list []string
	for _, r := range m.requests {
		if !r.Query {
			list = append(list, r.Texts...)
		}
	}
	slices.Sort(list)
	return list
}

// models has one model under each name.
type models struct {
	*model
	limits rag.Embedder
}

func (m models) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	e := m.limits
	e.ID, e.Name, e.Embedder = id, strings.TrimPrefix(id, "test:"), m.model
	if e.Cost == nil {
		e.Cost = func(u chat.Usage) chat.Usage { u.Cost = float64(u.InputTokens) / 1000; return u }
	}
	return e, nil
}

func (m models) Reranker(_ context.Context, id string) (rag.Reranker, error) {
	return rag.Reranker{ID: id, Name: strings.TrimPrefix(id, "test:"), Reranker: m.model}, nil
}

// bench is what a test builds with.
type bench struct {
	*testing.T
	dir    string
	model  *model
	store  *memstore.Store
	loader *source.Loader
	events *eventtest.Collector
	rag.Builder
	set rag.Settings
}

// newBench returns one with files in a directory of its own, which is the source of the documents.
func newBench(t *testing.T, files map[string]string) *bench {
	b := &bench{T: t, dir: t.TempDir(), model: new(model), store: new(memstore.Store), events: new(eventtest.Collector)}
	for name, text := range files {
		b.write(name, text)
	}
	b.set = rag.Settings{EmbeddingModel: "test:words", ChunkSize: 40, ChunkOverlap: 0, TopK: 3, Documents: []string{b.dir}}
	b.loader = &source.Loader{Input: &input.Loader{Dir: b.dir}}
	b.Builder = rag.Builder{
		Models: models{model: b.model}, Source: b.loader,
		Retry:  retry.Policy{Attempts: 2, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute},
		Events: event.NewScope(b.events, event.Source{}, nil),
	}
	return b
}

func (b *bench) write(name, text string) {
	b.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// build builds and wants that to work.
func (b *bench) build() rag.Stats {
	b.Helper()
	stats, err := b.Build(b.Context(), "base", b.store, b.set)
	if err != nil {
		b.Fatal(err)
	}
	return stats
}

// open opens what was built.
func (b *bench) open() *rag.Base {
	b.Helper()
	base, err := rag.Open(b.Context(), "base", b.store, b.Models)
	if err != nil {
		b.Fatal(err)
	}
	return base
}

// files returns the documents in the index.
func (b *bench) files() (list []rag.File) {
	b.Helper()
	index, err := b.store.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for f, err := range index.Files(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// content returns all of what is in the index: a line for each chunk, with its id and lines.
func (b *bench) content() []string {
	b.Helper()
	index, err := b.store.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var list []string
	for f, err := range index.Files(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		name, _ := filepath.Rel(b.dir, f.Path)
		for seq := range f.Chunks {
			chunks, err := index.Chunks(b.Context(), []rag.ID{{File: f.ID, Seq: seq}}, false)
			if err != nil || len(chunks) != 1 {
				b.Fatal(chunks, err)
			}
			c := chunks[0]
			list = append(list, fmt.Sprintf("%v %s:%d-%d %s", c.ID, filepath.ToSlash(name), c.Start, c.End, c.Text))
		}
	}
	return list
}

// finished returns the last event of that type.
func (b *bench) finished() event.IndexFinished {
	b.Helper()
	list := eventtest.Bodies[event.IndexFinished](b.events)
	if len(list) == 0 {
		b.Fatal("the build has not finished")
	}
	return list[len(list)-1]
}

func (b *bench) warnings() []string {
	var list []string
	for _, w := range eventtest.Bodies[event.Warning](b.events) {
		list = append(list, strings.ReplaceAll(w.Text, b.dir, "DIR"))
	}
	return list
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// batch sets how many texts a request to the model has.
func (b *bench) batch(n int) {
	m, ok := b.Models.(models)
	if !ok {
		m.model = b.model
	}
	m.limits.MaxBatch = n
	b.Models = m
}
