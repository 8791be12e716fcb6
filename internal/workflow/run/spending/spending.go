package spending

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/awake"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

const (
	flushEvery = time.Second            // from one write of what was used to the next
	beatEvery  = 5 * time.Second        // from one sign of life to the next
	deadAfter  = 20 * time.Second       // without a sign of life the calls of a server are over
	pollEvery  = 250 * time.Millisecond // from one look at the calls of other servers to the next
	keepUsage  = 400 * 24 * time.Hour   // for which what was used is kept
	noticed    = 300 * time.Millisecond // how long a call waits before an event says so
	refusedFor = time.Hour              // without new work of an agent with a call that did not fit
)

// beatKey begins the keys of the signs of life of servers.
const beatKey = "spending/server/"

// counter is what is known of an account.
type counter struct {
	Used  chat.Usage          `json:"used"`
	Calls map[string]run.Call `json:"calls,omitempty"` // at work, by server and number

	Refused map[string]refusal `json:"refused,omitempty"` // by whose work it was, see [workOf]
}

// refusal is a call that did not fit, after which none of the same work did.
type refusal struct {
	At    time.Time  `json:"at"`
	Least chat.Usage `json:"least"`
}

// workOf returns what names the runs of an agent for a subject, "" without an agent.
func workOf(i run.Info) string {
	if i.Agent == "" || i.Owner == nil {
		return i.Agent
	}
	return i.Agent + " of " + i.Owner.Subject
}

// Service counts and bounds what the runs of a server use. It implements [run.Spending]. Its methods may be called from several goroutines.
type Service struct {
	store run.Entries
	now   func() time.Time
	self  string // this server
	calls atomic.Int64
	end   context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex // guards what follows
	limits  Limits
	lines   map[string]*line
	unsaved map[origin]used // used and not written yet
}

// line is where the calls of this server wait that share an account. The mutex of the service guards it.
type line struct {
	waiting []*waiter // in order of time
	turns   governor.Turns
	changed chan struct{} // closed, and made anew, when a call has ended or left the line
}

// waiter is a call in a line.
type waiter struct{ priority governor.Priority }

// ring has the calls of the line look again.
func (l *line) ring() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Start begins to serve a store until Close is called. A nil now means [time.Now].
func Start(ctx context.Context, store run.Entries, limits Limits, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	s := &Service{
		store: store, now: now, self: rand.Text(), done: make(chan struct{}),
		limits: limits, lines: make(map[string]*line), unsaved: make(map[origin]used),
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	_ = s.beat(ctx) // before the first call
	go s.work(ctx)  // ends with Close, which waits for it
	return s
}

// Close ends the service, and writes what is not written yet, unless the store is away. Nothing is at work any more.
func (s *Service) Close() {
	s.end()
	<-s.done
	ctx, cancel := context.WithTimeout(context.Background(), flushEvery)
	defer cancel()
	_ = s.flush(ctx)
}

// SetLimits replaces the limits, and reports whether they were others.
func (s *Service) SetLimits(l Limits) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !maps.Equal(s.limits, l)
	s.limits = l
	return changed
}

// current returns the limits.
func (s *Service) current() Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits
}

// work writes what was used, and signs of life, until ctx ends. What cannot be written is written later.
func (s *Service) work(ctx context.Context) {
	defer close(s.done)
	last, day := time.Now(), time.Time{}
	for {
		if now := time.Now(); now.Sub(day) > 24*time.Hour {
			day = now
			_ = s.store.DropEntries(ctx, beatKey, s.now().Add(-24*time.Hour))
			_ = s.store.DropEntries(ctx, usageKey, s.now().Add(-keepUsage))
			_ = s.store.DropEntries(ctx, "spending/", s.now().Add(-keepUsage))
		}
		if now := time.Now(); now.Sub(last) >= beatEvery {
			last = now
			_ = s.beat(ctx)
		}
		_ = s.flush(ctx)
		if retry.Sleep(ctx, flushEvery) != nil {
			return
		}
	}
}

// beat writes a sign of life.
func (s *Service) beat(ctx context.Context) error {
	if len(s.current()) == 0 {
		return nil
	}
	return change(ctx, s.store, beatKey+s.self, func(*struct{}, bool) (bool, error) { return true, nil })
}

// change changes an entry: do gets its document, and whether there is one, and reports whether it is to be written. It is called again
// if another process was faster.
func change[T any](ctx context.Context, store run.Entries, key string, do func(doc *T, stored bool) (write bool, err error)) error {
	var p run.Patience
	return p.Do(ctx, nil, func() error {
		for {
			found, err := store.Entries(ctx, key, 1)
			if err != nil {
				return err
			}
			e, doc := run.Entry{Key: key}, new(T)
			if len(found) > 0 {
				e.Version = found[0].Version
				if err := json.Unmarshal(found[0].Doc, doc); err != nil {
					return fmt.Errorf("entry %s: %w", key, err)
				}
			}
			if write, err := do(doc, e.Version > 0); err != nil || !write {
				return err
			}
			if e.Doc, err = json.Marshal(doc); err != nil {
				return err
			}
			err = store.Put(ctx, e)
			if _, faster := errors.AsType[*run.ConflictError](err); !faster {
				return err
			}
		}
	})
}

// counter changes the counter of an account. A new one begins with what is on record for the period.
func (s *Service) counter(ctx context.Context, a account, do func(c *counter) (write bool, err error)) error {
	return change(ctx, s.store, a.key(), func(c *counter, stored bool) (bool, error) {
		if !stored {
			known, err := s.usageOf(ctx, a)
			if err != nil {
				return false, err
			}
			c.Used = known
		}
		if c.Calls == nil {
			c.Calls = make(map[string]run.Call)
		}
		if c.Refused == nil {
			c.Refused = make(map[string]refusal)
		}
		return do(c)
	})
}

// exceededError returns the error of work for which an account has nothing left.
func (a account) exceededError() error {
	err := &run.SpentError{At: a.until, Err: fmt.Errorf("too little is left of the limit of %s, which resets at %s", a, a.until.Format(time.RFC3339))}
	return fault.Wrap(fault.Limit, err, "").WithHint("wait until then; the server's configuration sets the limit: api.spending.%s", a.name)
}

// Check implements [run.Spending].
func (s *Service) Check(ctx context.Context, i run.Info) error {
	for _, a := range s.current().of(i.Owner, s.now()) {
		err := s.counter(ctx, a, func(c *counter) (bool, error) {
			if a.limit.USD > 0 && c.Used.Cost >= a.limit.USD || a.limit.Tokens > 0 && c.Used.Total() >= a.limit.Tokens {
				return false, a.exceededError()
			}
			r := c.Refused[workOf(i)]
			if s.now().Sub(r.At) >= refusedFor {
				return false, nil
			}
			_, err := s.admit(a, c, run.Call{Least: r.Least})
			return false, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Reserver implements [run.Spending].
func (s *Service) Reserver(i run.Info) run.Reserver {
	return func(ctx context.Context, c run.Call) (settle func(chat.Usage), err error) {
		hold := fmt.Sprintf("%s/%d", s.self, s.calls.Add(1))
		accounts := s.current().of(i.Owner, s.now())
		settle = func(u chat.Usage) { // the accounts whose turn has come
			s.count(i, u)
		}
		for _, a := range accounts {
			if err := s.reserve(ctx, a, hold, workOf(i), c); err != nil {
				settle(chat.Usage{})
				return nil, err
			}
			before := settle
			settle = func(u chat.Usage) {
				s.settle(ctx, a, hold, u)
				before(u)
			}
		}
		return settle, nil
	}
}

// reserve reserves a call of an account, and waits while it does not fit beside others that are at work. Calls that wait here have their turns
// in the order of their priorities.
func (s *Service) reserve(ctx context.Context, a account, hold, work string, c run.Call) error {
	l, w := s.line(a), &waiter{governor.PriorityOf(ctx)}
	s.mu.Lock()
	l.waiting = append(l.waiting, w)
	s.mu.Unlock()
	reserved := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.waiting = slices.DeleteFunc(l.waiting, func(o *waiter) bool { return o == w })
		if reserved {
			l.turns.Count(w.priority)
		}
		l.ring()
	}()
	began, told := time.Now(), false
	resume := func() {}
	defer func() { resume() }()
	for tries := 0; ; tries++ {
		s.mu.Lock()
		changed := l.changed
		first := slices.MinFunc(l.waiting, func(a, b *waiter) int { return l.turns.Compare(a.priority, b.priority) }) == w
		s.mu.Unlock()
		if first {
			wait, err := s.try(ctx, a, hold, work, c)
			if reserved = err == nil && !wait; told && !wait {
				_ = event.FromContext(ctx).Emit(ctx, event.Limited{Reason: "spending", Waited: time.Since(began).Milliseconds()}) // the next event fails as well
			}
			if !wait {
				return err
			}
		}
		if tries == 0 {
			resume = awake.Pause(ctx)
		}
		if !told && time.Since(began) >= noticed {
			told = true
			if err := event.FromContext(ctx).Emit(ctx, event.Limited{Reason: "spending"}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try reserves a call of an account if it fits now, and reports whether it must wait.
func (s *Service) try(ctx context.Context, a account, hold, work string, c run.Call) (wait bool, err error) {
	var refused error
	err = s.counter(ctx, a, func(n *counter) (write bool, err error) {
		wait, refused = s.admit(a, n, c)
		if wait && s.bury(ctx, n) {
			wait, refused = s.admit(a, n, c)
			write = true
		}
		switch {
		case refused == nil && !wait:
			n.Calls[hold] = c
			delete(n.Refused, work)
			write = true
		case refused != nil && work != "":
			maps.DeleteFunc(n.Refused, func(_ string, r refusal) bool { return s.now().Sub(r.At) >= refusedFor })
			n.Refused[work] = refusal{s.now(), c.Least}
			write = true
		}
		return write, nil
	})
	err = cmp.Or(err, refused)
	return wait && err == nil, err
}

// admit reports whether a call must wait for those at work. The error says that it does not fit at all.
func (s *Service) admit(a account, n *counter, c run.Call) (wait bool, err error) {
	others := make([]run.Call, 0, len(n.Calls))
	for _, o := range n.Calls {
		others = append(others, o)
	}
	wait, err = run.Admit(graph.Budget{USD: a.limit.USD, Tokens: a.limit.Tokens}, n.Used, others, c)
	if fault.CodeOf(err) == fault.Limit {
		err = a.exceededError()
	}
	return wait, err
}

// bury removes the calls of servers that give no sign of life, and reports whether there were any.
func (s *Service) bury(ctx context.Context, n *counter) (found bool) {
	beats, err := s.store.Entries(ctx, beatKey, 0)
	last := make(map[string]time.Time)
	for _, b := range beats {
		last[strings.TrimPrefix(b.Key, beatKey)] = b.At
	}
	own := last[s.self]
	if err != nil || own.IsZero() {
		return false
	}
	before := len(n.Calls)
	maps.DeleteFunc(n.Calls, func(hold string, _ run.Call) bool {
		server, _, _ := strings.Cut(hold, "/")
		return server != s.self && own.Sub(last[server]) > deadAfter
	})
	return len(n.Calls) < before
}

// settle ends a call of an account.
func (s *Service) settle(ctx context.Context, a account, hold string, used chat.Usage) {
	_ = s.counter(context.WithoutCancel(ctx), a, func(n *counter) (bool, error) { // it was tried for a minute
		delete(n.Calls, hold)
		n.Used = n.Used.Add(used)
		return true, nil
	})
	l := s.line(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.ring()
}

// line returns where the calls of an account wait.
func (s *Service) line(a account) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[a.name+"/"+a.who]
	if l == nil {
		l = &line{changed: make(chan struct{})}
		s.lines[a.name+"/"+a.who] = l
	}
	return l
}

// Spent is how much of a limit is used in its period.
type Spent struct {
	ID      string // of the limit, whom it bounds, and the period
	Thing   string // whom it bounds, such as "subject alice"
	Subject string // of a limit of a subject
	Span    string // "day" or "month"
	Percent int
}

// Status returns how much of each limit is used now.
func (s *Service) Status(ctx context.Context) (list []Spent, err error) {
	l := s.current()
	for _, name := range names {
		if l[name] == (graph.Budget{}) {
			continue
		}
		prefix := counterKey(name, l.account(name, "", s.now()).period)
		found, err := s.store.Entries(ctx, prefix, 0)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			var c counter
			who, nameErr := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(e.Key, prefix), "/"))
			if err := errors.Join(nameErr, json.Unmarshal(e.Doc, &c)); err != nil {
				return nil, fmt.Errorf("entry %s: %w", e.Key, err)
			}
			a, share := l.account(name, who, s.now()), 0.0
			if a.limit.USD > 0 {
				share = c.Used.Cost / a.limit.USD
			}
			if a.limit.Tokens > 0 {
				share = max(share, float64(c.Used.Total())/float64(a.limit.Tokens))
			}
			one := Spent{ID: e.Key, Thing: a.thing(), Span: a.span(), Percent: int(share * 100)}
			if name == SubjectDay || name == SubjectMonth {
				one.Subject = who
			}
			list = append(list, one)
		}
	}
	return list, nil
}
