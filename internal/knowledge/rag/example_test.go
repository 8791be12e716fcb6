package rag_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/memstore"
	"loki/internal/knowledge/rag/source"
)

func Example() {
	dir, err := os.MkdirTemp("", "rag")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := "# Boats\n\nThe ferry leaves at noon.\n\n# Trains\n\nThe train leaves at nine.\n"
	if err := os.WriteFile(filepath.Join(dir, "travel.md"), []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	catalog := models{model: new(model)} // of a program, the models of its configuration
	set := rag.Settings{EmbeddingModel: "test:words", ChunkSize: 30, TopK: 1, Documents: []string{dir}}
	store := new(memstore.Store)
	builder := rag.Builder{Models: catalog, Source: &source.Loader{Input: new(input.Loader)}}
	stats, err := builder.Build(ctx, "travel", store, set)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Files, "document in", stats.Chunks, "chunks")

	base, err := rag.Open(ctx, "travel", store, catalog)
	if err != nil {
		log.Fatal(err)
	}
	defer base.Close()
	found, err := base.Search(ctx, rag.Query{Text: "When does the ferry leave?"})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range found.Hits {
		fmt.Printf("%s, lines %d to %d: %s\n", filepath.Base(h.Path), h.Start, h.End, h.Text)
	}
	// Output:
	// 1 document in 2 chunks
	// travel.md, lines 3 to 3: The ferry leaves at noon.
}
