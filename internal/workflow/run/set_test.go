package run_test

import (
	"errors"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// TestSet sets keys of the state of a run that goes on. Its record has them, and the event that says so.
func TestSet(t *testing.T) {
	store := memstore.New(nil)
	s, j := stopping(t, store)
	j.Stops.Steps = 2
	out, err := s.Start(t.Context(), j)
	if fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	j.Stops = run.Breakpoints{}
	var events eventtest.Collector
	j.Events = event.NewScope(&events, event.Source{}, nil)
	s = service(lasting{Store: store}, j)
	set := []value.Member{{Name: "n", Value: value.Of(1)}, {Name: "m", Value: value.Of("x")}, {Name: "n", Value: value.Of(2)}}
	if _, err := s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run, Set: set}}); err != nil {
		t.Fatal(err)
	}
	want := `{"m":"x","n":2}`
	for _, step := range []int{2, 3, -1} {
		c, err := store.Checkpoint(t.Context(), out.Run, step)
		if got := string(c.State.Object().Value().AppendJSON(nil)); err != nil || got != want && got != `{"n":2,"m":"x"}` {
			t.Errorf("state after super-step %d: %s, %v", step, got, err)
		}
	}
	if c, err := store.Checkpoint(t.Context(), out.Run, 1); err != nil || c.State.Object().Len() != 0 {
		t.Errorf("state after super-step 1: %v, %v", c.State, err)
	}
	said := 0
	for _, ev := range events.Events() {
		if b, ok := ev.Body.(event.StateUpdated); ok && b.Set {
			said++
			if ev.Step != 2 || ev.Number == 0 || string(value.ObjectOf(b.Values...).Value().AppendJSON(nil)) != want {
				t.Errorf("event %+v", ev)
			}
		}
	}
	if said != 1 {
		t.Errorf("%d events say so", said)
	}
}

// TestSetTooLate refuses to set the state of a run whose next super-step has begun, and leaves the run as it is.
func TestSetTooLate(t *testing.T) {
	s, j := stopping(t, memstore.New(nil))
	p := graph.NewPlan(j.Graph)
	for name, begins := range map[string]func(j run.Journal) error{
		"finished task": func(j run.Journal) error {
			return j.Finished(t.Context(), run.TaskRecord{Step: 2, Result: graph.Result{Node: "left", Targets: []string{"join"}}})
		},
		"question": func(j run.Journal) error {
			return j.Asked(t.Context(), run.Pending{ID: "left", Step: 2, Node: "left", Key: "ask", Text: "Go?"})
		},
		"wait": func(j run.Journal) error {
			return j.Asked(t.Context(), run.Pending{ID: "left", Step: 2, Node: "left", Key: "wait", Wait: run.ForSignal, Signal: "go"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(nil)
			s, _ = stopping(t, store)
			begun, err := store.Create(t.Context(), j.Info, j.Start)
			if err != nil {
				t.Fatal(err)
			}
			pr, err := p.Apply(j.Start.Progress(p), []graph.Result{{Node: "draft", Targets: []string{"left", "right"}}})
			if err == nil {
				err = errors.Join(
					begun.Commit(t.Context(), run.CheckpointOf(p, pr, usage(0)), nil), begins(begun),
					begun.End(t.Context(), run.Ending{Status: run.Suspended, Error: "it waits", Code: fault.Suspended}), begun.Close(),
				)
			}
			if err != nil {
				t.Fatal(err)
			}
			before, _ := store.Info(t.Context(), begun.ID())
			_, err = s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: begun.ID(), Set: []value.Member{{Name: "n", Value: value.Of(1)}}}})
			if _, ok := errors.AsType[*run.RefusedError](err); !ok || fault.CodeOf(err) != fault.Usage {
				t.Errorf("error %v", err)
			}
			after, _ := store.Info(t.Context(), begun.ID())
			if after.Status != before.Status || after.Error != before.Error || after.Code != before.Code || after.Active {
				t.Errorf("the run is %+v, and was %+v", after, before)
			}
			if c, err := store.Checkpoint(t.Context(), begun.ID(), -1); err != nil || c.State.Object().Len() != 0 {
				t.Errorf("state %v, %v", c.State, err)
			}
		})
	}
}
