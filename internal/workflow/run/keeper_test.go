package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
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
	out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}, Events: event.NewScope(e, event.Source{}, nil), Journal: journal})
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
		Work:    run.Graph{Plan: p, Nodes: nodes, Start: found.Last, Tasks: found.Tasks},
		Events:  event.NewScope(nil, event.Source{Run: id}, nil),
		Journal: journal,
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

// TestFinishedSiblingRunsOnce suspends a run with a finished node that records no steps:
// its result is on record, and it does not run again.
func TestFinishedSiblingRunsOnce(t *testing.T) {
	var mu sync.Mutex
	ran := make(map[string]int)
	suspended := true
	nodes := executor(func(_ context.Context, task *run.Task) graph.Result {
		mu.Lock()
		defer mu.Unlock()
		ran[task.Node.ID]++
		if task.Node.ID == "left" && suspended {
			return graph.Result{Err: fault.New(fault.Suspended, "left waits")}
		}
		task.Draft.Set("log", value.Of(task.Node.ID))
		if v, _ := task.Draft.Get("log"); task.Node.Type == graph.EndNode {
			return graph.Result{Ended: true, Output: v.Text()}
		}
		return follow(task)
	})
	store, p := memstore.New(nil), durablePlan(t)
	id, _, err := begin(t, store, p, nodes, nil)
	if err == nil || err.Error() != "left waits" {
		t.Errorf("error is %v", err)
	}
	suspended = false
	out, err := resume(t, store, p, nodes, id)
	if v, _ := out.State.Get("log"); err != nil || v.String() != `["a","left","right","join","end"]` {
		t.Errorf("the log is %s, %v", v, err)
	}
	for node, want := range map[string]int{"a": 1, "left": 2, "right": 1, "join": 1, "end": 1} {
		if ran[node] != want {
			t.Errorf("%s ran %d times, want %d", node, ran[node], want)
		}
	}
}

// TestWhoWaits checks which error a run ends with whose nodes wait without a question: that
// of the first of them, without what it is a part of.
func TestWhoWaits(t *testing.T) {
	waits := func(text string) error { return fault.New(fault.Suspended, "%s", text) }
	for _, tt := range []struct {
		name string
		fail map[string]error
		want string
	}{
		{"one", map[string]error{"right": waits("right waits")}, "right waits"},
		{"first_of_two", map[string]error{"right": waits("right waits"), "left": waits("left waits")}, "left waits"},
		{"innermost", map[string]error{"a": fault.Wrap(fault.Suspended, waits("the child waits"), "agent x")}, "the child waits"},
		{"innermost_that_waits", map[string]error{"a": fault.Wrap(fault.Suspended, fault.New(fault.Tool, "busy"), "the child waits")}, "the child waits: busy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := begin(t, memstore.New(nil), durablePlan(t), &scripted{made: map[string]int{}, fail: tt.fail}, nil)
			if err == nil || err.Error() != tt.want || fault.CodeOf(err) != fault.Suspended {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}

// failing is a journal that cannot be written from some commit on, until a time.
type failing struct {
	run.Journal
	after int
	until time.Time // zero for ever
	err   error
	asks  time.Time // until when no question can be kept
	ends  error     // why the end cannot be recorded
	gaps  []run.Gap // as noted
	noGap error     // why nothing can be noted
}

func (f *failing) Asked(ctx context.Context, p run.Pending) error {
	if time.Now().Before(f.asks) {
		return f.err
	}
	return f.Journal.Asked(ctx, p)
}

func (f *failing) End(ctx context.Context, e run.Ending) error {
	if f.ends != nil && (f.until.IsZero() || time.Now().Before(f.until)) {
		return f.ends
	}
	return f.Journal.End(ctx, e)
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
		{name: "disk_full", err: errors.New("disk full"), warnings: []string{"disk full. It continues to its answer, but cannot be resumed after an interruption$"}},
		{name: "with_a_hint", err: fault.New(fault.Config, "disk full").WithHint("make room"), warnings: []string{"after an interruption; make room$"}},
		{name: "locked_for_11_seconds", err: errLocked, lasts: 11 * time.Second, recorded: true, warnings: []string{"waits up to a minute", "continues after 11s"}},
		{name: "locked_for_59_seconds", err: errLocked, lasts: 59 * time.Second, recorded: true, warnings: []string{"waits up to a minute", "continues after 59s"}},
		{name: "locked_for_an_hour", err: errLocked, lasts: time.Hour, warnings: []string{"waits up to a minute", "cannot be recorded any more: database is locked"}},
		{name: "nowhere_to_note", err: errors.New("disk full"), noGap: errors.New("read-only"), warnings: []string{"do not resume run"}},
		{name: "lease_lost", err: &run.LeaseError{ID: "x", Owner: "another process"}, ends: true},
		{name: "taken_over_and_given_back", err: fmt.Errorf("run x: %w", run.ErrLeaseLost), ends: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, p, start, inner := onRecord(t)
				journal := &failing{Journal: inner, after: 1, err: tt.err, noGap: tt.noGap}
				if tt.lasts > 0 {
					journal.until = time.Now().Add(tt.lasts)
				}
				var events eventtest.Collector
				nodes := &scripted{made: map[string]int{}}
				out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}, Events: event.NewScope(&events, event.Source{}, nil), Journal: journal})
				var texts []string
				for _, w := range eventtest.Bodies[event.Warning](&events) {
					texts = append(texts, w.Text)
				}
				ok := len(texts) == len(tt.warnings)
				for i := range texts {
					ok = ok && strings.Contains(texts[i]+"$", tt.warnings[i]) // $ is the end
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
	store, p, start, inner := onRecord(t)
	nodes := &scripted{made: map[string]int{}, fail: map[string]error{"join": fault.New(fault.Suspended, "join asks")}}
	out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}, Journal: &failing{Journal: inner, err: errors.New("disk full")}})
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

// TestEndWithoutRecord runs to an end that cannot be recorded: the answer is there all the
// same.
func TestEndWithoutRecord(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		warning string // empty if the run fails
	}{
		{"disk_full", errors.New("disk full"), "the end of the run could not be recorded: disk full"},
		{"with_a_hint", fault.New(fault.Config, "disk full").WithHint("make room"), "the end of the run could not be recorded: disk full; make room"},
		{"lease_lost", run.ErrLeaseLost, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, p, start, inner := onRecord(t)
			defer inner.Close()
			var events eventtest.Collector
			out, err := run.Run(t.Context(), run.Options{
				Work:    run.Graph{Plan: p, Nodes: &scripted{made: map[string]int{}}, Start: start},
				Events:  event.NewScope(&events, event.Source{}, nil),
				Journal: &failing{Journal: inner, after: 100, ends: tt.err},
			})
			if out.Output != durableOutput {
				t.Errorf("the answer is %q", out.Output)
			}
			warnings := eventtest.Bodies[event.Warning](&events)
			if tt.warning == "" {
				if !errors.Is(err, tt.err) || len(warnings) > 0 {
					t.Errorf("warnings %+v, %v", warnings, err)
				}
				return
			}
			if err != nil || len(warnings) != 1 || warnings[0].Text != tt.warning {
				t.Errorf("warnings %+v, %v", warnings, err)
			}
		})
	}
}

// asking executes nodes that ask, each as often as it has answers and once more, for which
// it waits.
type asking map[string][]string

func (a asking) Execute(ctx context.Context, t *run.Task) graph.Result {
	if _, ok := a[t.Node.ID]; !ok {
		return graph.Result{Targets: t.Node.Next, Ended: t.Node.Type == graph.EndNode}
	}
	answers := a[t.Node.ID]
	for i := 0; ; i++ {
		q := run.Questions{
			Steps: t.Steps.At(fmt.Sprint(i)), Events: t.Events, Place: fmt.Sprint(t.Node.ID, i), Base: fmt.Sprint(i, "/"), Waits: t.Node.ID,
		}
		if i < len(answers) {
			q.Asker = asktest.NewScripted(answers[i])
		}
		if _, err := q.Ask(ctx, ask.Question{Text: "which\n" + t.Node.ID + "?"}); err != nil {
			return graph.Result{Err: err}
		}
	}
}

// TestOpenQuestions checks which questions a suspended run names: those that wait.
func TestOpenQuestions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes asking
		want  string
		hint  string // part of it
	}{
		{name: "one", nodes: asking{"a": {}}, want: "a waits for an answer to: which a?"},
		{name: "one_after_an_answer", nodes: asking{"a": {"x", "y"}}, want: "a waits for an answer to: which a?"},
		{name: "one_of_two_nodes", nodes: asking{"right": {"x"}}, want: "right waits for an answer to: which right?"},
		{name: "two", nodes: asking{"left": {"x"}, "right": {}}, want: "2 questions wait for answers:", hint: ": ANSWER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := begin(t, memstore.New(nil), durablePlan(t), tt.nodes, nil)
			if fault.CodeOf(err) != fault.Suspended || !strings.Contains(fault.HintOf(err), tt.hint) {
				t.Errorf("%v (hint %q)", err, fault.HintOf(err))
			}
			lines := strings.Split(err.Error(), "\n")
			slices.Sort(lines[1:])
			want := []string{tt.want}
			if tt.name == "two" {
				want = append(want, "  left1: which left?", "  right0: which right?")
			}
			if !slices.Equal(lines, want) {
				t.Errorf("the error is %q, want %q", lines, want)
			}
		})
	}
}

// TestQuestionsInShort has questions of the length from which they are cut in an error.
func TestQuestionsInShort(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"fits", strings.Repeat("q", 200), strings.Repeat("q", 200)},
		{"cut", strings.Repeat("q", 201), strings.Repeat("q", 200) + "…"},
		{"cut_in_a_character", strings.Repeat("q", 199) + "éé", strings.Repeat("q", 199) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := executor(func(ctx context.Context, task *run.Task) graph.Result {
				if task.Node.ID == "a" {
					return follow(task)
				}
				if err := task.Events.Emit(ctx, event.Question{ID: task.Node.ID, Text: tt.text}); err != nil {
					return graph.Result{Err: err}
				}
				return graph.Result{Err: fault.New(fault.Suspended, "waits")}
			})
			_, _, err := begin(t, memstore.New(nil), durablePlan(t), nodes, nil)
			if err == nil || !strings.Contains(err.Error()+"\n", "\n  left: "+tt.want+"\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestQuestionWhileLocked asks while the journal cannot be written for ten seconds. The user
// is notified of the waiting where events are shown, and the question is on record.
func TestQuestionWhileLocked(t *testing.T) {
	for _, shown := range []bool{true, false} {
		t.Run(fmt.Sprint(shown), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, p, start, inner := onRecord(t)
				o := run.Options{
					Work:    run.Graph{Plan: p, Nodes: asking{"a": {}}, Start: start},
					Events:  event.NewScope(nil, event.Source{Run: inner.ID()}, nil),
					Journal: &failing{Journal: inner, after: 100, err: errLocked, asks: time.Now().Add(10 * time.Second)},
				}
				var events eventtest.Collector
				if shown {
					o.Events = event.NewScope(&events, event.Source{}, nil)
				}
				if _, err := run.Run(t.Context(), o); fault.CodeOf(err) != fault.Suspended {
					t.Errorf("the run ends with %v", err)
				}
				var texts []string
				for _, ev := range events.Events() {
					if w, ok := ev.Body.(event.Warning); ok {
						texts = append(texts, w.Text)
						if ev.Run != inner.ID() {
							t.Errorf("the warning %q is that of run %q", w.Text, ev.Run)
						}
					}
				}
				if shown != (len(texts) == 2) || shown && (!strings.Contains(texts[0], "waits up to a minute") || !strings.Contains(texts[1], "after 10s")) {
					t.Errorf("warnings %q", texts)
				}
				if err := inner.Close(); err != nil {
					t.Fatal(err)
				}
				h, err := store.History(t.Context(), inner.ID())
				if err != nil || len(h.Pending) != 1 || h.Pending[0].ID != "a0" {
					t.Errorf("pending are %+v, %v", h.Pending, err)
				}
				if !slices.ContainsFunc(h.Events, func(e json.RawMessage) bool { return strings.Contains(string(e), `"type":"question"`) }) {
					t.Errorf("the question is not among the events %s", h.Events)
				}
			})
		})
	}
}

// TestQuestionThatBreaksTheRecord asks when the journal can never be written again: nothing is
// kept from then on, so that the question is no event of the record either.
func TestQuestionThatBreaksTheRecord(t *testing.T) {
	store, p, start, inner := onRecord(t)
	out, err := run.Run(t.Context(), run.Options{
		Work:    run.Graph{Plan: p, Nodes: asking{"a": {}}, Start: start},
		Journal: &failing{Journal: inner, after: 100, err: errors.New("disk full"), asks: time.Now().Add(time.Hour)},
	})
	if fault.CodeOf(err) != fault.Suspended || out.Recorded {
		t.Errorf("recorded: %v, %v", out.Recorded, err)
	}
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := store.History(t.Context(), inner.ID())
	if err != nil || len(h.Pending) > 0 || slices.ContainsFunc(h.Events, func(e json.RawMessage) bool { return strings.Contains(string(e), `"type":"question"`) }) {
		t.Errorf("pending are %+v, events %s, %v", h.Pending, h.Events, err)
	}
}

// TestInterruptedWhileWaiting cancels a run that waits for its journal. What was not
// recorded is as if the run had ended before.
func TestInterruptedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, p, start, inner := onRecord(t)
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		nodes := &scripted{made: map[string]int{}}
		_, err := run.Run(ctx, run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}, Journal: &failing{Journal: inner, after: 1, err: errLocked}})
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
	store, p, start, journal := onRecord(t)
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
	_, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}, Journal: journal})
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
	for more, want := range map[float64]bool{0.25: true, 0.5: false} {
		b := run.NewBudget(graph.Budget{USD: 1, Tokens: 5}, usage(0))
		b.Expect(chat.Usage{OutputTokens: 4, Cost: 0.75})
		b.Spend(chat.Usage{OutputTokens: 1, Cost: 0.25})
		if _, err := b.Reserve(t.Context(), cost(more), cost(more), true); (err == nil) != want {
			t.Errorf("0.75 are on record, of which 0.25 were read back, and %g more of 1: %v", more, err)
		}
	}
	var none *run.Budget
	none.Expect(usage(1))
}

// TestBudgetAtItsBound makes two calls that use exactly what there is, or a little more. What
// is not bounded does not count.
func TestBudgetAtItsBound(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limit  graph.Budget
		call   chat.Usage
		fit    bool // both at once
		over   string
		refuse string // why a third one is refused
	}{
		{"tokens", graph.Budget{Tokens: 100}, chat.Usage{InputTokens: 30, OutputTokens: 20, Cost: 7}, true, "", "the budget of 100 tokens is used up: 100 are used, and the next call takes about 50"},
		{"more_tokens", graph.Budget{Tokens: 99}, chat.Usage{InputTokens: 30, OutputTokens: 20}, false, "the run used 100 tokens, more than its budget of 99", "100 are used"},
		{"money", graph.Budget{USD: 1}, chat.Usage{InputTokens: 1000, Cost: 0.5}, true, "", "the budget of 1 US dollars is used up: 1.0000 are used, and the next call costs about 0.5000"},
		{"more_money", graph.Budget{USD: 0.75}, chat.Usage{Cost: 0.5}, false, "the run cost 1.0000 US dollars, more than its budget of 0.75", "1.0000 are used"},
		{"both", graph.Budget{Tokens: 2, USD: 1}, chat.Usage{InputTokens: 1, Cost: 0.5}, true, "", "2 are used"},
		{"no_price", graph.Budget{Tokens: 2}, chat.Usage{InputTokens: 1, CostUnknown: true}, true, "", "2 are used"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := run.NewBudget(tt.limit, chat.Usage{})
			now, cancel := context.WithCancel(t.Context())
			cancel() // a call that does not fit does not wait
			first, err := b.Reserve(now, tt.call, tt.call, true)
			if err != nil {
				t.Fatal(err)
			}
			second, err := b.Reserve(now, tt.call, tt.call, true)
			if tt.fit != (err == nil) || !tt.fit && !errors.Is(err, context.Canceled) {
				t.Fatalf("the second call: %v", err)
			}
			first(tt.call)
			if second == nil {
				if second, err = b.Reserve(now, chat.Usage{}, tt.call, true); err != nil {
					t.Fatalf("after the first call: %v", err)
				}
			}
			second(tt.call)
			if over := b.Overrun(); tt.over == "" && over != "" || !strings.Contains(over, tt.over) {
				t.Errorf("over: %q", over)
			}
			if _, err := b.Reserve(now, tt.call, tt.call, true); fault.CodeOf(err) != fault.Limit || !strings.Contains(err.Error(), tt.refuse) {
				t.Errorf("the third call: %v", err)
			}

			b = run.NewBudget(tt.limit, tt.call)
			if _, err := b.Reserve(now, tt.call, tt.call, true); tt.fit != (err == nil) || !tt.fit && fault.CodeOf(err) != fault.Limit {
				t.Errorf("a call when one is made: %v", err)
			}
		})
	}
}

// TestCallWithoutBoundRunsAlone starts two calls of which one may use all that is left.
func TestCallWithoutBoundRunsAlone(t *testing.T) {
	for _, tt := range []struct{ first, second bool }{{true, false}, {false, true}, {false, false}} {
		b := run.NewBudget(graph.Budget{Tokens: 100}, chat.Usage{})
		now, cancel := context.WithCancel(t.Context())
		cancel() // a call that does not fit does not wait
		settle, err := b.Reserve(now, usage(1), usage(1), tt.first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Reserve(now, usage(1), usage(1), tt.second); !errors.Is(err, context.Canceled) {
			t.Errorf("bounded %v beside bounded %v: %v", tt.second, tt.first, err)
		}
		settle(usage(1))
		if _, err := b.Reserve(now, usage(1), usage(1), tt.second); err != nil {
			t.Errorf("bounded %v after bounded %v: %v", tt.second, tt.first, err)
		}
	}
}

// TestOverrunIsShown has a run whose last reply was longer than estimated. It is warned of,
// and a listener that fails then fails the run.
func TestOverrunIsShown(t *testing.T) {
	full := errors.New("disk full")
	for _, fails := range []bool{false, true} {
		p := plan(t, chain)
		b := run.NewBudget(graph.Budget{Tokens: 10}, chat.Usage{})
		var warnings []string
		_, err := run.Run(t.Context(), run.Options{
			Work: run.Graph{Plan: p, Nodes: nodes{"b": func(_ context.Context, task *run.Task) graph.Result {
				b.Spend(usage(11))
				return follow(task)
			}}, Start: start(p)},
			Events: event.NewScope(event.Func(func(_ context.Context, ev event.Event) error {
				if w, ok := ev.Body.(event.Warning); ok {
					warnings = append(warnings, w.Text)
					if fails {
						return full
					}
				}
				return nil
			}), event.Source{}, nil),
			Budget: b,
		})
		if fails != errors.Is(err, full) || !fails && err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "11 tokens") {
			t.Errorf("warnings %q, %v", warnings, err)
		}
	}
}

// TestPatience measures how long writes are tried again that fail in passing.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var p run.Patience
		var notices []string
		notice := func(text string) error {
			notices = append(notices, text)
			return nil
		}
		for range 2 { // it stays out of patience until a write succeeds
			if err := p.Do(t.Context(), notice, func() error { return errLocked }); !errors.Is(err, run.ErrPassing) || time.Since(began) != time.Minute {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		}
		if err := p.Do(t.Context(), notice, func() error { return nil }); err != nil {
			t.Error(err)
		}
		tries := 0
		began = time.Now()
		if err := p.Do(t.Context(), notice, func() error {
			if tries++; tries < 3 {
				return errLocked
			}
			return nil
		}); err != nil || time.Since(began) >= time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if want := []string{"waits up to a minute", "continues after 1m0s", "waits up to a minute", "continues after 0s"}; !slices.EqualFunc(notices, want, strings.Contains) {
			t.Errorf("notices %q, want %q", notices, want)
		}
	})
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
		answer, err := run.Questions{Steps: t.Steps, Events: t.Events, Place: id}.Ask(ctx, ask.Question{Text: "?"})
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
		if err := store.Answer(t.Context(), id, fmt.Sprintf("q%d", i), run.Reply{Text: fmt.Sprintf("answer %d", i)}); err != nil {
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

// onRecord begins the record of a run in a store in memory.
func onRecord(t *testing.T) (*memstore.Store, *graph.Plan, run.Checkpoint, run.Journal) {
	t.Helper()
	store, p := memstore.New(nil), durablePlan(t)
	start := run.StartCheckpoint(p, graph.State{})
	journal, err := store.Create(t.Context(), run.Info{}, start)
	if err != nil {
		t.Fatal(err)
	}
	return store, p, start, journal
}

// unread is a journal whose steps cannot be read for a time.
type unread struct {
	run.Journal
	until time.Time
}

func (u unread) Task(step int, node string) steps.Recorder {
	return unreadTask{u.Journal.Task(step, node), u.until}
}

type unreadTask struct {
	steps.Recorder
	until time.Time
}

func (t unreadTask) Lookup(ctx context.Context, key string, s steps.Step) (steps.Record, error) {
	if time.Now().Before(t.until) {
		return steps.Record{}, errLocked
	}
	return t.Recorder.Lookup(ctx, key, s)
}

// TestRecordThatCannotBeRead has the record of steps fail when it is looked whether a step was made.
func TestRecordThatCannotBeRead(t *testing.T) {
	for lasts, ends := range map[time.Duration]bool{10 * time.Second: false, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			_, _, _, inner := onRecord(t)
			began, made := time.Now(), 0
			_, err := run.Run(t.Context(), run.Options{Journal: unread{inner, began.Add(lasts)}, Work: workFunc(func(ctx context.Context, f *run.Frame) (run.Outcome, error) {
				_, err := steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Script, Key: "work"}, func(context.Context) (int, error) { made++; return 1, nil })
				if ends && ctx.Err() == nil {
					t.Error("the run goes on although nobody knows what it has done")
				}
				return run.Outcome{}, err
			})})
			if (err != nil) != ends || made != map[bool]int{false: 1, true: 0}[ends] || time.Since(began).Round(time.Second) != min(lasts, time.Minute) {
				t.Errorf("fails for %v: %v after %v, made %d times", lasts, err, time.Since(began), made)
			}
		})
	}
}

// TestEndIsLast has the end of a run wait for its record: what is said of that is no event behind the end.
func TestEndIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, p, start, inner := onRecord(t)
		var events eventtest.Collector
		_, err := run.Run(t.Context(), run.Options{
			Work: run.Graph{Plan: p, Nodes: &scripted{made: map[string]int{}}, Start: start}, Events: event.NewScope(&events, event.Source{}, nil),
			Journal: &failing{Journal: inner, after: 100, ends: errLocked, until: time.Now().Add(5 * time.Second)},
		})
		if err != nil || len(eventtest.Bodies[event.Warning](&events)) != 2 {
			t.Errorf("%v, warnings %v", err, eventtest.Bodies[event.Warning](&events))
		}
		h, err := store.History(t.Context(), inner.ID())
		if last := string(h.Events[len(h.Events)-1]); err != nil || h.Info.Status != run.Done || !strings.HasPrefix(last, `{"type":"finished"`) {
			t.Errorf("the run is %s, and its last event %s (%v)", h.Info.Status, last, err)
		}
	})
}
