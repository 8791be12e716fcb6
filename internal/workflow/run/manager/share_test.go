package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/memstore"
)

// database is what the stores of several servers share.
type database struct {
	*memstore.Store

	mu       sync.Mutex
	held     map[string]*sharedJournal // by run
	answered map[string]bool           // runs that were answered since they were opened
	heard    []chan string             // of each Changes
}

func newDatabase() *database {
	return &database{Store: memstore.New(nil), held: make(map[string]*sharedJournal), answered: make(map[string]bool)}
}

// changed says that something of a run was written.
func (d *database) changed(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.heard {
		select {
		case c <- id:
		default: // more than anything in these tests
		}
	}
}

// sharedStore is the [run.Shared] of a server.
type sharedStore struct{ *database }

var _ run.Shared = sharedStore{}

func (s sharedStore) Close() error { return nil }

func (s sharedStore) hold(j run.Journal) run.Journal {
	held := &sharedJournal{Journal: j, of: s}
	held.lease, held.cancel = context.WithCancelCause(j.Lease())
	s.mu.Lock()
	s.held[j.ID()] = held
	delete(s.answered, j.ID())
	s.mu.Unlock()
	s.changed(j.ID())
	return held
}

func (s sharedStore) Create(ctx context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	j, err := s.Store.Create(ctx, info, start)
	if err != nil {
		return nil, err
	}
	return s.hold(j), nil
}

func (s sharedStore) Open(ctx context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	j, found, err := s.Store.Open(ctx, id, unless...)
	if err != nil {
		return nil, found, err
	}
	return s.hold(j), found, nil
}

func described(i run.Info) run.Info {
	i.Queued = i.Served && i.Status == run.Running && !i.Active && i.Gap == nil
	return i
}

func (s sharedStore) Info(ctx context.Context, id string) (run.Info, error) {
	info, err := s.Store.Info(ctx, id)
	return described(info), err
}

func (s sharedStore) History(ctx context.Context, id string) (run.History, error) {
	h, err := s.Store.History(ctx, id)
	h.Info = described(h.Info)
	return h, err
}

// Answer makes the run ready.
func (s sharedStore) Answer(ctx context.Context, id, question string, r run.Reply) error {
	defer s.changed(id)
	s.mu.Lock()
	s.answered[id] = true
	s.mu.Unlock()
	return s.Store.Answer(ctx, id, question, r)
}

func (s sharedStore) Changes(ctx context.Context, changed func(id string)) error {
	heard := make(chan string, 1000)
	s.mu.Lock()
	s.heard = append(s.heard, heard)
	s.mu.Unlock()
	changed("")
	for {
		select {
		case id := <-heard:
			changed(id)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s sharedStore) Ready(ctx context.Context, limit int) (ids []string, err error) {
	infos, err := s.Runs(ctx, run.Query{Unfinished: true})
	slices.SortStableFunc(infos, func(a, b run.Info) int { return a.Updated.Compare(b.Updated) })
	for _, info := range infos {
		due := func(at time.Time) bool { return !at.IsZero() && !at.After(time.Now()) }
		ready := info.Status == run.Running
		if info.Status == run.Suspended {
			waiting, _ := s.Pending(ctx, info.ID)
			s.mu.Lock()
			ready = s.answered[info.ID] || due(info.Until) || slices.ContainsFunc(waiting, func(p run.Pending) bool { return due(p.Deadline) })
			s.mu.Unlock()
		}
		if ready && info.Served && !info.Active && info.Gap == nil && len(ids) < limit {
			ids = append(ids, info.ID)
		}
	}
	return ids, err
}

func (s sharedStore) Cancel(_ context.Context, id string, keep bool) (asked bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.held[id]; j != nil {
		j.cancel(run.CancelCause(keep))
		return true, nil
	}
	return false, nil
}

// sharedJournal is the journal of a sharedStore.
type sharedJournal struct {
	run.Journal
	of     sharedStore
	lease  context.Context
	cancel context.CancelCauseFunc
}

func (j *sharedJournal) Lease() context.Context { return j.lease }

func (j *sharedJournal) Asked(ctx context.Context, p run.Pending) error {
	defer j.of.changed(j.ID())
	return j.Journal.Asked(ctx, p)
}

func (j *sharedJournal) Commit(ctx context.Context, c run.Checkpoint, v []run.Visit) error {
	defer j.of.changed(j.ID())
	return j.Journal.Commit(ctx, c, v)
}

func (j *sharedJournal) Close() error {
	err := j.Journal.Close()
	j.of.mu.Lock()
	if j.of.held[j.ID()] == j {
		delete(j.of.held, j.ID())
	}
	j.of.mu.Unlock()
	j.of.changed(j.ID())
	return err
}

// fleet is servers on one database.
type fleet struct {
	*database
	t       *testing.T
	waking  sync.WaitGroup
	servers []*host
}

// newFleet starts n servers of a number of turns each. At the end of the test, end is to be called.
func newFleet(t *testing.T, n, turns int, work map[string]func(context.Context, *run.Frame) error) *fleet {
	f := &fleet{database: newDatabase(), t: t}
	for range n {
		h := hostOn(t, sharedStore{f.database}, turns, work)
		f.servers = append(f.servers, h)
		f.waking.Go(func() { h.Wake(t.Context()) })
	}
	synctest.Wait()
	return f
}

func (f *fleet) end() {
	stop, cancel := context.WithCancel(f.t.Context())
	cancel()
	for _, h := range f.servers {
		h.Shutdown(stop)
	}
	f.waking.Wait()
}

// statuses returns how often each status is on record.
func (f *fleet) statuses() map[run.Status]int {
	f.t.Helper()
	infos, err := f.Runs(f.t.Context(), run.Query{})
	if err != nil {
		f.t.Error(err)
	}
	count := make(map[run.Status]int)
	for _, info := range infos {
		if info.Active && info.Status != run.Running {
			f.t.Errorf("run %s is %s and held", info.ID, info.Status)
		}
		count[info.Status]++
	}
	return count
}

// TestShare begins many runs at one of three servers: all of them work at once, none on more than it has turns for.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *fleet
		var mu sync.Mutex
		most := make([]int, 3)
		f = newFleet(t, 3, 2, map[string]func(context.Context, *run.Frame) error{
			"second": func(context.Context, *run.Frame) error {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				for i, h := range f.servers {
					most[i] = max(most[i], len(h.Active()))
				}
				return nil
			},
		})
		began := time.Now()
		ids := make([]string, 60)
		for i := range ids {
			ids[i] = f.servers[0].begin("second")
		}
		for i, id := range ids {
			if status := f.servers[i%3].ended(id); status != run.Done {
				t.Errorf("run %d is %s", i, status)
			}
			if got, want := f.servers[(i+1)%3].collect(id, 0), []string{"1 started", "2 finished"}; !slices.Equal(got, want) {
				t.Errorf("frames %q, want %q", got, want)
			}
		}
		if took := time.Since(began); took > 12*time.Second { // 10 s of work, and the time between runs
			t.Errorf("it took %v", took)
		}
		if !slices.Equal(most, []int{2, 2, 2}) {
			t.Errorf("at work at once: %v", most)
		}
		f.end()
	})
}

// TestShareVerbs watches, answers, cancels and waits for runs that are at work elsewhere, or nowhere.
func TestShareVerbs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := func(ctx context.Context, f *run.Frame) error {
			q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
			answer, err := q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Go?"})
			if err != nil {
				time.Sleep(time.Second) // other work
				return err
			}
			return say(ctx, f, answer)
		}
		f := newFleet(t, 2, 1, map[string]func(context.Context, *run.Frame) error{
			"wait": func(ctx context.Context, _ *run.Frame) error { <-ctx.Done(); return context.Cause(ctx) },
			"ask":  asks,
		})
		a, b := f.servers[0], f.servers[1]
		var watching sync.WaitGroup
		watch := func(h *host, id string, want ...string) {
			watching.Go(func() {
				if got := h.collect(id, 0); !slices.Equal(got, want) {
					t.Errorf("frames %q, want %q", got, want)
				}
			})
		}
		asked := a.begin("ask")
		watch(b, asked, "1 started", "2 question", "3 finished", "4 started", "5 answer", "6 warning", "7 finished")
		time.Sleep(time.Second / 2)
		if later, err := b.Answer(t.Context(), asked, manager.Answers{Texts: map[string]string{"q": "yes"}}); err != nil || !later {
			t.Errorf("an answer beside the work elsewhere: %v, %v", later, err)
		}
		if _, err := b.Answer(t.Context(), asked, manager.Answers{Texts: map[string]string{"q": "no"}}); fault.CodeOf(err) != fault.Usage {
			t.Errorf("answered again: %v", err)
		}
		time.Sleep(2 * time.Second)
		if status := b.ended(asked); status != run.Done {
			t.Errorf("the run is %s", status)
		}
		resting := a.begin("ask")
		if status := b.ended(resting); status != run.Suspended {
			t.Errorf("the run is %s", status)
		}
		if later, err := b.Answer(t.Context(), resting, manager.Answers{Texts: map[string]string{"q": "yes"}}); err != nil || later {
			t.Errorf("an answer to a run that rests: %v, %v", later, err)
		}
		if status := a.ended(resting); status != run.Done {
			t.Errorf("the run is %s", status)
		}

		first, second := a.begin("wait"), a.begin("wait") // which b takes
		time.Sleep(time.Second)
		refused := new(run.RefusedError)
		if _, err := b.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: first}}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "is at work") {
			t.Errorf("resumed while it is at work elsewhere: %v", err)
		}
		queued := a.begin("wait") // which none does
		if info, err := b.Manager.Store().Info(t.Context(), queued); err != nil || !info.Queued || info.Active {
			t.Errorf("the third run: %+v, %v", info, err)
		}
		answered := a.begin("ask")
		for _, id := range []string{queued, first, second} {
			watch(a, id, map[bool][]string{true: {"1 finished"}, false: {"1 started", "2 finished"}}[id == queued]...)
			watch(b, id, map[bool][]string{true: {"1 finished"}, false: {"1 started", "2 finished"}}[id == queued]...)
			began := time.Now()
			if err := b.Cancel(t.Context(), id); err != nil || time.Since(began) > time.Second {
				t.Errorf("canceling took %v: %v", time.Since(began), err)
			}
			if info, err := f.Info(t.Context(), id); err != nil || info.Status != run.Canceled || info.Active {
				t.Errorf("run %s: %+v, %v", id, info, err)
			}
			synctest.Wait() // the run may be noted as at work where it was, for a moment
			ended := new(run.EndedError)
			if err := a.Cancel(t.Context(), id); !errors.As(err, &ended) {
				t.Errorf("canceled again: %v", err)
			}
		}
		if status := b.ended(answered); status != run.Suspended { // its turn came
			t.Errorf("the last run is %s", status)
		}
		watching.Wait()
		f.end()
	})
}

// TestShareOutlivesServers shuts a server down, and has another lose its leases, while runs work and wait.
func TestShareOutlivesServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		made := make(map[string]int)
		f := newFleet(t, 3, 2, map[string]func(context.Context, *run.Frame) error{
			"step": func(ctx context.Context, f *run.Frame) error {
				_, err := steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Script, Key: "work"}, func(context.Context) (string, error) {
					mu.Lock()
					defer mu.Unlock()
					made[f.Events.Run]++
					return "", nil
				})
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
				return err
			},
		})
		ids := make([]string, 8)
		for i := range ids {
			ids[i] = f.servers[0].begin("step")
		}
		time.Sleep(3 * time.Second)
		stop, cancel := context.WithCancel(t.Context())
		cancel()
		f.servers[0].Shutdown(stop)
		for _, a := range f.servers[1].Active() { // which find that when they write
			if err := f.Orphan(a.ID); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		if n := len(f.servers[1].Active()) + len(f.servers[2].Active()); n != 4 {
			t.Errorf("%d runs are at work a second later", n)
		}
		for _, id := range ids {
			if status := f.servers[2].ended(id); status != run.Done || made[id] != 1 {
				t.Errorf("run %s is %s, its step was made %d times", id, status, made[id])
			}
		}
		f.end()
	})
}

// TestSharePutsOff has a run that cannot go on in one of two servers.
func TestSharePutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := map[string]func(context.Context, *run.Frame) error{
			"here":  nil,
			"there": nil,
			"work":  func(context.Context, *run.Frame) error { time.Sleep(time.Second); return nil },
		}
		db := newDatabase()
		var mu sync.Mutex
		var tries []time.Duration
		began := time.Now()
		open := func(misses string, log *slog.Logger) *manager.Manager {
			var h host
			h.work = work
			service := &run.Service{
				Open: func(graph.Durability) (run.Store, error) { return sharedStore{db}, nil },
				Recall: func(_ context.Context, info run.Info, _ run.Checkpoint, c run.Continuation) (run.Job, error) {
					if info.Prompt == misses {
						mu.Lock()
						defer mu.Unlock()
						tries = append(tries, time.Since(began))
						return run.Job{}, fault.New(fault.Config, "the agent is not here")
					}
					job := h.job(info.Prompt)
					job.Info, job.Events = info, c.Events
					return job, nil
				},
			}
			return manager.New(manager.Options{
				Runs: func() *run.Service { return service }, Store: sharedStore{db}, Limit: 1, Log: log,
				Events: func(e event.Emitter) event.Scope { return event.NewScope(e, event.Source{}, nil) },
			})
		}
		var logged strings.Builder
		a := open("there", slog.New(slog.NewTextHandler(&logged, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		var waking sync.WaitGroup
		waking.Go(func() { a.Wake(ctx) })
		for _, prompt := range []string{"there", "work", "work"} { // of a server that died
			j, err := sharedStore{db}.Create(t.Context(), run.Info{Kind: run.ChatRun, Prompt: prompt, Served: true}, run.Checkpoint{})
			if err == nil {
				err = j.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		mu.Lock()
		if n := len(tries); n < 8 || n > 20 || tries[n-1]-tries[n-2] < 5*time.Minute || tries[1]-tries[0] > 15*time.Second {
			t.Errorf("tried at %v", tries)
		}
		mu.Unlock()
		infos, err := db.Runs(t.Context(), run.Query{})
		if err != nil || infos[0].Status != run.Done || infos[1].Status != run.Done || infos[2].Status != run.Running {
			t.Errorf("%+v, %v", infos, err)
		}
		b := open("here", nil)
		waking.Go(func() { b.Wake(ctx) })
		if info, err := b.Wait(t.Context(), infos[2].ID); err != nil || info.Status != run.Done {
			t.Errorf("in the other server: %+v, %v", info, err)
		}
		if n := strings.Count(logged.String(), "cannot resume a run on this server"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &logged)
		}
		a.Shutdown(t.Context())
		b.Shutdown(t.Context())
		cancel()
		waking.Wait()
	})
}

// TestShareWakes has runs go on by themselves, once, in any of the servers.
func TestShareWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work, did := sleepers()
		f := newFleet(t, 2, 1, work)
		for _, prompt := range []string{"question", "provider", "human"} {
			f.servers[0].begin(prompt)
		}
		time.Sleep(3 * time.Hour)
		if got, want := did(), []string{"provider: back", "question: no"}; !slices.Equal(got, want) {
			t.Errorf("at the end %q, want %q", got, want)
		}
		if got := fmt.Sprint(f.statuses()); got != "map[done:2 suspended:1]" {
			t.Errorf("at the end %s", got)
		}
		f.end()
	})
}
