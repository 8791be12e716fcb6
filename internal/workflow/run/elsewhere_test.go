package run_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// TestAdmit: a driver elsewhere decides about calls as a budget does.
func TestAdmit(t *testing.T) {
	call := func(least, most int, bounded bool) run.Call {
		return run.Call{Least: usage(least), Most: usage(most), Bounded: bounded}
	}
	for name, tt := range map[string]struct {
		limit, used int
		underWay    []run.Call
		c           run.Call
		wait        bool
		err         string
	}{
		"no limit":       {used: 1000, c: call(10, 100, true)},
		"alone":          {limit: 100, used: 50, c: call(40, 100, true)}, // it may begin on an estimate
		"fits beside":    {limit: 100, underWay: []run.Call{call(10, 50, true)}, c: call(10, 50, true)},
		"waits":          {limit: 100, underWay: []run.Call{call(10, 60, true)}, c: call(10, 50, true), wait: true},
		"without bound":  {limit: 100, underWay: []run.Call{call(10, 20, true)}, c: call(10, 0, false), wait: true},
		"beside such":    {limit: 100, underWay: []run.Call{call(10, 0, false)}, c: call(10, 20, true), wait: true},
		"used up":        {limit: 100, used: 95, c: call(10, 20, true), err: "the budget of 100 tokens is used up: 95 are used, and the next call takes about 10"},
		"used up beside": {limit: 100, used: 95, underWay: []run.Call{call(1, 1, true)}, c: call(10, 20, true), err: "the budget of 100 tokens is used up: 95 are used, and the next call takes about 10"},
	} {
		t.Run(name, func(t *testing.T) {
			wait, err := run.Admit(graph.Budget{Tokens: tt.limit}, usage(tt.used), tt.underWay, tt.c)
			if wait != tt.wait || fmt.Sprint(err) != cmp.Or(tt.err, "<nil>") {
				t.Errorf("%v, %v", wait, err)
			}
		})
	}
}

// TestBudgetElsewhere: a budget that is kept elsewhere asks there, and its refusals are its own.
func TestBudgetElsewhere(t *testing.T) {
	b := run.NewBudget(graph.Budget{Tokens: 10}, chat.Usage{})
	var refuse error
	b.Elsewhere(func(_ context.Context, c run.Call) (func(chat.Usage), error) {
		if c.Least != usage(20) || c.Most != usage(30) || !c.Bounded {
			t.Errorf("asked for %+v", c)
		}
		return func(chat.Usage) {}, refuse
	})
	if _, err := b.Reserve(t.Context(), usage(20), usage(30), true); err != nil { // more than its limit
		t.Error(err)
	}
	refuse = fault.New(fault.Limit, "used up")
	if _, err := b.Reserve(t.Context(), usage(20), usage(30), true); !b.Refused(err) || err.Error() != "used up" {
		t.Errorf("%v", err)
	}
	refuse = errors.New("away")
	if _, err := b.Reserve(t.Context(), usage(20), usage(30), true); b.Refused(err) || !errors.Is(err, refuse) {
		t.Errorf("%v", err)
	}
}

// TestUndoElsewhere: the effects of finished tasks are undone unless the run can resume, and once.
func TestUndoElsewhere(t *testing.T) {
	p := plan(t, saga)
	pr := run.StartCheckpoint(p, graph.State{}).Progress(p)
	done := []run.TaskRecord{{Step: 1, Result: graph.Result{Node: "hotel", Targets: []string{"car"}}}}
	failure := &graph.NodeError{Node: "pay", Err: errors.New("no money")}
	if _, ok := run.Undo(p, pr, done, fault.Wrap(fault.Limit, failure, "")); ok {
		t.Error("a run at its limit, which can resume, is undone")
	}
	if _, ok := run.Undo(p, pr, nil, failure); ok {
		t.Error("a run without effects is undone")
	}
	next, ok := run.Undo(p, pr, done, failure)
	if !ok || len(next.Effects) != 1 || next.Frontier[0] != "cancel_hotel" || next.Undoing.Error != failure.Error() {
		t.Fatalf("%+v, %v", next, ok)
	}
	if _, again := run.Undo(p, next, nil, failure); again {
		t.Error("a run that is being undone is undone again")
	}
	next.Effects = nil
	var undone *run.UndoneError
	if err := run.UndoneErrorOf(next, nil); !errors.As(err, &undone) || undone.Undone != 1 || err.Error() != failure.Error()+"; undone: 1 node" {
		t.Errorf("%v", err)
	}
}

// TestOver: the result of a wait that ended elsewhere is that of one that ended here.
func TestOver(t *testing.T) {
	at := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		p      run.Pending
		s      *run.Signal
		kind   steps.Kind
		result string
		err    bool
	}{
		"time":      {p: run.Pending{Wait: run.ForTime, Deadline: at}, kind: steps.Time, result: `"2026-12-01T08:00:00Z"`},
		"signal":    {p: run.Pending{Wait: run.ForSignal, Signal: "paid"}, s: &run.Signal{Number: 2, Value: []byte(`{"sum": 5}`)}, kind: steps.Signal, result: `{"number":2,"value":{"sum":5}}`},
		"too late":  {p: run.Pending{Wait: run.ForSignal, Signal: "paid", Deadline: at}, kind: steps.Signal, result: `{"value":null}`},
		"malformed": {p: run.Pending{Wait: run.ForSignal, Signal: "paid"}, s: &run.Signal{Number: 2, Value: []byte(`{`)}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			step, result, err := tt.p.Over(tt.s)
			if tt.err != (err != nil) || step.Kind != tt.kind || string(result) != tt.result || tt.kind == steps.Signal && step.Name != "paid" {
				t.Errorf("%+v, %s, %v", step, result, err)
			}
		})
	}
}
