package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/philippgille/chromem-go"
)

// chromemEngine searches by vectors. It keeps all of its data in memory, and in one file.
type chromemEngine struct{ cut }

const chromemFile = "chromem.gob"

func (e chromemEngine) build(ctx context.Context, docs, dir string) (int, error) {
	db := chromem.NewDB()
	all, err := db.CreateCollection("documents", nil, nil)
	if err != nil {
		return 0, err
	}
	n, err := e.eachDocument(ctx, docs, func(_ int, chunks []chunk) error {
		texts := make([]string, len(chunks))
		for i, c := range chunks {
			texts[i] = c.heading + "\n" + c.text
		}
		vectors, err := embed(ctx, texts, false)
		if err != nil {
			return err
		}
		for i, c := range chunks {
			d := chromem.Document{ID: c.id + "#" + strconv.Itoa(i), Content: texts[i], Embedding: vectors[i]}
			if err := all.AddDocument(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	return n, db.ExportToFile(filepath.Join(dir, chromemFile), false, "")
}

type chromemSearcher struct{ *chromem.Collection }

func (e chromemEngine) open(_ context.Context, dir string) (searcher, error) {
	db := chromem.NewDB()
	if err := db.ImportFromFile(filepath.Join(dir, chromemFile), ""); err != nil {
		return nil, err
	}
	s := chromemSearcher{db.GetCollection("documents", nil)}
	runtime.GC() // what was read is not what is kept
	return s, nil
}

func (s chromemSearcher) search(ctx context.Context, _ string, vector []float32, k int) ([]string, error) {
	hits, err := s.QueryEmbedding(ctx, vector, k, nil, nil)
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	return ids, err
}

func (chromemSearcher) close() error { return nil }
