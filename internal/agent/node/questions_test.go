package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// askEverywhere asks in a fan-out and in a map, next to other work.
const askEverywhere = `
settings: {max_concurrency: 1}
initial_state: {cities: [rome, oslo, cairo]}
start: first
nodes:
  first: {type: llm, prompt: begin, next: [review, name, each, think]}
  each: {type: map, over: "{{cities}}", as: city, branch: visit, collect_into: visits, next: join}
  visit: {type: approval, question: "Visit {{city}}?", options: [yes, no]}
  name: {type: input, question: "Which name?", state_updates: {name: "{{input}}"}, next: join}
  review: {type: approval, question: "Good?", options: [yes, no], routes: {yes: join, no: join}, on_other: join, state_updates: {good: "{{choice}}"}}
  think: {type: llm, prompt: think, state_updates: {thought: "{{output}}"}, next: join}
  join: {type: llm, prompt: "{{visits}} {{name}} {{good}}", join: all, state_updates: {joined: "{{output}}"}, next: done}
  done: {type: end, output: "{{visits}} {{name}} {{good}} {{thought}} {{joined}}"}
`

// inOrder are the names of its questions.
var inOrder = []string{"each#0", "each#1", "each#2", "name", "review"}

// TestQuestionsAreAskedInOrder has a user who answers slowly. One question is put after the other, by node and item, and the
// work beside them does not wait for them.
func TestQuestionsAreAskedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		open, thought := 0, time.Time{}
		begin := time.Now()
		w := world{
			asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
				mu.Lock()
				if open++; open > 1 {
					t.Errorf("%s is asked before the one before it is answered", q.ID)
				}
				mu.Unlock()
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				open--
				asked = append(asked, q.ID)
				if strings.HasPrefix(q.ID, "each#") != (q.Item != nil) || q.Item != nil && (q.Map != "each" || q.ID != fmt.Sprintf("each#%d", *q.Item)) {
					t.Errorf("%s says that it comes from %s %v", q.ID, q.Map, q.Item)
				}
				return "to " + q.ID, nil
			}),
			model: &model{answer: func(_ context.Context, req provider.Request, _ int) (string, error) {
				if prompt(req) == "think" {
					thought = time.Now()
				}
				return "ok", nil
			}},
		}
		out, _, err := w.drive(t.Context(), t, askEverywhere)
		if want := `["to each#0","to each#1","to each#2"] to name to review ok ok`; err != nil || out.Output != want {
			t.Errorf("output %q, %v", out.Output, err)
		}
		if !slices.Equal(asked, inOrder) {
			t.Errorf("asked %q", asked)
		}
		if thought.Sub(begin) >= time.Minute {
			t.Errorf("the work beside the questions was done after %v", thought.Sub(begin))
		}
	})
}

// TestQuestionsInAnyOrder answers what waits in all kinds of order, one by one and several together, in runs that go on in
// between or are killed there. The end is always the same, nothing is asked again that has its answer, and no model is.
func TestQuestionsInAnyOrder(t *testing.T) {
	want := ""
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		store := memstore.New(nil)
		j, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		m := &model{answer: func(context.Context, provider.Request, int) (string, error) { return "ok", nil }}
		w := world{journal: j, model: m}
		waiting, final := slices.Clone(inOrder), ""
		for round := 0; ; round++ {
			out, c, err := w.drive(t.Context(), t, askEverywhere)
			var asked []string
			for _, q := range eventtest.Bodies[event.Question](c) {
				asked = append(asked, q.ID)
			}
			if !slices.Equal(asked, waiting) {
				t.Fatalf("seed %d: asked %q, want %q", seed, asked, waiting)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if len(waiting) == 0 {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				final = string(out.State.AppendJSON(nil)) + out.Output
				break
			}
			if fault.CodeOf(err) != fault.Suspended {
				t.Fatalf("seed %d: %v", seed, err)
			}
			pending, err := store.Pending(t.Context(), j.ID())
			if err != nil || len(pending) != len(waiting) {
				t.Fatalf("seed %d: %+v, %v", seed, pending, err)
			}
			for _, p := range pending {
				if item := strings.TrimPrefix(p.ID, "each#"); (p.Item != nil) != (item != p.ID) || p.Item != nil && fmt.Sprint(*p.Item) != item {
					t.Errorf("%s is item %v of %s", p.ID, p.Item, p.Node)
				}
			}
			w.answered = nil
			for range 1 + rnd.IntN(len(waiting)) {
				i := rnd.IntN(len(waiting))
				id := waiting[i]
				if err := store.Answer(t.Context(), j.ID(), id, run.Reply{Text: "to " + id}); err != nil {
					t.Fatal(err)
				}
				waiting, w.answered = slices.Delete(waiting, i, i+1), append(w.answered, id)
			}
			again, found, err := store.Open(t.Context(), j.ID())
			if err != nil {
				t.Fatal(err)
			}
			j = again
			w.journal, w.from = again, &found
		}
		if want == "" {
			want = final
		}
		if final != want || !strings.Contains(final, `["to each#0","to each#1","to each#2"] to name to review ok ok`) {
			t.Errorf("seed %d: it ends with\n%s, want\n%s", seed, final, want)
		}
		if len(m.requests) != 3 {
			t.Errorf("seed %d: %d calls of the model", seed, len(m.requests))
		}
	}
}

// TestExpiry: when the time for an answer is over the default is taken, or the node fails and says when that was.
func TestExpiry(t *testing.T) {
	for _, tt := range []struct{ name, fields, want, err string }{
		{"span", "expires: 1h, default: late", "late", ""},
		{"time", `expires: "2000-01-01T03:00:00Z", default: late`, "late", ""}, // the clock of the test begins three hours before
		{"template", `expires: "{{until}}", default: late`, "late", ""},
		{"without_default", "expires: 30m", "", "no answer in time: the question expired at "},
		{"not_a_time", `expires: "{{initial_prompt}}", default: late`, "", "expires: "},
		{"in_time", "expires: 4h, default: late", "answer", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{asker: ask.Func(func(ctx context.Context, _ ask.Question) (string, error) {
					select {
					case <-time.After(3*time.Hour + time.Minute):
						return "answer", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})}
				out, _, err := w.drive(t.Context(), t, `
initial_state: {until: "2000-01-01T01:00:00+00:30", initial_prompt: soon}
start: who
nodes:
  who: {type: input, question: "Who?", `+tt.fields+`, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "{{who}}"}
`)
				if out.Output != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("output %q, %v", out.Output, err)
				}
			})
		})
	}
}

// TestQuestionBesideAFailure: a failure weighs more than a question that waits, in a map as in a fan-out.
func TestQuestionBesideAFailure(t *testing.T) {
	_, _, err := world{}.drive(t.Context(), t, `
initial_state: {items: [{a: 1}, {}]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: q, collect_into: all, next: done}
  q: {type: input, question: "{{item.a}}?"}
  done: {type: end, output: ""}
`)
	if err == nil || fault.CodeOf(err) == fault.Suspended || !strings.Contains(err.Error(), "item [1]") {
		t.Errorf("error %v", err)
	}
}
