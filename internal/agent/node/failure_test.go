package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/agent/node"
	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/run"
)

// TestFallbackOfEachType: a failure of the node's work, and of its templates, leads to the fallback; the state says why.
func TestFallbackOfEachType(t *testing.T) {
	failing := map[string]childFunc{"helper": func(context.Context, string, *run.Frame) (string, error) { return "", errors.New("it is ill") }}
	for _, tt := range []struct {
		name, node, want string
		world            world
	}{
		{"agent", "{type: agent, agent: helper, prompt: p", "agent: agent helper failed: it is ill", world{children: failing}},
		{"agent_prompt", "{type: agent, agent: helper, prompt: '{{gone}}'", "agent: prompt for agent helper: {{gone}}", world{children: failing}},
		{"rag", "{type: rag, documents: [d]", "rag: searching the knowledge base: no disk", world{bases: map[string]rag.Searcher{"a": &shelf{failures: []error{errors.New("no disk")}}}}},
		{"rag_query", "{type: rag, documents: [d], query: '{{gone}}'", "rag: query: {{gone}}", world{bases: map[string]rag.Searcher{"a": new(shelf)}}},
		{"approval_question", "{type: approval, question: '{{gone}}', options: [], routes: {}, on_other: done", "approval: question: {{gone}}", world{}},
		{"approval_in_time", "{type: approval, question: q, options: [], routes: {}, on_other: done, timeout: 0", "approval: approval interaction failed: no answer in time", world{asker: late()}},
		{"approval_without_a_route", "{type: approval, question: q, options: [], routes: {}, on_other: [{when: 1 > 2, to: done}]", "approval: on_other: no edge holds: 1 > 2 is false", world{asker: asktest.NewScripted("x")}},
		{"input_question", "{type: input, question: '{{gone}}'", "input: question: {{gone}}", world{}},
		{"input_in_time", "{type: input, question: q, expires: 1ns", "input: input interaction failed: no answer in time", world{asker: late()}},
		{"input_without_an_edge", "{type: input, question: q, next: [{when: 1 > 2, to: done}]", "input: next: no edge holds", world{asker: asktest.NewScripted("x")}},
		{"input_that_is_not_valid", "{type: input, question: q, validation: len(input) > 3", "input: the answer does not satisfy", world{asker: ask.Func(func(context.Context, ask.Question) (string, error) { return "x", nil })}},
		{"wait_for_no_time", "{type: wait, until: tomorrow", "wait: until: \"tomorrow\" is not a time", world{}},
		{"map_over_no_list", "{type: map, over: '{{n}}', as: i, branch: one, collect_into: all", "map: map node \"a\": over: {{n}} is not an array", world{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "start: a\ninitial_state: {n: 1, initial_prompt: p}\nnodes:\n  a: " + tt.node + ", fallback: rescue"
			if !strings.Contains(tt.node, "next: ") && !strings.Contains(tt.node, "approval") {
				text += ", next: done"
			}
			text += "}\n  one: {type: llm, prompt: p}\n  rescue: {type: end, output: \"{{_last_error.type}}: {{_last_error.message}}\"}\n  done: {type: end, output: went on}\n"
			out, _, err := tt.world.drive(t.Context(), t, text)
			if want := strings.ReplaceAll(tt.want, "{{gone}}", ""); err != nil || out.Failures != 1 || !strings.HasPrefix(out.Output, strings.TrimSuffix(want, " ")) {
				t.Errorf("output %q, %v, %d failures, want %s", out.Output, err, out.Failures, tt.want)
			}
		})
	}
}

// TestUnhandledFailures: a run whose definition does not say what a failure does ends with an error, and has its output.
func TestUnhandledFailures(t *testing.T) {
	const ends = `, state_updates: {x: "{{output}}"}, next: e}
  e: {type: end, output: "done{{x}}"}
  f: {type: end, output: "done{{x}}"}
`
	mapped := func(fields string) string {
		return `a: {type: map, over: "{{l}}", as: i, branch: b, collect_into: x, next: e}
  b: {type: llm, prompt: "{{i}}"` + fields + `, next: e}
  e: {type: end, output: "done{{x}}"}
`
	}
	for _, tt := range []struct {
		name, settings, nodes string
		failures, unhandled   int
		message               string
	}{
		{"llm", "", "a: {type: llm, prompt: '7'" + ends, 1, 1, `node "a" failed and the run continued: LLM node failed: `},
		{"script", "", "a: {type: script, script: a.sh, next: e}\n  e: {type: end, output: done}\n", 1, 1, `node "a" failed and the run continued: script a.sh: `},
		{"accepted", "settings: {on_failure: continue}", "a: {type: llm, prompt: '7'" + ends, 1, 0, ""},
		{"fallback", "", "a: {type: llm, prompt: '7', fallback: f" + ends, 1, 0, ""},
		{"side_by_side", "", "a: {type: llm, prompt: p, next: [b, c]}\n  b: {type: llm, prompt: '7', next: e}\n  c: {type: llm, prompt: '7', next: e}\n  e: {type: end, output: done}\n", 2, 2, `2 nodes failed and the run continued; the last failure is that of node "c": `},
		{"items", "", mapped(""), 2, 2, `2 nodes failed and the run continued`},
		{"items_with_fallback", "", mapped(", fallback: e"), 2, 0, ""},
		{"items_accepted", "settings: {on_failure: continue}", mapped(""), 2, 0, ""},
		{"subgraph", "", `a: {type: graph, start: s, nodes: {s: {type: llm, prompt: "7", next: t}, t: {type: end, output: x}}` + ends, 1, 1, "1 node failed and the run continued"},
		{"subgraph_accepted", "settings: {on_failure: continue}", `a: {type: graph, start: s, nodes: {s: {type: llm, prompt: "7", next: t}, t: {type: end, output: x}}` + ends, 1, 0, ""},
		{"subgraph_of_items", "", `a: {type: map, over: "{{l}}", as: i, branch: g, collect_into: x, next: e}
  g: {type: graph, with: {i: "{{i}}"}, start: s, nodes: {s: {type: llm, prompt: "{{i}}", next: t}, t: {type: end, output: x}}}
  e: {type: end, output: "done{{x}}"}
`, 2, 2, `2 nodes failed and the run continued`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{model: &model{answer: odd}, scripts: map[string]string{"a.sh": "exit 3"}}
			out, _, err := w.drive(t.Context(), t, tt.settings+"\nstart: a\ninitial_state: {l: [1, 7, 77]}\nnodes:\n  "+tt.nodes)
			if out.Failures != tt.failures || out.Unhandled != tt.unhandled || !strings.HasPrefix(out.Output, "done") {
				t.Errorf("%d failures, %d not handled, output %q", out.Failures, out.Unhandled, out.Output)
			}
			if tt.message == "" && err != nil || tt.message != "" && (fault.CodeOf(err) != fault.Tool || !strings.Contains(err.Error(), tt.message)) {
				t.Errorf("error %v, want %q", err, tt.message)
			}
		})
	}
}

// late is a user who does not answer in time.
func late() ask.Asker {
	return ask.Func(func(ctx context.Context, _ ask.Question) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
}

// TestNoFallback: what is no failure of the node does not lead to its fallback.
func TestNoFallback(t *testing.T) {
	for _, tt := range []struct {
		name  string
		asker ask.Asker
		code  fault.Code
	}{
		{"no_user", nil, fault.Suspended},
		{"canceled", ask.Func(func(context.Context, ask.Question) (string, error) { return "", context.Canceled }), fault.Canceled},
	} {
		_, _, err := world{asker: tt.asker}.drive(t.Context(), t, `
start: a
nodes:
  a: {type: input, question: q, fallback: done, retry: {attempts: 2}, next: done}
  done: {type: end, output: went on}
`)
		if fault.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestFallbackOfABranch: a failed item has failed, whatever the fallback of the branch, unless the branch is an llm node.
func TestFallbackOfABranch(t *testing.T) {
	failing := map[string]childFunc{"helper": func(context.Context, string, *run.Frame) (string, error) { return "", errors.New("it is ill") }}
	out, _, err := world{children: failing}.drive(t.Context(), t, strings.Replace(overItems("[1]", "on_error: collect"), `{type: llm, prompt: "{{item}}"}`, "{type: agent, agent: helper, prompt: p, fallback: done}", 1))
	if err != nil || !strings.Contains(out.Output, `"_error":{"node":"one","message":"agent helper failed: it is ill"`) {
		t.Errorf("output %s, %v", out.Output, err)
	}
}

// TestMapRetry: a further try is about the items that have no result yet.
func TestMapRetry(t *testing.T) {
	for _, tt := range []struct {
		name, items, fields string
		fails               int // of each item with a 7
		want                string
		asked               string
	}{
		{"failed_item", "[1, 7, 3]", "retry: {attempts: 2}", 1, `["1","7","3"]`, "1 3 7 7"},
		{"several", "[7, 1, 77]", "retry: {attempts: 3}", 2, `["7","1","77"]`, "1 7 7 7 77 77 77"},
		{"used_up", "[1, 7]", "retry: {attempts: 2}, fallback: rescue", 2, "rescued: each", "1 7 7"},
		{"too_few", "[1, 7]", "retry: {attempts: 2}, on_error: skip, min_success: 2", 1, `["1","7"]`, "1 7 7"},
		{"tolerated", "[1, 7]", "retry: {attempts: 2}, on_error: skip, min_success: 1", 1, `["1"]`, "1 7"},
	} {
		for _, recorded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s_recorded_%v", tt.name, recorded), func(t *testing.T) {
				calls := make(map[string]int)
				w := world{options: func(o *node.Options) {
					o.Sleep = func(context.Context, time.Duration) error { return nil }
				}}
				w.model = &model{}
				w.model.answer = func(_ context.Context, req provider.Request, _ int) (string, error) {
					w.model.mu.Lock()
					defer w.model.mu.Unlock()
					text := prompt(req)
					if calls[text]++; strings.Contains(text, "7") && calls[text] <= tt.fails {
						return "", errors.New("not a seven")
					}
					return text, nil
				}
				text := overItems(tt.items, tt.fields)
				if recorded {
					_, w.journal = record(t, text)
				}
				out, c, err := w.drive(t.Context(), t, text)
				var asked []string
				for _, req := range w.model.requests {
					asked = append(asked, prompt(req))
				}
				slices.Sort(asked)
				if err != nil || out.Output != tt.want || strings.Join(asked, " ") != tt.asked {
					t.Errorf("output %s, %v, asked %q", out.Output, err, asked)
				}
				if progress := eventtest.Bodies[event.MapProgress](c); progress[len(progress)-1].Done != progress[0].Total {
					t.Errorf("progress %v", progress)
				}
			})
		}
	}
}

// TestMapRetryGoesOn: after an interruption a try that failed is not made again, nor is an item that is over.
func TestMapRetryGoesOn(t *testing.T) {
	text := overItems("[1, 7]", "retry: {attempts: 2}, concurrency: 1")
	store, j := record(t, text)
	ctx, cancel := context.WithCancel(t.Context())
	w := world{journal: j, model: replies("1", errors.New("broken")), options: func(o *node.Options) {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	}}
	if _, _, err := w.drive(ctx, t, text); fault.CodeOf(err) != fault.Canceled {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, found, err := store.Open(t.Context(), j.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	w = world{journal: j, from: &found, model: replies("7, at last")}
	out, _, err := w.drive(t.Context(), t, text)
	if err != nil || out.Output != `["1","7, at last"]` {
		t.Errorf("output %s, %v", out.Output, err)
	}
}

// TestQuestionRetry: a question without an answer in time is asked again, under another id. The one before waits no more.
func TestQuestionRetry(t *testing.T) {
	c := newClocked(t, `
start: name
nodes:
  name: {type: input, question: "Your name?", timeout: 60, retry: {attempts: 2, backoff: 0}, fallback: gone, state_updates: {name: "{{input}}"}, next: done}
  gone: {type: end, output: "{{_last_error.message}}"}
  done: {type: end, output: "hello {{name}}"}
`)
	pending := func(want string) {
		t.Helper()
		if _, _, err := c.run(); fault.CodeOf(err) != fault.Suspended {
			t.Fatal(err)
		}
		waiting, err := c.store.Pending(t.Context(), c.id)
		if err != nil || len(waiting) != 1 || waiting[0].ID != want || !waiting[0].Deadline.Equal(c.now.Add(time.Minute)) {
			t.Fatalf("pending %+v, %v, want %s", waiting, err, want)
		}
	}
	begin := c.now
	pending("name")
	c.now = begin.Add(2 * time.Minute)
	pending("name/retry/2/question")
	fork := *c
	if err := c.store.Answer(t.Context(), c.id, "name/retry/2/question", run.Reply{Text: "Ada"}); err != nil {
		t.Fatal(err)
	}
	if out, _, err := fork.run(); err != nil || out.Output != "hello Ada" {
		t.Errorf("output %q, %v", out.Output, err)
	}
}

// TestQuestionLapses: the fallback is taken once no try is left, and a run that goes on does the same.
func TestQuestionLapses(t *testing.T) {
	c := newClocked(t, `
start: both
nodes:
  both: {type: wait, for: 0, next: [name, city]}
  name: {type: input, question: "Your name?", timeout: 60, fallback: gone, next: done}
  city: {type: input, question: "Your city?", state_updates: {city: "{{input}}"}, next: done}
  gone: {type: wait, for: 0, next: done}
  done: {type: end, join: all, output: "{{city}}: {{_last_error.message}}"}
`)
	if _, _, err := c.run(); fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	expired := c.now.Add(time.Minute)
	c.now = c.now.Add(2 * time.Minute)
	if _, _, err := c.run(); fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	waiting, err := c.store.Pending(t.Context(), c.id)
	if err != nil || len(waiting) != 1 || waiting[0].ID != "city" {
		t.Fatalf("pending %+v, %v", waiting, err)
	}
	if err := c.store.Answer(t.Context(), c.id, "city", run.Reply{Text: "Graz"}); err != nil {
		t.Fatal(err)
	}
	out, _, err := c.run()
	if want := "Graz: input interaction failed: no answer in time: the question expired at " + expired.Local().Format(time.DateTime); err != nil || !strings.HasPrefix(out.Output, want) {
		t.Errorf("output %q, %v, want %q", out.Output, err, want)
	}
}

// TestWaitRetry: each try waits for the timeout anew.
func TestWaitRetry(t *testing.T) {
	c := newClocked(t, `
start: paid
nodes:
  paid: {type: wait, signal: paid, timeout: 60, retry: {attempts: 2, backoff: 0}, fallback: late, state_updates: {got: "{{signal}}"}, next: done}
  late: {type: end, output: "{{_last_error.message}}"}
  done: {type: end, output: "{{got}}"}
`)
	begin := c.now
	c.suspended(begin.Add(time.Minute))
	c.now = begin.Add(2 * time.Minute)
	c.suspended(begin.Add(3 * time.Minute))
	if waits, err := c.store.Waits(t.Context(), c.id); err != nil || len(waits) != 1 || waits[0].ID != "paid/retry/2" {
		t.Errorf("waits %+v, %v", waits, err)
	}
	c.now = begin.Add(3 * time.Minute)
	if out, _, err := c.run(); err != nil || out.Output != "no signal paid within 1m0s, and the node has no default" {
		t.Errorf("output %q, %v", out.Output, err)
	}
}

// TestWaitUntilTimesOut: a time that is too far away is not waited for.
func TestWaitUntilTimesOut(t *testing.T) {
	c := newClocked(t, `
initial_state: {when: "2026-12-25T12:00:00Z"}
start: pause
nodes:
  pause: {type: wait, until: "{{when}}", timeout: 60, fallback: late, next: done}
  late: {type: end, output: "{{_last_error.message}}"}
  done: {type: end, output: over}
`)
	begin := c.now
	c.suspended(begin.Add(time.Minute))
	c.now = begin.Add(time.Minute)
	if out, _, err := c.run(); err != nil || out.Output != "the time to wait for, 2026-12-25T12:00:00Z, does not come within 1m0s" {
		t.Errorf("output %q, %v", out.Output, err)
	}
}
