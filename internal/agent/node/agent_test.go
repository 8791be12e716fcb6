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

	"loki/internal/agent/team"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// childFunc is the work of a child that gets a prompt. It is called once for each time that the
// work is begun.
type childFunc func(ctx context.Context, prompt string, f *run.Frame) (string, error)

func (c childFunc) work(prompt string) run.Work { return childWork{c, prompt} }

type childWork struct {
	childFunc
	prompt string
}

func (childWork) Started() event.Started { return event.Started{Model: "c:m"} }

func (c childWork) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	output, err := c.childFunc(ctx, c.prompt, f)
	return run.Outcome{Output: output, Usage: chat.Usage{InputTokens: 10, OutputTokens: 1}}, err
}

// family returns how nodes start children that are functions, by name.
func family(children map[string]childFunc) func(*graph.Node) team.Options {
	return func(*graph.Node) team.Options {
		limits := team.DefaultLimits()
		limits.CanSpawn = true
		return team.Options{Limits: limits, Start: func(_ context.Context, s team.Spawn) (team.Child, error) {
			child, ok := children[s.Agent]
			if !ok {
				return team.Child{}, fmt.Errorf("no agent is called %q", s.Agent)
			}
			return team.Child{Limits: limits, Job: run.Job{Make: func(context.Context, run.Point) (run.Work, func() error, error) {
				return child.work(s.Prompt), nil, nil
			}}}, nil
		}}
	}
}

const delegation = `
start: ask
nodes:
  ask: {type: agent, agent: helper, prompt: "find {{initial_prompt}}", state_updates: {found: "{{output}}"}, next: done}
  done: {type: end, output: "found {{found}}"}
initial_state: {initial_prompt: it}
`

func TestAgentNode(t *testing.T) {
	w := world{children: map[string]childFunc{"helper": func(_ context.Context, prompt string, _ *run.Frame) (string, error) { return "gold by " + prompt, nil }}}
	out, c, err := w.drive(t.Context(), t, delegation)
	if err != nil || out.Output != "found gold by find it" {
		t.Errorf("output %q, %v", out.Output, err)
	}
	if out.Usage.InputTokens != 10 || out.Usage.OutputTokens != 1 {
		t.Errorf("usage %+v", out.Usage)
	}
	var started *event.Event
	for _, ev := range c.Events() {
		if _, ok := ev.Body.(event.Started); ok && ev.Depth == 1 {
			started = &ev
		}
	}
	if started == nil || started.Agent != "helper" || !strings.HasPrefix(started.AgentID, "graph_agent_helper_") || started.Node != "" {
		t.Fatalf("the child began as %+v", started)
	}
	if b := started.Body.(event.Started); b.Prompt != "find it" || b.ParentNode != "ask" || b.Parent != "" {
		t.Errorf("the child began as %+v", b)
	}
}

func TestAgentNodeFails(t *testing.T) {
	boom := func(context.Context, string, *run.Frame) (string, error) { return "half", errors.New("boom") }
	for _, tt := range []struct {
		name, graph string
		child       childFunc
		want        string
	}{
		{name: "child", child: boom, want: `agent helper failed: boom`},
		{name: "unknown", want: `no agent is called "helper"`},
		{name: "prompt", graph: strings.Replace(delegation, "{{initial_prompt}}", "{{nothing}}", 1), child: boom, want: "prompt for agent helper: "},
		{
			name: "no_json", graph: strings.Replace(delegation, "prompt:", "output_schema: {type: object}, prompt:", 1), want: "the output of agent helper: after one repair",
			child: func(context.Context, string, *run.Frame) (string, error) { return "no JSON", nil },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{children: map[string]childFunc{}, model: replies("still none", "nor this")}
			if tt.child != nil {
				w.children["helper"] = tt.child
			}
			if tt.graph == "" {
				tt.graph = delegation
			}
			_, _, err := w.drive(t.Context(), t, tt.graph)
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) == fault.Suspended {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestAgentNodeWithASchema has children that answer in JSON and in prose. The model of the graph
// makes JSON of the prose.
func TestAgentNodeWithASchema(t *testing.T) {
	const text = `
start: rate
nodes:
  rate:
    type: agent
    agent: critic
    prompt: rate it
    output_schema: {type: object, required: [stars], properties: {stars: {type: integer, maximum: 5}}}
    state_updates: {verdict: "{{output.stars}} stars"}
    next: done
  done: {type: end, output: "{{verdict}} {{stars}}"}
`
	for _, tt := range []struct {
		name, said string
		model      []any
		calls      int
	}{
		{name: "json", said: `I say: {"stars": 4}`},
		{name: "prose", said: "four, I think", model: []any{`{"stars": 4}`}, calls: 1},
		{name: "repaired", said: "four, I think", model: []any{`{"stars": 44}`, `{"stars": 4}`}, calls: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{model: replies(tt.model...), children: map[string]childFunc{
				"critic": func(_ context.Context, prompt string, _ *run.Frame) (string, error) {
					if prompt != "rate it" {
						t.Errorf("the prompt is %q: a child works without the schema in mind", prompt)
					}
					return tt.said, nil
				},
			}}
			out, _, err := w.drive(t.Context(), t, text)
			if err != nil || out.Output != "4 stars 4" || len(w.model.requests) != tt.calls {
				t.Errorf("output %q after %d calls, %v", out.Output, len(w.model.requests), err)
			}
			if want := 10 + 2*tt.calls; out.Usage.InputTokens != want {
				t.Errorf("usage %+v, want %d", out.Usage, want)
			}
		})
	}
}

func TestAgentNodeTimesOutAndIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := 0
		w := world{children: map[string]childFunc{"helper": func(ctx context.Context, _ string, _ *run.Frame) (string, error) {
			begun++
			switch begun {
			case 1:
				<-ctx.Done()
				return "", ctx.Err()
			case 2:
				return "", errors.New("boom")
			}
			return "gold", nil
		}}}
		begin := time.Now()
		out, c, err := w.drive(t.Context(), t, strings.Replace(delegation, "prompt:", "timeout: 7, retry: {attempts: 3, backoff: 1, factor: 1, jitter: 0}, prompt:", 1))
		if err != nil || out.Output != "found gold" || begun != 3 {
			t.Errorf("output %q after %d tries, %v", out.Output, begun, err)
		}
		if took := time.Since(begin); took != 9*time.Second {
			t.Errorf("it took %s", took)
		}
		if out.Usage.InputTokens != 30 {
			t.Errorf("usage %+v of three children", out.Usage)
		}
		var reasons []string
		for _, r := range eventtest.Bodies[event.Retry](c) {
			reasons = append(reasons, r.Error)
		}
		if want := []string{"agent node timed out after 7s", "agent helper failed: boom"}; !slices.Equal(reasons, want) {
			t.Errorf("retries because of %q", reasons)
		}
		ids := make(map[string]bool)
		for _, ev := range c.Events() {
			if _, ok := ev.Body.(event.Finished); ok && ev.Depth == 1 {
				ids[ev.AgentID] = true
			}
		}
		if len(ids) != 3 {
			t.Errorf("the children of three tries have the ids %v", ids)
		}
	})
}

func TestAgentNodesInAMap(t *testing.T) {
	w := world{children: map[string]childFunc{"helper": func(_ context.Context, prompt string, _ *run.Frame) (string, error) {
		return strings.ToUpper(prompt), nil
	}}}
	out, c, err := w.drive(t.Context(), t, `
start: each
initial_state: {items: [a, b, c]}
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: all, next: done}
  one: {type: agent, agent: helper, prompt: "{{item}}"}
  done: {type: end, output: "{{all}}"}
`)
	if err != nil || out.Output != `["A","B","C"]` || out.Usage.InputTokens != 30 {
		t.Errorf("output %q, usage %+v, %v", out.Output, out.Usage, err)
	}
	var items []int
	for _, b := range eventtest.Bodies[event.Started](c) {
		if b.ParentItem != nil {
			items = append(items, *b.ParentItem)
		}
	}
	if slices.Sort(items); !slices.Equal(items, []int{0, 1, 2}) {
		t.Errorf("children of items %v", items)
	}
}

// TestAgentNodeIsCanceled cancels a run while a child works: the node ends after the child.
func TestAgentNodeIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	w := world{children: map[string]childFunc{"helper": func(ctx context.Context, _ string, _ *run.Frame) (string, error) {
		cancel()
		<-ctx.Done()
		ended = true
		return "", ctx.Err()
	}}}
	if _, _, err := w.drive(ctx, t, delegation); fault.CodeOf(err) != fault.Canceled || !ended {
		t.Errorf("the child ended: %v, %v", ended, err)
	}
}

// TestAgentNodeGoesOn interrupts a run while its children work, of which one waits for the user.
// What is on record is not done again.
func TestAgentNodeGoesOn(t *testing.T) {
	const text = `
start: first
nodes:
  first: {type: agent, agent: helper, prompt: one, state_updates: {a: "{{output}}"}, next: second}
  second: {type: agent, agent: asker, prompt: two, state_updates: {b: "{{output}}"}, next: done}
  done: {type: end, output: "{{a}} {{b}}"}
`
	var mu sync.Mutex
	made := make(map[string]int)
	work := func(ctx context.Context, f *run.Frame, name string) (string, error) {
		return steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Tool, Key: name, Effect: true}, func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			made[name]++
			return name, nil
		})
	}
	children := map[string]childFunc{
		"helper": func(ctx context.Context, prompt string, f *run.Frame) (string, error) { return work(ctx, f, prompt) },
		"asker": func(ctx context.Context, prompt string, f *run.Frame) (string, error) {
			if _, err := work(ctx, f, prompt); err != nil {
				return "", err
			}
			q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: f.Events.AgentID, Base: f.Steps().Key(""), Waits: "the child"}
			return q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Which?"})
		},
	}
	store := memstore.New(nil)
	journal, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{Position: run.Position{Frontier: []string{"first"}}})
	if err != nil {
		t.Fatal(err)
	}
	w := world{children: children, journal: journal}
	_, c, err := w.drive(t.Context(), t, text)
	if fault.CodeOf(err) != fault.Suspended || !strings.Contains(fault.HintOf(err), "loki --resume "+journal.ID()+" --answer") {
		t.Fatalf("error %v (%s)", err, fault.HintOf(err))
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := store.History(t.Context(), journal.ID())
	if err != nil || h.Info.Status != run.Suspended || len(h.Pending) != 1 || h.Pending[0].Node != "second" || !strings.HasPrefix(h.Pending[0].ID, "graph_agent_asker_") {
		t.Fatalf("%s, waiting %+v, %v", h.Info.Status, h.Pending, err)
	}
	if q := eventtest.Bodies[event.Question](c); len(q) != 1 || q[0].ID != h.Pending[0].ID {
		t.Errorf("asked %+v", q)
	}
	w.answered = []string{h.Pending[0].ID}
	if err := store.Answer(t.Context(), journal.ID(), w.answered[0], run.Reply{Text: "this one"}); err != nil {
		t.Fatal(err)
	}
	again, found, err := store.Open(t.Context(), journal.ID())
	if err != nil {
		t.Fatal(err)
	}
	w.journal, w.from = again, &found
	out, c, err := w.drive(t.Context(), t, text)
	if err != nil || out.Output != "one this one" || made["one"] != 1 || made["two"] != 1 {
		t.Errorf("output %q, made %v, %v", out.Output, made, err)
	}
	if a := eventtest.Bodies[event.Answer](c); len(a) != 1 || a[0].Text != "this one" {
		t.Errorf("answers %+v", a)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNodeWithATeam has the model of an llm node start agents. They end with the node.
func TestNodeWithATeam(t *testing.T) {
	ended := make(chan struct{})
	w := world{
		children: map[string]childFunc{
			"quick": func(context.Context, string, *run.Frame) (string, error) { return "gold", nil },
			"slow": func(ctx context.Context, _ string, _ *run.Frame) (string, error) {
				<-ctx.Done()
				close(ended)
				return "", ctx.Err()
			},
		},
		model: &model{answer: func(_ context.Context, req provider.Request, call int) (string, error) {
			last := prompt(req)
			switch call {
			case 1:
				return `call agent__spawn {"agent": "quick", "prompt": "go"} call agent__spawn {"agent": "slow", "prompt": "go"}`, nil
			case 2:
				first := req.Messages[len(req.Messages)-2].Text()
				_, id, _ := strings.Cut(first, `"id":"`)
				id, _, _ = strings.Cut(id, `"`)
				return fmt.Sprintf(`call agent__collect {"id": %q}`, id), nil
			}
			return last, nil
		}},
	}
	out, _, err := w.drive(t.Context(), t, `
start: lead
nodes:
  lead: {type: llm, prompt: find it, tools: [agent__spawn, agent__collect], state_updates: {found: "{{output}}"}, next: done}
  done: {type: end, output: "{{found}}"}
`)
	if err != nil || !strings.Contains(out.Output, `"output":"gold"`) {
		t.Errorf("output %q, %v", out.Output, err)
	}
	select {
	case <-ended:
	default:
		t.Error("a child outlives its node")
	}
	if want := 3*2 + 2*10; out.Usage.InputTokens != want {
		t.Errorf("usage %+v, want %d: three replies and two children", out.Usage, want)
	}
}
