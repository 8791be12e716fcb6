package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/agent/node"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/tool"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// gadget is a tool of these tests, which keeps its calls.
type gadget struct {
	name   string
	takes  string // JSON Schema, "" for none
	hints  tool.Hints
	answer func(call int, args string) (string, error)

	mu    sync.Mutex
	calls []tool.Call
}

func (g *gadget) Declaration() chat.Tool {
	return chat.Tool{Name: g.name, Parameters: json.RawMessage(g.takes)}
}

func (g *gadget) Hints() tool.Hints { return g.hints }

func (g *gadget) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, c)
	text, err := g.answer(len(g.calls), string(c.Arguments))
	return tool.Result{Output: text}, err
}

// echoes is a gadget that returns its arguments.
func echoes() *gadget {
	return &gadget{name: "echo", answer: func(_ int, args string) (string, error) { return args, nil }}
}

// says is a gadget with one answer.
func says(text string) *gadget {
	return &gadget{name: "echo", answer: func(int, string) (string, error) { return text, nil }}
}

// withTools is a world with tools.
func withTools(tools ...tool.Tool) world {
	return world{options: func(o *node.Options) {
		set, err := tool.NewSet(tools...)
		if err != nil {
			panic(err)
		}
		o.Tools = set
	}}
}

func TestToolResults(t *testing.T) {
	for _, tt := range []struct {
		name, output, fields string
		want                 string // the state key got, with output
		err                  string // instead
	}{
		{"text", "plain", "", `"plain"`, ""},
		{"nothing", "", "", `""`, ""},
		{"object", ` {"a": 1.50} `, "", `{"a":1.5}`, ""},
		{"list", `[1, "b"]`, "", `[1,"b"]`, ""},
		{"number_stays_text", "1.10", "", `"1.10"`, ""},
		{"number_by_schema", "1.10", ", output_schema: {type: number}", `1.1`, ""},
		{"text_by_schema", "1.10", ", output_schema: {type: string}", `"1.10"`, ""},
		{"no_json", "oops", ", output_schema: {type: object}", "", "tool echo: its result is not JSON, as output_schema asks for"},
		{"other_json", `{"a": "x"}`, ", output_schema: {properties: {a: {type: integer}}}", "", "tool echo: its result does not match output_schema: /a: must be an integer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := withTools(says(tt.output)).drive(t.Context(), t, `
start: a
nodes:
  a: {type: tool, tool: echo, state_updates: {got: "{{output}}"}`+tt.fields+`, next: done}
  done: {type: end}
`)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || fault.CodeOf(err) != fault.Tool {
					t.Errorf("error %v with code %s, want %s", err, fault.CodeOf(err), tt.err)
				}
				return
			}
			if err != nil || state(out, "got") != tt.want || state(out, "output") != "" {
				t.Errorf("got %s, output %q, %v; want %s", state(out, "got"), state(out, "output"), err, tt.want)
			}
		})
	}
}

// TestToolArgumentsComeFromTheState: with their types, also in lists and objects, and a schema's members reach the state.
func TestToolArgumentsComeFromTheState(t *testing.T) {
	subject := echoes()
	out, c, err := withTools(subject).drive(t.Context(), t, `
initial_state: {n: 2, who: {names: [Ada]}}
start: a
nodes:
  a:
    type: tool
    tool: echo
    arguments: {count: "{{n}}", text: "{{n}} of {{who.names[0]}}", more: [{all: "{{who}}"}, true]}
    output_schema: {type: object, properties: {count: {type: integer}}}
    next: done
  done: {type: end, output: "{{count}} {{text}}"}
`)
	const want = `{"count":2,"text":"2 of Ada","more":[{"all":{"names":["Ada"]}},true]}`
	if err != nil || out.Output != "2 2 of Ada" || len(subject.calls) != 1 || string(subject.calls[0].Arguments) != want {
		t.Errorf("output %q, calls %+v, %v", out.Output, subject.calls, err)
	}
	calls, results := eventtest.Bodies[event.ToolCall](c), eventtest.Bodies[event.ToolResult](c)
	if len(calls) != 1 || calls[0].ID != "1/a" || calls[0].Name != "echo" || calls[0].Arguments != want || len(results) != 1 || results[0].ID != "1/a" || results[0].Failed {
		t.Errorf("events %+v %+v", calls, results)
	}
}

// TestToolIsNotCalledInVain: what does not fit is found before the call, and another try does not help.
func TestToolIsNotCalledInVain(t *testing.T) {
	for _, tt := range []struct{ name, node, want string }{
		{"missing_placeholder", `tool: echo, arguments: {n: "{{x}}"}`, `tool echo: arguments: "x" not found in state`},
		{"wrong_type", `tool: echo, arguments: {n: "{{initial}}"}`, `tool echo: arguments: argument "n" must be of type integer, not the string "text"`},
		{"missing_argument", `tool: echo`, `tool echo: arguments: argument "n" is missing`},
		{"unknown_tool", `tool: ekho`, `agent "test" has no tool "ekho"; available: echo`},
		{"no_servers", `tool: "mcp:papers/find"`, `tool mcp:papers/find is one of an MCP server, and there is none here`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			subject := echoes()
			subject.takes = `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`
			_, _, err := withTools(subject).drive(t.Context(), t, `
initial_state: {initial: text}
start: a
nodes:
  a: {type: tool, `+tt.node+`, retry: {attempts: 3, backoff: 60}, next: done}
  done: {type: end}
`)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(subject.calls) > 0 {
				t.Errorf("%d calls, %v; want %s", len(subject.calls), err, tt.want)
			}
		})
	}
}

// TestToolRetries: each try has the same idempotency key, and the last failure goes to the fallback.
func TestToolRetries(t *testing.T) {
	for _, works := range []int{2, 9} {
		subject := &gadget{name: "echo", answer: func(call int, _ string) (string, error) {
			if call < works {
				return "", fmt.Errorf("failure %d", call)
			}
			return "it works", nil
		}}
		store := memstore.New(nil)
		journal, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{Position: run.Position{Frontier: []string{"a"}}})
		if err != nil {
			t.Fatal(err)
		}
		w := withTools(subject)
		w.journal = journal
		out, _, err := w.drive(t.Context(), t, `
start: a
nodes:
  a: {type: tool, tool: echo, retry: {attempts: 3, backoff: 0}, fallback: rescued, state_updates: {got: "{{output}}"}, next: done}
  done: {type: end, output: "{{got}}"}
  rescued: {type: end, output: "{{got}}|{{_last_error.node}}: {{_last_error.message}}"}
`)
		want := map[int]string{2: "it works", 9: "|a: tool echo: failure 3"}[works]
		if err != nil || out.Output != want {
			t.Errorf("output %q, %v, want %q", out.Output, err, want)
		}
		for _, c := range subject.calls {
			if c.IdempotencyKey != journal.ID()+"/1/a" || c.RunID != journal.ID() {
				t.Errorf("key %q", c.IdempotencyKey)
			}
		}
	}
}

// TestToolIsNotCalledTwice: a resumed run reads the result of a call from its record, and one that failed is made again.
func TestToolIsNotCalledTwice(t *testing.T) {
	first := says("one")
	first.name = "first"
	second := &gadget{name: "second", answer: func(call int, _ string) (string, error) {
		if call == 1 {
			return "", errors.New("no route to host")
		}
		return "two", nil
	}}
	store := memstore.New(nil)
	const text = `
start: both
nodes:
  both: {type: script, script: go.sh, next: [x, y]}
  x: {type: tool, tool: first, state_updates: {x: "{{output}}"}, next: done}
  y: {type: tool, tool: second, state_updates: {y: "{{output}}"}, next: done}
  done: {type: end, output: "{{x}} {{y}}"}
`
	journal, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{Position: run.Position{Frontier: []string{"both"}}})
	if err != nil {
		t.Fatal(err)
	}
	w := withTools(first, second)
	w.scripts, w.journal = map[string]string{"go.sh": "echo '{}'"}, journal
	if _, _, err := w.drive(t.Context(), t, text); err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	again, found, err := store.Open(t.Context(), journal.ID())
	if err != nil {
		t.Fatal(err)
	}
	w.journal, w.from = again, &found
	out, _, err := w.drive(t.Context(), t, text)
	if err != nil || out.Output != "one two" || len(first.calls) != 1 || len(second.calls) != 2 {
		t.Errorf("output %q, %v; %d and %d calls", out.Output, err, len(first.calls), len(second.calls))
	}
	if a, b := second.calls[0].IdempotencyKey, second.calls[1].IdempotencyKey; a != b || a == first.calls[0].IdempotencyKey {
		t.Errorf("keys %q, %q and %q", a, b, first.calls[0].IdempotencyKey)
	}
}

// TestToolInAMap: each item is a call of its own, and delivers its result.
func TestToolInAMap(t *testing.T) {
	subject := &gadget{name: "echo", answer: func(_ int, args string) (string, error) { return "<" + args + ">", nil }}
	out, _, err := withTools(subject).drive(t.Context(), t, `
initial_state: {list: [a, 2]}
start: each
nodes:
  each: {type: map, over: "{{list}}", as: it, branch: call, collect_into: all, next: done}
  call: {type: tool, tool: echo, arguments: {it: "{{it}}"}}
  done: {type: end, output: "{{all}}"}
`)
	if want := `["<{\"it\":\"a\"}>","<{\"it\":2}>"]`; err != nil || out.Output != want {
		t.Errorf("output %s, %v, want %s", out.Output, err, want)
	}
	if slices.Equal(subject.calls[0].Arguments, subject.calls[1].Arguments) || subject.calls[0].Key == subject.calls[1].Key {
		t.Errorf("calls %+v", subject.calls)
	}
}

// TestToolNeedsConsent: the question is that of the node, and a no is the node's failure.
func TestToolNeedsConsent(t *testing.T) {
	for answer, want := range map[string]string{"yes": "done", "no": "refused: tool echo: echo was not run: the user did not consent."} {
		subject := echoes()
		subject.hints.Destructive = true
		w := withTools(subject)
		w.asker = asktest.NewScripted(answer)
		out, _, err := w.drive(t.Context(), t, `
start: a
nodes:
  a: {type: tool, tool: echo, fallback: refused, next: done}
  done: {type: end, output: done}
  refused: {type: end, output: "refused: {{_last_error.message}}"}
`)
		if err != nil || out.Output != want {
			t.Errorf("%s: output %q, %v", answer, out.Output, err)
		}
	}
}

// TestDryRunCallsNoTool: the result shows the call.
func TestDryRunCallsNoTool(t *testing.T) {
	subject := echoes()
	w := withTools(subject)
	set := w.options
	w.options = func(o *node.Options) { set(o); o.Dry = true }
	out, _, err := w.drive(t.Context(), t, `
start: a
nodes:
  a: {type: tool, tool: echo, arguments: {n: 1}, output_schema: {type: object}, state_updates: {got: "{{output}}"}, next: done}
  done: {type: end, output: "{{got}}"}
`)
	if err != nil || out.Output != `echo {"n":1}` || len(subject.calls) > 0 {
		t.Errorf("output %q, %v, %d calls", out.Output, err, len(subject.calls))
	}
}

// TestToolTimeout: a call that takes too long fails the node.
func TestToolTimeout(t *testing.T) {
	slow := blocked{echoes()}
	_, _, err := withTools(slow).drive(t.Context(), t, `
start: a
nodes:
  a: {type: tool, tool: echo, timeout: 0, next: done}
  done: {type: end}
`)
	if err == nil || !strings.Contains(err.Error(), "tool node timed out after 0s") {
		t.Error(err)
	}
}

// blocked is a gadget whose calls last until their context ends.
type blocked struct{ *gadget }

func (blocked) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, context.Cause(ctx)
}

// TestToolCache: a result is used again under the same arguments.
func TestToolCache(t *testing.T) {
	subject := &gadget{name: "echo", answer: func(call int, args string) (string, error) { return fmt.Sprintf("%s %d", args, call), nil }}
	kept := make(memory)
	w := withTools(subject)
	set := w.options
	w.options = func(o *node.Options) { set(o); o.Cache, o.Scripts.AgentDir = kept, "/agent" }
	var outputs []string
	for _, n := range []string{"1", "2", "1"} {
		out, _, err := w.drive(t.Context(), t, `
initial_state: {n: `+n+`}
start: a
nodes:
  a: {type: tool, tool: echo, arguments: {n: "{{n}}"}, cache: {ttl: 60}, state_updates: {got: "{{output}}"}, next: done}
  done: {type: end, output: "{{got}}"}
`)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, out.Output)
	}
	if want := []string{`{"n":1} 1`, `{"n":2} 2`, `{"n":1} 1`}; !slices.Equal(outputs, want) {
		t.Errorf("got %q, want %q", outputs, want)
	}
}

// memory is a cache.
type memory map[string][]byte

func (m memory) Get(key string) ([]byte, bool)                { data, ok := m[key]; return data, ok }
func (m memory) Put(key string, data []byte, _ time.Duration) { m[key] = data }

// TestToolOfAServer: it is called as the server offers it, with arguments that fit its own schema.
func TestToolOfAServer(t *testing.T) {
	subject := echoes()
	subject.name = "mcp__invoke_papers"
	w := withTools()
	set := w.options
	w.options = func(o *node.Options) {
		set(o)
		o.ServerTool = func(_ context.Context, server, name string) (tool.Bound, error) {
			if server != "papers" || name != "find" {
				return tool.Bound{}, fault.New(fault.Config, "there is no %s of %s", name, server)
			}
			return tool.Bound{Tool: subject, Name: name, Takes: json.RawMessage(`{"properties": {"q": {"type": "string"}}}`), Of: "tool", Sent: "arguments"}, nil
		}
	}
	for _, tt := range []struct{ node, want string }{
		{`tool: "mcp:papers/find", arguments: {q: x}`, `{"arguments":{"q":"x"},"tool":"find"}`},
		{`tool: "mcp:papers/find", arguments: {q: 5}`, `arguments: argument "q" must be of type string, not the number 5`},
		{`tool: "mcp:papers/found"`, "there is no found of papers"},
	} {
		out, _, err := w.drive(t.Context(), t, "start: a\nnodes:\n  a: {type: tool, "+tt.node+", state_updates: {got: '{{output}}'}, next: done}\n  done: {type: end, output: '{{got}}'}\n")
		if got := out.Output + fmt.Sprint(err); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s", tt.node, got)
		}
	}
}
