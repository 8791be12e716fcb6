package rag

import (
	"context"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// Models finds models by id, "client:model". Its methods may be called from several goroutines.
type Models interface {
	// Embedder returns an embedding model, for an empty id the default one. The error is a [*fault.Error].
	Embedder(ctx context.Context, id string) (Embedder, error)
	// Reranker returns a reranker, likewise.
	Reranker(ctx context.Context, id string) (Reranker, error)
}

// HashModel is the embedding model of this program. Its vectors are made of words, without their meaning.
const HashModel = "builtin:hash"

// Embedder is a model that turns texts into vectors. Limits that are 0 are unknown.
type Embedder struct {
	ID   string // client:model
	Name string // the provider's own name
	provider.Embedder

	MaxTokens int // of the texts of a request together
	MaxBatch  int // texts in a request
	ChunkSize int // characters that a chunk should have

	// Cost returns a usage with its price. Nil means that the model costs nothing.
	Cost func(chat.Usage) chat.Usage

	// StandsIn says that another model was asked for, whose vectors do not compare with those of this one.
	// A knowledge base of that model is searched by words only, and is not built with this one.
	StandsIn bool
}

// Reranker is a model that orders passages by their relevance to a question.
type Reranker struct {
	ID   string // client:model
	Name string // the provider's own name
	provider.Reranker

	Cost func(chat.Usage) chat.Usage // as that of [Embedder]
}
