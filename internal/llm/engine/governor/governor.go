// Package governor keeps the calls of all models within the limits of their providers.
//
// A provider says by its replies how many calls it takes: header fields name limits of requests and tokens, and a
// call too many is refused with status 429. A [Governor] has a limit for each account and model, learns it from the
// replies, and has calls wait for their turn. A refused call keeps its place, and is made again.
//
// What is known of a limit, and which calls may begin, is in a state that knows neither clock nor goroutines. It is in
// memory, in a file that all processes share, or in a row of a database that several servers share.
package governor

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"loki/internal/base/process/awake"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// Governor has the limits of all models of a process. Its methods may be called from several goroutines. The zero Governor
// shares them with no other process.
type Governor struct {
	mu       sync.Mutex
	limits   map[string]*limiter // by client and model
	process  process
	database database
}

// ShareIn shares the limits with the other processes of the user, in files of a directory. It is called before other methods.
func (g *Governor) ShareIn(dir string) { g.process.dir = dir }

// Close ends the sharing. No call is under way.
func (g *Governor) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process.leave()
	g.database.close()
	g.limits = nil
}

// Options are what the limit of a model is made with.
type Options struct {
	Client string // name of the client
	Model  string // the provider's own name of the model
	Limits Limits

	Fallback bool // another model is asked while the provider is out of reach; else calls wait, unless a user waits for the answer

	// Account returns what identifies account and model among those of all processes, as a file name. It is called for the
	// first call. Nil means that the limit is not shared.
	Account func() string
}

// limit returns the limit of a model.
func (g *Governor) limit(o Options) *limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := o.Client + ":" + o.Model
	l := g.limits[key]
	if l == nil {
		if g.limits == nil {
			g.limits = make(map[string]*limiter)
		}
		l = &limiter{client: o.Client, model: o.Model, limits: o.Limits, fallback: o.Fallback, begun: make(map[string]int)}
		l.open = sync.OnceFunc(func() { l.store, l.id, l.poll = g.storeOf(l, o) })
		g.limits[key] = l
	}
	return l
}

// Priority orders the calls that wait.
type Priority int

// The priorities, in ascending order.
const (
	Low    Priority = iota - 1 // many lines at once
	Normal                     // nodes of graphs
	High                       // a user waits for the answer
)

type priorityKey struct{}

// chosen is a priority in a context, which AtMost does not lower if a user has chosen it.
type chosen struct {
	Priority
	fixed bool
}

// With returns the context of work whose calls have the priority that a user has chosen.
func With(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, chosen{p, true})
}

// AtMost returns the context of work whose calls have a priority, or the one that ctx has if that is lower or chosen by a user.
func AtMost(ctx context.Context, p Priority) context.Context {
	if c, ok := ctx.Value(priorityKey{}).(chosen); ok && (c.fixed || c.Priority <= p) {
		return ctx
	}
	return context.WithValue(ctx, priorityKey{}, chosen{p, false})
}

// PriorityOf returns the priority of the calls of work.
func PriorityOf(ctx context.Context) Priority {
	if c, ok := ctx.Value(priorityKey{}).(chosen); ok {
		return c.Priority
	}
	return High
}

// store keeps a state. update has exclusive use of it.
type store interface{ update(change func(*state)) }

// memory keeps a state that no other process knows.
type memory struct{ s state }

func (m *memory) update(change func(*state)) {
	if m.s.AtOnce == 0 {
		m.s.AtOnce = firstAtOnce
	}
	change(&m.s)
}

// limiter has the calls of a process for one limit wait for their turn.
type limiter struct {
	client, model string
	limits        Limits
	fallback      bool
	store         store
	id            string        // of the process
	poll          time.Duration // how often calls ask whether those of other processes are over
	open          func()        // sets store, id and poll, for the first call

	mu      sync.Mutex
	waiting []*waiter
	begun   map[string]int // calls under way, by run
	atWork  int            // all of them
	number  int            // of the last waiter
	turns   Turns
	timer   *time.Timer // of the next look, nil for none
	others  bool        // processes have calls, too
	known   bool        // there are limits of requests or tokens
	output  int         // average length of a reply, in tokens
	atOnce  int         // calls, as far as it is known
}

// waiter is a call that waits for its turn.
type waiter struct {
	priority Priority
	run      string
	number   int // ascending
	since    time.Time
	notUntil time.Time // that a refused call is not made again
	need     amount
	refused  int           // how often, since the last report
	ready    chan struct{} // is closed when one of the following is set
	ticket   *ticket
	err      error

	reason reason // why it waits, and until when; guarded by the mutex of the limiter
	until  time.Time
}

// enter returns a call that is to wait.
func (l *limiter) enter(ctx context.Context, need amount) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open()
	l.number++
	return &waiter{priority: PriorityOf(ctx), run: event.FromContext(ctx).Run, number: l.number, need: need}
}

// unnoticed is how long a call may wait without an event.
const unnoticed = 300 * time.Millisecond

// await waits until it is the turn of w. The time does not count for limits of [awake].
func (l *limiter) await(ctx context.Context, w *waiter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.ready, w.since = make(chan struct{}), time.Now()
	w.ticket, w.err, w.reason, w.until = nil, nil, paused, w.notUntil
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.dispatch()
	l.mu.Unlock()
	select {
	case <-w.ready:
		return w.err
	default:
	}
	defer awake.Pause(ctx)()
	defer func() {
		if waited := time.Since(w.since); w.ticket != nil && (waited >= unnoticed || w.refused > 0) {
			l.report(ctx, w, waited)
		}
	}()
	notice := time.NewTimer(unnoticed)
	defer notice.Stop()
	for {
		select {
		case <-w.ready:
			return w.err
		case <-notice.C:
			l.mu.Lock()
			body := event.Limited{Client: l.client, Model: l.model, Reason: string(w.reason), Until: w.until.UTC().Truncate(time.Millisecond), AtOnce: l.atOnce}
			l.mu.Unlock()
			if err := event.FromContext(ctx).Emit(ctx, body); err != nil {
				l.leave(w)
				return err
			}
		case <-ctx.Done():
			l.leave(w)
			return ctx.Err()
		}
	}
}

// report says that the wait of w is over. Who cannot take that learns of it by the next event.
func (l *limiter) report(ctx context.Context, w *waiter, waited time.Duration) {
	l.mu.Lock()
	body := event.Limited{Client: l.client, Model: l.model, Reason: string(w.reason), AtOnce: l.atOnce, Waited: waited.Milliseconds(), Refused: w.refused}
	l.mu.Unlock()
	w.refused = 0
	_ = event.FromContext(ctx).Emit(ctx, body)
}

// leave ends the wait of w.
func (l *limiter) leave(w *waiter) {
	l.mu.Lock()
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	began := w.ticket != nil
	if !began {
		l.update(func(*state) {})
		l.dispatch()
	}
	l.mu.Unlock()
	if began {
		l.end(w, func(s *state, _ time.Time) { s.release(l.id) })
	}
}

// end ends the call of w as change says.
func (l *limiter) end(w *waiter, change func(s *state, now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.update(func(s *state) { change(s, time.Now()) })
	l.atWork--
	if l.begun[w.run]--; l.begun[w.run] <= 0 {
		delete(l.begun, w.run)
	}
	l.dispatch()
}

// update changes the state. The caller has the lock.
func (l *limiter) update(change func(*state)) {
	l.store.update(func(s *state) {
		p, now := s.share(l.id), time.Now()
		p.Held, p.Waiting = l.atWork, 0 // an earlier change may be lost
		for _, w := range l.waiting {
			if !w.notUntil.After(now) {
				p.Waiting++
			}
		}
		change(s)
		l.others = len(s.Shares) > 1
		if p.Held == 0 && p.Waiting == 0 {
			delete(s.Shares, l.id)
		}
		l.known, l.output, l.atOnce = len(s.Buckets) > 0, s.Output, s.AtOnce
	})
}

// look has the calls begin that may.
func (l *limiter) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dispatch()
}

// dispatch has the calls begin that may. The caller has the lock.
func (l *limiter) dispatch() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	for {
		now := time.Now()
		w, wait := l.next(now)
		if w != nil {
			wait = l.begin(w, now)
		}
		if wait == 0 && w == nil {
			return
		}
		if wait > 0 {
			l.timer = time.AfterFunc(wait, l.look)
			return
		}
	}
}

// begin has w begin if it may, and else returns when it is worth asking again.
func (l *limiter) begin(w *waiter, now time.Time) (wait time.Duration) {
	var why reason
	l.update(func(s *state) {
		s.Client, s.Model = l.client, l.model
		if away := s.outOfReach(now); away > 0 && (l.fallback || w.priority < High) {
			why, wait = outage, away
			return
		}
		w.ticket, why, wait = s.admit(now, l.id, l.limits, w.need, w.since)
		if w.ticket != nil {
			s.share(l.id).Waiting--
		}
	})
	giveUp := why == outage && l.fallback || (why == paused || why == outage) && wait > l.limits.ParkAfter
	if w.ticket == nil && !giveUp {
		for _, other := range l.waiting {
			if !other.notUntil.After(now) {
				other.reason, other.until = why, now.Add(wait)
			}
		}
		if l.others {
			wait = min(wait, l.poll)
		}
		return wait
	}
	switch {
	case w.ticket == nil && why == outage:
		w.err = &provider.Error{Kind: provider.Transient, RetryAfter: wait, Away: true, Msg: "the provider did not answer the last calls"}
	case w.ticket == nil:
		w.err = &provider.Error{Kind: provider.RateLimited, Status: 429, RetryAfter: wait, Msg: "the provider has refused an earlier call"}
	default:
		l.atWork++
		l.begun[w.run]++
		l.turns.Count(w.priority)
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	close(w.ready)
	return 0
}

// lowEvery is of how many calls that begin one at least is of low priority, if one waits.
const lowEvery = 10

// Turns is how many calls have begun since one of low priority did.
type Turns int

// Count counts a call that begins.
func (n *Turns) Count(p Priority) {
	if *n++; p == Low {
		*n = 0
	}
}

// Compare compares the priorities of two calls that wait: it is negative if the first one begins before the second one.
func (n Turns) Compare(a, b Priority) int {
	if n >= lowEvery-1 && (a == Low) != (b == Low) {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

// next returns the call whose turn is next, or else when the next refused call continues, 0 if none does.
func (l *limiter) next(now time.Time) (first *waiter, wait time.Duration) {
	order := func(a, b *waiter) int {
		return cmp.Or(l.turns.Compare(a.priority, b.priority), cmp.Compare(l.begun[a.run], l.begun[b.run]), cmp.Compare(a.number, b.number))
	}
	for _, w := range l.waiting {
		left := w.notUntil.Sub(now)
		switch {
		case left > 0 && (wait == 0 || left < wait):
			wait = left
		case left <= 0 && (first == nil || order(w, first) < 0):
			first = w
		}
	}
	return first, wait
}
