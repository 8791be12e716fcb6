package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"loki/internal/agent/node"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// clocked is a recorded run with a clock that the test sets.
type clocked struct {
	world
	t     *testing.T
	now   time.Time
	store *memstore.Store
	text  string
	id    string
}

func newClocked(t *testing.T, text string) *clocked {
	t.Helper()
	c := &clocked{t: t, now: time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC), text: text}
	c.store = memstore.New(func() time.Time { return c.now })
	g, _, err := graph.Parse("graph.yaml", []byte("name: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.store.Create(t.Context(), run.Info{Definition: []byte("name: test\n" + text)}, run.StartCheckpoint(graph.NewPlan(g), graph.NewState(g.InitialState)))
	if err != nil {
		t.Fatal(err)
	}
	c.id, c.journal = j.ID(), j
	c.options = func(o *node.Options) { o.Now = func() time.Time { return c.now } }
	return c
}

// run runs the graph, as far as it goes, and then gives back the lease.
func (c *clocked) run() (run.Outcome, *eventtest.Collector, error) {
	c.t.Helper()
	if c.journal == nil {
		j, found, err := c.store.Open(c.t.Context(), c.id)
		if err != nil {
			c.t.Fatal(err)
		}
		c.journal, c.from = j, &found
	}
	out, events, err := c.drive(c.t.Context(), c.t, c.text)
	if err := c.journal.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.journal = nil
	return out, events, err
}

// suspended runs the graph, which has to be suspended until a time, and returns the error.
func (c *clocked) suspended(until time.Time) error {
	c.t.Helper()
	_, _, err := c.run()
	info, infoErr := c.store.Info(c.t.Context(), c.id)
	if fault.CodeOf(err) != fault.Suspended || infoErr != nil || info.Status != run.Suspended || !info.Until.Equal(until) {
		c.t.Fatalf("error %v; %s until %v, want %v; %v", err, info.Status, info.Until, until, infoErr)
	}
	return err
}

// send gives the run a signal.
func (c *clocked) send(name, text string) error {
	c.t.Helper()
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	_, _, err = run.Deliver(c.t.Context(), c.store, c.id, name, v, "")
	return err
}

// TestWaitForATime: the time counts from when the node was reached, whatever comes in between.
func TestWaitForATime(t *testing.T) {
	c := newClocked(t, `
start: pause
nodes:
  pause: {type: wait, for: 10m, state_updates: {got: "{{signal}}"}, next: done}
  done: {type: end, output: "over {{got}}"}
`)
	begin := c.now
	err := c.suspended(begin.Add(10 * time.Minute))
	if want := `node "pause" waits until ` + begin.Add(10*time.Minute).Local().Format(time.DateTime); err.Error() != want || !strings.Contains(fault.HintOf(err), "loki --resume "+c.id+" --wait") {
		t.Errorf("error %q, hint %q", err, fault.HintOf(err))
	}
	waits, err := c.store.Waits(t.Context(), c.id)
	if err != nil || len(waits) != 1 || waits[0].ID != "pause" || waits[0].Wait != run.ForTime || !waits[0].Asked.Equal(begin) || waits[0].Node != "pause" {
		t.Errorf("waits %+v, %v", waits, err)
	}
	c.now = begin.Add(9 * time.Minute)
	c.suspended(begin.Add(10 * time.Minute))
	c.now = begin.Add(10 * time.Minute)
	out, _, err := c.run()
	if err != nil || out.Output != "over null" {
		t.Errorf("output %q, %v", out.Output, err)
	}
	if waits, err := c.store.Waits(t.Context(), c.id); err != nil || len(waits) > 0 {
		t.Errorf("it still waits: %+v, %v", waits, err)
	}
}

func TestWaitUntil(t *testing.T) {
	for _, tt := range []struct{ when, want string }{
		{"2026-12-24T18:00:00Z", "suspended"},
		{"2026-12-24T12:00:00+01:00", "over"},
		{"tonight", `at node "pause": until: "tonight" is not a time as RFC 3339 has it`},
	} {
		c := newClocked(t, "initial_state: {when: \""+tt.when+"\"}"+`
start: pause
nodes:
  pause: {type: wait, until: "{{when}}", next: done}
  done: {type: end, output: "over"}
`)
		if tt.want == "suspended" {
			c.suspended(time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC))
			c.now = c.now.Add(6 * time.Hour)
			tt.want = "over"
		}
		out, _, err := c.run()
		if out.Output != tt.want && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: output %q, %v", tt.when, out.Output, err)
		}
	}
}

const shop = `
start: both
nodes:
  both: {type: wait, for: 0, next: [paid, note]}
  paid: {type: wait, signal: paid, schema: {type: object, required: [amount]}, state_updates: {amount: "{{signal.amount}}"}, next: again}
  note: {type: wait, for: 5, state_updates: {note: noted}, next: again}
  again: {type: wait, signal: paid, join: all, state_updates: {more: "{{signal.amount}}"}, next: done}
  done: {type: end, output: "{{note}} {{amount}} {{more}}"}
`

// TestWaitForSignals: signals are kept until they are taken, each once and in order, and others work meanwhile.
func TestWaitForSignals(t *testing.T) {
	c := newClocked(t, shop)
	begin := c.now
	c.suspended(begin.Add(5 * time.Second)) // the timer comes first
	for _, tt := range []struct{ name, value, want string }{
		{"pay", "1", `no node of run ` + c.id + ` waits for signal "pay"`},
		{"", "1", `waits for signal ""`},
		{"paid", "1", `signal paid does not match the schema of node "paid": (root): must be an object`},
	} {
		err := c.send(tt.name, tt.value)
		if tt.name == "paid" { // the other wait takes anything
			if err != nil {
				t.Errorf("%v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Usage {
			t.Errorf("%s=%s: %v", tt.name, tt.value, err)
		}
	}
	_, _, err := c.run()
	if err == nil || !strings.Contains(err.Error(), "signal paid does not match schema") {
		t.Errorf("error %v", err)
	}
}

func TestSignalsInOrder(t *testing.T) {
	c := newClocked(t, strings.Replace(shop, "schema: {type: object, required: [amount]}, ", "", 1))
	if err := c.send("paid", `{"amount": 1}`); err != nil { // before the wait is reached
		t.Fatal(err)
	}
	c.suspended(c.now.Add(5 * time.Second))
	c.now = c.now.Add(5 * time.Second)
	c.suspended(time.Time{})
	if err := c.send("paid", `{"amount": 2}`); err != nil {
		t.Fatal(err)
	}
	if err := c.send("paid", `{"amount": 3}`); err != nil { // once more is another signal
		t.Fatal(err)
	}
	out, events, err := c.run()
	if err != nil || out.Output != "noted 1 2" {
		t.Errorf("output %q, %v", out.Output, err)
	}
	if got := eventtest.Bodies[event.Signal](events); len(got) != 1 || got[0].Name != "paid" || got[0].ID != "again" || got[0].Value.String() != `{"amount":2}` {
		t.Errorf("events %+v", got)
	}
	if err := c.send("paid", "1"); err == nil || !strings.Contains(err.Error(), "is done") {
		t.Errorf("a signal to a run that is done: %v", err)
	}
	signals, err := c.store.Signals(t.Context(), c.id)
	if err != nil || len(signals) != 3 || signals[0].Taken == "" || signals[1].Taken == "" || signals[2].Taken != "" {
		t.Errorf("signals %+v, %v", signals, err)
	}
}

func TestSignalSchemaAtDelivery(t *testing.T) {
	c := newClocked(t, `
start: paid
nodes:
  paid: {type: wait, signal: paid, schema: {type: object, properties: {amount: {type: number}}, required: [amount]}, next: done}
  done: {type: end}
`)
	c.suspended(time.Time{})
	for _, tt := range []struct{ value, want string }{
		{`{}`, "/amount: is required"},
		{`{"amount": "x"}`, "/amount: must be a number"},
	} {
		if err := c.send("paid", tt.value); err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Usage {
			t.Errorf("%s: %v", tt.value, err)
		}
	}
	if signals, err := c.store.Signals(t.Context(), c.id); err != nil || len(signals) > 0 {
		t.Errorf("refused signals are kept: %+v, %v", signals, err)
	}
}

// TestWaitTimesOut: the default is taken, or the fallback, or the node fails. A signal that comes later does not count.
func TestWaitTimesOut(t *testing.T) {
	for fields, want := range map[string]string{
		`, default: {by: "{{who}}"}`: `{"by":"Ada"}`,
		", fallback: late":           `late: no signal paid within 1m0s, and the node has no default`,
		"":                           `at node "paid": no signal paid within 1m0s`,
	} {
		c := newClocked(t, `
initial_state: {who: Ada}
start: paid
nodes:
  paid: {type: wait, signal: paid, timeout: 60`+fields+`, state_updates: {got: "{{signal}}"}, next: done}
  late: {type: end, output: "late: {{_last_error.message}}"}
  done: {type: end, output: "{{got}}"}
`)
		end := c.now.Add(time.Minute)
		c.suspended(end)
		c.now = end.Add(time.Second)
		if err := c.send("paid", `"too late"`); err != nil {
			t.Fatal(err)
		}
		out, _, err := c.run()
		if got := out.Output; got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %q, %v; want %s", fields, got, err, want)
		}
	}
}

// TestWaitBesideAQuestion: the time of the wait counts although the question waits without one.
func TestWaitBesideAQuestion(t *testing.T) {
	c := newClocked(t, `
start: both
nodes:
  both: {type: wait, for: 0, next: [early, pause]}
  early: {type: wait, for: 0, next: who}
  pause: {type: wait, for: 0, next: later}
  who: {type: input, question: "Your name?", state_updates: {who: "{{input}}"}, next: done}
  later: {type: wait, for: 60, next: done}
  done: {type: end, join: all, output: "{{who}}"}
`)
	begin := c.now
	err := c.suspended(begin.Add(time.Minute))
	if !strings.Contains(err.Error(), `waits`) {
		t.Error(err)
	}
	if pending, err := c.store.Pending(t.Context(), c.id); err != nil || len(pending) != 1 || pending[0].ID != "who" {
		t.Errorf("pending %+v, %v", pending, err)
	}
	c.now = begin.Add(time.Minute)
	c.suspended(time.Time{}) // for the answer
	if err := c.store.Answer(t.Context(), c.id, "who", run.Reply{Text: "Ada"}); err != nil {
		t.Fatal(err)
	}
	if out, _, err := c.run(); err != nil || out.Output != "Ada" {
		t.Errorf("output %q, %v", out.Output, err)
	}
}

// TestWaitWithoutARecord: a time passes in the process, a signal cannot come, and a dry run does not wait.
func TestWaitWithoutARecord(t *testing.T) {
	var slept time.Duration
	sleep := func(o *node.Options) {
		o.Sleep = func(_ context.Context, d time.Duration) error { slept = d; return nil }
	}
	w := world{options: sleep}
	const text = "start: pause\nnodes:\n  pause: {type: wait, %, next: done}\n  done: {type: end, output: over}\n"
	out, c, err := w.drive(t.Context(), t, strings.Replace(text, "%", "for: 1h", 1))
	if err != nil || out.Output != "over" || slept.Round(time.Minute) != time.Hour || len(eventtest.Bodies[event.Waiting](c)) != 1 {
		t.Errorf("output %q, %v, slept %v", out.Output, err, slept)
	}
	if _, _, err := w.drive(t.Context(), t, strings.Replace(text, "%", "signal: paid", 1)); fault.CodeOf(err) != fault.Config {
		t.Errorf("a signal without a record: %v", err)
	}
	slept = 0
	w.options = func(o *node.Options) { sleep(o); o.Dry = true }
	for _, fields := range []string{"for: 1h", "signal: paid", "signal: paid, timeout: 60, default: x"} {
		if out, _, err := w.drive(t.Context(), t, strings.Replace(text, "%", fields, 1)); err != nil || out.Output != "over" || slept > 0 {
			t.Errorf("dry %s: output %q, %v, slept %v", fields, out.Output, err, slept)
		}
	}
}
