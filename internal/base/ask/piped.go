package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Piped takes answers from a stream, one line each, such as the output of a program
// or a here-document on standard input. For a [Choice] a line is an option's text, in
// any letters' case if that is unambiguous, or its number; any other line is a free
// answer. An empty line takes the default. After the end of the stream no user can be
// asked. A question for consent takes no line and returns [ErrUnavailable].
type Piped struct {
	turn   turns
	lines  lines
	secret bool
}

// NewPiped returns an asker that reads from r, of which it may read ahead.
func NewPiped(r io.Reader) *Piped {
	return &Piped{turn: newTurns(), lines: lines{r: r}}
}

// NewPipedSecrets returns an asker like that of [NewPiped] for a stream that holds
// secrets: no error quotes a line of it.
func NewPipedSecrets(r io.Reader) *Piped {
	p := NewPiped(r)
	p.secret = true
	return p
}

// Ask implements [Asker]. An answer that the question does not accept is an error: a
// stream cannot think again. ctx cannot interrupt a read of a stream that is not a
// file.
func (p *Piped) Ask(ctx context.Context, q Question) (string, error) {
	if q.Consent {
		return "", q.wrap(fmt.Errorf("lines of the input never consent: %w", ErrUnavailable))
	}
	if err := p.turn.take(ctx); err != nil {
		return "", q.wrap(err)
	}
	defer p.turn.give()
	line, err := p.lines.next(ctx)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the input holds no more answers: %w", ErrUnavailable)
	}
	if err != nil {
		return "", q.wrap(err)
	}
	answer, err := q.Match(line)
	switch {
	case err == nil:
		return answer, nil
	case p.secret && q.Kind != Secret:
		return "", q.wrap(fmt.Errorf("the line of the input does not answer: %s", q.Text))
	case q.Kind == Secret:
		return "", q.wrap(err)
	}
	return "", q.wrap(fmt.Errorf("answer %q: %w", answer, err))
}
