package ask

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"loki/internal/base/value/yamldoc"
)

// Prepared answers questions with texts that were written beforehand: those for a question by its ID
// come first, then those of its node, then those of the map whose item asks, then the list, whose first answer is for the first question that
// is asked. Each is matched as [Question.Match] has it. A question for consent is answered only by its own
// ID. A question without an answer is [ErrUnavailable].
type Prepared struct {
	byName map[string]Given

	mu   sync.Mutex
	list []Given // guarded by mu
}

// Given is an answer that was written beforehand.
type Given struct {
	Text string
	List bool // it is a list of texts, and Text the result of [JoinAnswers]: only a [Multi] takes it
}

// NewPrepared returns an asker with answers by the ID, the node or the map of the question, and answers in
// order; either may be nil.
func NewPrepared(byName map[string]Given, list []Given) *Prepared {
	return &Prepared{byName: byName, list: list}
}

// Ask implements [Asker].
func (p *Prepared) Ask(_ context.Context, q Question) (string, error) {
	given, ok := p.byName[q.ID]
	if !ok && !q.Consent {
		given, ok = p.byName[q.Node]
		if !ok && q.Item != nil {
			given, ok = p.byName[q.Map]
		}
		if !ok {
			given, ok = p.next()
		}
	}
	if !ok {
		return "", q.wrap(fmt.Errorf("no answer to it was prepared: %w", ErrUnavailable))
	}
	if given.List && q.Kind != Multi {
		return "", q.wrap(notList(given.Text))
	}
	answer, err := q.Match(given.Text)
	if err != nil {
		return "", q.wrap(fmt.Errorf("answer %q: %w", answer, err))
	}
	return answer, nil
}

// notList is the failure of a list that answers a question with one answer.
func notList(list string) error { return fmt.Errorf("one answer is expected, and %s is a list", list) }

// ReadAnswer reads a prepared answer from YAML: a text, or a list of texts for a [Multi]. A number or a boolean is its text. It reports
// false if it is neither, which is then a problem of the document.
func ReadAnswer(n *yamldoc.Node) (answer Given, ok bool) {
	if n.Kind() != yamldoc.List {
		answer.Text, ok = n.Text()
		return answer, ok
	}
	list, ok := n.Texts()
	return Given{Text: JoinAnswers(list), List: true}, ok
}

// Texts returns the texts of answers by name, and the names of the lists among them, in order.
func Texts(given map[string]Given) (texts map[string]string, lists []string) {
	texts = make(map[string]string, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if texts[name] = given[name].Text; given[name].List {
			lists = append(lists, name)
		}
	}
	return texts, lists
}

// next takes the next answer of the list.
func (p *Prepared) next() (Given, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return Given{}, false
	}
	given := p.list[0]
	p.list = p.list[1:]
	return given, true
}
