//go:build unix

package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/workflow/run"
)

// bookings is a graph that books two things, asks, and fails.
const bookings = `
name: bookings
start: hotel
sandbox: full
settings: {on_failure: fail, validate_before_run: false}
nodes:
  hotel: {type: script, script: count.sh, compensate: leave, next: flight}
  flight: {type: script, script: count.sh, compensate: %s, next: pay}
  pay: {type: input, question: "Pay?", next: bad}
  bad: {type: script, script: missing.sh, next: done}
  leave: {type: script, script: undo.sh}
  stay: {type: script, script: missing.sh}
  done: {type: end}
`

// newBookings is a world with the graph of bookings.
func newBookings(t *testing.T, flight string) *world {
	return newWorldWith(t, fmt.Sprintf(bookings, flight), map[string]string{
		"agent/undo.sh": "#!/bin/sh\nprintf '%s\\n' \"$GRAPH_STATE\" | grep -o '\"_compensates\":{\"node\":\"[a-z]*\"' >> undone\necho '{}'\n",
	})
}

// undone returns what was undone, in order.
func (w *world) undone() string {
	data, err := os.ReadFile(filepath.Join(w.dir, "undone"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return strings.NewReplacer(`"_compensates":{"node":`, "", `"`, "", "\n", " ").Replace(string(data))
}

// TestCompensation undoes what a run did that fails or is canceled, the last effect first.
func TestCompensation(t *testing.T) {
	for name, tt := range map[string]struct {
		flight, undone, message string
		cancel                  bool
		lost                    int
	}{
		"failed":          {flight: "leave", undone: "flight hotel ", message: "undone: 2 nodes"},
		"cannot undo one": {flight: "stay", undone: "hotel ", message: `could not be undone: node "flight", visit 1: compensation "stay"`, lost: 1},
		"canceled":        {flight: "leave", undone: "flight hotel ", message: "undone: 2 nodes", cancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBookings(t, tt.flight)
			var err error
			if tt.cancel {
				w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour)
				_, err = w.run(w.start("x"))
			} else {
				_, err = w.run(w.start("x"), map[string]string{"pay": "yes"})
			}
			s := w.status()
			if w.undone() != tt.undone || s.Failure == nil || !strings.Contains(s.Failure.Message, tt.message) {
				t.Errorf("undone %q, %+v", w.undone(), s.Failure)
			}
			if tt.cancel != temporal.IsCanceledError(err) || tt.cancel != (s.Status == run.Canceled) {
				t.Errorf("%s, %v", s.Status, err)
			}
			want := s.Failure.Message
			if !tt.cancel {
				local := newBookings(t, tt.flight)
				_, err := local.app.Runs().Start(t.Context(), local.job("x", answerYes))
				if local.undone() != tt.undone || err == nil || !strings.HasSuffix(strings.ReplaceAll(err.Error(), local.dir, ""), strings.ReplaceAll(want, w.dir, "")) {
					t.Errorf("with loki: undone %q, %v\nwant %s", local.undone(), err, want)
				}
			}
		})
	}
}

// TestCompensationContinues gives up the activity after each of its signals: nothing is undone twice.
func TestCompensationContinues(t *testing.T) {
	calm := newBookings(t, "leave")
	_, want := calm.run(calm.start("x"), map[string]string{"pay": "yes"})
	if want == nil || calm.signals < 4 {
		t.Fatalf("%d signals, %v", calm.signals, want)
	}
	for lost := 1; lost <= calm.signals; lost++ {
		w := newBookings(t, "leave")
		w.lost = lost
		_, err := w.run(w.start("x"), map[string]string{"pay": "yes"})
		if err == nil || w.undone() != "flight hotel " || w.effects() != 2 {
			t.Errorf("lost after signal %d: %d effects, undone %q, %v", lost, w.effects(), w.undone(), err)
		}
	}
}

// TestCompensationInside undoes what a subgraph and a child agent did, as with loki.
func TestCompensationInside(t *testing.T) {
	const trip = "nodes: {book: {type: script, script: count.sh, compensate: cancel, next: bad}, bad: {type: script, script: missing.sh, next: done}, cancel: {type: script, script: undo.sh}, done: {type: end}}"
	const settings = "sandbox: full\nsettings: {on_failure: fail, validate_before_run: false}\n"
	for name, graph := range map[string]string{
		"subgraph": "name: agent\n" + settings + "start: x\nnodes:\n  x: {type: graph, settings: {on_failure: fail}, start: book, " + trip + ", next: done}\n  done: {type: end}\n",
		"child":    "name: agent\n" + settings + "start: x\nnodes:\n  x: {type: agent, agent: trip, prompt: p, next: done}\n  done: {type: end}\n",
	} {
		t.Run(name, func(t *testing.T) {
			const undo = "#!/bin/sh\necho undone >> undone\necho '{}'\n"
			w := newWorldWith(t, graph, map[string]string{
				"agent/undo.sh": undo, "config/agents/trip/graph.yaml": "name: trip\n" + settings + "start: book\n" + trip + "\n",
				"config/agents/trip/count.sh": countScript, "config/agents/trip/undo.sh": undo,
			})
			_, err := w.run(w.start("x"))
			if err == nil || w.undone() != "undone " || w.effects() != 1 {
				t.Errorf("%d effects, undone %q, %v", w.effects(), w.undone(), err)
			}
		})
	}
}

// waits is a graph that waits for a signal, in two nodes side by side, and for a time.
const waits = `
name: waits
start: first
nodes:
  first: {type: wait, for: 3600, next: [paid, sent]}
  paid: {type: wait, signal: paid, schema: {type: object, required: [sum]}, state_updates: {sum: "{{signal.sum}}"}, next: done}
  sent: {type: wait, signal: sent, timeout: 86400, default: late, state_updates: {sent: "{{signal}}"}, next: done}
  done: {type: end, join: all, output: "{{sum}} {{sent}}"}
`

// TestWaits gives a run signals: before it waits for them, while it does, too late, and such as it does not take.
func TestWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		paid, sent time.Duration // when they are sent; 0 for never
		want       string
	}{
		"before":   {paid: time.Minute, sent: 2 * time.Minute, want: "5 now"},
		"while":    {paid: 3 * time.Hour, sent: 2 * time.Hour, want: "5 now"},
		"too late": {paid: 40 * time.Hour, sent: 30 * time.Hour, want: "5 late"},
		"never":    {paid: 2 * time.Hour, want: "5 late"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waits)
			send := func(at time.Duration, s driver.Signal, accepted bool) {
				w.env.RegisterDelayedCallback(func() {
					w.env.UpdateWorkflow("loki-signal", s.ID, &testsuite.TestUpdateCallback{
						OnAccept: func() {},
						OnReject: func(err error) {
							if accepted {
								t.Errorf("signal %s is refused: %v", s.Name, err)
							}
						},
						OnComplete: func(any, error) {
							if !accepted {
								t.Errorf("signal %s is accepted", s.Name)
							}
						},
					}, s)
				}, at)
			}
			value := func(json string) value.Value {
				v, err := value.ParseJSON([]byte(json))
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			send(30*time.Second, driver.Signal{ID: "1", Name: "other", Value: value("1")}, false)
			send(31*time.Second, driver.Signal{ID: "2", Name: "paid", Value: value(`{}`)}, false)
			send(tt.paid, driver.Signal{ID: "3", Name: "paid", Value: value(`{"sum": 5}`)}, true)
			if tt.sent != 0 && tt.sent < 24*time.Hour {
				send(tt.sent, driver.Signal{ID: "4", Name: "sent", Value: value(`"now"`)}, true)
			} else if tt.sent != 0 { // by another client of Temporal
				w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow("loki-signal", json.RawMessage(`{"name": "sent", "value": "now"}`)) }, tt.sent)
			}
			w.env.RegisterDelayedCallback(func() {
				if s := w.status(); len(s.Others) == 0 || s.Status != run.Suspended {
					t.Errorf("it does not say that it waits: %+v", s)
				}
			}, 40*time.Minute)
			r, err := w.run(w.start("x"))
			if err != nil || r.Output != tt.want {
				t.Errorf("%q, %v, want %q", r.Output, err, tt.want)
			}
		})
	}
}

// TestWaitContinuesElsewhere hands signals that were not taken to the workflow that continues a run.
func TestWaitContinuesElsewhere(t *testing.T) {
	w := newWorld(t, waits)
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow("loki-signal", json.RawMessage(`{"name": "paid", "value": {"sum": 5}}`))
		w.env.SignalWorkflow("loki-signal", json.RawMessage(`{"name": "sent", "value": "now"}`))
	}, time.Minute)
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 2*time.Minute)
	if _, err := w.run(w.start("x")); !temporal.IsCanceledError(err) {
		t.Fatal(err)
	}
	v, err := w.env.QueryWorkflow("loki-point")
	var start driver.Start
	if err := errors.Join(err, v.Get(&start)); err != nil {
		t.Fatal(err)
	}
	w.reset()
	if r, err := w.run(start); err != nil || r.Output != "5 now" {
		t.Errorf("%q, %v", r.Output, err)
	}
}

var answerYes = ask.Func(func(context.Context, ask.Question) (string, error) { return "yes", nil })
