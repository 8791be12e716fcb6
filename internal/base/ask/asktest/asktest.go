// Package asktest has an asker for tests.
package asktest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"loki/internal/base/ask"
)

// Scripted is an [ask.Asker] that answers from a list. When the list is used up, no user can
// be asked.
type Scripted struct {
	mu      sync.Mutex
	answers []string
	asked   []ask.Question
}

// NewScripted returns an asker that gives answers in order, each as it is.
func NewScripted(answers ...string) *Scripted { return &Scripted{answers: answers} }

// Ask implements [ask.Asker]. An answer that the question does not accept is an error.
func (s *Scripted) Ask(ctx context.Context, q ask.Question) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("node %q: %w", q.Node, err)
	}
	s.asked = append(s.asked, q)
	if len(s.answers) == 0 {
		return "", fmt.Errorf("node %q: the script has no more answers: %w", q.Node, ask.ErrUnavailable)
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	if q.Validate != nil {
		if err := q.Validate(answer); err != nil {
			return "", fmt.Errorf("node %q: answer %q: %w", q.Node, answer, err)
		}
	}
	return answer, nil
}

// Asked returns the questions that were asked so far, in order.
func (s *Scripted) Asked() []ask.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
