package client

import (
	"errors"
	"strings"
	"sync"

	"loki/internal/provider"
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

// Ask sends a request to a model in the dialect that is known for it, and in others as
// long as the server rejects it and the attempt can adapt to that. What the server took
// is remembered when its reply begins, unless another request has taught something in the
// meantime.
func (l *Dialects[D]) Ask(model string, emit Emit, attempt func(D) (Attempt[D], error)) error {
	known := l.Of(model)
	for d := known; ; {
		a, err := attempt(d)
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
		var ok bool
		if d, ok = a.Adapt(err); !ok {
			return err
		}
	}
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
	if l.known[model] != from || to == from {
		return
	}
	if l.known == nil {
		l.known = make(map[string]D)
	}
	l.known[model] = to
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
