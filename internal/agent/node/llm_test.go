package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

var (
	refused  = &provider.Error{Kind: provider.Refused, Msg: "I refuse"}
	lost     = &provider.Error{Kind: provider.Transient, Msg: "connection lost"}
	tooMany  = &provider.Error{Kind: provider.RateLimited, Msg: "slow down"}
	noAccess = &provider.Error{Kind: provider.Authentication, Msg: "who are you"}
)

// TestLLMOutcomes goes through what becomes of a reply or a failure, with the three ways
// a node can be left.
func TestLLMOutcomes(t *testing.T) {
	const schema = "output_schema: {type: object, properties: {score: {type: integer}}, required: [score]}"
	for _, tt := range []struct {
		name    string
		node    string // fields of the llm node, besides its prompt and next
		policy  string // settings
		replies []any
		end     string // output of the run: the end node's name, then "out"
		state   map[string]string
		code    fault.Code // of the run's failure, empty if it succeeds
		parts   []string   // of the failure
		calls   int
	}{
		{
			name: "text", node: "next: done", replies: []any{"hello"}, calls: 1,
			end: "done hello", state: map[string]string{graph.LastErrorKey: ""},
		},
		{
			name: "empty_text", node: "next: done", policy: "on_failure: continue", replies: []any{""}, calls: 1, end: "done LLM node failed: ",
			state: map[string]string{graph.LastErrorKey: "the reply is empty"},
		},
		{
			name: "retry_of_empty_text", node: "next: done, max_attempts: 2", replies: []any{"", "hello"}, calls: 2, end: "done hello",
		},
		{
			name: "schema", node: "next: done, " + schema, replies: []any{`{"score": 7, "more": [1]}`}, calls: 1,
			end: `done {"score":7,"more":[1]}`, state: map[string]string{"score": "7", "more": "[1]"},
		},
		{
			name: "schema_in_a_fence", node: "next: done, " + schema, replies: []any{"```json\n{\"score\": 7}\n```"}, calls: 1,
			end: `done {"score":7}`, state: map[string]string{"score": "7"},
		},
		{
			name: "schema_extracted", node: "next: done, " + schema, replies: []any{"I would say seven.", `{"score": 7}`}, calls: 2,
			end: `done {"score":7}`, state: map[string]string{"score": "7"},
		},
		{
			name: "schema_repaired", node: "next: done, " + schema, replies: []any{"I would say seven.", `{"score": "seven"}`, `{"score": 7}`}, calls: 3,
			end: `done {"score":7}`, state: map[string]string{"score": "7"},
		},
		{
			name: "schema_never", node: "next: done, fallback: rescued, " + schema, replies: []any{"seven", "seven", `{"score": "seven"}`}, calls: 3,
			end: "rescued LLM node structured-extraction failed: ", state: map[string]string{"score": ""},
		},
		{
			name: "failure_to_fallback", node: "next: done, fallback: rescued", replies: []any{refused}, calls: 1,
			end: "rescued LLM node failed: ", state: map[string]string{graph.LastErrorKey: "I refuse"},
		},
		{
			name: "failure_to_next", node: "next: done", policy: "on_failure: continue", replies: []any{refused}, calls: 1,
			end: "done LLM node failed: ", state: map[string]string{graph.LastErrorKey: "I refuse"},
		},
		{
			name: "failure_stops", node: "next: done", policy: "on_failure: fail", replies: []any{refused}, calls: 1,
			code: fault.Refused, parts: []string{`"ask"`, "no fallback declared", "I refuse"},
		},
		{
			name: "failure_stops_but_for_fallback", node: "next: done, fallback: rescued", policy: "on_failure: fail", replies: []any{refused}, calls: 1,
			end: "rescued LLM node failed: ",
		},
		{
			name: "retry_of_lost", node: "next: done, max_attempts: 3", replies: []any{lost, tooMany, "hello"}, calls: 3, end: "done hello",
		},
		{
			name: "retries_used_up", node: "next: done, fallback: rescued, max_attempts: 2", replies: []any{lost, lost}, calls: 2,
			end: "rescued LLM node failed: ", state: map[string]string{graph.LastErrorKey: "connection lost"},
		},
		{
			name: "no_retry_of_what_fails_for_good", node: "next: done, fallback: rescued, max_attempts: 3", replies: []any{noAccess}, calls: 1,
			end: "rescued LLM node failed: ",
		},
		{
			name: "no_attempts", node: "next: done, fallback: rescued, max_attempts: 0", calls: 0,
			end: "rescued LLM node failed: max_attempts is 0",
		},
		{
			name: "no_iterations", node: "next: done, fallback: rescued, max_iterations: 0", calls: 0,
			end: "rescued LLM node failed: max_iterations is 0",
		},
		{
			name: "missing_in_prompt", node: "next: done, fallback: rescued, instructions: 'about {{nothing}}'", calls: 0,
			end: "rescued LLM node failed: instructions: ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{model: replies(tt.replies...)}
			out, c, err := w.drive(t.Context(), t, `
settings: {`+tt.policy+`}
start: ask
nodes:
  ask: {type: llm, prompt: question, state_updates: {out: "{{output}}"}, `+tt.node+`}
  done: {type: end, output: "done {{out}}"}
  rescued: {type: end, output: "rescued {{out}}"}
`)
			if tt.code == "" && err != nil {
				t.Fatal(err)
			}
			if tt.code != "" && (err == nil || fault.CodeOf(err) != tt.code) {
				t.Errorf("error %v with code %s, want %s", err, fault.CodeOf(err), tt.code)
			}
			for _, part := range tt.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %v lacks %q", err, part)
				}
			}
			failed := tt.code != "" || strings.Contains(tt.end, "failed: ")
			if out.Output != tt.end && !(failed && strings.HasPrefix(out.Output, tt.end)) {
				t.Errorf("output %q, want %q", out.Output, tt.end)
			}
			for key, want := range tt.state {
				if got := state(out, key); got != want && (want == "" || key != graph.LastErrorKey || !strings.Contains(got, want)) {
					t.Errorf("state %s is %s, want %s", key, got, want)
				}
			}
			if got := len(w.model.requests); got != tt.calls {
				t.Errorf("the model was asked %d times, want %d", got, tt.calls)
			}
			if fin := eventtest.Bodies[event.NodeFinished](c)[0]; (fin.Error != "") != failed {
				t.Errorf("node finished %+v", fin)
			}
			if out.Usage.OutputTokens != succeeded(tt.replies) {
				t.Errorf("usage %+v", out.Usage)
			}
		})
	}
}

func succeeded(replies []any) int {
	n := 0
	for _, r := range replies {
		if _, ok := r.(string); ok {
			n++
		}
	}
	return n
}

func TestLLMRequests(t *testing.T) {
	w := world{model: replies("seven", `{"score": "seven"}`, `{"score": 7}`)}
	_, _, err := w.drive(t.Context(), t, `
initial_state: {topic: bees}
start: ask
nodes:
  ask:
    type: llm
    model: c:other
    temperature: 0.5
    instructions: "  Be strict about {{topic}}.  "
    prompt: "Judge {{topic}}"
    output_schema: {type: object, properties: {score: {type: integer}}, required: [score]}
    next: done
  done: {type: end, output: ""}
`)
	if err != nil {
		t.Fatal(err)
	}
	first := w.model.requests[0]
	if first.Model != "c:other" || *first.Temperature != 0.5 || first.Origin.Node != "ask" {
		t.Errorf("request %+v", first)
	}
	if len(first.Messages) != 2 || first.Messages[0].Role != chat.System {
		t.Fatalf("messages %+v", first.Messages)
	}
	system := first.Messages[0].Text()
	if !strings.HasPrefix(system, "Be strict about bees.") || prompt(first) != "Judge bees" {
		t.Errorf("system %q, prompt %q", system, prompt(first))
	}
	for _, word := range []string{"JSON", "ONLY", "Schema:", `"score"`} {
		if !strings.Contains(system, word) {
			t.Errorf("the instructions lack %s: %s", word, system)
		}
	}
	if extract := prompt(w.model.requests[1]); !strings.Contains(extract, "seven") {
		t.Errorf("the extraction lacks the reply: %s", extract)
	}
	if repair := prompt(w.model.requests[2]); !strings.Contains(repair, "score") || !strings.Contains(repair, `"seven"`) {
		t.Errorf("the repair lacks the violation: %s", repair)
	}
}

func TestLLMUpdatesWinOverMembers(t *testing.T) {
	w := world{model: replies(`{"score": 7, "title": "new"}`)}
	out, _, err := w.drive(t.Context(), t, `
initial_state: {output: before}
start: ask
nodes:
  ask:
    type: llm
    prompt: x
    output_schema: {type: object}
    state_updates: {title: "{{output.title}} and {{score}}", typed: "{{output}}"}
    next: done
  done: {type: end, output: "{{title}}"}
`)
	if err != nil || out.Output != "new and 7" {
		t.Fatalf("output %q, %v", out.Output, err)
	}
	if got := state(out, "typed"); got != `{"score":7,"title":"new"}` {
		t.Errorf("typed is %s", got)
	}
	if got := state(out, "output"); got != `"before"` {
		t.Errorf("the scoped variable left %s behind", got)
	}
}

func TestLLMTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{model: &model{answer: func(ctx context.Context, _ provider.Request, _ int) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}}}
		begin := time.Now()
		out, _, err := w.drive(t.Context(), t, `
start: ask
nodes:
  ask: {type: llm, prompt: x, timeout: 5, max_attempts: 3, state_updates: {out: "{{output}}"}, next: done, fallback: rescued}
  done: {type: end, output: done}
  rescued: {type: end, output: "{{out}}"}
`)
		if err != nil || !strings.Contains(out.Output, "llm node timed out after 5s") {
			t.Errorf("output %q, %v", out.Output, err)
		}
		if took := time.Since(begin); took != 5*time.Second || len(w.model.requests) != 1 {
			t.Errorf("%d requests, for %s", len(w.model.requests), took)
		}
	})
}

// TestRetriesShareTheirFailures: the repetitions that a client allows are not made again for
// each try of the node.
func TestRetriesShareTheirFailures(t *testing.T) {
	for _, tt := range []struct {
		name, node string
		replies    []any
		calls      int
	}{
		{"client_only", "", []any{lost, lost, lost}, 3},
		{"all_layers", "max_attempts: 2, retry: {attempts: 2}", []any{lost, lost, lost, lost, lost, lost}, 6},
		{"success_in_between", "max_attempts: 2, output_schema: {}", []any{lost, lost, lost, "prose", lost, lost, "1"}, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{model: replies(tt.replies...)}
				w.model.retry = retry.Policy{Attempts: 3, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute}
				_, _, err := w.drive(t.Context(), t, `
settings: {on_failure: continue}
start: ask
nodes:
  ask: {type: llm, prompt: x, next: done, `+tt.node+`}
  done: {type: end, output: done}
`)
				if err != nil || len(w.model.requests) != tt.calls {
					t.Errorf("%d calls, want %d, %v", len(w.model.requests), tt.calls, err)
				}
			})
		})
	}
}

// TestRetryOfATimeout: a try that took too long is made again, by its type and not by the words
// of an error.
func TestRetryOfATimeout(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first func(ctx context.Context) error
		calls int
	}{
		{"timeout", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 2},
		{"words_only", func(context.Context) error {
			return &provider.Error{Kind: provider.Invalid, Msg: "429 timed out, rate limit, Connection reset"}
		}, 1},
		{"of_unknown_kind", func(context.Context) error { return errors.New("429 timed out, rate limit, Connection reset") }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{model: &model{answer: func(ctx context.Context, _ provider.Request, call int) (string, error) {
					if call == 1 {
						return "", tt.first(ctx)
					}
					return "hello", nil
				}}}
				_, _, err := w.drive(t.Context(), t, `
settings: {on_failure: continue}
start: ask
nodes:
  ask: {type: llm, prompt: x, timeout: 5, retry: {attempts: 3}, next: done}
  done: {type: end, output: done}
`)
				if err != nil || len(w.model.requests) != tt.calls {
					t.Errorf("%d calls, want %d, %v", len(w.model.requests), tt.calls, err)
				}
			})
		})
	}
}

func TestLLMCanceledIsNotTolerated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := world{model: &model{answer: func(ctx context.Context, _ provider.Request, _ int) (string, error) {
		cancel()
		return "", ctx.Err()
	}}}
	out, _, err := w.drive(ctx, t, `
start: ask
nodes:
  ask: {type: llm, prompt: x, max_attempts: 3, next: done, fallback: done}
  done: {type: end, output: done}
`)
	if fault.CodeOf(err) != fault.Canceled || out.Output != "" || len(w.model.requests) != 1 {
		t.Errorf("output %q, %v, %d requests", out.Output, err, len(w.model.requests))
	}
}

func TestRetriesAreReported(t *testing.T) {
	w := world{model: replies(lost, "hello")}
	_, c, err := w.drive(t.Context(), t, `
start: ask
nodes:
  ask: {type: llm, prompt: x, max_attempts: 2, next: done}
  done: {type: end, output: done}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := eventtest.Bodies[event.Retry](c)
	if len(got) != 1 || got[0].Attempt != 1 || !strings.Contains(got[0].Error, "connection lost") {
		t.Errorf("retries %+v", got)
	}
}

// TestAttemptsWaitAsAsked makes another attempt when the provider wants it, and none if that is
// far away.
func TestAttemptsWaitAsAsked(t *testing.T) {
	for _, tt := range []struct {
		asked  time.Duration
		calls  int
		output string
	}{{0, 2, "hello"}, {7 * time.Second, 2, "hello"}, {time.Hour, 1, "rescued"}} {
		synctest.Test(t, func(t *testing.T) {
			w := world{model: replies(&provider.Error{Kind: provider.RateLimited, RetryAfter: tt.asked, Msg: "too many requests"}, "hello")}
			begin := time.Now()
			out, _, err := w.drive(t.Context(), t, `
start: ask
nodes:
  ask: {type: llm, prompt: x, max_attempts: 3, state_updates: {out: "{{output}}"}, next: done, fallback: rescued}
  done: {type: end, output: "{{out}}"}
  rescued: {type: end, output: rescued}
`)
			if err != nil || out.Output != tt.output || len(w.model.requests) != tt.calls {
				t.Errorf("%s: output %q, %d requests, %v", tt.asked, out.Output, len(w.model.requests), err)
			}
			if took := time.Since(begin); tt.calls > 1 && took != tt.asked {
				t.Errorf("%s: another attempt was made after %s", tt.asked, took)
			}
		})
	}
}

// TestProviderAsksToComeBackLater: a recorded run is suspended and asks again when it is
// resumed. A run that is not recorded takes it as any other failure.
func TestProviderAsksToComeBackLater(t *testing.T) {
	const text = `
start: ask
nodes:
  ask: {type: llm, prompt: Hi, state_updates: {answer: "{{output}}"}, next: done, fallback: rescued}
  done: {type: end, output: "{{answer}}"}
  rescued: {type: end, output: rescued}
`
	wait := func(d time.Duration) error {
		return &provider.Error{Kind: provider.RateLimited, RetryAfter: d, Msg: "too many requests"}
	}
	for _, tt := range []struct {
		name     string
		err      error
		recorded bool
		code     fault.Code
		output   string
	}{
		{"recorded", wait(time.Hour), true, fault.Suspended, ""},
		{"not_recorded", wait(time.Hour), false, "", "rescued"},
		{"for_good", &provider.Error{Kind: provider.Invalid, Msg: "no"}, true, "", "rescued"},
		{"without_a_time", wait(0), true, "", "rescued"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{model: replies(tt.err)}
			if tt.recorded {
				journal, err := memstore.New(nil).Create(t.Context(), run.Info{ID: "r"}, run.Checkpoint{})
				if err != nil {
					t.Fatal(err)
				}
				w.journal = journal
			}
			out, _, err := w.drive(t.Context(), t, text)
			if fault.CodeOf(err) != tt.code || out.Output != tt.output {
				t.Errorf("output %q, error %v with code %q", out.Output, err, fault.CodeOf(err))
			}
			if tt.code == fault.Suspended && !strings.Contains(err.Error(), `node "ask" waits for its provider: model c:m: too many requests; try again in 60 minutes, at `) {
				t.Errorf("error %v", err)
			}
		})
	}
}
