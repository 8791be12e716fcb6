package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/run/memstore"
	"loki/internal/steps"
	"loki/internal/value"
)

const durableGraph = `
name: durable
start: a
reducers: {log: append}
nodes:
  a: {type: script, script: a.sh, state_updates: {}, next: [left, right]}
  left: {type: script, script: a.sh, state_updates: {}, next: join}
  right: {type: script, script: a.sh, state_updates: {}, next: join}
  join: {type: script, script: a.sh, state_updates: {}, next: end}
  end: {type: end}
`

func durablePlan(t *testing.T) *graph.Plan {
	t.Helper()
	g, _, err := graph.Parse("graph.yaml", []byte(durableGraph))
	if err != nil {
		t.Fatal(err)
	}
	return graph.NewPlan(g)
}

// scripted executes nodes that log their name, each making one step. It counts the
// steps that were really made and lets a node fail.
type scripted struct {
	mu   sync.Mutex
	made map[string]int
	fail map[string]error
}

func (s *scripted) Execute(ctx context.Context, t *run.Task) graph.Result {
	id := t.Node.ID
	text, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Script, Key: "work"}, func(context.Context) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.made[id]++
		return "did " + id, nil
	})
	s.mu.Lock()
	failure := s.fail[id]
	s.mu.Unlock()
	if err == nil {
		err = failure
	}
	if err != nil {
		return graph.Result{Err: err}
	}
	t.Usage.InputTokens = 1
	if t.Node.Type == graph.EndNode {
		v, _ := t.Draft.Get("log")
		return graph.Result{Ended: true, Output: v.Text()}
	}
	t.Draft.Set("log", value.Of(text))
	return graph.Result{Targets: t.Node.Next}
}

const durableOutput = `["did a","did left","did right","did join"]`

// begin starts a run of the plan in the store and returns its id.
func begin(t *testing.T, store run.Store, p *graph.Plan, nodes run.Executor, e event.Emitter) (string, run.Outcome, error) {
	t.Helper()
	start := run.StartCheckpoint(p, graph.State{})
	journal, err := store.Create(t.Context(), run.Info{Agent: "x"}, start)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	out, err := run.Run(t.Context(), run.Options{Plan: p, Nodes: nodes, Start: start, Journal: journal, Emitter: e})
	return journal.ID(), out, err
}

func resume(t *testing.T, store run.Store, p *graph.Plan, nodes run.Executor, id string) (run.Outcome, error) {
	t.Helper()
	journal, found, err := store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	out, err := run.Run(t.Context(), run.Options{
		Plan: p, Nodes: nodes, Start: found.Last, Tasks: found.Tasks, Journal: journal, Source: event.Source{Run: id},
	})
	if out.Run != id {
		t.Errorf("the outcome is that of run %q, want %q", out.Run, id)
	}
	return out, err
}

func TestResumeRepeatsNothingThatWasDone(t *testing.T) {
	for _, fails := range []string{"a", "left", "right", "join", "end"} {
		t.Run(fails, func(t *testing.T) {
			store, p := memstore.New(nil), durablePlan(t)
			nodes := &scripted{made: map[string]int{}, fail: map[string]error{fails: errors.New("boom")}}
			id, _, err := begin(t, store, p, nodes, nil)
			if err == nil || !strings.Contains(err.Error(), "boom") {
				t.Fatalf("error is %v", err)
			}
			nodes.fail = nil
			out, err := resume(t, store, p, nodes, id)
			if err != nil || out.Output != durableOutput {
				t.Errorf("output is %s, %v", out.Output, err)
			}
			if out.Usage.InputTokens != 5 {
				t.Errorf("usage counts %d nodes of 5", out.Usage.InputTokens)
			}
			for node, times := range nodes.made {
				if times != 1 {
					t.Errorf("the step of %s was made %d times", node, times)
				}
			}
			h, err := store.History(t.Context(), id)
			if err != nil || h.Info.Status != run.Done || len(h.Visits) != 5 {
				t.Errorf("status %s, %d visits, %v", h.Info.Status, len(h.Visits), err)
			}
			if _, _, err := store.Open(t.Context(), id); err == nil {
				t.Error("a run that is done can be opened")
			}
		})
	}
}

func TestEndings(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want run.Status
	}{
		{"failure", errors.New("boom"), run.Failed},
		{"canceled", context.Canceled, run.Canceled},
		{"suspended", fault.New(fault.Suspended, "asks"), run.Suspended},
		{"budget", fault.New(fault.Limit, "used up"), run.Suspended},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, p := memstore.New(nil), durablePlan(t)
			id, _, err := begin(t, store, p, &scripted{made: map[string]int{}, fail: map[string]error{"join": tt.err}}, nil)
			if !errors.Is(err, tt.err) {
				t.Errorf("error is %v", err)
			}
			h, err := store.History(t.Context(), id)
			if err != nil || h.Info.Status != tt.want {
				t.Errorf("status is %s, %v, want %s", h.Info.Status, err, tt.want)
			}
		})
	}
}

// A node that waits for a human next to one that fails is a failed run; next to one
// that succeeds, the run is suspended and the finished node is not run again.
func TestSuspensionAmongSiblings(t *testing.T) {
	waits := fault.New(fault.Suspended, "left waits")
	store, p := memstore.New(nil), durablePlan(t)
	nodes := &scripted{made: map[string]int{}, fail: map[string]error{"left": waits, "right": errors.New("boom")}}
	if _, _, err := begin(t, store, p, nodes, nil); fault.CodeOf(err) == fault.Suspended {
		t.Errorf("a failure is hidden by a suspension: %v", err)
	}
	nodes.fail = map[string]error{"left": waits}
	id, _, err := begin(t, store, p, nodes, nil)
	if fault.CodeOf(err) != fault.Suspended {
		t.Errorf("error is %v", err)
	}
	nodes.made, nodes.fail = map[string]int{}, nil
	if _, err := resume(t, store, p, nodes, id); err != nil || nodes.made["right"] != 0 {
		t.Errorf("right ran %d times again, %v", nodes.made["right"], err)
	}
}

// failing is a journal that cannot be written from some commit on, until a time.
type failing struct {
	run.Journal
	after int
	until time.Time // zero for ever
	err   error
	gaps  []run.Gap // as noted
	noGap error     // why nothing can be noted
}

func (f *failing) Commit(ctx context.Context, c run.Checkpoint, v []run.Visit) error {
	if f.after--; f.after < 0 && (f.until.IsZero() || time.Now().Before(f.until)) {
		return f.err
	}
	return f.Journal.Commit(ctx, c, v)
}

func (f *failing) Gap(ctx context.Context, g run.Gap) error {
	if f.noGap != nil {
		return f.noGap
	}
	f.gaps = append(f.gaps, g)
	return f.Journal.Gap(ctx, g)
}

var errLocked = fmt.Errorf("database is locked: %w", run.ErrPassing)

// TestJournalThatFails lets the second commit fail, that of the super-step of left and
// right.
func TestJournalThatFails(t *testing.T) {
	for _, tt := range []struct {
		name     string
		err      error
		lasts    time.Duration // 0 for ever
		noGap    error
		ends     bool
		recorded bool
		warnings []string
	}{
		{name: "disk_full", err: errors.New("disk full"), warnings: []string{"disk full"}},
		{name: "locked_for_11_seconds", err: errLocked, lasts: 11 * time.Second, recorded: true, warnings: []string{"waits up to a minute", "goes on after 11s"}},
		{name: "locked_for_59_seconds", err: errLocked, lasts: 59 * time.Second, recorded: true, warnings: []string{"waits up to a minute", "goes on after 59s"}},
		{name: "locked_for_an_hour", err: errLocked, lasts: time.Hour, warnings: []string{"waits up to a minute", "cannot be recorded any more: database is locked"}},
		{name: "nowhere_to_note", err: errors.New("disk full"), noGap: errors.New("read-only"), warnings: []string{"do not resume run"}},
		{name: "lease_lost", err: &run.LeaseError{ID: "x", Owner: "another process"}, ends: true},
		{name: "taken_over_and_given_back", err: fmt.Errorf("run x: %w", run.ErrLeaseLost), ends: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, p := memstore.New(nil), durablePlan(t)
				start := run.StartCheckpoint(p, graph.State{})
				inner, err := store.Create(t.Context(), run.Info{}, start)
				if err != nil {
					t.Fatal(err)
				}
				journal := &failing{Journal: inner, after: 1, err: tt.err, noGap: tt.noGap}
				if tt.lasts > 0 {
					journal.until = time.Now().Add(tt.lasts)
				}
				var events event.Collector
				nodes := &scripted{made: map[string]int{}}
				out, err := run.Run(t.Context(), run.Options{Plan: p, Nodes: nodes, Start: start, Emitter: &events, Journal: journal})
				var texts []string
				for _, w := range event.Bodies[event.Warning](&events) {
					texts = append(texts, w.Text)
				}
				ok := len(texts) == len(tt.warnings)
				for i := range texts {
					ok = ok && strings.Contains(texts[i], tt.warnings[i])
				}
				if !ok {
					t.Errorf("warnings are %q, want %q", texts, tt.warnings)
				}
				if tt.ends {
					if !errors.Is(err, tt.err) || nodes.made["join"] > 0 {
						t.Errorf("the run goes on without its lease: %v, made %v", err, nodes.made)
					}
					return
				}
				if err != nil || out.Output != durableOutput {
					t.Errorf("the answer is lost: %q, %v", out.Output, err)
				}
				if out.Recorded != tt.recorded {
					t.Errorf("recorded: %v, want %v", out.Recorded, tt.recorded)
				}
				if err := inner.Close(); err != nil {
					t.Fatal(err)
				}
				h, err := store.History(t.Context(), inner.ID())
				if err != nil {
					t.Fatal(err)
				}
				if tt.recorded {
					if h.Info.Gap != nil || h.Info.Status != run.Done || h.Info.Steps != 4 || len(h.Visits) != 5 {
						t.Errorf("on record is %+v with %d visits", h.Info, len(h.Visits))
					}
					return
				}
				if tt.noGap != nil {
					return
				}
				first, last := journal.gaps[0], journal.gaps[len(journal.gaps)-1]
				if first.Step != 1 || first.Status != "" || !strings.Contains(first.Reason, tt.err.Error()) {
					t.Errorf("the first note about the gap is %+v", first)
				}
				if last.Step != 1 || last.Status != run.Done || last.Nodes["left"] != 1 || last.Nodes["join"] != 1 || last.Nodes["a"] != 0 {
					t.Errorf("the last note about the gap is %+v", last)
				}
			})
		})
	}
}

// TestQuestionWithoutRecord lets a run ask after its journal broke: it must not be taken
// for one that waits for the answer.
func TestQuestionWithoutRecord(t *testing.T) {
	store, p := memstore.New(nil), durablePlan(t)
	start := run.StartCheckpoint(p, graph.State{})
	inner, err := store.Create(t.Context(), run.Info{}, start)
	if err != nil {
		t.Fatal(err)
	}
	nodes := &scripted{made: map[string]int{}, fail: map[string]error{"join": fault.New(fault.Suspended, "join asks")}}
	out, err := run.Run(t.Context(), run.Options{Plan: p, Nodes: nodes, Start: start, Journal: &failing{Journal: inner, err: errors.New("disk full")}})
	if fault.CodeOf(err) != fault.Suspended || out.Recorded {
		t.Errorf("recorded: %v, %v", out.Recorded, err)
	}
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = store.Open(t.Context(), inner.ID())
	if gap, ok := errors.AsType[*run.GapError](err); !ok || gap.Gap.Status != run.Suspended {
		t.Errorf("opening the run: %v", err)
	}
}

// TestInterruptedWhileWaiting cancels a run that waits for its journal. What was not
// recorded is as if the run had ended before.
func TestInterruptedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, p := memstore.New(nil), durablePlan(t)
		start := run.StartCheckpoint(p, graph.State{})
		inner, err := store.Create(t.Context(), run.Info{}, start)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		nodes := &scripted{made: map[string]int{}}
		_, err = run.Run(ctx, run.Options{Plan: p, Nodes: nodes, Start: start, Journal: &failing{Journal: inner, after: 1, err: errLocked}})
		if fault.CodeOf(err) != fault.Canceled || time.Since(began) > 11*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := inner.Close(); err != nil {
			t.Fatal(err)
		}
		out, err := resume(t, store, p, nodes, inner.ID())
		if err != nil || out.Output != durableOutput || nodes.made["left"] != 1 || nodes.made["join"] != 1 {
			t.Errorf("resumed: %q, %v, made %v", out.Output, err, nodes.made)
		}
	})
}

// TestLossCancels takes the lease from a run at work that writes nothing at the moment.
func TestLossCancels(t *testing.T) {
	store, p := memstore.New(nil), durablePlan(t)
	start := run.StartCheckpoint(p, graph.State{})
	journal, err := store.Create(t.Context(), run.Info{}, start)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	nodes := executor(func(ctx context.Context, task *run.Task) graph.Result {
		ran++
		if err := store.Orphan(journal.ID()); err != nil {
			t.Error(err)
		}
		if err := journal.Confirm(ctx); err == nil { // as the journal does by itself in time
			t.Error("the loss goes unnoticed")
		}
		<-ctx.Done()
		return graph.Result{Err: errors.New("what a node made of it")}
	})
	_, err = run.Run(t.Context(), run.Options{Plan: p, Nodes: nodes, Start: start, Journal: journal})
	if !errors.Is(err, run.ErrLeaseLost) || strings.Contains(err.Error(), "made of it") || ran != 1 {
		t.Errorf("%d nodes ran, %v", ran, err)
	}
}

func TestBudgetReservations(t *testing.T) {
	reserve := func(b *run.Budget, least, most chat.Usage) (func(chat.Usage), error) {
		return b.Reserve(t.Context(), least, most, true)
	}
	b := run.NewBudget(graph.Budget{Tokens: 100}, usage(40))
	settle, err := reserve(b, usage(30), usage(30))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(b, usage(61), usage(61)); fault.CodeOf(err) != fault.Limit {
		t.Errorf("40 are used, and 61 more are granted: %v", err)
	}
	settle(usage(10))
	if settle, err = reserve(b, usage(40), usage(40)); err != nil {
		t.Fatalf("50 are used, and 40 more are refused: %v", err)
	}
	settle(usage(40))
	b.Spend(usage(9))
	if settle, err = reserve(b, usage(1), usage(1000)); err != nil {
		t.Fatalf("a call that runs alone may begin on its estimate: %v", err)
	}
	if over := b.Overrun(); over != "" {
		t.Errorf("99 of 100 are used: %s", over)
	}
	settle(usage(20))
	if over := b.Overrun(); !strings.Contains(over, "119 tokens") {
		t.Errorf("119 of 100 are used: %q", over)
	}
	if _, err := reserve(b, usage(0), usage(0)); err == nil {
		t.Error("the budget is exceeded")
	}
	money := run.NewBudget(graph.Budget{USD: 1}, usage(0))
	if _, err := reserve(money, cost(1.01), cost(1.01)); err == nil {
		t.Error("more than the budget is granted")
	}
	money.Spend(chat.Usage{OutputTokens: 5, CostUnknown: true})
	if over := money.Overrun(); !strings.Contains(over, "price of a model is not known") {
		t.Errorf("a cost that is not known counts as none: %q", over)
	}
	if run.NewBudget(graph.Budget{}, usage(5)) != nil {
		t.Error("no bound is a budget")
	}
	if _, err := reserve(nil, usage(1<<30), usage(1<<30)); err != nil {
		t.Errorf("no budget refuses: %v", err)
	}
}

// TestBudgetOfStepsOnRecord resumes tasks side by side: one asks for a new call before the steps
// of the others are read back.
func TestBudgetOfStepsOnRecord(t *testing.T) {
	b := run.NewBudget(graph.Budget{Tokens: 100}, usage(10))
	b.Expect(usage(80))
	if _, err := b.Reserve(t.Context(), usage(11), usage(11), true); fault.CodeOf(err) != fault.Limit {
		t.Errorf("10 are used and 80 on record, and 11 more are granted: %v", err)
	}
	b.Spend(usage(30)) // is read back
	b.Spend(usage(50))
	settle, err := b.Reserve(t.Context(), usage(10), usage(10), true)
	if err != nil {
		t.Fatalf("what is read back counts twice: %v", err)
	}
	settle(usage(10))
	if over := b.Overrun(); over != "" {
		t.Error(over)
	}
	b.Spend(usage(5)) // was not expected
	if over := b.Overrun(); !strings.Contains(over, "105 tokens") {
		t.Errorf("105 of 100 are used: %q", over)
	}
	money := run.NewBudget(graph.Budget{USD: 1}, usage(0))
	money.Expect(chat.Usage{OutputTokens: 3, Cost: 1.1})
	if over := money.Overrun(); !strings.Contains(over, "cost 1.1000") {
		t.Errorf("a cost on record does not count: %q", over)
	}
	for range 3 {
		money.Spend(chat.Usage{OutputTokens: 1, Cost: 1.1 / 3})
	}
	if over := money.Overrun(); !strings.Contains(over, "cost 1.1000") {
		t.Errorf("a cost that is read back counts twice: %q", over)
	}
	var none *run.Budget
	none.Expect(usage(1))
}

// TestBudgetOfCallsAtOnce runs calls side by side whose replies are as long as they may be. What
// they use in all exceeds the budget by less than one of them, however many want to run; and
// those that fit together do run together.
func TestBudgetOfCallsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bounded bool
		atOnce  int // calls of 100 that fit into what is left at the start
	}{{"bounded", true, 5}, {"unbounded", false, 1}} {
		for _, width := range []int{1, 4, 20} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, width), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := run.NewBudget(graph.Budget{Tokens: 550}, usage(0))
					var mu sync.Mutex
					made, running, most, refused := 0, 0, 0, 0
					var wg sync.WaitGroup
					for range width {
						wg.Go(func() {
							for {
								settle, err := b.Reserve(t.Context(), usage(10), usage(100), tt.bounded)
								mu.Lock()
								if err != nil {
									refused++
									mu.Unlock()
									return
								}
								made++
								running++
								most = max(most, running)
								mu.Unlock()
								time.Sleep(time.Second) // the clock of synctest
								mu.Lock()
								running--
								mu.Unlock()
								settle(usage(100))
							}
						})
					}
					wg.Wait()
					if made != 6 || refused != width {
						t.Errorf("%d calls of 100 were made within 550, and %d of %d were refused", made, refused, width)
					}
					if want := min(width, tt.atOnce); most != want {
						t.Errorf("%d calls ran at once, want %d", most, want)
					}
				})
			})
		}
	}
}

// TestBudgetWaitEnds cancels a call that waits for another to settle.
func TestBudgetWaitEnds(t *testing.T) {
	b := run.NewBudget(graph.Budget{Tokens: 100}, usage(0))
	if _, err := b.Reserve(t.Context(), usage(60), usage(60), true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Reserve(ctx, usage(60), usage(60), true); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestManyPending leaves ten questions open side by side and answers them in another
// order: each answer reaches its own node.
func TestManyPending(t *testing.T) {
	const n = 10
	var b strings.Builder
	fmt.Fprint(&b, "name: many\nstart: top\nreducers: {log: append}\nnodes:\n  top: {type: script, script: a.sh, state_updates: {}, next: [")
	for i := range n {
		fmt.Fprintf(&b, "q%d, ", i)
	}
	fmt.Fprint(&b, "]}\n")
	for i := range n {
		fmt.Fprintf(&b, "  q%d: {type: script, script: a.sh, state_updates: {}, next: end}\n", i)
	}
	fmt.Fprint(&b, "  end: {type: end}\n")
	g, _, err := graph.Parse("graph.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	store, p := memstore.New(nil), graph.NewPlan(g)
	asks := executor(func(ctx context.Context, t *run.Task) graph.Result {
		id := t.Node.ID
		if id[0] != 'q' {
			return graph.Result{Targets: t.Node.Next, Ended: t.Node.Type == graph.EndNode}
		}
		answer, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Question, Key: "question"}, func(ctx context.Context) (string, error) {
			if err := t.Events.Emit(ctx, event.Question{ID: id, Text: "?", Key: t.Steps.Key("question")}); err != nil {
				return "", err
			}
			return "", fault.New(fault.Suspended, "%s waits", id)
		})
		if err != nil {
			return graph.Result{Err: err}
		}
		t.Draft.Set("log", value.Of(id+"="+answer))
		return graph.Result{Targets: t.Node.Next}
	})
	id, _, err := begin(t, store, p, asks, nil)
	if fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	var want []string
	for _, i := range []int{7, 2, 9, 0, 4, 1, 8, 3, 6, 5} {
		if err := store.Answer(t.Context(), id, fmt.Sprintf("q%d", i), fmt.Sprintf("answer %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		want = append(want, fmt.Sprintf("%q", fmt.Sprintf("q%d=answer %d", i, i)))
	}
	out, err := resume(t, store, p, asks, id)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := out.State.Get("log"); v.String() != "["+strings.Join(want, ",")+"]" {
		t.Errorf("the answers are %s", v)
	}
}
