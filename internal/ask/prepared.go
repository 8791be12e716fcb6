package ask

import (
	"context"
	"fmt"
	"sync"

	"loki/internal/yamldoc"
)

// Prepared answers questions with texts that were written beforehand: those for a question by its ID
// come first, then those of its node, then those of the map whose item asks, then the list, whose first answer is for the first question that
// is asked. Each is matched as [Question.Match] has it. A question for consent is answered only by its own
// ID. A question without an answer is [ErrUnavailable].
type Prepared struct {
	byName map[string]string

	mu   sync.Mutex
	list []string // guarded by mu
}

// NewPrepared returns an asker with answers by the ID, the node or the map of the question, and answers in
// order; either may be nil.
func NewPrepared(byName map[string]string, list []string) *Prepared {
	return &Prepared{byName: byName, list: list}
}

// Ask implements [Asker].
func (p *Prepared) Ask(_ context.Context, q Question) (string, error) {
	line, ok := p.byName[q.ID]
	if !ok && !q.Consent {
		line, ok = p.byName[q.Node]
		if !ok && q.Item != nil {
			line, ok = p.byName[q.Map]
		}
		if !ok {
			line, ok = p.next()
		}
	}
	if !ok {
		return "", q.wrap(fmt.Errorf("no answer to it was prepared: %w", ErrUnavailable))
	}
	answer, err := q.Match(line)
	if err != nil {
		return "", q.wrap(fmt.Errorf("answer %q: %w", answer, err))
	}
	return answer, nil
}

// ReadAnswer reads a prepared answer from YAML: a text, or a list of texts for a [Multi]. It reports
// false if it is neither, which is then a problem of the document.
func ReadAnswer(n *yamldoc.Node) (answer string, ok bool) {
	if n.Kind() != yamldoc.List {
		return n.Text()
	}
	list, ok := n.Texts()
	return JoinAnswers(list), ok
}

// next takes the next answer of the list.
func (p *Prepared) next() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return "", false
	}
	line := p.list[0]
	p.list = p.list[1:]
	return line, true
}
