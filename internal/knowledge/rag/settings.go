package rag

import (
	"cmp"

	"loki/internal/base/fault"
)

// Defaults of settings.
const (
	DefaultChunkSize = 2000 // characters, for a model that does not say which size suits it
	DefaultTopK      = 5
)

// minChunkSize is how many characters a chunk has at least that a user asks for: an index of smaller ones is many times as large as the documents.
const minChunkSize = 100

// CheckChunkSize returns an error with code Config unless a user may ask for chunks of size characters.
func CheckChunkSize(size int) error {
	if size < minChunkSize {
		return fault.New(fault.Config, "chunk_size must be at least %d characters, not %d", minChunkSize, size)
	}
	return nil
}

// Defaults returns the settings of a knowledge base with the given embedding model and without documents.
func Defaults(m Embedder) Settings {
	size := cmp.Or(m.ChunkSize, DefaultChunkSize)
	return Settings{EmbeddingModel: m.ID, ChunkSize: size, ChunkOverlap: DefaultOverlap(size), TopK: DefaultTopK}
}

// DefaultOverlap returns the overlap, in characters, of chunks of size characters: 5 %.
func DefaultOverlap(size int) int { return size / 20 }

// SameChunks reports whether an index that was built with s holds the chunks and vectors that one
// built with t holds, provided that the documents are the same.
func (s Settings) SameChunks(t Settings) bool {
	return s.EmbeddingModel == t.EmbeddingModel && s.ChunkSize == t.ChunkSize && s.ChunkOverlap == t.ChunkOverlap
}

// Validate returns an error with code Config for the first setting that is wrong.
func (s Settings) Validate() error {
	wrong := func(format string, args ...any) *fault.Error { return fault.New(fault.Config, format, args...) }
	switch {
	case s.EmbeddingModel == "":
		return wrong("embedding_model is missing").WithHint("name an embedding model, such as builtin:hash")
	case s.ChunkSize < 1:
		return wrong("chunk_size must be at least 1 character, not %d", s.ChunkSize)
	case s.ChunkOverlap < 0:
		return wrong("chunk_overlap must not be negative, it is %d", s.ChunkOverlap)
	case s.ChunkOverlap >= s.ChunkSize:
		return wrong("chunk_overlap (%d) must be less than chunk_size (%d)", s.ChunkOverlap, s.ChunkSize).WithHint("5 %% of the size is usual: chunk_overlap=%d", DefaultOverlap(s.ChunkSize))
	case s.TopK < 1:
		return wrong("top_k must be at least 1, not %d", s.TopK)
	case !(s.Threshold >= 0 && s.Threshold <= 1): // NaN neither
		return wrong("threshold must be from 0 to 1, not %v", s.Threshold)
	}
	return nil
}

// key is a setting that a user can change by its name. field returns a *string, *int or *float64.
type key struct {
	name  string
	field func(*Settings) any
}

// keys returns the settings but for the documents.
func keys() []key {
	return []key{
		{"embedding_model", func(s *Settings) any { return &s.EmbeddingModel }},
		{"chunk_size", func(s *Settings) any { return &s.ChunkSize }},
		{"chunk_overlap", func(s *Settings) any { return &s.ChunkOverlap }},
		{"top_k", func(s *Settings) any { return &s.TopK }},
		{"reranker_model", func(s *Settings) any { return &s.RerankerModel }},
		{"threshold", func(s *Settings) any { return &s.Threshold }},
	}
}

// withdrawn are the settings of older versions, which mean nothing now.
var withdrawn = []string{"chunker", "quantization", "batch_size", "neighbors", "diversity"}

// Keys returns the names of the settings that [ParseChange] knows.
func Keys() []string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}
