package rag

import (
	"context"
	"errors"
	"io/fs"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/text"
	"loki/internal/llm/engine"
)

// Base is a knowledge base in use. It may be used from several goroutines.
type Base struct {
	name   string
	index  Index
	stats  Stats
	models Models
	denied func(path string) bool
}

// Open opens the knowledge base in s. The name is for messages. A base that was not built yet is an
// error with code NotFound. The caller closes the Base.
func Open(ctx context.Context, name string, s Store, m Models) (*Base, error) {
	index, err := s.Open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no knowledge base %q", name).ThatMisses("rag").WithHint("build it: loki --rag %s --rag-add DIR", text.Word(name))
	}
	if err != nil {
		return nil, err
	}
	stats, err := index.Stats(ctx)
	if err != nil {
		return nil, errors.Join(err, index.Close())
	}
	return &Base{name: name, index: index, stats: stats, models: m}, nil
}

// Deny has searches leave out the documents for which denied returns true, by their absolute paths. Nil leaves out none. It is
// called before the first search.
func (b *Base) Deny(denied func(path string) bool) { b.denied = denied }

// Name returns the name that the base was opened under.
func (b *Base) Name() string { return b.name }

// Settings returns the settings that the base was opened with.
func (b *Base) Settings() Settings { return b.stats.Settings }

// Stats describes the index.
func (b *Base) Stats() Stats { return b.stats }

// Index returns the index, which the Base closes.
func (b *Base) Index() Index { return b.index }

// Close releases the base. Searches must be over.
func (b *Base) Close() error { return b.index.Close() }

// Mode says what a search goes by.
type Mode string

// The modes.
const (
	Both    Mode = ""        // vectors and words
	Vector  Mode = "vector"  // vectors only
	Keyword Mode = "keyword" // words only; the embedding model is not asked
)

// Query is what is searched for.
type Query struct {
	Text     string
	Settings *Settings // for the search, over those of the base; nil for those. What concerns builds is ignored.
	Mode     Mode
	Budget   engine.Budget // nil bounds nothing
	Retry    retry.Policy  // of requests to models
}
