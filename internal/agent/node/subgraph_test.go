package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/agent/node"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// echo answers with the prompt.
func echo(_ context.Context, req provider.Request, _ int) (string, error) { return prompt(req), nil }

// chains runs a chain of nodes for each city, in which a map runs a chain for each thing to see: two subgraphs in each other.
const chains = `
initial_state: {cities: [{name: rome, sights: [forum, baths]}, {name: oslo, sights: [ship]}], kept: mine}
start: each
nodes:
  each: {type: map, over: "{{cities}}", as: city, branch: visit, output_key: report, collect_into: reports, next: done}
  visit:
    type: graph
    with: {city: "{{city}}", kept: "{{kept}}"}
    outputs: {report: text}
    start: plan
    nodes:
      plan: {type: llm, prompt: "plan {{city.name}}", state_updates: {kept: "{{output}}"}, next: see}
      see: {type: map, over: "{{city.sights}}", as: sight, branch: look, collect_into: seen, next: [left, right]}
      look:
        type: graph
        with: {sight: "{{sight}}"}
        start: go
        nodes:
          go: {type: llm, prompt: "go to {{sight}}", state_updates: {went: "{{output}}"}, next: back}
          back: {type: llm, prompt: "back from {{sight}}", state_updates: {came: "{{output}}"}, next: end}
          end: {type: end, output: "{{went}}, {{came}}"}
      left: {type: llm, prompt: left, state_updates: {l: "{{output}}"}, next: write}
      right: {type: llm, prompt: right, state_updates: {r: "{{output}}"}, next: write}
      write: {type: llm, prompt: "{{kept}}: {{seen}} {{l}} {{r}}", state_updates: {text: "{{output}}"}, next: end}
      end: {type: end, output: "not {{text}}"}
  done: {type: end, output: "{{kept}} {{reports}}"}
`

const chainsOutput = `mine ["plan rome: [\"go to forum, back from forum\",\"go to baths, back from baths\"] left right","plan oslo: [\"go to ship, back from ship\"] left right"]`

func TestSubgraphs(t *testing.T) {
	w := world{model: &model{answer: echo}}
	out, c, err := w.drive(t.Context(), t, chains)
	if err != nil || out.Output != chainsOutput {
		t.Fatalf("output %s, %v", out.Output, err)
	}
	if out.Usage.OutputTokens != 14 || len(w.model.requests) != 14 || out.Nodes[0].Usage.OutputTokens != 14 {
		t.Errorf("%d requests, usage %+v, of the node %+v", len(w.model.requests), out.Usage, out.Nodes[0])
	}
	var begun []string
	for _, ev := range c.Events() {
		if b, ok := ev.Body.(event.NodeStarted); ok {
			begun = append(begun, fmt.Sprintf("%s %s in %q", b.NodeType, ev.Node, ev.Within))
		}
		if _, ok := ev.Body.(event.Started); ok && ev.Node != "" {
			t.Errorf("a subgraph begins a run: %+v", ev)
		}
		if b, ok := ev.Body.(event.StateUpdated); ok && (ev.Within != "" || slices.ContainsFunc(b.Values, func(m value.Member) bool { return m.Name != "reports" && m.Name != "kept" })) {
			t.Errorf("the state of a subgraph leaves it: %+v", ev)
		}
	}
	slices.Sort(begun)
	for _, want := range []string{`end done in ""`, `llm each#0/see#1/back in "each#0/see#1"`, `llm each#1/plan in "each#1"`, `map each in ""`, `map each#1/see in "each#1"`} {
		if _, found := slices.BinarySearch(begun, want); !found {
			t.Errorf("there is no event of %s:\n%s", want, strings.Join(begun, "\n"))
		}
	}
	if len(begun) != 1+2*6+3*3+1 {
		t.Errorf("%d nodes began:\n%s", len(begun), strings.Join(begun, "\n"))
	}
}

// TestSubgraphsGoOn interrupts a run at each of its calls of the model, and goes on with it: nothing that was done is done again.
func TestSubgraphsGoOn(t *testing.T) {
	for at := 1; at <= 14; at++ {
		store, j := record(t, chains)
		ctx, cancel := context.WithCancelCause(t.Context())
		var mu sync.Mutex
		made := make(map[string]int)
		count := func(req provider.Request) {
			mu.Lock()
			defer mu.Unlock()
			made[prompt(req)]++
		}
		m := &model{answer: func(ctx context.Context, req provider.Request, call int) (string, error) {
			if call >= at {
				cancel(run.ErrInterrupted)
				return "", context.Canceled
			}
			count(req)
			return prompt(req), nil
		}}
		if _, _, err := (world{journal: j, model: m}).drive(ctx, t, chains); fault.CodeOf(err) != fault.Canceled {
			t.Fatalf("interrupted at %d: %v", at, err)
		}
		cancel(nil)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again, found, err := store.Open(t.Context(), j.ID())
		if err != nil {
			t.Fatal(err)
		}
		second := world{journal: again, from: &found, model: &model{answer: func(ctx context.Context, req provider.Request, _ int) (string, error) {
			count(req)
			return prompt(req), nil
		}}}
		out, _, err := second.drive(t.Context(), t, chains)
		if err != nil || out.Output != chainsOutput || out.Usage.OutputTokens != 14 {
			t.Fatalf("interrupted at %d: output %s, usage %+v, %v", at, out.Output, out.Usage, err)
		}
		for p, n := range made {
			if want := map[string]int{"left": 2, "right": 2}[p]; n != max(want, 1) {
				t.Errorf("interrupted at %d: %q was asked %d times", at, p, n)
			}
		}
	}
}

// asking asks in subgraphs: one that follows another node, and one for each item.
const asking = `
settings: {max_concurrency: 1}
initial_state: {cities: [rome, oslo]}
start: first
nodes:
  first: {type: llm, prompt: begin, next: [each, research]}
  each: {type: map, over: "{{cities}}", as: city, branch: visit, collect_into: visits, next: done}
  visit:
    type: graph
    with: {city: "{{city}}"}
    start: think
    nodes:
      think: {type: llm, prompt: "think of {{city}}", next: ask}
      ask: {type: approval, question: "Visit {{city}}?", options: [yes, no], routes: {yes: end, no: end}, on_other: end, state_updates: {a: "{{choice}}"}}
      end: {type: end, output: "{{city}} {{a}}"}
  research:
    type: graph
    start: both
    outputs: {a: a, b: b}
    nodes:
      both: {type: llm, prompt: both, next: [name, review]}
      name: {type: input, question: "Name?", state_updates: {a: "{{input}}"}, next: again}
      review: {type: input, question: "Good?", state_updates: {b: "{{input}}"}, next: again}
      again: {type: input, question: "Sure?", next: [{when: "_loop.again < 2", to: again, max: 1}, {to: end}]}
      end: {type: end}
    next: done
  done: {type: end, output: "{{visits}} {{a}} {{b}}"}
`

var askedInside = []string{"each#0/ask", "each#1/ask", "research/name", "research/review", "research/again", "research/again@2"}

// TestSubgraphsAsk: the questions come in the order of nodes and items, and each has a name of its own.
func TestSubgraphsAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		w := world{model: &model{answer: echo}, asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, q.ID)
			if name, _, _ := strings.Cut(q.ID, "@"); q.Node != name {
				t.Errorf("%s says that it comes from %s", q.ID, q.Node)
			}
			return "to " + q.ID, nil
		})}
		out, _, err := w.drive(t.Context(), t, asking)
		if want := `["rome to each#0/ask","oslo to each#1/ask"] to research/name to research/review`; err != nil || out.Output != want || !slices.Equal(asked, askedInside) {
			t.Errorf("output %s, %v; asked %q", out.Output, err, asked)
		}
	})
}

// TestSubgraphsWaitForAnswers gives the answers one by one, in any order that the questions allow.
func TestSubgraphsWaitForAnswers(t *testing.T) {
	for _, last := range []bool{false, true} {
		store, j := record(t, asking)
		m := &model{answer: echo}
		w := world{journal: j, model: m}
		var given []string
		for {
			out, _, err := w.drive(t.Context(), t, asking)
			if closeErr := j.Close(); closeErr != nil {
				t.Fatal(closeErr)
			}
			if err == nil {
				if want := `["rome to each#0/ask","oslo to each#1/ask"] to research/name to research/review`; out.Output != want {
					t.Errorf("output %s", out.Output)
				}
				break
			}
			if fault.CodeOf(err) != fault.Suspended {
				t.Fatal(err)
			}
			h, err := store.History(t.Context(), j.ID())
			if err != nil || len(h.Pending) == 0 {
				t.Fatalf("nothing waits: %v", err)
			}
			p := h.Pending[0]
			if last {
				p = h.Pending[len(h.Pending)-1]
			}
			if node, _, _ := strings.Cut(p.ID, "/"); p.Node != strings.Split(node, "#")[0] {
				t.Errorf("question %s is of node %s", p.ID, p.Node)
			}
			if err := store.Answer(t.Context(), j.ID(), p.ID, run.Reply{Text: "to " + p.ID}); err != nil {
				t.Fatal(err)
			}
			given = append(given, p.ID)
			next, found, err := store.Open(t.Context(), j.ID())
			if err != nil {
				t.Fatal(err)
			}
			j, w.journal, w.from, w.answered = next, next, &found, []string{p.ID}
		}
		slices.Sort(given)
		want := slices.Sorted(slices.Values(askedInside))
		if !slices.Equal(given, want) || len(m.requests) != 4 {
			t.Errorf("%d calls, and the questions were %q", len(m.requests), given)
		}
	}
}

// TestSubgraphsWait: a wait inside puts the whole run aside.
func TestSubgraphsWait(t *testing.T) {
	c := newClocked(t, `
start: a
nodes:
  a:
    type: graph
    start: b
    nodes:
      b: {type: graph, start: pause, nodes: {pause: {type: wait, for: 10m, next: signal}, signal: {type: wait, signal: paid, schema: {type: integer}, state_updates: {n: "{{signal}}"}, next: e}, e: {type: end, output: "{{n}}"}}, state_updates: {m: "{{output}}"}, next: f}
      f: {type: end, output: "{{m}} came"}
    state_updates: {o: "{{output}}"}
    next: z
  z: {type: end, output: "{{o}}"}
`)
	begin := c.now
	c.suspended(begin.Add(10 * time.Minute))
	waits, err := c.store.Waits(t.Context(), c.id)
	if err != nil || len(waits) != 1 || waits[0].ID != "a/b/pause" || waits[0].Node != "a" {
		t.Errorf("waits %+v, %v", waits, err)
	}
	c.now = begin.Add(10 * time.Minute)
	if err := c.suspended(time.Time{}); !strings.Contains(err.Error(), `node "a/b/signal" waits for signal paid`) {
		t.Errorf("error %v", err)
	}
	if err := c.send("paid", `"much"`); err == nil {
		t.Error("a signal was taken that does not match the schema")
	}
	if err := c.send("paid", "5"); err != nil {
		t.Fatal(err)
	}
	if out, _, err := c.run(); err != nil || out.Output != "5 came" {
		t.Errorf("output %q, %v", out.Output, err)
	}
}

func TestSubgraphFailures(t *testing.T) {
	boom := errors.New("boom")
	sub := func(fields, nodes string) string {
		return "start: a\nnodes:\n  a: {type: graph, next: z, state_updates: {o: '{{output}}'}, start: b, " + fields + ", nodes: {" + nodes + ", e: {type: end, output: '{{x}}'}}}\n  f: {type: end, output: 'failed: {{_last_error.node}} {{_last_error.message}}'}\n  z: {type: end, output: '{{o}}'}\n"
	}
	const call = "b: {type: llm, prompt: p, state_updates: {x: '{{output}}'}, next: c}, c: {type: llm, prompt: q, state_updates: {x: '{{x}} {{output}}'}, next: e}"
	for _, tt := range []struct {
		name, text, want, err string
		replies               []any
		code                  fault.Code
		usage                 int // output tokens
	}{
		{name: "inner_tolerated", text: sub("settings: {on_failure: continue}", call), replies: []any{"one", boom}, want: "one ", usage: 1, err: ""},
		{name: "inner_unhandled", text: sub("description: d", call), replies: []any{"one", boom}, err: "1 node failed and the run continued", code: fault.Tool, usage: 1},
		{name: "accepted_around_it", text: "settings: {on_failure: continue}\n" + sub("description: d", call), replies: []any{"one", boom}, want: "one ", usage: 1},
		{name: "fails_as_around_it", text: "settings: {on_failure: fail}\n" + sub("description: d", call), replies: []any{"one", boom}, err: `at node "a": at node "c": `, usage: 1},
		{name: "fails", text: sub("settings: {on_failure: fail}", call), replies: []any{"one", boom}, err: `at node "a": at node "c": `, usage: 1},
		{name: "fallback", text: sub("settings: {on_failure: fail}, fallback: f", call), replies: []any{"one", boom}, want: "failed: a at node \"c\": ", usage: 1},
		{name: "retry", text: sub("settings: {on_failure: fail}, retry: {attempts: 3, backoff: 0}", call), replies: []any{"one", boom, "two", "three"}, want: "two three", usage: 3},
		{name: "with", text: sub("with: {k: '{{gone}}'}", call), err: `at node "a": with: `},
		{name: "outputs", text: sub("outputs: {k: y.z}, fallback: f", call), replies: []any{"one", "two"}, want: "failed: a outputs: ", usage: 2},
		{name: "budget", text: sub("settings: {budget: {tokens: 3}}", call), replies: []any{"one", "two"}, err: "the budget of 3 tokens is used up", code: fault.Limit, usage: 1},
		{name: "budget_fallback", text: sub("settings: {budget: {tokens: 3}}, fallback: f", call), replies: []any{"one", "two"}, want: "failed: a at node \"c\": ", usage: 1},
		{name: "outer_budget", text: "settings: {budget: {tokens: 3}}\n" + sub("settings: {budget: {tokens: 400}}, fallback: f", call), replies: []any{"one", "two"}, err: "the budget of 3 tokens is used up", code: fault.Limit, usage: 1},
		{
			name: "loop_fallback", text: sub("settings: {max_loop_iterations: 2}, fallback: f", "b: {type: llm, prompt: p, next: [{to: b, max: 9}, {to: e}]}"),
			replies: []any{"1", "2", "3"}, want: `failed: a node "b" visited 3 times`, usage: 2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _, err := graph.Parse("graph.yaml", []byte("name: x\n"+tt.text))
			if err != nil {
				t.Fatal(err)
			}
			budget := run.NewBudget(g.Settings.Budget, chat.Usage{})
			w := world{model: replies(tt.replies...), options: func(o *node.Options) {
				if budget != nil {
					o.Context.Budget = budget
				}
			}}
			out, _, err := w.drive(t.Context(), t, tt.text)
			switch {
			case tt.err == "":
				if err != nil || !strings.HasPrefix(out.Output, tt.want) {
					t.Errorf("output %q, %v", out.Output, err)
				}
			case err == nil || !strings.Contains(err.Error(), tt.err) || tt.code != "" && fault.CodeOf(err) != tt.code:
				t.Errorf("error %v with code %s", err, fault.CodeOf(err))
			}
			if out.Usage.OutputTokens != tt.usage {
				t.Errorf("usage %+v", out.Usage)
			}
		})
	}
}

// TestSubgraphRetryAsks: each try has a record of its own, so that a question of the first is not answered for the second.
func TestSubgraphRetryAsks(t *testing.T) {
	const text = `
start: a
nodes:
  a: {type: graph, next: z, state_updates: {o: "{{output}}"}, retry: {attempts: 2, backoff: 0}, settings: {on_failure: fail}, start: ask, nodes: {ask: {type: input, question: q, state_updates: {x: "{{input}}"}, next: b}, b: {type: llm, prompt: p, next: e}, e: {type: end, output: "{{x}}"}}}
  z: {type: end, output: "{{o}}"}
`
	store := memstore.New(nil)
	j, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	w := world{journal: j, model: replies(errors.New("boom"), "fine"), asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		asked = append(asked, q.ID)
		return "answer " + fmt.Sprint(len(asked)), nil
	})}
	out, _, err := w.drive(t.Context(), t, text)
	if err != nil || out.Output != "answer 2" || !slices.Equal(asked, []string{"a/ask", "a/retry/2/ask"}) {
		t.Errorf("output %q, %v; asked %q", out.Output, err, asked)
	}
}

// TestSubgraphItems: failures of a subgraph are those of its item, its own budget among them.
func TestSubgraphItems(t *testing.T) {
	const text = `
initial_state: {l: [1, 2, 3]}
start: m
nodes:
  m: {type: map, over: "{{l}}", as: i, branch: s, on_error: skip, concurrency: 1, collect_into: r, next: z}
  s: {type: graph, with: {i: "{{i}}"}, settings: {budget: {tokens: 3}}, start: b, nodes: {b: {type: llm, prompt: "{{i}}", next: [{when: "i == 2", to: c}, {to: e}]}, c: {type: llm, prompt: x, next: e}, e: {type: end, output: "{{i}}"}}}
  z: {type: end, output: "{{r}}"}
`
	out, _, err := world{model: &model{answer: echo}}.drive(t.Context(), t, text)
	if err != nil || out.Output != `["1","3"]` {
		t.Errorf("output %s, %v", out.Output, err)
	}
}

// TestSubgraphModel: the model and the sampling of a subgraph are those of its nodes, and knowledge bases have the names of
// the nodes around theirs.
func TestSubgraphModel(t *testing.T) {
	const text = `
start: a
nodes:
  a: {type: graph, next: z, model: "c:other", temperature: 0.5, start: b, nodes: {b: {type: rag, documents: [x], query: bees, state_updates: {k: "{{output.context}}"}, next: c}, c: {type: llm, prompt: p, next: d}, d: {type: llm, model: "c:third", temperature: 1, prompt: p, next: e}, e: {type: end}}}
  z: {type: llm, prompt: p, next: y}
  y: {type: end}
`
	m := &model{answer: echo}
	_, _, err := world{model: m, bases: map[string]rag.Searcher{"a/b": &shelf{}}}.drive(t.Context(), t, text)
	var used []string
	for _, r := range m.requests {
		used = append(used, r.Model+fmt.Sprint(r.Temperature != nil))
	}
	if err != nil || strings.Join(used, " ") != "c:othertrue c:thirdtrue c:mfalse" {
		t.Errorf("models %q, %v", used, err)
	}
}
