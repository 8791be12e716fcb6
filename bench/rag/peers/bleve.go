package main

import (
	"context"
	"runtime"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	index "github.com/blevesearch/bleve_index_api"
)

// bleveEngine searches by words: scorch, BM25, English stems and stop words. A document has one
// field, the text, which is stored, because a passage has to be shown.
type bleveEngine struct{ cut }

const bleveBatch = 500 // chunks

func (e bleveEngine) build(ctx context.Context, docs, dir string) (int, error) {
	field := bleve.NewTextFieldMapping()
	field.Analyzer = en.AnalyzerName
	field.IncludeInAll, field.IncludeTermVectors, field.DocValues = false, false, false
	document := bleve.NewDocumentStaticMapping()
	document.AddFieldMappingsAt("text", field)
	mapping := bleve.NewIndexMapping()
	mapping.DefaultMapping, mapping.ScoringModel = document, index.BM25Scoring
	idx, err := bleve.New(dir, mapping)
	if err != nil {
		return 0, err
	}
	batches := make([]*bleve.Batch, runtime.GOMAXPROCS(0))
	for i := range batches {
		batches[i] = idx.NewBatch()
	}
	n, err := e.eachDocument(ctx, docs, func(w int, chunks []chunk) error {
		b := batches[w]
		for i, c := range chunks {
			// Two chunks may be on the same lines.
			if err := b.Index(c.id+"#"+strconv.Itoa(i), map[string]any{"text": c.heading + "\n" + c.text}); err != nil {
				return err
			}
		}
		if b.Size() < bleveBatch {
			return nil
		}
		defer b.Reset()
		return idx.Batch(b)
	})
	if err != nil {
		return 0, err
	}
	for _, b := range batches {
		if err := idx.Batch(b); err != nil {
			return 0, err
		}
	}
	return n, idx.Close()
}

type bleveSearcher struct{ bleve.Index }

func (e bleveEngine) open(_ context.Context, dir string) (searcher, error) {
	idx, err := bleve.Open(dir)
	return bleveSearcher{idx}, err
}

func (s bleveSearcher) search(ctx context.Context, text string, _ []float32, k int) ([]string, error) {
	q := bleve.NewMatchQuery(text)
	q.SetField("text")
	r, err := s.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, k, 0, false))
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(r.Hits))
	for i, hit := range r.Hits {
		ids[i] = hit.ID
	}
	return ids, nil
}

func (s bleveSearcher) close() error { return s.Close() }
