package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
)

// Budget bounds what a run may use. Calls that run side by side set aside all that they
// can use, so that together they do not exceed it; one that does not fit beside the others
// waits for them. Only a call that runs alone may begin on an estimate, and exceed the
// budget by what it uses more than estimated. A nil Budget bounds nothing. It may be
// used from several goroutines.
//
// A budget may be a part of another one, see [Budget.Under]: what is set aside or spent of it is
// that of both.
type Budget struct {
	limit  graph.Budget
	in     string  // where the limit is set, for hints
	parent *Budget // nil for none

	asked   graph.Budget // those bounds of limit that a client asked for
	askedIn string       // where they are set

	elsewhere Reserver // decides in place of b; nil for none

	mu       sync.Mutex // guards what follows
	used     chat.Usage
	recorded chat.Usage // used by steps on record, as far as Spend has not counted them
	reserved chat.Usage
	open     int           // calls that hold a reservation
	whole    bool          // one of them has no bound and holds all that is left
	lifted   bool          // nothing is refused any more
	settled  chan struct{} // closed, and made anew, when a call settles
}

// NewBudget returns a budget of which used is spent, nil if limit sets no bound.
func NewBudget(limit graph.Budget, used chat.Usage) *Budget {
	b := &Budget{limit: limit, in: "settings.budget in " + graph.FileName, used: used, settled: make(chan struct{})}
	if b.unlimited() && limit.Duration == 0 {
		return nil
	}
	return b
}

// SetIn names the place where the limit of b is set, for hints; "" leaves it at settings.budget of
// a graph. It returns b, which may be nil.
func (b *Budget) SetIn(place string) *Budget {
	if b != nil && place != "" {
		b.in = place
	}
	return b
}

// askedFor notes that a client asked for bounds of b's limit, and how it raises them. It returns b, which may be nil.
func (b *Budget) askedFor(bounds graph.Budget, place string) *Budget {
	if b != nil {
		b.asked, b.askedIn = bounds, place
	}
	return b
}

// Under returns b as a part of parent: the budget of a child agent below that of the agent that
// started it. Both must be kept. Either may be nil. The caller does not use b any more.
func (b *Budget) Under(parent *Budget) *Budget {
	if parent == nil {
		return b
	}
	if b == nil { // not the parent itself, which reports for itself by how much it is exceeded
		return &Budget{parent: parent}
	}
	b.parent = parent
	return b
}

// Within bounds the time of the work that b is for, of which spent is over. Once all of it is, the cause of
// the context is an [*ExceededError]. The time of a budget of which b is a part is that of other work.
func (b *Budget) Within(ctx context.Context, spent time.Duration) (context.Context, context.CancelFunc) {
	if b == nil || b.limit.Duration == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, b.limit.Duration-spent, b.exceededError(b.place(b.asked.Duration > 0), "the budget of %s is used up", b.limit.Duration))
}

// exceededError returns an error that says how b is used up, and where that can be changed.
func (b *Budget) exceededError(in, format string, args ...any) *ExceededError {
	return &ExceededError{budget: b, err: fault.New(fault.Limit, format, args...).WithHint("raise %s", in)}
}

// place is where a bound is set, which a client may have asked for.
func (b *Budget) place(asked bool) string {
	if asked {
		return b.askedIn
	}
	if b.asked != (graph.Budget{}) {
		return b.in + ", which a budget of the command or the request does not raise"
	}
	return b.in
}

// ExceededError says that a budget is used up. Its code is [fault.Limit].
type ExceededError struct {
	budget *Budget
	err    *fault.Error
}

func (e *ExceededError) Error() string { return e.err.Error() }

// Unwrap returns the error with the hint for the user.
func (e *ExceededError) Unwrap() error { return e.err }

// Refused reports whether err says that b, or a budget of which b is a part, is used up. If it is
// a budget below b, work with b can continue.
func (b *Budget) Refused(err error) bool {
	exceeded, ok := errors.AsType[*ExceededError](err)
	for ; ok && b != nil; b = b.parent {
		if exceeded.budget == b {
			return true
		}
	}
	return false
}

// Reserve implements the engine's Budget. It sets most aside for one call, or all that is
// left if bounded is false, and waits while that does not fit beside calls under way. A call
// that runs alone has to fit with what it is sure to use, which is least. The error has
// code [fault.Limit] if the call does not fit, or is that of ctx if it ends while the call
// waits. The caller gives the reservation back by calling settle once with what was used.
func (b *Budget) Reserve(ctx context.Context, least, most chat.Usage, bounded bool) (settle func(used chat.Usage), err error) {
	if b == nil {
		return func(chat.Usage) {}, nil
	}
	if b.elsewhere != nil {
		settle, err := b.elsewhere(ctx, Call{least, most, bounded})
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Limit {
			err = &ExceededError{budget: b, err: f}
		}
		return settle, err
	}
	own := func(chat.Usage) {}
	if !b.unlimited() {
		if own, err = b.wait(ctx, least, most, bounded); err != nil {
			return nil, err
		}
	}
	// While this waits for its turn in the parent, only calls of the same child wait for it.
	above, err := b.parent.Reserve(ctx, least, most, bounded)
	if err != nil {
		own(chat.Usage{})
		return nil, err
	}
	return func(used chat.Usage) {
		own(used)
		above(used)
	}, nil
}

// unlimited reports whether the budget has no bound of its own on tokens and money.
func (b *Budget) unlimited() bool { return b.limit.Tokens == 0 && b.limit.USD == 0 }

// wait is Reserve for the budget's own limit.
func (b *Budget) wait(ctx context.Context, least, most chat.Usage, bounded bool) (settle func(used chat.Usage), err error) {
	for {
		settle, wait, err := b.reserve(least, most, bounded)
		if wait == nil {
			return settle, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reserve tries once. It returns what to wait for if the call may fit later.
func (b *Budget) reserve(least, most chat.Usage, bounded bool) (settle func(used chat.Usage), wait <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait, err := b.admit(Call{least, most, bounded}); err != nil {
		return nil, nil, err // what is used does not become less
	} else if wait {
		return nil, b.settled, nil
	}
	b.open++
	b.whole = !bounded
	b.reserved = b.reserved.Add(most)
	return func(used chat.Usage) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open--
		b.whole = false // a call without a bound runs alone
		if b.reserved = b.reserved.Sub(most); b.open == 0 {
			b.reserved = chat.Usage{} // without what rounding left of the costs
		}
		b.used = b.used.Add(used)
		close(b.settled)
		b.settled = make(chan struct{})
	}, nil, nil
}

// admit reports whether a call has to wait for others. b.mu is held.
func (b *Budget) admit(c Call) (wait bool, err error) {
	if err := b.refusal(c.Least); err != nil {
		return false, err
	}
	return b.open > 0 && (b.whole || !c.Bounded || b.exceeds(b.total().Add(b.reserved).Add(c.Most))), nil
}

// Call is what [Budget.Reserve] is asked for.
type Call struct {
	Least   chat.Usage `json:"least"`
	Most    chat.Usage `json:"most"`
	Bounded bool       `json:"bounded,omitempty"`
}

// Reserver decides about calls as [Budget.Reserve] does.
type Reserver func(ctx context.Context, c Call) (settle func(used chat.Usage), err error)

// Spending bounds what all runs of a server may use together, beside the budget of each.
type Spending interface {
	// Check returns an error with code [fault.Limit] if nothing is left for a run that is about to begin.
	Check(ctx context.Context, i Info) error
	// Reserver decides about the calls of a run.
	Reserver(i Info) Reserver
}

// SpentError says that nothing is left of what all runs of a subject may use until a time.
type SpentError struct {
	At  time.Time
	Err error // names the time as well
}

func (e *SpentError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *SpentError) Unwrap() error { return e.Err }

// Spent reports whether a run waits until it may use something again.
func (i Info) Spent() bool {
	return i.Status == Suspended && i.Code == fault.Limit && !i.Until.IsZero()
}

// Elsewhere has r decide about the tokens and the money of b, where the processes of a run share its budget. b may be nil.
func (b *Budget) Elsewhere(r Reserver) {
	if b != nil {
		b.elsewhere = r
	}
}

// Admit reports whether a call must wait within a budget of which used is spent, while others are under way. The error says that it does
// not fit at all. It is for drivers outside of this package, see [Budget.Elsewhere].
func Admit(limit graph.Budget, used chat.Usage, underWay []Call, c Call) (wait bool, err error) {
	b := NewBudget(graph.Budget{Tokens: limit.Tokens, USD: limit.USD}, used)
	if b == nil {
		return false, nil
	}
	for _, other := range underWay {
		b.open++
		b.whole = b.whole || !other.Bounded
		b.reserved = b.reserved.Add(other.Most)
	}
	return b.admit(c)
}

// Lift says that from now on b counts what is used and refuses nothing: it does not keep a run from undoing what it did. A budget of
// which b is a part continues to bound.
func (b *Budget) Lift() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lifted = true
}

// Expect counts what steps on record used, before they are read back. Without it, of tasks that
// are resumed side by side, one could begin a new call before the others have spent again what
// they used before. Spend takes from it.
func (b *Budget) Expect(recorded chat.Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recorded = b.recorded.Add(recorded)
}

// Spend counts what was used without a reservation, such as a call read back from the
// record.
func (b *Budget) Spend(used chat.Usage) {
	if b == nil {
		return
	}
	b.parent.Spend(used)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.Add(used)
	b.recorded = chat.Usage{
		InputTokens:  max(0, b.recorded.InputTokens-used.InputTokens),
		OutputTokens: max(0, b.recorded.OutputTokens-used.OutputTokens),
		Cost:         max(0, b.recorded.Cost-used.Cost),
	}
	if b.recorded.Total() == 0 {
		b.recorded.Cost = 0 // without what rounding left
	}
}

// total is all that was used. b.mu is held.
func (b *Budget) total() chat.Usage { return b.used.Add(b.recorded) }

// Overrun says by how much the budget is exceeded, or that this is not known, and "" if it is
// kept.
func (b *Budget) Overrun() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch used := b.total(); {
	case b.limit.Tokens > 0 && used.Total() > b.limit.Tokens:
		return fmt.Sprintf("the run used %d tokens, more than its budget of %d: the last call used more than estimated", used.Total(), b.limit.Tokens)
	case b.limit.USD > 0 && used.Cost > b.limit.USD:
		return fmt.Sprintf("the run cost %.4f US dollars, more than its budget of %g: the last call used more than estimated", used.Cost, b.limit.USD)
	case b.limit.USD > 0 && used.CostUnknown:
		return fmt.Sprintf("the budget of %g US dollars does not count all calls: the price of a model is not known", b.limit.USD)
	}
	return ""
}

// exceeds reports whether usage is beyond the budget.
func (b *Budget) exceeds(usage chat.Usage) bool {
	return !b.lifted && (b.limit.Tokens > 0 && usage.Total() > b.limit.Tokens || b.limit.USD > 0 && usage.Cost > b.limit.USD)
}

// refusal returns an error if a call that is sure to use least is too much. b.mu is held.
func (b *Budget) refusal(least chat.Usage) error {
	limit, state, asked := "", "", false
	used := b.total()
	switch would := used.Add(least); {
	case b.lifted:
		return nil
	case b.limit.Tokens > 0 && would.Total() > b.limit.Tokens:
		limit, asked = fmt.Sprintf("%d tokens", b.limit.Tokens), b.asked.Tokens > 0
		state = fmt.Sprintf("%d are used, and the next call takes about %d", used.Total(), least.Total())
	case b.limit.USD > 0 && would.Cost > b.limit.USD:
		limit, asked = fmt.Sprintf("%g US dollars", b.limit.USD), b.asked.USD > 0
		state = fmt.Sprintf("%.4f are used, and the next call costs about %.4f", used.Cost, least.Cost)
	default:
		return nil
	}
	return b.exceededError(b.place(asked), "the budget of %s is used up: %s", limit, state)
}
