package ask

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Func is an [Asker] made of a function, which has to be safe for several goroutines.
type Func func(ctx context.Context, q Question) (string, error)

// Ask implements [Asker].
func (f Func) Ask(ctx context.Context, q Question) (string, error) { return f(ctx, q) }

// Unavailable is an [Asker] for places where no user can be asked.
type Unavailable struct{}

// Ask implements [Asker]. It always returns [ErrUnavailable].
func (Unavailable) Ask(ctx context.Context, q Question) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", q.wrap(err)
	}
	return "", q.wrap(ErrUnavailable)
}

// Scripted answers from a list; after the last answer no user can be asked. It is for
// tests.
type Scripted struct {
	mu      sync.Mutex
	answers []string
	asked   []Question
}

// NewScripted returns an asker that gives answers in order, each as it is.
func NewScripted(answers ...string) *Scripted {
	return &Scripted{answers: answers}
}

// Ask implements [Asker].
func (s *Scripted) Ask(ctx context.Context, q Question) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", q.wrap(err)
	}
	s.asked = append(s.asked, q)
	if len(s.answers) == 0 {
		return "", q.wrap(fmt.Errorf("the script has no more answers: %w", ErrUnavailable))
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	if err := q.validate(answer); err != nil {
		return "", q.wrap(fmt.Errorf("answer %q: %w", answer, err))
	}
	return answer, nil
}

// Asked returns the questions that were asked so far, in order.
func (s *Scripted) Asked() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
