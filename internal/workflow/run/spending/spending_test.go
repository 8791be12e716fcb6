package spending_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/spending"
	"loki/internal/workflow/run/sqlite"
)

// clock is a time that tests set.
type clock struct{ at atomic.Pointer[time.Time] }

func newClock(at time.Time) *clock {
	c := new(clock)
	c.set(at)
	return c
}

func (c *clock) set(at time.Time) { c.at.Store(&at) }
func (c *clock) now() time.Time   { return *c.at.Load() }

func start(t *testing.T, store run.Entries, l spending.Limits, now func() time.Time) *spending.Service {
	t.Helper()
	s := spending.Start(t.Context(), store, l, now)
	t.Cleanup(s.Close)
	return s
}

// stores returns what opens a store, for each kind, once for each server.
func stores(t *testing.T) map[string]func() run.Store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "runs.db")
	memory := memstore.New(nil)
	all := map[string]func() run.Store{
		"memory": func() run.Store { return memory },
		"files": func() run.Store {
			s, err := sqlite.Open(file, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
	all["PostgreSQL"] = nil // which has a database for each test
	return all
}

func ann(key string) run.Info {
	return run.Info{Agent: "digest", Owner: &auth.Owner{Subject: "ann/1", KeyID: key}}
}

func tokens(n int) chat.Usage { return chat.Usage{InputTokens: n} }

// TestManyAtOnce has 50 calls at two servers reach a limit at once. What fits is done, and nothing else.
func TestManyAtOnce(t *testing.T) {
	for kind, open := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			if kind == "PostgreSQL" {
				address := postgrestest.Database(t)
				open = func() run.Store {
					db, err := postgres.Open(address, postgres.Options{})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(db.Close)
					return runsdb.New(db, runsdb.Options{})
				}
			}
			l := spending.Limits{spending.SubjectDay: {Tokens: 105}, spending.TotalDay: {Tokens: 1000}}
			servers := []*spending.Service{start(t, open(), l, time.Now), start(t, open(), l, time.Now)}
			var spent, done, refused atomic.Int64
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					settle, err := servers[i%2].Reserver(ann("k"))(t.Context(), run.Call{Least: tokens(5), Most: tokens(10), Bounded: true})
					if e, is := errors.AsType[*run.SpentError](err); is && fault.CodeOf(err) == fault.Limit && e.At.After(time.Now()) {
						refused.Add(1)
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					settle(tokens(10))
					spent.Add(10)
					done.Add(1)
				})
			}
			all.Wait()
			if spent.Load() > 110 || done.Load()+refused.Load() != 50 || done.Load() < 10 {
				t.Errorf("%d tokens spent, %d calls done, %d refused", spent.Load(), done.Load(), refused.Load())
			}
			if err := servers[1].Check(t.Context(), ann("k")); done.Load() == 11 && fault.CodeOf(err) != fault.Limit {
				t.Errorf("new work: %v", err)
			}
			if err := servers[1].Check(t.Context(), run.Info{Owner: &auth.Owner{Subject: "ann", KeyID: "k"}}); err != nil {
				t.Errorf("another subject: %v", err)
			}
		})
	}
}

// TestPeriods: a limit begins again with its period, and one that is new knows what was used before.
func TestPeriods(t *testing.T) {
	now := newClock(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC))
	store := memstore.New(nil)
	use := func(s *spending.Service, i run.Info, n int) error {
		settle, err := s.Reserver(i)(t.Context(), run.Call{Least: tokens(n), Most: tokens(n), Bounded: true})
		if err == nil {
			settle(tokens(n))
		}
		return err
	}
	before := spending.Start(t.Context(), store, nil, now.now)
	if err := use(before, ann("k1"), 60); err != nil {
		t.Fatal(err)
	}
	before.Close()
	s := start(t, store, spending.Limits{spending.KeyDay: {Tokens: 100}, spending.SubjectMonth: {Tokens: 150}}, now.now)
	fails := func(i run.Info, n int, name string, at time.Time) {
		t.Helper()
		err := use(s, i, n)
		if e, is := errors.AsType[*run.SpentError](err); !is || !e.At.Equal(at) || !strings.Contains(fault.HintOf(err), name) {
			t.Errorf("%v (%s), want one of %s at %v", err, fault.HintOf(err), name, at)
		}
	}
	year := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	fails(ann("k1"), 50, spending.KeyDay, year)
	if err := use(s, ann("k2"), 80); err != nil {
		t.Error(err)
	}
	fails(ann("k3"), 50, spending.SubjectMonth, year)
	if err := use(s, run.Info{}, 1000); err != nil {
		t.Errorf("without an owner: %v", err)
	}
	spent, err := s.Status(t.Context())
	if err != nil || !slices.ContainsFunc(spent, func(l spending.Spent) bool { return l.Subject == "ann/1" && l.Percent == 93 && l.Span == "month" }) {
		t.Errorf("%+v, %v", spent, err)
	}
	now.set(year)
	if err := use(s, ann("k1"), 90); err != nil {
		t.Errorf("in the next period: %v", err)
	}

	sums, err := s.Usage(t.Context(), "key", year.AddDate(0, 0, -1), year, nil)
	if err != nil || len(sums) != 3 || sums[0].Name != "" || sums[1] != (spending.Sum{Name: "k1", Calls: 2, Usage: tokens(150)}) || sums[2].Usage != tokens(80) {
		t.Errorf("%+v, %v", sums, err)
	}
	other := "bob"
	if sums, err := s.Usage(t.Context(), "agent", year.AddDate(0, 0, -1), year, &other); err != nil || len(sums) != 0 {
		t.Errorf("of another subject: %+v, %v", sums, err)
	}
}

// TestNoRoom: when a call did not fit, new work of its agent for its subject is refused, until an hour is over, one of its calls fits, or the
// limit is raised. Other work is not.
func TestNoRoom(t *testing.T) {
	now := newClock(time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC))
	s := start(t, memstore.New(nil), spending.Limits{spending.TotalDay: {Tokens: 3500}}, now.now)
	use := func(i run.Info, n int) error {
		settle, err := s.Reserver(i)(t.Context(), run.Call{Least: tokens(n), Most: tokens(n), Bounded: true})
		if err == nil {
			settle(tokens(n))
		}
		return err
	}
	check := func(when string, i run.Info, refused bool) {
		t.Helper()
		if err := s.Check(t.Context(), i); (fault.CodeOf(err) == fault.Limit) != refused || !refused && err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	digest, short := ann("k"), ann("k")
	short.Agent = "short"
	bob := run.Info{Agent: "digest", Owner: &auth.Owner{Subject: "bob"}}
	if err := use(digest, 3000); err != nil {
		t.Fatal(err)
	}
	check("nothing was refused", digest, false)
	turnAway := func() {
		t.Helper()
		if err := use(digest, 740); fault.CodeOf(err) != fault.Limit {
			t.Fatal(err)
		}
		check("after a refusal", digest, true)
	}
	turnAway()
	check("another agent", short, false)
	check("another subject", bob, false)
	check("without an agent", run.Info{}, false)
	if err := use(digest, 10); err != nil {
		t.Fatal(err)
	}
	check("after a call that fits", digest, false)
	turnAway()
	if s.SetLimits(spending.Limits{spending.TotalDay: {Tokens: 3500}}) || !s.SetLimits(spending.Limits{spending.TotalDay: {Tokens: 3749}}) {
		t.Error("it is not known whether limits have changed")
	}
	check("raised too little", digest, true)
	s.SetLimits(spending.Limits{spending.TotalDay: {Tokens: 3750}})
	check("raised enough", digest, false)
	s.SetLimits(spending.Limits{spending.TotalDay: {Tokens: 3500}})
	check("as before", digest, true)
	now.set(now.now().Add(time.Hour))
	check("after an hour", digest, false)
	turnAway()
	now.set(time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC))
	check("the next day", digest, false)
}

// TestOrder: calls that wait have their turns by priority, and each says that it waits, once, and that its wait is over.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spending.Start(t.Context(), memstore.New(nil), spending.Limits{spending.TotalDay: {Tokens: 1000}}, nil)
		defer s.Close()
		call := run.Call{Least: tokens(1), Most: tokens(1)} // has no bound, and so works alone
		settle, err := s.Reserver(run.Info{})(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []governor.Priority
		var told []event.Limited
		emitter := event.Func(func(_ context.Context, ev event.Event) error {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, ev.Body.(event.Limited))
			return nil
		})
		var all sync.WaitGroup
		for _, p := range []governor.Priority{governor.Low, governor.Normal, governor.High, governor.Normal} {
			all.Go(func() {
				ctx := event.NewContext(governor.With(t.Context(), p), event.NewScope(emitter, event.Source{}, nil))
				settle, err := s.Reserver(run.Info{})(ctx, call)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, p)
				mu.Unlock()
				time.Sleep(time.Second)
				settle(tokens(1))
			})
			time.Sleep(time.Second)
		}
		mu.Lock()
		if len(told) != 4 || told[0] != (event.Limited{Reason: "spending"}) {
			t.Errorf("while they wait: %+v", told)
		}
		mu.Unlock()
		settle(tokens(1))
		all.Wait()
		if !slices.Equal(order, []governor.Priority{governor.High, governor.Normal, governor.Normal, governor.Low}) {
			t.Errorf("in the order %v", order)
		}
		if len(told) != 8 || told[4].Waited < 1000 || told[4].Reason != "spending" {
			t.Errorf("at the end: %+v", told)
		}
	})
}

// TestDeadServer: what a server that died has reserved is free soon, and that of one that lives is not.
func TestDeadServer(t *testing.T) {
	now := newClock(time.Now())
	store := memstore.New(now.now)
	l := spending.Limits{spending.TotalDay: {Tokens: 10}}
	call := run.Call{Least: tokens(1), Most: tokens(10), Bounded: true}
	dead := spending.Start(t.Context(), store, l, now.now)
	if _, err := dead.Reserver(run.Info{})(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	dead.Close() // it gives no sign of life any more
	s := start(t, store, l, now.now)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Reserver(run.Info{})(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("beside one at work: %v", err)
	}
	now.set(now.now().Add(21 * time.Second)) // the next sign of life of s is 20 s after the last one of dead
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	settle, err := s.Reserver(run.Info{})(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	settle(tokens(10))
}

func TestRead(t *testing.T) {
	read := func(text string) (spending.Limits, error) {
		doc, err := yamldoc.Parse("config.yaml", []byte(text))
		if err != nil {
			return nil, err
		}
		l := spending.Read(doc.Root().Map())
		return l, doc.Err()
	}
	l, err := read("subject_day: {usd: 2.5, tokens: 1000}\ntotal_day: {usd: 20}\n")
	if err != nil || len(l) != 2 || l[spending.SubjectDay] != (graph.Budget{USD: 2.5, Tokens: 1000}) {
		t.Errorf("%v, %v", l, err)
	}
	for _, bad := range []string{"subject_day: {}", "subject_day: {usd: -1}", "subject_day: {tokens: 0}", "subject_day: 3", "subject_week: {usd: 1}"} {
		if _, err := read(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
