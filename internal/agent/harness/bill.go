package harness

import (
	"context"
	"fmt"
	"sync"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
)

// bill counts what a turn costs.
type bill struct {
	t   *talk
	usd float64 // set aside for the turn; 0 for nothing

	since float64 // what earlier attempts reported of the session since they began

	mu      sync.Mutex // guards what follows
	seen    float64    // what the session has cost by the last report
	settle  func(chat.Usage)
	spent   float64    // of what is set aside
	known   bool       // the program has reported a cost
	reports int        // that are on record
	total   chat.Usage // of all attempts
	shown   chat.Usage // the part of total that events have
	sent    bool       // the program was asked
	over    bool       // the turn has ended
}

// charge is a part of the cost on record. Records of runs add up what is in usage.
type charge struct {
	Usage chat.Usage `json:"usage"`
}

// begin counts what earlier attempts cost, n of them, and sets aside what this one may cost.
func (b *bill) begin(ctx context.Context, n int) error {
	for i := 1; i <= n; i++ {
		b.since = 0
		for k := 1; ; k++ {
			c, found, err := b.read(ctx, b.t.all.At(fmt.Sprint(i)), k)
			if err != nil {
				return err
			}
			if !found {
				break
			}
			b.since, b.known = b.since+c.Usage.Cost, true
			b.total = b.total.Add(c.Usage)
		}
	}
	b.shown = b.total
	budget := b.t.rc.Budget
	if budget == nil {
		return nil
	}
	budget.Spend(b.total)
	aside := chat.Usage{Cost: b.usd, Estimated: true}
	settle, err := budget.Reserve(ctx, aside, aside, true)
	if err != nil {
		return err
	}
	if b.settle = settle; b.usd == 0 {
		settle(chat.Usage{})
		b.settle = nil
	}
	return nil
}

// read returns a charge on record.
func (b *bill) read(ctx context.Context, st steps.Steps, k int) (c charge, found bool, err error) {
	if !st.Recording() {
		return c, false, nil
	}
	key := chargeKey(k)
	known, err := st.Recorder().Lookup(ctx, st.Key(key), steps.Step{Kind: steps.Model, Key: key})
	if err != nil || !known.Done {
		return c, false, err
	}
	c, err = steps.Do(ctx, st, steps.Step{Kind: steps.Model, Key: key}, func(context.Context) (charge, error) { return charge{}, nil })
	return c, true, err
}

func chargeKey(k int) string { return fmt.Sprintf("cost/%d", k) }

// takeCost takes what the session has cost so far. The increase is recorded and charged. An error ends the turn: the budget is used up.
func (b *bill) takeCost(ctx context.Context, amount float64) error {
	b.mu.Lock()
	more := amount - b.seen
	if more < 0 { // the program counts anew
		more = amount
	}
	b.seen, b.known = amount, true
	if more > 0 {
		b.reports++
	}
	key := chargeKey(b.reports)
	b.mu.Unlock()
	if more <= 0 {
		return nil
	}
	c := charge{chat.Usage{Cost: more}}
	step := steps.Step{Kind: steps.Model, Key: key, Name: b.t.p.Name}
	if _, err := steps.Do(ctx, b.t.st, step, func(context.Context) (charge, error) { return c, nil }); err != nil {
		return err
	}
	return b.charge(ctx, c.Usage)
}

// session returns a session of the program with what it has cost so far.
func (b *bill) session(id string) Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Session{ID: id, Cost: b.seen}
}

// charge counts a part of the cost.
func (b *bill) charge(ctx context.Context, used chat.Usage) error {
	b.mu.Lock()
	b.total = b.total.Add(used)
	b.spent += used.Cost
	budget, settle := b.t.rc.Budget, b.settle
	within := settle != nil && b.spent <= b.usd
	if settle != nil && !within {
		used, b.settle = chat.Usage{Cost: b.spent}, nil
	}
	b.mu.Unlock()
	switch {
	case budget == nil || within:
		return nil
	case settle != nil:
		settle(used)
	default:
		release, err := budget.Reserve(ctx, chat.Usage{}, chat.Usage{}, true)
		if err != nil {
			budget.Spend(used)
			return err
		}
		release(used)
	}
	release, err := budget.Reserve(ctx, chat.Usage{}, chat.Usage{}, true)
	if err == nil {
		release(chat.Usage{})
	}
	return err
}

// end charges what is left: an estimate for a turn whose cost was not reported.
func (b *bill) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over = true
	used := chat.Usage{Cost: b.spent}
	if !b.known && b.sent {
		used = chat.Usage{Cost: b.usd, Estimated: b.usd > 0, CostUnknown: b.usd == 0}
		b.total = b.total.Add(used)
	}
	switch budget := b.t.rc.Budget; {
	case b.settle != nil:
		b.settle(used)
	case budget != nil && !b.known && b.sent:
		budget.Spend(used)
	}
	b.settle = nil
}

// noteTurn notes that the program was asked.
func (b *bill) noteTurn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = true
}

// take returns what was counted since it was called before.
func (b *bill) take() chat.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := b.total.Sub(b.shown)
	b.shown = b.total
	return more
}

// CheckBudget returns what is wrong with a budget that a program cannot be held to, and what to do about it; empty for nothing.
func (s *Setting) CheckBudget(usd float64, tokens int) (problem, hint string) {
	switch {
	case tokens > 0:
		return "budget.tokens does not work with harness: programs do not report their tokens", "use budget.seconds or budget.usd"
	case usd > 0 && s.USDPerTurn == 0 && !s.Reports:
		return fmt.Sprintf("budget.usd does not work with %s, which does not report what it costs", s.Name), "estimate it: harness: {acp: ..., usd_per_turn: 0.50}"
	}
	return "", ""
}
