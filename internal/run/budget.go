package run

import (
	"fmt"
	"sync"

	"loki/internal/chat"
	"loki/internal/fault"
	"loki/internal/graph"
)

// Budget bounds what a run may use. Calls that run side by side reserve what they are
// likely to use before they begin, so that together they do not go far beyond it. A
// nil Budget bounds nothing. It may be used from several goroutines.
type Budget struct {
	limit graph.Budget

	mu       sync.Mutex
	used     chat.Usage
	reserved chat.Usage
}

// NewBudget returns a budget of which used is spent, nil if limit sets no bound on
// tokens and money.
func NewBudget(limit graph.Budget, used chat.Usage) *Budget {
	if limit.Tokens == 0 && limit.USD == 0 {
		return nil
	}
	return &Budget{limit: limit, used: used}
}

// Reserve sets the estimate aside for one call, or says that it is too much. The
// caller gives it back by calling settle once with what was used.
func (b *Budget) Reserve(estimate chat.Usage) (settle func(used chat.Usage), err error) {
	if b == nil {
		return func(chat.Usage) {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	would := b.used.Add(b.reserved).Add(estimate)
	switch {
	case b.limit.Tokens > 0 && would.Total() > b.limit.Tokens:
		err = b.exceeded(fmt.Sprintf("%d tokens", b.limit.Tokens), fmt.Sprintf("%d are used, and the next call takes about %d", b.used.Total(), estimate.Total()))
	case b.limit.USD > 0 && would.Cost > b.limit.USD:
		err = b.exceeded(fmt.Sprintf("%g US dollars", b.limit.USD), fmt.Sprintf("%.4f are used, and the next call costs about %.4f", b.used.Cost, estimate.Cost))
	default:
		b.reserved = b.reserved.Add(estimate)
		return func(used chat.Usage) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reserved = b.reserved.Add(negative(estimate))
			b.used = b.used.Add(used)
		}, nil
	}
	return nil, err
}

// Spend adds what was used without a reservation, such as a call read back from the
// record.
func (b *Budget) Spend(used chat.Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.Add(used)
}

func (b *Budget) exceeded(limit, state string) error {
	return fault.New(fault.Limit, "the budget of %s is used up: %s", limit, state).
		WithHint("raise settings.budget in %s and resume the run", graph.FileName)
}

func negative(u chat.Usage) chat.Usage {
	return chat.Usage{
		InputTokens: -u.InputTokens, CachedInputTokens: -u.CachedInputTokens,
		OutputTokens: -u.OutputTokens, ReasoningTokens: -u.ReasoningTokens, Cost: -u.Cost,
	}
}
