package manager_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/sqlite"
)

// shared is a store that a service does not close.
type shared struct{ run.Store }

func (shared) Close() error { return nil }

// host is a manager on a file of runs.
type host struct {
	*manager.Manager
	t     testing.TB
	store run.Store

	work map[string]func(ctx context.Context, f *run.Frame) error // by prompt

	mu       sync.Mutex
	consents []bool // of the runs that went on; guarded by mu
}

// newHost returns a manager whose runs do what work says for their prompt.
func newHost(t testing.TB, path string, limit int, work map[string]func(context.Context, *run.Frame) error) *host {
	t.Helper()
	delay := time.Nanosecond
	if _, ok := t.(*testing.B); ok {
		delay = 10 * time.Millisecond // as in a server
	}
	var h *host
	store, err := sqlite.Open(path, sqlite.Options{EventDelay: delay, Wrote: func(id string) { h.Wrote(id) }})
	if err != nil {
		t.Fatal(err)
	}
	h = hostOn(t, store, limit, work)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		h.Shutdown(ctx)
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// hostOn is newHost on a store, which the caller closes after the manager.
func hostOn(t testing.TB, store run.Store, limit int, work map[string]func(context.Context, *run.Frame) error) *host {
	h := &host{t: t, store: store, work: work}
	service := &run.Service{
		Open: func(graph.Durability) (run.Store, error) { return shared{h.store}, nil },
		Recall: func(_ context.Context, info run.Info, _ run.Checkpoint, c run.Continuation) (run.Job, error) {
			h.mu.Lock()
			h.consents = append(h.consents, c.Yes)
			h.mu.Unlock()
			job := h.job(info.Prompt)
			job.Info, job.Events = info, c.Events
			return job, nil
		},
	}
	h.Manager = manager.New(manager.Options{
		Runs: func() *run.Service { return service }, Store: h.store, Limit: limit,
		Events: func(e event.Emitter) event.Scope { return event.NewScope(e, event.Source{}, nil) },
	})
	return h
}

// job returns the job of a run with a prompt.
func (h *host) job(prompt string) run.Job {
	job := run.Job{Info: run.Info{Kind: run.ChatRun, Prompt: prompt}, Durability: graph.DurabilityProcess}
	if h.Manager != nil {
		job.Events = h.Events()
	}
	job.Make = func(context.Context, run.Point) (run.Work, func() error, error) {
		return work{prompt, h.work[prompt]}, nil, nil
	}
	return job
}

// begin starts a run.
func (h *host) begin(prompt string) string {
	h.t.Helper()
	id, err := h.Start(h.t.Context(), h.job(prompt))
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// ended waits for a run and returns its status.
func (h *host) ended(id string) run.Status {
	h.t.Helper()
	info, err := h.Wait(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return info.Status
}

// work is the work of a test's run.
type work struct {
	name string
	do   func(ctx context.Context, f *run.Frame) error
}

func (w work) Started() event.Started { return event.Started{Model: w.name} }

func (w work) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	f.Steps()
	if w.do == nil {
		return run.Outcome{Output: w.name}, nil
	}
	err := w.do(ctx, f)
	return run.Outcome{Output: w.name}, err
}

// say emits a warning, which is an event on record.
func say(ctx context.Context, f *run.Frame, text string) error {
	return f.Events.Emit(ctx, event.Warning{Text: text})
}

// collect watches a run until it is over, and returns its frames as "number type".
func (h *host) collect(id string, after int) []string {
	var got []string
	for frame, err := range h.Watch(h.t.Context(), id, after) {
		if err != nil {
			h.t.Errorf("watching %s: %v", id, err)
			break
		}
		got = append(got, fmt.Sprintf("%d %s", frame.Number, frame.Type))
	}
	return got
}

func TestStart(t *testing.T) {
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 0, nil)
	ctx, cancel := context.WithCancel(t.Context())
	id, err := h.Start(ctx, h.job("hello"))
	cancel() // the run is not the caller's any more
	if err != nil {
		t.Fatal(err)
	}
	if status := h.ended(id); status != run.Done {
		t.Errorf("the run is %s", status)
	}
	if got, want := h.collect(id, 0), []string{"1 started", "2 finished"}; !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
	if active := h.Active(); len(active) > 0 {
		t.Errorf("still at work: %v", active)
	}
}

// TestPieces watches a run that emits pieces between events.
func TestPieces(t *testing.T) {
	watching := make(chan bool)
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 0, map[string]func(context.Context, *run.Frame) error{
		"talk": func(ctx context.Context, f *run.Frame) error {
			<-watching
			for i := range 3 {
				if err := errors.Join(say(ctx, f, fmt.Sprint(i)), f.Events.Emit(ctx, event.Delta{Text: "a"}), f.Events.Emit(ctx, event.Delta{Text: "b"})); err != nil {
					return err
				}
			}
			return nil
		},
	})
	id := h.begin("talk")
	want := []string{"1 started", "2 warning", "0 delta", "0 delta", "3 warning", "0 delta", "0 delta", "4 warning", "0 delta", "0 delta", "5 finished"}
	var watchers sync.WaitGroup
	var began sync.WaitGroup
	for range 20 {
		began.Add(1)
		watchers.Go(func() {
			var got []string
			for frame, err := range h.Watch(t.Context(), id, 0) {
				if err != nil {
					t.Error(err)
					return
				}
				if frame.Number == 1 {
					began.Done()
				}
				got = append(got, fmt.Sprintf("%d %s", frame.Number, frame.Type))
			}
			if !slices.Equal(got, want) {
				t.Errorf("frames %q, want %q", got, want)
			}
		})
	}
	began.Wait()
	close(watching)
	watchers.Wait()
	if got := h.collect(id, 3); !slices.Equal(got, []string{"4 warning", "5 finished"}) {
		t.Errorf("later: %q", got)
	}
}

// TestCancel cancels a run at work, one that waits for its turn, and one that is suspended.
func TestPanic(t *testing.T) {
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 1, map[string]func(context.Context, *run.Frame) error{
		"panic": func(context.Context, *run.Frame) error { panic("a mistake") },
		"work":  func(context.Context, *run.Frame) error { return nil },
	})
	id := h.begin("panic")
	if status := h.ended(id); status != run.Failed {
		t.Errorf("the run is %s", status)
	}
	if info, err := h.store.Info(t.Context(), id); err != nil || !strings.Contains(info.Error, "panic: a mistake") {
		t.Errorf("error %q, %v", info.Error, err)
	}
	unrecorded := h.job("work")
	unrecorded.Durability = graph.DurabilityOff
	if id, err := h.Start(t.Context(), unrecorded); err != nil || h.ended(id) != run.Done {
		t.Errorf("the next run, %v", err)
	}
}

func TestCancel(t *testing.T) {
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 1, map[string]func(context.Context, *run.Frame) error{
		"wait":    func(ctx context.Context, _ *run.Frame) error { <-ctx.Done(); return context.Cause(ctx) },
		"suspend": func(context.Context, *run.Frame) error { return fault.New(fault.Suspended, "later") },
	})
	first, queued := h.begin("wait"), h.begin("wait")
	active := h.Active()
	if len(active) != 2 || active[0].Queued || !active[1].Queued {
		t.Errorf("at work: %+v", active)
	}
	for _, id := range []string{queued, first} {
		if err := h.Cancel(t.Context(), id); err != nil {
			t.Error(err)
		}
		if status := h.ended(id); status != run.Canceled {
			t.Errorf("the run is %s", status)
		}
		if got := h.collect(id, 0); !slices.Equal(got, []string{"1 started", "2 finished"}) {
			t.Errorf("frames %q", got)
		}
	}
	suspended := h.begin("suspend")
	if status := h.ended(suspended); status != run.Suspended {
		t.Fatalf("the run is %s", status)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := h.collect(suspended, 0); !slices.Equal(got, []string{"1 started", "2 finished", "3 finished"}) {
			t.Errorf("frames %q", got)
		}
	})
	if err := h.Cancel(t.Context(), suspended); err != nil {
		t.Error(err)
	}
	wg.Wait()
	ended := new(run.EndedError)
	if err := h.Cancel(t.Context(), suspended); !errors.As(err, &ended) {
		t.Errorf("canceled again: %v", err)
	}
}

// TestOrder lets runs work one after the other, in the order in which they began.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 1, nil)
	h.work = map[string]func(context.Context, *run.Frame) error{}
	var want, ids []string
	for i := range 10 {
		name := fmt.Sprint(i)
		want = append(want, name)
		h.work[name] = func(context.Context, *run.Frame) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}
	}
	for _, name := range want {
		ids = append(ids, h.begin(name))
	}
	for _, id := range ids {
		h.ended(id)
	}
	if !slices.Equal(order, want) {
		t.Errorf("order %s", strings.Join(order, " "))
	}
}

// TestShutdown interrupts runs, which the next manager goes on with in their order.
func TestShutdown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	made := make(map[string]int)
	var mu sync.Mutex
	block := true
	step := func(ctx context.Context, f *run.Frame) error {
		_, err := steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Script, Key: "work"}, func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			made[f.Events.Run]++
			return "", nil
		})
		if err == nil && block {
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		return err
	}
	work := map[string]func(context.Context, *run.Frame) error{"step": step}
	h := newHost(t, path, 2, work)
	ids := []string{h.begin("step"), h.begin("step"), h.begin("step")}
	for _, id := range ids[:2] {
		for range h.Watch(t.Context(), id, 0) {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Shutdown(ctx)
	if _, err := h.Start(t.Context(), h.job("step")); !errors.Is(err, manager.ErrClosed) {
		t.Errorf("a run began after the end: %v", err)
	}
	for _, id := range ids {
		if info, err := h.store.Info(t.Context(), id); err != nil || info.Status != run.Running || info.Active {
			t.Errorf("run %s: %+v, %v", id, info, err)
		}
	}
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	block = false
	h = newHost(t, path, 1, work)
	if err := h.ResumeOnStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		status := h.ended(id)
		mu.Lock()
		if status != run.Done || made[id] != 1 {
			t.Errorf("run %s is %s, its step was made %d times", id, status, made[id])
		}
		mu.Unlock()
		got := h.collect(id, 0)
		if want := []string{"1 started", "2 started", "3 finished"}; !slices.Equal(got, want) {
			t.Errorf("frames of %s: %q, want %q", id, got, want)
		}
	}
}

// TestAnswer answers a question that is for some only, while other work of the run goes on.
func TestAnswer(t *testing.T) {
	goOn := make(chan bool)
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 0, map[string]func(context.Context, *run.Frame) error{
		"ask": func(ctx context.Context, f *run.Frame) error {
			q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
			answer, err := q.Ask(ctx, ask.Question{Kind: ask.Choice, Text: "Go?", Options: []string{"yes", "no"}, Assignees: []string{"ada"}})
			if err != nil {
				<-goOn
				return err
			}
			return say(ctx, f, answer)
		},
	})
	id := h.begin("ask")
	for frame := range h.Watch(t.Context(), id, 0) {
		if frame.Type == "question" {
			break
		}
	}
	notHis := new(run.NotAssignedError)
	if _, err := h.Answer(t.Context(), id, manager.Answers{Who: "bob", Texts: map[string]string{"q": "yes"}}); !errors.As(err, &notHis) {
		t.Errorf("bob's answer: %v", err)
	}
	if _, err := h.Answer(t.Context(), id, manager.Answers{Who: "ada", Texts: map[string]string{"p": "yes"}}); fault.CodeOf(err) != fault.Usage {
		t.Errorf("an answer to nothing: %v", err)
	}
	var taken, refused atomic.Int32
	var answering sync.WaitGroup
	for range 8 { // at once, of which one counts
		answering.Go(func() {
			switch later, err := h.Answer(t.Context(), id, manager.Answers{Who: "ada", Texts: map[string]string{"q": "yes"}}); {
			case later && err == nil:
				taken.Add(1)
			case fault.CodeOf(err) == fault.Usage:
				refused.Add(1)
			default:
				t.Errorf("answer beside the work: %v, %v", later, err)
			}
		})
	}
	answering.Wait()
	if taken.Load() != 1 || refused.Load() != 7 {
		t.Errorf("%d answers were taken, %d refused", taken.Load(), refused.Load())
	}
	if info, err := h.store.Info(t.Context(), id); err != nil || !info.Active {
		t.Errorf("the answers waited for the work: %+v, %v", info, err)
	}
	close(goOn)
	ctx, cancel := context.WithCancel(t.Context())
	var waking sync.WaitGroup
	waking.Go(func() { h.Wake(ctx) })
	defer waking.Wait()
	defer cancel()
	want := []string{"1 started", "2 question", "3 finished", "4 started", "5 answer", "6 warning", "7 finished"}
	if got := h.collect(id, 0); !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
}

// TestAnswerAsItRests has another process answer a question when the work that asked has looked for an answer for the last time. The run resumes.
func TestAnswerAsItRests(t *testing.T) {
	answered := make(chan bool)
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 0, map[string]func(context.Context, *run.Frame) error{
		"ask": func(ctx context.Context, f *run.Frame) error {
			q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
			answer, err := q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Go?"})
			if err != nil {
				<-answered
				return err
			}
			return say(ctx, f, answer)
		},
	})
	id := h.begin("ask")
	for frame := range h.Watch(t.Context(), id, 0) {
		if frame.Type == "question" {
			break
		}
	}
	if err := run.AnswerOnRecord(t.Context(), h.store, id, map[string]string{"q": "yes"}, run.Reply{Via: event.ViaMCP}); err != nil {
		t.Fatal(err)
	}
	close(answered)
	ctx, cancel := context.WithCancel(t.Context())
	var waking sync.WaitGroup
	waking.Go(func() { h.Wake(ctx) })
	defer waking.Wait()
	defer cancel()
	want := []string{"1 started", "2 question", "3 finished", "4 started", "5 answer", "6 warning", "7 finished"}
	if got := h.collect(id, 0); !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
	_, err := h.Answer(t.Context(), id, manager.Answers{Texts: map[string]string{"q": "no"}})
	if _, refused := errors.AsType[*run.RefusedError](err); !refused || !strings.Contains(err.Error(), "was answered by mcp") {
		t.Errorf("a second answer: %v", err)
	}
}

// TestTerms interrupts a run for which a client asked more than its agent says, and goes on with it.
func TestTerms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	var budgets []*run.Budget
	block := true
	work := map[string]func(context.Context, *run.Frame) error{"work": func(ctx context.Context, f *run.Frame) error {
		budgets = append(budgets, f.Budget)
		if block {
			<-ctx.Done()
		}
		return context.Cause(ctx)
	}}
	h := newHost(t, path, 1, work)
	job := h.job("work")
	job.Limit, job.Info.Terms = graph.Budget{Tokens: 100}, &run.Terms{Yes: true, Budget: graph.Budget{Tokens: 7, USD: 1}}
	id, err := h.Start(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	for range h.Watch(t.Context(), id, 0) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Shutdown(ctx)
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	block = false
	h = newHost(t, path, 1, work)
	if err := h.ResumeOnStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := h.ended(id); status != run.Done || len(budgets) != 2 || budgets[1] == nil {
		t.Fatalf("the run is %s, with budgets %v", status, budgets)
	}
	for i, b := range budgets {
		if b.Spend(chat.Usage{InputTokens: 8}); !strings.Contains(b.Overrun(), "7") {
			t.Errorf("budget %d is exceeded by: %q", i, b.Overrun())
		}
	}
	if !slices.Equal(h.consents, []bool{true}) {
		t.Errorf("consents %v", h.consents)
	}
}
