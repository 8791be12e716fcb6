package rag

import (
	"context"
	"errors"
	"time"

	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/rag/source"
	"loki/internal/retry"
)

// Builder builds knowledge bases. It may be used from several goroutines.
type Builder struct {
	Models Models         // required
	Source *source.Loader // required

	Retry  retry.Policy  // of requests to the embedding model
	Budget engine.Budget // nil bounds nothing
	Events event.Scope
	Now    func() time.Time // nil means time.Now
}

// Build brings the knowledge base in s to the state of its documents, or builds it.
func (b *Builder) Build(ctx context.Context, name string, s Store, set Settings) (Stats, error) {
	return Stats{}, errors.New("not implemented")
}
