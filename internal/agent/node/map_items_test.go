package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// overItems is a graph with a map over items of the state, whose other fields are given.
func overItems(items, fields string) string {
	return `
settings: {max_concurrency: 4}
initial_state: {items: ` + items + `, least: 3}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: all, ` + fields + `, next: done}
  one: {type: llm, prompt: "{{item}}"}
  rescue: {type: end, output: "rescued: {{_last_error.node}}"}
  done: {type: end, output: "{{all}}"}
`
}

// odd answers with the prompt, and fails for each that has a 7 in it.
func odd(_ context.Context, req provider.Request, _ int) (string, error) {
	if strings.Contains(prompt(req), "7") {
		return "", errors.New("not a seven")
	}
	return prompt(req), nil
}

func TestMapItems(t *testing.T) {
	const failure = `{"_error":{"node":"one","message":"no fallback declared: LLM node failed: model c:m: not a seven"}}`
	for _, tt := range []struct {
		name, items, fields string
		want                string
		asked               int // how often the model is asked; -1 for any number
		err                 []string
	}{
		{name: "object", items: "{rome: {river: Tiber}, oslo: 2}", fields: "timeout: 60", want: `["{\"key\":\"rome\",\"value\":{\"river\":\"Tiber\"}}","{\"key\":\"oslo\",\"value\":2}"]`, asked: 2},
		{name: "empty_object", items: "{}", fields: "timeout: 60", want: `[]`},
		{name: "object_failure", items: "{a: 1, b: 7}", fields: "on_error: fail", err: []string{`for item [1] (key "b")`, "not a seven"}, asked: 2},
		{name: "skip", items: "[1, 7, 3]", fields: "on_error: skip", want: `["1","3"]`, asked: 3},
		{name: "collect", items: "[1, 7, 3]", fields: "on_error: collect", want: `["1",` + failure + `,"3"]`, asked: 3},
		{name: "all_fail", items: "[7, 7]", fields: "on_error: skip", want: `[]`, asked: 2},
		{name: "enough_successes", items: "[1, 7, 3]", fields: "on_error: skip, min_success: 2", want: `["1","3"]`, asked: 3},
		{name: "enough_successes_in_percent", items: "[1, 7, 3]", fields: "on_error: collect, min_success: 66%", want: `["1",` + failure + `,"3"]`, asked: 3},
		{name: "too_few", items: "[7, 1, 77]", fields: "on_error: skip, min_success: 2", err: []string{"1 of 3 items succeeded, and min_success is 2", "item [0]", "not a seven"}, asked: 3},
		{name: "too_few_in_percent", items: "[1, 7, 3]", fields: `on_error: skip, min_success: "67%"`, err: []string{"2 of 3 items succeeded, and min_success is 67%"}, asked: 3},
		{name: "fallback", items: "[7]", fields: "fallback: rescue", want: "rescued: each", asked: 1},
		{name: "fallback_after_too_few", items: "[7, 1]", fields: "on_error: skip, min_success: 2, fallback: rescue", want: "rescued: each", asked: 2},
		{name: "item_if", items: "[1, 5, 7, 4]", fields: `item_if: "item >= least && item != 7"`, want: `["5","4"]`, asked: 2},
		{name: "item_if_of_an_object", items: "{a: 1, b: 2}", fields: `item_if: item.key == "b"`, want: `["{\"key\":\"b\",\"value\":2}"]`, asked: 1},
		{name: "item_if_names_the_item", items: "[1, 7]", fields: `item_if: item == 7`, err: []string{"for item [1]"}, asked: 1},
		{name: "item_if_is_no_boolean", items: "[1, x]", fields: `item_if: item`, err: []string{"item_if: item [0]"}},
		{name: "batch", items: "[1, 2, 3, 4, 5]", fields: "batch: 2", want: `["[1,2]","[3,4]","[5]"]`, asked: 3},
		{name: "batch_of_some", items: "[1, 2, 3, 4, 5]", fields: `batch: 2, item_if: "item != 2"`, want: `["[1,3]","[4,5]"]`, asked: 2},
		{name: "batch_failure", items: "[1, 2, 7]", fields: "batch: 2", err: []string{"for item [1] (items 2 to 2)"}, asked: 2},
		{name: "enough", items: "[1, 2, 3, 4, 5]", fields: `concurrency: 1, enough: "len(results) >= 2"`, want: `["1","2"]`, asked: 2},
		{name: "enough_of_a_kind", items: "[no, yes, no, yes, no]", fields: `concurrency: 1, enough: 'results[-1] == "yes"'`, want: `["no","yes"]`, asked: 2},
		{name: "enough_with_failures", items: "[7, 1, 2, 3]", fields: `concurrency: 1, on_error: skip, enough: "len(results) >= 2"`, want: `["1","2"]`, asked: 3},
		{name: "enough_and_a_share", items: "[1, 2, 7]", fields: `concurrency: 1, on_error: skip, min_success: "100%", enough: "len(results) >= 2"`, want: `["1","2"]`, asked: 2},
		{name: "never_enough", items: "[1, 2]", fields: `enough: "len(results) > 5"`, want: `["1","2"]`, asked: 2},
		{name: "enough_is_no_boolean", items: "[1]", fields: `enough: "results[0]"`, err: []string{"enough: "}, asked: 1},
		{name: "a_failure_is_not_made_up_for", items: "[7, 1, 2, 3]", fields: `concurrency: 1, enough: "len(results) >= 2"`, err: []string{"item [0]"}, asked: 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{model: &model{answer: odd}}
			out, _, err := w.drive(t.Context(), t, overItems(tt.items, tt.fields))
			for _, part := range tt.err {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v lacks %q", err, part)
				}
			}
			if (err == nil) != (tt.err == nil) || out.Output != tt.want {
				t.Errorf("output %s, %v, want %s", out.Output, err, tt.want)
			}
			if got := len(w.model.requests); got != tt.asked {
				t.Errorf("the model was asked %d times, want %d", got, tt.asked)
			}
		})
	}
}

// TestMapItemsAreReported: each failed item that is tolerated is one warning, and progress counts it.
func TestMapItemsAreReported(t *testing.T) {
	out, c, err := world{model: &model{answer: odd}}.drive(t.Context(), t, overItems("{a: 1, b: 7, c: 77}", "on_error: skip, concurrency: 1"))
	if err != nil || out.Failures != 2 {
		t.Fatalf("%d failures, %v", out.Failures, err)
	}
	var warnings []string
	for _, w := range eventtest.Bodies[event.Warning](c) {
		warnings = append(warnings, w.Text)
	}
	if len(warnings) != 2 || !strings.HasPrefix(warnings[0], `item [1] (key "b") failed and is left out: `) || !strings.Contains(warnings[1], "not a seven") {
		t.Errorf("warnings %q", warnings)
	}
	progress := eventtest.Bodies[event.MapProgress](c)
	b, c2 := `[1] (key "b")`, `[2] (key "c")`
	if !reflect.DeepEqual(progress, []event.MapProgress{
		{Done: 1, Total: 3}, {Done: 2, Total: 3, Failed: 1, FailedItems: []string{b}}, {Done: 3, Total: 3, Failed: 2, FailedItems: []string{b, c2}},
	}) {
		t.Errorf("progress %v", progress)
	}
}

// TestEnoughCancelsWhatRuns: items that are at work are canceled, and that is no failure.
func TestEnoughCancelsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var canceled []string
		w := world{model: &model{answer: func(ctx context.Context, req provider.Request, _ int) (string, error) {
			var n int
			if _, err := fmt.Sscan(prompt(req), &n); err != nil {
				return "", err
			}
			select {
			case <-time.After(time.Duration(n) * time.Second):
				return prompt(req), nil
			case <-ctx.Done():
				mu.Lock()
				canceled = append(canceled, prompt(req))
				mu.Unlock()
				return "", ctx.Err()
			}
		}}}
		begin := time.Now()
		out, c, err := w.drive(t.Context(), t, overItems("[9, 2, 8, 1, 5, 5]", `on_error: collect, enough: "len(results) >= 2"`))
		slices.Sort(canceled)
		if err != nil || out.Output != `["2","1"]` || !slices.Equal(canceled, []string{"5", "8", "9"}) || time.Since(begin) != 2*time.Second {
			t.Errorf("output %s, %v, canceled %q after %v", out.Output, err, canceled, time.Since(begin))
		}
		if len(eventtest.Bodies[event.Warning](c)) != 0 {
			t.Errorf("warnings %v", eventtest.Bodies[event.Warning](c))
		}
	})
}

// TestEnoughEndsScripts: a script at work is ended with its children.
func TestEnoughEndsScripts(t *testing.T) {
	dir := t.TempDir()
	slow := `case $GRAPH_STATE in *'"item":0'*) while [ ! -e ` + dir + `/begun1 ]; do sleep 0.01; done; echo '{"output": "fast"}'; exit;; esac
touch ` + dir + `/begun1
(sleep 600; touch ` + dir + `/late) &
wait
`
	begin := time.Now()
	out, _, err := world{scripts: map[string]string{"one.sh": slow}}.drive(t.Context(), t, strings.Replace(overItems("[0, 1]", `enough: "len(results) >= 1"`), `{type: llm, prompt: "{{item}}"}`, "{type: script, script: one.sh, timeout: 300}", 1))
	if err != nil || out.Output != `["fast"]` || time.Since(begin) > time.Minute {
		t.Errorf("output %s, %v, after %v", out.Output, err, time.Since(begin))
	}
	if _, err := os.Stat(filepath.Join(dir, "late")); err == nil {
		t.Error("the script went on")
	}
}

// record returns a store with a run of a graph that is about to begin.
func record(t *testing.T, text string) (*memstore.Store, run.Journal) {
	t.Helper()
	g, _, err := graph.Parse("graph.yaml", []byte("name: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(nil)
	j, err := store.Create(t.Context(), run.Info{}, run.StartCheckpoint(graph.NewPlan(g), graph.NewState(g.InitialState)))
	if err != nil {
		t.Fatal(err)
	}
	return store, j
}

// TestMapGoesOn interrupts a map at each of its calls of the model, and goes on with it. No item that is over is run again, and
// the results are those of a map that was not disturbed.
func TestMapGoesOn(t *testing.T) {
	for _, tt := range []struct{ name, fields, want string }{
		{"plain", "concurrency: 2", `["1","2","3","4"]`},
		{"collect", "concurrency: 2, on_error: collect, min_success: 3, item_if: 'item != 2'", ""},
		{"enough", `concurrency: 1, enough: "len(results) >= 3"`, `["1","2","3"]`},
		{"batch", `concurrency: 2, batch: 2`, `["[1,2]","[3,4]"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			items := "[1, 2, 3, 4]"
			if tt.name == "collect" {
				items = "[1, 2, 7, 3, 4]"
			}
			calm := world{model: &model{answer: odd}}
			out, _, err := calm.drive(t.Context(), t, overItems(items, tt.fields))
			if err != nil || tt.want != "" && out.Output != tt.want {
				t.Fatalf("output %s, %v", out.Output, err)
			}
			want := out.Output
			for at := 1; at <= len(calm.model.requests); at++ {
				store, j := record(t, overItems(items, tt.fields))
				ctx, cancel := context.WithCancelCause(t.Context())
				m := &model{}
				m.answer = func(ctx context.Context, req provider.Request, call int) (string, error) {
					if call == at {
						cancel(run.ErrInterrupted)
						return "", ctx.Err()
					}
					return odd(ctx, req, call)
				}
				w := world{journal: j, model: m}
				if _, _, err := w.drive(ctx, t, overItems(items, tt.fields)); fault.CodeOf(err) != fault.Canceled {
					t.Fatalf("interrupted at %d: %v", at, err)
				}
				cancel(nil)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				over := 0
				h, err := store.History(t.Context(), j.ID())
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range h.Steps {
					if strings.HasPrefix(s.Key, "item/") && strings.HasSuffix(s.Key, "/done") && s.Done {
						over++
					}
				}
				again, found, err := store.Open(t.Context(), j.ID())
				if err != nil {
					t.Fatal(err)
				}
				second := world{journal: again, from: &found, model: &model{answer: odd}}
				out, c, err := second.drive(t.Context(), t, overItems(items, tt.fields))
				if err != nil || out.Output != want {
					t.Errorf("interrupted at %d: output %s, %v, want %s", at, out.Output, err, want)
				}
				if got := len(second.model.requests); got != len(calm.model.requests)-over {
					t.Errorf("interrupted at %d: %d items were over, and %d calls were made for the rest", at, over, got)
				}
				if p := eventtest.Bodies[event.MapProgress](c); over > 0 && (len(p) == 0 || p[0].Done != over) {
					t.Errorf("interrupted at %d: progress %v", at, p)
				}
				if out.Usage.OutputTokens != len(calm.model.requests)-strings.Count(want, "_error") {
					t.Errorf("interrupted at %d: usage %+v", at, out.Usage)
				}
			}
		})
	}
}

// TestTooFewAreTriedAgain: a map that failed because too few items succeeded runs only those again that failed.
func TestTooFewAreTriedAgain(t *testing.T) {
	text := overItems("[1, 7, 3, 17]", "on_error: skip, min_success: 4, concurrency: 1")
	store, j := record(t, text)
	w := world{journal: j, model: &model{answer: odd}}
	for range 2 {
		_, _, err := w.drive(t.Context(), t, text)
		if err == nil || !strings.Contains(err.Error(), "2 of 4 items succeeded") {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again, found, err := store.Open(t.Context(), j.ID())
		if err != nil {
			t.Fatal(err)
		}
		j = again
		w.journal, w.from = j, &found
	}
	if got := len(w.model.requests); got != 4+2 {
		t.Errorf("%d calls", got)
	}
	w.model = &model{answer: func(_ context.Context, req provider.Request, _ int) (string, error) { return prompt(req), nil }}
	out, _, err := w.drive(t.Context(), t, text)
	if err != nil || out.Output != `["1","7","3","17"]` || len(w.model.requests) != 2 {
		t.Errorf("output %s, %v, %d calls", out.Output, err, len(w.model.requests))
	}
}

// TestQuorum: a map over approvals that needs two of three. The third question is over with the super-step.
func TestQuorum(t *testing.T) {
	const text = `
initial_state: {who: [ada, bob, carol]}
start: each
nodes:
  each: {type: map, over: "{{who}}", as: name, branch: vote, collect_into: votes, enough: "len(results) >= 2", next: last}
  vote: {type: approval, question: "{{name}}?", options: [yes, no]}
  last: {type: input, question: "Sure?", next: done}
  done: {type: end, output: "{{votes}}"}
`
	store, j := record(t, text)
	w := world{journal: j}
	for round, answers := range [][]string{{"each#2"}, {"each#1"}, {"last"}} {
		if _, _, err := w.drive(t.Context(), t, text); fault.CodeOf(err) != fault.Suspended {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		pending, err := store.Pending(t.Context(), j.ID())
		if want := []int{3, 2, 1}[round]; err != nil || len(pending) != want {
			t.Fatalf("round %d: %+v, %v", round, pending, err)
		}
		for _, id := range answers {
			if err := store.Answer(t.Context(), j.ID(), id, run.Reply{Text: "to " + id}); err != nil {
				t.Fatal(err)
			}
		}
		again, found, err := store.Open(t.Context(), j.ID())
		if err != nil {
			t.Fatal(err)
		}
		j = again
		w.journal, w.from = j, &found
	}
	if out, c, err := w.drive(t.Context(), t, text); err != nil || out.Output != `["to each#1","to each#2"]` || len(eventtest.Bodies[event.Question](c)) != 0 {
		t.Errorf("output %s, %v", out.Output, err)
	}
}
