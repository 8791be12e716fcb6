package node_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// TestMapDelivers goes through what each kind of branch hands to its map.
func TestMapDelivers(t *testing.T) {
	const schema = "output_schema: {type: object, properties: {score: {type: integer}}, required: [score]}"
	echo := func(req provider.Request) (string, error) { return "about " + prompt(req), nil }
	score := func(provider.Request) (string, error) { return `{"score": 7}`, nil }
	refuse := func(req provider.Request) (string, error) {
		if prompt(req) == "two" {
			return "", refused
		}
		return echo(req)
	}
	const llm = "branch: {type: llm, prompt: '{{item}}'"
	const script = "branch: {type: script, script: one.sh"
	for _, tt := range []struct {
		name   string
		key    string // output_key, "" for the default
		branch string
		answer func(provider.Request) (string, error)
		script string
		want   string // collected
		error  []string
		code   fault.Code
	}{
		{name: "text", branch: llm + "}", answer: echo, want: `["about one","about two","about three"]`},
		{name: "text_under_another_key", key: "mine", branch: llm + "}", answer: echo, want: `["about one","about two","about three"]`},
		{name: "update", key: "mine", branch: llm + ", state_updates: {mine: 'I: {{output}}'}}", answer: echo, want: `["I: about one","I: about two","I: about three"]`},
		{name: "update_named_output", branch: llm + ", state_updates: {output: 'I: {{output}}'}}", answer: echo, want: `["I: about one","I: about two","I: about three"]`},
		{name: "update_of_another_key", branch: llm + ", state_updates: {other: x}}", answer: echo, want: `["about one","about two","about three"]`},
		{name: "structured", branch: llm + ", " + schema + "}", answer: score, want: `[{"score":7},{"score":7},{"score":7}]`},
		{name: "structured_member", key: "score", branch: llm + ", " + schema + "}", answer: score, want: `[7,7,7]`},
		{name: "update_wins_over_member", key: "score", branch: llm + ", state_updates: {score: '{{score}}!'}, " + schema + "}", answer: score, want: `["7!","7!","7!"]`},
		{name: "failure_with_fallback", branch: llm + ", fallback: done}", answer: refuse, want: `["about one","LLM node failed: model c:m: I refuse","about three"]`},
		{name: "failure", branch: llm + "}", answer: refuse, error: []string{`map node "each"`, `"branch"`, "[1]", "I refuse"}, code: fault.Refused},
		{name: "script", branch: script + "}", script: `echo '{"output": {"a": [1]}}'`, want: `[{"a":[1]},{"a":[1]},{"a":[1]}]`},
		{name: "script_inherits", key: "base", branch: script + "}", script: `echo '{}'`, want: `["same","same","same"]`},
		{name: "script_next_means_nothing", branch: script + "}", script: `echo '{"output": 1, "_next": "nowhere"}'`, want: `[1,1,1]`},
		{name: "script_update", key: "mine", branch: script + ", state_updates: {mine: '{{got}}'}}", script: `echo '{"got": 5}'`, want: `[5,5,5]`},
		{name: "script_without_value", branch: script + "}", script: `echo '{"other": 1}'`, error: []string{`map node "each"`, "[0]", `"output"`}, code: fault.Failure},
		{name: "script_failure", branch: script + ", fallback: done}", script: `case $GRAPH_STATE in *'"item":"three"'*) exit 3;; esac; echo '{"output": 1}'`, error: []string{"[2]", "one.sh"}, code: fault.Tool},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{scripts: map[string]string{"one.sh": tt.script}}
			if tt.answer != nil {
				w.model = &model{answer: func(_ context.Context, req provider.Request, _ int) (string, error) { return tt.answer(req) }}
			}
			key := ""
			if tt.key != "" {
				key = "output_key: " + tt.key + ", "
			}
			out, _, err := w.drive(t.Context(), t, `
initial_state: {items: [one, two, three], base: same}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: branch, `+key+`collect_into: all, next: done}
  `+tt.branch+`
  done: {type: end, output: "{{all}}"}
`)
			if tt.error != nil {
				if fault.CodeOf(err) != tt.code {
					t.Fatalf("error %v with code %s, want %s", err, fault.CodeOf(err), tt.code)
				}
				for _, part := range tt.error {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %v lacks %q", err, part)
					}
				}
				return
			}
			if err != nil || out.Output != tt.want {
				t.Errorf("got %s, %v, want %s", out.Output, err, tt.want)
			}
			for _, name := range []string{"item", "score", "mine", "other", "got", "output", "_next"} {
				if got := state(out, name); got != "" {
					t.Errorf("%s=%s left the branches", name, got)
				}
			}
		})
	}
}

func TestMapKeepsTheOrderAndTheWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		w := world{model: &model{answer: func(_ context.Context, req provider.Request, _ int) (string, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			var n int
			if _, err := fmt.Sscan(prompt(req), &n); err != nil {
				return "", err
			}
			time.Sleep(time.Duration(10-n) * time.Second) // the first takes longest
			mu.Lock()
			running--
			mu.Unlock()
			return prompt(req), nil
		}}}
		out, c, err := w.drive(t.Context(), t, `
initial_state: {items: [1, 2, 3, 4, 5]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: n, branch: branch, max_concurrency: 2, collect_into: all, next: done}
  branch: {type: llm, prompt: "{{n}}"}
  done: {type: end, output: "{{all}}"}
`)
		if err != nil || out.Output != `["1","2","3","4","5"]` || most != 2 {
			t.Errorf("output %s, %v, %d at once", out.Output, err, most)
		}
		progress := eventtest.Bodies[event.MapProgress](c)
		if len(progress) != 5 || !reflect.DeepEqual(progress[4], event.MapProgress{Done: 5, Total: 5}) {
			t.Errorf("progress %v", progress)
		}
		items := map[int]bool{}
		for _, ev := range c.Events() {
			if _, ok := ev.Body.(event.Reply); ok {
				items[*ev.Item] = true
			}
		}
		if len(items) != 5 || out.Usage.OutputTokens != 5 {
			t.Errorf("items %v, usage %+v", items, out.Usage)
		}
	})
}

func TestMapOver(t *testing.T) {
	for _, tt := range []struct{ name, state, want, err string }{
		{"empty", "items: []", "[]", ""},
		{"text", `items: "[1, 2]"`, "", "not an array but a string"},
		{"number", "items: 1", "", "not an array but a number"},
		{"missing", "other: 1", "", "items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{model: replies()}
			out, _, err := w.drive(t.Context(), t, `
initial_state: {`+tt.state+`}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: branch, collect_into: all, next: done}
  branch: {type: llm, prompt: "{{item}}"}
  done: {type: end, output: "{{all}}"}
`)
			if out.Output != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("output %q, error %v", out.Output, err)
			}
			if len(w.model.requests) != 0 {
				t.Error("a branch was run")
			}
		})
	}
}

func TestMapCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		w := world{model: &model{answer: func(ctx context.Context, _ provider.Request, _ int) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}}
		_, _, err := w.drive(ctx, t, `
initial_state: {items: [1, 2, 3, 4, 5]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: n, branch: branch, max_concurrency: 2, collect_into: all, next: done}
  branch: {type: llm, prompt: "{{n}}", fallback: done}
  done: {type: end, output: "{{all}}"}
`)
		if fault.CodeOf(err) != fault.Canceled || len(w.model.requests) != 2 {
			t.Errorf("error %v after %d requests", err, len(w.model.requests))
		}
	})
}

// TestMapStopsWhenTheRunIsTakenOver takes the lease of a run after some items of a map. No
// other item is paid for, and the loss is no failure of the node.
func TestMapStopsWhenTheRunIsTakenOver(t *testing.T) {
	const before, width = 7, 2
	store := memstore.New(nil)
	journal, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	w := world{journal: journal, model: &model{answer: func(_ context.Context, _ provider.Request, call int) (string, error) {
		if call == before {
			if err := store.Orphan(journal.ID()); err != nil {
				t.Error(err)
			}
		}
		return "ok", nil
	}}}
	_, events, err := w.drive(t.Context(), t, `
settings: {max_concurrency: 2}
initial_state: {items: [`+strings.TrimSuffix(strings.Repeat("1, ", 40), ", ")+`]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: all, next: done}
  one: {type: llm, prompt: "{{item}}", retry: {attempts: 3}}
  done: {type: end, output: "{{all}}"}
`)
	if !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("the run ends with %v", err)
	}
	if n := len(w.model.requests); n < before || n > before+width {
		t.Errorf("the model was called %d times, the lease was lost at %d", n, before)
	}
	for _, warning := range eventtest.Bodies[event.Warning](events) {
		t.Errorf("warning: %s", warning.Text)
	}
}
