package client

import (
	"errors"
	"strings"
	"sync"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// Dialects remembers, by model, the dialect that rejected requests have led to. The zero
// value knows none, and the zero value of D is the dialect of a model that nothing is
// known about. It may be used from several goroutines.
type Dialects[D comparable] struct {
	// Lasting returns what of a dialect concerns more than one conversation. Nil means
	// all of it.
	Lasting func(D) D

	mu    sync.Mutex
	known map[string]D
	whole sync.Map // models whose server refuses to stream, as keys
}

// Attempt is a request in one dialect.
type Attempt[D any] struct {
	Send  func(Emit) error // sends the request and emits the reply
	Notes []string         // what of the request the model gets in another way

	// Adapt returns the dialect to try after the request has failed before its reply
	// began; ok is false if there is none. Each adaptation can be made once, so that
	// trying ends.
	Adapt func(error) (next D, ok bool)
}

// Ask sends req to a model in the dialect that is known for it, and in others as
// long as the server rejects it and the attempt can adapt to that. What the server took
// is remembered when its reply begins, unless another request has taught something in the
// meantime. A server that refuses to stream is asked for the reply in one piece.
func (l *Dialects[D]) Ask(model string, req provider.Request, emit Emit, attempt func(provider.Request, D) (Attempt[D], error)) error {
	known := l.Of(model)
	_, whole := l.whole.Load(model)
	req.Stream = req.Stream && !whole
	for d := known; ; {
		a, err := attempt(req, d)
		if err != nil {
			return err
		}
		begun := false
		err = a.Send(func(c provider.Chunk) error {
			if !begun {
				begun = true
				l.Learn(model, known, d)
				for _, text := range a.Notes {
					if err := emit(provider.Chunk{Kind: provider.Note, Text: text}); err != nil {
						return err
					}
				}
			}
			return emit(c)
		})
		if err == nil || begun {
			return err
		}
		next, ok := a.Adapt(err)
		switch {
		case ok:
			d = next
		case req.Stream && refusesStream(err):
			req.Stream = false
			l.whole.Store(model, nil)
		default:
			return err
		}
	}
}

// refusesStream reports whether a rejection says that the reply cannot be a stream, as in "Your organization must be
// verified to stream this model" and "This model doesn't support tool use in streaming mode".
func refusesStream(err error) bool {
	words, ok := Complaint(err)
	if !ok || !strings.Contains(words, "stream") || strings.Contains(words, "stream_options") {
		return false
	}
	return normalize.Says(words, "verified", "not support", "n't support", "unsupported", "not allowed", "not available", "not enabled", "must be false", "disabled")
}

// Of returns the dialect of a model.
func (l *Dialects[D]) Of(model string) D {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[model]
}

// Learn remembers to for a model whose dialect was from, unless it is another by now.
func (l *Dialects[D]) Learn(model string, from, to D) {
	if l.Lasting != nil {
		to = l.Lasting(to)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[model] == from && to != from {
		remember(&l.known, model, to)
	}
}

// Complaint returns what a server said when it refused a request as invalid, in lower
// case; ok is false for other failures.
func Complaint(err error) (words string, ok bool) {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Kind != provider.Invalid {
		return "", false
	}
	return strings.ToLower(e.Msg), true
}
