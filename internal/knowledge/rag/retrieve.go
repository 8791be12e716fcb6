package rag

import (
	"context"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
)

// Searcher finds passages: a [Base], or what replaces one. Its methods may be called from several
// goroutines.
type Searcher interface {
	Name() string
	Search(ctx context.Context, q Query) (Found, error)
}

// Retrieve searches in s as a step of st, and emits what was found to events. A search whose result
// is on record is not repeated; its usage counts in the budget nevertheless. After an error Found
// has the usage of what was asked before.
func Retrieve(ctx context.Context, st steps.Steps, events event.Scope, s Searcher, q Query) (Found, error) {
	var took time.Duration // 0 if the search was not made
	found, err := steps.Do(ctx, st, steps.Step{
		Kind: steps.Retrieval, Key: "retrieval", Name: s.Name(), Request: func() any { return map[string]string{"query": q.Text} },
	}, func(ctx context.Context) (Found, error) {
		begin := time.Now()
		found, err := s.Search(ctx, q)
		took = max(time.Since(begin), 1)
		return found, err
	})
	if err != nil {
		return found, err
	}
	if took == 0 && q.Budget != nil {
		q.Budget.Spend(found.Usage)
	}
	ev := found.Event()
	ev.Duration = took
	return found, events.Emit(ctx, ev)
}
