// Package runtest is the conformance suite of run stores: what every [run.Store] and
// its journals have to do, beyond what their methods' signatures say.
//
// Where the documentation of package run leaves something open, the suite decides it:
//
//   - Open returns the run as it was on record. From then on its status is running
//     and its error is gone.
//   - Super-steps are committed one after the other, without a gap. Step 0 stands for
//     the first checkpoint whatever its number: that of a fork need not be 0.
//   - A commit ends the unanswered questions of its super-step; the answered ones are
//     remembered as answered. A run that is done waits for nothing.
//   - A record is kept also when the context is cancelled: the work is done, and
//     doing it again may cost money or change the world twice.
//   - The numbers of steps never change. A step that was begun keeps its number when
//     its result is recorded, and a forgotten one leaves a gap.
package runtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Options are what the suite needs of an implementation.
type Options struct {
	// New returns an empty store, and closes it at the end of the test. Required.
	New func(t *testing.T) run.Store
	// Reopen closes s and returns another store over the same data. Nil means that the
	// store does not outlive its process, and leaves those tests out.
	Reopen func(t *testing.T, s run.Store) run.Store
	// TakeOver opens a run as another process does when the one that holds its lease
	// gives no sign of life. Required.
	TakeOver func(t *testing.T, s run.Store, id string) run.Journal
}

// Run runs the suite.
func Run(t *testing.T, o Options) {
	if o.Reopen == nil {
		o.Reopen = func(_ *testing.T, s run.Store) run.Store { return s }
	}
	for _, tt := range []struct {
		name string
		test func(s *suite)
	}{
		{"create", (*suite).create},
		{"ids", (*suite).ids},
		{"runs", (*suite).runs},
		{"owners", (*suite).owners},
		{"steps", (*suite).steps},
		{"step_results", (*suite).stepResults},
		{"open_usage", (*suite).openUsage},
		{"concurrent_records", (*suite).concurrentRecords},
		{"cancelled_context", (*suite).cancelledContext},
		{"finished_tasks", (*suite).finishedTasks},
		{"commit", (*suite).commit},
		{"commit_out_of_order", (*suite).commitOutOfOrder},
		{"checkpoints", (*suite).checkpoints},
		{"checkpoints_of_resumed_run", (*suite).checkpointsOfResumedRun},
		{"set_state", (*suite).setState},
		{"visit_counts", (*suite).visitCounts},
		{"fork", (*suite).fork},
		{"odd_values", (*suite).oddValues},
		{"reordered_values", (*suite).reorderedValues},
		{"questions", (*suite).questions},
		{"opened_unless", (*suite).openedUnless},
		{"asked_again", (*suite).askedAgain},
		{"question_ends", (*suite).questionEnds},
		{"answer_errors", (*suite).answerErrors},
		{"first_answer", (*suite).firstAnswer},
		{"signals", (*suite).signals},
		{"signal_errors", (*suite).signalErrors},
		{"signals_withdrawn", (*suite).withdrawn},
		{"waits", (*suite).waits},
		{"endings", (*suite).endings},
		{"events", (*suite).events},
		{"state_events", (*suite).stateEvents},
		{"event_numbers", (*suite).eventNumbers},
		{"lease", (*suite).lease},
		{"taken_over", (*suite).takenOver},
		{"takeovers", (*suite).takeovers},
		{"terms", (*suite).terms},
		{"gap", (*suite).gap},
		{"closed_journal", (*suite).closedJournal},
		{"closed_store", (*suite).closedStore},
		{"delete", (*suite).delete},
		{"delete_leaves_what_waits", (*suite).deleteLeavesWhatWaits},
		{"entries", (*suite).entries},
		{"heads", (*suite).heads},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.test(&suite{T: t, store: o.New(t), reopenStore: o.Reopen, takeOver: o.TakeOver})
		})
	}
}

// suite is one test with its store.
type suite struct {
	*testing.T
	store       run.Store
	reopenStore func(t *testing.T, s run.Store) run.Store
	takeOver    func(t *testing.T, s run.Store, id string) run.Journal
}

// reopen replaces the store by another one over the same data.
func (s *suite) reopen() {
	s.Helper()
	s.store = s.reopenStore(s.T, s.store)
}

// sample returns a description of a run with every field that the caller sets.
func sample() run.Info {
	return run.Info{
		Agent: "writer", AgentDir: "/agents/writer", Dir: "/home/ada", Graph: "main",
		Fingerprint: "f00d", Definition: []byte("name: main\nnodes: {}\n"), Prompt: "write <a> \"book\" & more", Kind: run.ChatRun, Question: []byte(`{"user":{"role":"user"},"whole":true}`),
		Variables: map[string]string{"tone": "dry"}, Model: "openai:gpt", Parent: "7qabcdef@3", ByName: true, Served: true,
		Terms: &run.Terms{Yes: true, NoStream: true, Budget: graph.Budget{USD: 0.5, Tokens: 9000, Duration: time.Minute}},
		Files: map[string]string{"work.sh": "1f2e"}, Owner: &auth.Owner{Subject: "ada", KeyID: "0a1b"},
	}
}

// state returns a state of keys and values, alternating.
func state(kv ...any) graph.State {
	var members []value.Member
	for i := 0; i < len(kv); i += 2 {
		v, ok := kv[i+1].(value.Value)
		if !ok {
			doc, err := value.Marshal(kv[i+1])
			if err == nil {
				v, err = value.ParseJSON(doc)
			}
			if err != nil {
				panic(err)
			}
		}
		members = append(members, value.Member{Name: kv[i].(string), Value: v})
	}
	return graph.NewState(value.ObjectOf(members...))
}

// begin creates a run whose first super-step is node a.
func (s *suite) begin() run.Journal {
	s.Helper()
	return s.beginWith(sample(), run.Checkpoint{State: state("n", 0), Position: run.Position{Frontier: []string{"a"}}})
}

func (s *suite) beginWith(info run.Info, start run.Checkpoint) run.Journal {
	s.Helper()
	j, err := s.store.Create(s.Context(), info, start)
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	s.Cleanup(func() { _ = j.Close() })
	return j
}

// resume opens a run.
func (s *suite) resume(id string) (run.Journal, run.Recovery) {
	s.Helper()
	j, found, err := s.store.Open(s.Context(), id)
	if err != nil {
		s.Fatalf("open %s: %v", id, err)
	}
	s.Cleanup(func() { _ = j.Close() })
	return j, found
}

// ok fails the test on an error.
func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// code checks the code of an error.
func (s *suite) code(what string, err error, want fault.Code) {
	s.Helper()
	if err == nil || fault.CodeOf(err) != want {
		s.Errorf("%s: the error is %v, want one of code %s", what, err, want)
	}
}

// same compares two things of package run.
func (s *suite) same(what string, got, want any) {
	s.Helper()
	if diff := cmp.Diff(want, got, options()...); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// options compare values by text too, so that the order of members counts.
func options() []cmp.Option {
	return []cmp.Option{
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(run.Info{}, "Queued"), // which only a run.Shared says
		cmp.Comparer(func(a, b value.Value) bool { return value.Equal(a, b) && a.String() == b.String() }),
		cmp.Comparer(sameState),
	}
}

func sameState(a, b graph.State) bool {
	return len(a.Changes(b)) == 0 && a.Len() == b.Len() && string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
}

func (s *suite) history(id string) run.History {
	s.Helper()
	h, err := s.store.History(s.Context(), id)
	if err != nil {
		s.Fatalf("history of %s: %v", id, err)
	}
	waiting, err := s.store.Pending(s.Context(), id)
	s.ok(err)
	s.same("questions", waiting, h.Pending)
	return h
}

func (s *suite) checkpoint(id string, step int) run.Checkpoint {
	s.Helper()
	c, err := s.store.Checkpoint(s.Context(), id, step)
	if err != nil {
		s.Fatalf("checkpoint %d of %s: %v", step, id, err)
	}
	return c
}

func (s *suite) info(id string) run.Info {
	s.Helper()
	infos, err := s.store.Runs(s.Context(), run.Query{})
	s.ok(err)
	i := slices.IndexFunc(infos, func(i run.Info) bool { return i.ID == id })
	if i < 0 {
		s.Fatalf("run %s is not listed", id)
	}
	return infos[i]
}

// record makes the record of a step.
func (s *suite) record(r steps.Recorder, key, result string) {
	s.Helper()
	s.ok(r.Record(s.Context(), key, steps.Step{Kind: steps.Tool, Name: "fs_cat"}, []byte(result)))
}

// known checks what is known of a step.
func (s *suite) known(r steps.Recorder, key string, want steps.Record) {
	s.Helper()
	got, err := r.Lookup(s.Context(), key, steps.Step{})
	if err != nil {
		s.Fatalf("lookup of %s: %v", key, err)
	}
	if got.Done != want.Done || got.Begun && !got.Done != want.Begun || !sameJSON(got.Result, want.Result) {
		s.Errorf("step %s: {done: %v, begun: %v, %.80q}, want {done: %v, begun: %v, %.80q}",
			key, got.Done, got.Begun, got.Result, want.Done, want.Begun, want.Result)
	}
}

// sameJSON reports whether two JSON texts have the same value, or are both empty.
func sameJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := value.ParseJSON(a)
	y, errY := value.ParseJSON(b)
	return errX == nil && errY == nil && value.Equal(x, y) && x.String() == y.String()
}

func done(result string) steps.Record { return steps.Record{Done: true, Result: []byte(result)} }

// text returns s as JSON.
func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// next returns the checkpoint of the super-step after c.
func next(c run.Checkpoint, st graph.State) run.Checkpoint {
	c.Step++
	c.State = st
	return c
}

// leased checks for the error of a run that is running.
func (s *suite) leased(what string, err error) {
	s.Helper()
	held, ok := errors.AsType[*run.LeaseError](err)
	if !ok {
		s.Errorf("%s: the error is %v, want a *run.LeaseError", what, err)
		return
	}
	if held.ID == "" || held.Owner == "" {
		s.Errorf("%s: the error %+v does not say who holds what", what, *held)
	}
}

// cancelled returns a context that is cancelled.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// at is a moment with nanoseconds, in a zone of its own.
var at = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.FixedZone("there", 3600))

func nodeName(i int) string { return fmt.Sprintf("node%02d", i) }
