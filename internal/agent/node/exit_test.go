package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/ask/asktest"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// route returns the nodes that finished, in order.
func route(c *eventtest.Collector) string {
	var ids []string
	for _, ev := range c.Events() {
		if _, ok := ev.Body.(event.NodeFinished); ok {
			ids = append(ids, ev.Node)
		}
	}
	return strings.Join(ids, " ")
}

// TestExits has, for the types of nodes, choices that see what the node has just written.
func TestExits(t *testing.T) {
	const ends = "\n  x: {type: end, output: x}\n  y: {type: end, output: y}\n"
	for _, tt := range []struct {
		name, text, want, output string
		world                    world
	}{
		{
			"llm_after_updates", `
start: a
nodes:
  a: {type: llm, prompt: p, state_updates: {said: "{{output}}"}, next: [{when: "said matches '^yes'", to: x}, {to: y}]}` + ends, "a x", "x",
			world{model: replies("yes, sir")},
		},
		{
			"llm_structured", `
start: a
nodes:
  a: {type: llm, prompt: p, output_schema: {type: object, properties: {kind: {enum: [bug, idea]}}}, next: {on: "{{kind}}", routes: {bug: x, idea: y}}}` + ends, "a y", "y",
			world{model: replies(`{"kind": "idea"}`)},
		},
		{
			"script", `
start: a
nodes:
  a: {type: script, script: a.sh, next: [{when: n > 2, to: x}, {to: y}]}` + ends, "a x", "x",
			world{scripts: map[string]string{"a.sh": `echo '{"n": 3}'`}},
		},
		{
			"script_next_wins", `
start: a
nodes:
  a: {type: script, script: a.sh, next: [{when: n > 2, to: x}, {to: y}]}` + ends, "a y", "y",
			world{scripts: map[string]string{"a.sh": `echo '{"n": 3, "_next": "y"}'`}},
		},
		{
			"loop_with_a_max", `
start: a
nodes:
  a: {type: llm, prompt: "try {{_loop.a}}", state_updates: {said: "{{output}}"}, next: [{when: "said == 'good'", to: x}, {to: a, max: 2}, {to: y}]}` + ends, "a a a y", "y",
			world{model: replies("bad", "worse", "bad again")},
		},
		{
			"loop_that_ends_early", `
start: a
nodes:
  a: {type: llm, prompt: "try {{_loop.a}}", state_updates: {said: "{{output}}"}, next: [{when: "said == 'good'", to: x}, {to: a, max: 2}, {to: y}]}` + ends, "a a x", "x",
			world{model: replies("bad", "good")},
		},
		{
			"pick_all", `
reducers: {said: append}
start: a
nodes:
  a: {type: llm, prompt: p, pick: all, next: [{when: 1 < 2, to: b}, {when: 2 < 1, to: x}, {to: c}]}
  b: {type: llm, prompt: p, state_updates: {said: "{{output}}"}, next: y}
  c: {type: llm, prompt: p, state_updates: {said: "{{output}}"}, next: y}` + ends, "a b c y", "y",
			world{model: replies("1", "2", "3")},
		},
		{
			"approval_route", `
initial_state: {tries: 0}
start: a
nodes:
  a: {type: approval, question: q, options: [again, stop], routes: {again: [{to: a, max: 1}, {to: y}], stop: x}, on_other: y}` + ends, "a a y", "y",
			world{asker: asktest.NewScripted("again", "again")},
		},
		{
			"approval_other", `
start: a
nodes:
  a: {type: approval, question: q, options: [stop], routes: {stop: x}, on_other: [{when: "wish contains 'more'", to: a, max: 3}, {to: y}], state_updates: {wish: "{{choice}}"}}` + ends, "a a y", "y",
			world{asker: asktest.NewScripted("more of it", "less")},
		},
		{
			"input", `
start: a
nodes:
  a: {type: input, question: q, state_updates: {age: "{{input}}"}, next: [{when: int(age) >= 18, to: x}, {to: y}]}` + ends, "a x", "x",
			world{asker: asktest.NewScripted("30")},
		},
		{
			"map", `
initial_state: {votes: ["yes", "no", "yes"]}
start: a
nodes:
  a: {type: map, over: "{{votes}}", as: v, branch: b, collect_into: all, next: [{when: "count(all, 'YES') >= 2", to: x}, {to: y}]}
  b: {type: script, script: b.sh}` + ends, "a x", "x",
			world{scripts: map[string]string{"b.sh": `echo "$GRAPH_STATE" | grep -q '"v":"yes"' && echo '{"output": "YES"}' || echo '{"output": "NO"}'`}},
		},
		{
			"fallback_sees_the_failure", `
start: a
nodes:
  a: {type: script, script: a.sh, next: y, fallback: [{when: "_last_error.message contains 'busy'", to: a, max: 2}, {to: x}]}` + ends, "a a a x", "x",
			world{scripts: map[string]string{"a.sh": `echo busy >&2; exit 3`}},
		},
		{
			"fallback_of_a_choice_without_a_way", `
start: a
nodes:
  a: {type: llm, prompt: p, next: [{when: "initial_prompt == 'no'", to: y}], fallback: x}` + ends, "a x", "x",
			world{model: replies("a")},
		},
		{
			"on_failure_continue_takes_the_choice", `
settings: {on_failure: continue}
start: a
nodes:
  a: {type: script, script: a.sh, next: [{when: "_last_error.node == 'a'", to: x}, {to: y}]}` + ends, "a x", "x",
			world{scripts: map[string]string{"a.sh": `exit 3`}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, c, err := tt.world.drive(t.Context(), t, tt.text)
			if err != nil || out.Output != tt.output {
				t.Errorf("output %q, %v, want %q", out.Output, err, tt.output)
			}
			if got := route(c); got != tt.want && !(tt.name == "pick_all" && got == "a c b y") {
				t.Errorf("it went %s, want %s", got, tt.want)
			}
		})
	}
}

func TestNoEdgeHolds(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"condition", "start: a\nnodes:\n  a: {type: llm, prompt: p, state_updates: {said: '{{output}}'}, next: [{when: said == 'b', to: x}]}\n  x: {type: end}\n",
			`at node "a": next: no edge holds: said == 'b' is false`,
		},
		{
			"used_up", "start: a\nnodes:\n  a: {type: llm, prompt: p, next: [{to: a, max: 1}]}\n  x: {type: end}\n",
			`at node "a": next: no edge holds: the edge to "a" was taken 1 time, which is its max`,
		},
		{
			"no_boolean", "start: a\nnodes:\n  a: {type: llm, prompt: p, next: [{when: done, to: x}, {to: x}]}\n  x: {type: end}\n",
			`at node "a": next: a.next[0]: the condition done comes to null, neither true nor false: the state has no "done" (for a default, write done ?? false)`,
		},
		{
			"fallback", "start: a\nnodes:\n  a: {type: llm, prompt: p, next: [{when: 1 > 2, to: x}], fallback: [{when: 2 > 3, to: x}]}\n  x: {type: end}\n",
			`at node "a": fallback: no edge holds: 2 > 3 is false`,
		},
		{
			"on_failure_fail", "settings: {on_failure: fail}\nstart: a\nnodes:\n  a: {type: llm, prompt: p, next: [{when: 1 > 2, to: x}]}\n  x: {type: end}\n",
			`at node "a": next: no edge holds: 1 > 2 is false`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := world{model: replies("a", "a")}.drive(t.Context(), t, tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestTakenEdgesAreEvents looks at the event of a node that chose.
func TestTakenEdgesAreEvents(t *testing.T) {
	_, c, err := world{model: replies("a", "b")}.drive(t.Context(), t, "start: a\nnodes:\n  a: {type: llm, prompt: p, next: [{when: 1 > 2, to: x}, {to: a, max: 1}, {to: x}]}\n  x: {type: end}\n")
	if err != nil {
		t.Fatal(err)
	}
	var edges []string
	for _, fin := range eventtest.Bodies[event.NodeFinished](c) {
		edges = append(edges, strings.Join(fin.Edges, "+"))
	}
	if want := []string{"a.next[1]", "a.next[2]", ""}; !slices.Equal(edges, want) {
		t.Errorf("edges %q, want %q", edges, want)
	}
}

// TestCanceledNodeTakesNoFallback cancels a run whose node then has no edge that holds.
func TestCanceledNodeTakesNoFallback(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := replies()
	w := world{model: m}
	m.answer = nil
	stop := errors.New("stopped")
	ctx, cause := context.WithCancelCause(ctx)
	cause(stop)
	defer cancel()
	if _, c, err := w.drive(ctx, t, "start: a\nnodes:\n  a: {type: llm, prompt: p, next: [{when: 1 > 2, to: x}], fallback: x}\n  x: {type: end}\n"); !errors.Is(err, stop) || route(c) != "" {
		t.Errorf("%v, went %s", err, route(c))
	}
}
