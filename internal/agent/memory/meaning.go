package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/source"
)

const (
	// patience is how long a question waits for the embedding model.
	patience = 20 * time.Second
	// pause is how long facts are found by words only after the model failed.
	pause = time.Minute
	// maxAlone is how many passages are found that have no word of the question: something is always near to it.
	maxAlone = 5
)

// Meaning finds facts by vectors, too, with a knowledge base of all facts of a store. It is brought up to date by the search after a change, so that
// only new texts are embedded.
type Meaning struct {
	Models rag.Models
	Base   rag.Store
	// Settings returns the embedding model, "" for none, and the least cosine of a fact to the question.
	Settings func() (model string, threshold float64)

	mu    sync.Mutex // held while the knowledge base is used, and guards the others
	until time.Time  // the pause after a failure
	told  bool       // the user was told of the failure
}

// baseName is what errors call the knowledge base.
const baseName = "of the memory"

// near returns those of facts that fit query by vectors and words, best first. ok is false if they are to be found by words only.
func (s *Store) near(ctx context.Context, facts []Fact, query string, limit int) (found []Fact, ok bool) {
	m := s.Meaning
	if m == nil || len(facts) == 0 {
		return nil, false
	}
	model, threshold := m.Settings()
	if model == "" {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.now().Before(m.until) {
		return nil, false
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := s.now()
	all := slices.DeleteFunc(s.all(ctx, false), func(f Fact) bool { return f.Expired(now) })
	found, err := m.search(limited, all, facts, rag.Settings{EmbeddingModel: model, Threshold: threshold, TopK: limit}, query)
	switch {
	case err == nil:
		m.told = false
		return found, true
	case errors.Is(err, errStandIn), ctx.Err() != nil, fault.CodeOf(err) == fault.Usage: // another process is building
		return nil, false
	}
	if m.until = s.now().Add(pause); !m.told && s.Warn != nil {
		m.told = true
		s.Warn(ctx, "facts of the memory are found by words only: "+err.Error())
	}
	return nil, false
}

// errStandIn is the error for a model that is replaced by another one, whose vectors mean nothing.
var errStandIn = errors.New("another model answers in place of all")

// search returns those of facts, which are among all, that fit query.
func (m *Meaning) search(ctx context.Context, all, facts []Fact, set rag.Settings, query string) ([]Fact, error) {
	e, err := m.Models.Embedder(ctx, set.EmbeddingModel)
	if err != nil {
		return nil, err
	}
	if e.StandsIn {
		return nil, errStandIn
	}
	limit := set.TopK
	usual := rag.Defaults(e)
	set.EmbeddingModel, set.ChunkSize, set.ChunkOverlap = usual.EmbeddingModel, usual.ChunkSize, usual.ChunkOverlap
	set.TopK += len(all) - len(facts) // what is found elsewhere takes no place away
	var texts source.Texts
	for i := range all {
		name := all[i].Path + "/" + all[i].Sum // of this version
		texts, set.Documents = append(texts, input.Document{Name: name, Text: all[i].about()}), append(set.Documents, name)
	}
	slices.Sort(set.Documents)
	base, err := m.open(ctx, texts, set)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	here := make(map[string]Fact, len(facts))
	for _, f := range facts {
		here[f.Path+"/"+f.Sum] = f
	}
	base.Deny(func(name string) bool { _, ok := here[name]; return !ok })
	hits, err := base.Search(ctx, rag.Query{Text: query, Settings: &set})
	var found []Fact
	alone := 0 // found by vectors only
	for _, h := range hits.Hits {
		f, ok := here[h.Path]
		if h.Keyword.Rank == 0 {
			alone++
		}
		if ok && len(found) < limit && (h.Keyword.Rank > 0 || alone <= maxAlone) {
			found = append(found, f)
			delete(here, h.Path) // a long fact has several passages
		}
	}
	return found, err
}

// open opens the knowledge base, after a build if the facts have changed.
func (m *Meaning) open(ctx context.Context, texts source.Texts, set rag.Settings) (*rag.Base, error) {
	base, err := rag.Open(ctx, baseName, m.Base, m.Models)
	if err == nil {
		if is := base.Settings(); is.SameChunks(set) && slices.Equal(is.Documents, set.Documents) {
			return base, nil
		}
		if err := base.Close(); err != nil {
			return nil, err
		}
	}
	if _, err := (&rag.Builder{Models: m.Models, Source: texts}).Build(ctx, baseName, m.Base, set); err != nil {
		return nil, err
	}
	return rag.Open(ctx, baseName, m.Base, m.Models)
}
