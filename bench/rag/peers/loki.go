package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/source"
	"loki/internal/knowledge/rag/sqlite"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/builtin"
)

// lokiEngine is a knowledge base with the embedding model builtin:hash. Building it is what
// loki --rag-add does, with both indexes.
type lokiEngine struct {
	cut
	mode rag.Mode
}

const lokiFile = "loki.db"

func (e lokiEngine) build(ctx context.Context, docs, dir string) (int, error) {
	docs, err := filepath.Abs(docs)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	// The search in a corpus that was moved would find other paths.
	if err := os.WriteFile(filepath.Join(dir, "docs"), []byte(docs), 0o600); err != nil {
		return 0, err
	}
	failures := &failures{}
	b := rag.Builder{Models: models{}, Source: &source.Loader{Input: &input.Loader{}}, Events: event.NewScope(failures, event.Source{}, nil)}
	stats, err := b.Build(ctx, "bench", sqlite.New(filepath.Join(dir, lokiFile)), rag.Settings{
		EmbeddingModel: models{}.embedder().ID, ChunkSize: e.size, ChunkOverlap: e.size / 20, TopK: top, Documents: []string{docs},
	})
	return stats.Chunks, errors.Join(err, failures.err)
}

// failures takes warnings of a build for errors: what is left out of an index is not compared.
type failures struct{ err error }

func (f *failures) Emit(_ context.Context, ev event.Event) error {
	if w, ok := ev.Body.(event.Warning); ok {
		f.err = errors.Join(f.err, errors.New(w.Text))
	}
	return nil
}

type lokiSearcher struct {
	*rag.Base
	mode rag.Mode
	docs string
}

func (e lokiEngine) open(ctx context.Context, dir string) (searcher, error) {
	docs, err := os.ReadFile(filepath.Join(dir, "docs"))
	if err != nil {
		return nil, err
	}
	base, err := rag.Open(ctx, "bench", sqlite.New(filepath.Join(dir, lokiFile)), models{})
	if err != nil {
		return nil, err
	}
	return lokiSearcher{base, e.mode, string(docs)}, nil
}

// search is what a question costs: it includes the vector of the question and reading the texts of
// what is found.
func (s lokiSearcher) search(ctx context.Context, text string, _ []float32, k int) ([]string, error) {
	set := s.Settings()
	set.TopK = k
	found, err := s.Search(ctx, rag.Query{Text: text, Settings: &set, Mode: s.mode})
	ids := make([]string, len(found.Hits))
	for i, hit := range found.Hits {
		path, err := filepath.Rel(s.docs, hit.Path)
		if err != nil {
			return nil, err
		}
		ids[i] = place(filepath.ToSlash(path), hit.Start, hit.End)
	}
	return ids, err
}

func (s lokiSearcher) close() error { return s.Close() }

// models has the model builtin:hash.
type models struct{}

var hashing = builtin.New(builtin.Options{})

func (models) embedder() rag.Embedder {
	return rag.Embedder{ID: "builtin:hash", Name: "hash", Embedder: hashing, MaxBatch: 64}
}

func (m models) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	e := m.embedder()
	if id != e.ID {
		return e, fmt.Errorf("unknown model %s", id)
	}
	return e, nil
}

func (models) Reranker(context.Context, string) (rag.Reranker, error) {
	return rag.Reranker{}, errors.New("there is no reranker")
}

// embed returns the vectors of documents, or of queries, of length 1.
func embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	vectors, _, err := hashing.Embed(ctx, provider.EmbedRequest{Model: "hash", Texts: texts, Query: query})
	for _, v := range vectors {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if sum == 0 {
			v[0], sum = 1, 1 // chromem takes no vector without direction
		}
		for i := range v {
			v[i] = float32(float64(v[i]) / math.Sqrt(sum))
		}
	}
	return vectors, err
}

// changed is how long builds of an index take that there is already, in seconds.
type changed struct {
	Nothing    float64 `json:"nothing"`
	NothingCPU float64 `json:"nothing_cpu"`
	Some       float64 `json:"some"` // with 1 % of the documents changed
	SomeCPU    float64 `json:"some_cpu"`
}

func measureChange(ctx context.Context, e engine, c *corpus, dir string) (r changed, err error) {
	start := time.Now()
	if _, err := e.build(ctx, c.dir, dir); err != nil {
		return r, err
	}
	r.Nothing, r.NothingCPU = time.Since(start).Seconds(), work()
	paths, err := documents(c.dir)
	if err != nil {
		return r, err
	}
	for i := 0; i < len(paths); i += 100 {
		path := filepath.Join(c.dir, filepath.FromSlash(paths[i]))
		data, err := os.ReadFile(path)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.WriteFile(path, data, 0o600)) }()
		text := strings.TrimSpace(string(data)) + "\n// One line more, written at " + start.Format(time.RFC3339Nano) + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return r, err
		}
	}
	before := work()
	start = time.Now()
	_, err = e.build(ctx, c.dir, dir)
	r.Some, r.SomeCPU = time.Since(start).Seconds(), work()-before
	return r, err
}
