package runtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

func (s *suite) steps() {
	ctx := s.Context()
	j := s.begin()
	a, b := j.Task(1, "a"), j.Task(1, "b")
	effect := steps.Step{Kind: steps.Tool, Name: "fs_write", Effect: true}

	s.known(a, "turn/1", steps.Record{})
	s.record(a, "turn/1", `{"x":1}`)
	s.known(a, "turn/1", done(`{"x":1}`))
	s.known(b, "turn/1", steps.Record{})
	s.known(j.Task(2, "a"), "turn/1", steps.Record{})
	s.known(a, "turn/", steps.Record{})
	s.known(a, "", steps.Record{})

	s.ok(a.Begin(ctx, "write", effect))
	s.known(a, "write", steps.Record{Begun: true})
	s.ok(b.Begin(ctx, "write", effect))
	s.ok(b.Forget(ctx, "write"))
	s.known(b, "write", steps.Record{})
	s.ok(b.Forget(ctx, "write"))   // nothing to forget
	s.ok(a.Forget(ctx, "unheard")) // either
	s.ok(a.Begin(ctx, "later", effect))
	s.ok(a.Record(ctx, "later", effect, []byte(`"ok"`)))
	s.ok(a.Forget(ctx, "later")) // too late: it is done
	s.known(a, "later", done(`"ok"`))
	s.ok(a.Record(ctx, "", steps.Step{Kind: steps.Model, Name: "gpt"}, []byte(`null`)))
	s.known(a, "", done(`null`))

	check := func() {
		s.Helper()
		h := s.history(j.ID())
		var lines []string
		for _, st := range h.Steps {
			if st.At.IsZero() {
				s.Errorf("step %d has no time", st.Number)
			}
			lines = append(lines, fmt.Sprintf("%d: %d %s %q %s %s %v %d", st.Number, st.Step, st.Node, st.Key, st.Kind, st.Name, st.Done, st.Size))
		}
		want := strings.Join([]string{
			`1: 1 a "turn/1" tool fs_cat true 7`,
			`2: 1 a "write" tool fs_write false 0`,
			`4: 1 a "later" tool fs_write true 4`,
			`5: 1 a "" model gpt true 4`,
		}, "\n")
		if got := strings.Join(lines, "\n"); got != want {
			s.Errorf("steps:\n%s\nwant:\n%s", got, want)
		}
		if result, err := s.store.Step(ctx, j.ID(), 1); err != nil || !sameJSON(result, []byte(`{"x":1}`)) {
			s.Errorf("the result of step 1: %s, %v", result, err)
		}
		for _, n := range []int{2, 9} { // not done, not there
			if result, err := s.store.Step(ctx, j.ID(), n); fault.CodeOf(err) != fault.NotFound {
				s.Errorf("the result of step %d: %s, %v", n, result, err)
			}
		}
	}
	check()
	s.ok(j.Close())
	s.reopen()
	check()

	j, _ = s.resume(j.ID())
	a = j.Task(1, "a")
	s.known(a, "turn/1", done(`{"x":1}`))
	s.known(a, "write", steps.Record{Begun: true})
	s.known(a, "later", done(`"ok"`))
	s.known(a, "", done(`null`))
	s.known(a, "new", steps.Record{})
	s.ok(a.Begin(ctx, "write", effect)) // again, after an interruption
	s.ok(a.Record(ctx, "write", effect, []byte(`true`)))
	s.known(a, "write", done(`true`))
	s.record(a, "last", `1`)
	h := s.history(j.ID())
	if n := len(h.Steps); n != 5 || h.Steps[1].Number != 2 || !h.Steps[1].Done || h.Steps[4].Number != 6 {
		s.Errorf("steps after resuming: %+v", h.Steps)
	}
}

func (s *suite) stepResults() {
	long := strings.Repeat("line with \"quotes\", <tags> & a \\ backslash\n", 300)
	emoji := strings.Repeat("\U0001F600 é \u2028", 500)
	results := []string{
		`null`, `true`, `12345678901234567890`, `1.0`, `1e3`, `""`, `[]`, `{}`,
		text(long),
		`"` + strings.Repeat(`A\ud83d\ude00\/\b\f`, 300) + `"`,
		`"` + strings.Repeat("\u2028<é\U0001F600", 300) + `"`,
		text(strings.Repeat("\x00\x1f\u007f", 500)),
		text(emoji),
		fmt.Sprintf(`{"b":%s,"a":[%s,%s,{"b":1.0}],%s:2}`, text(long), text(long), text(emoji), text(long)),
		fmt.Sprintf(` { "a" : %s , "b" : [ ] } `, text(long)),
		`{"$ref":"0123456789abcdef","blob":"0123456789abcdef"}`,
		text(strings.Repeat("x", 1<<20)),
	}
	j := s.begin()
	for i, r := range results {
		s.record(j.Task(1, "a"), fmt.Sprint(i), r)
	}
	check := func() {
		s.Helper()
		for i, r := range results {
			s.known(j.Task(1, "a"), fmt.Sprint(i), done(r))
		}
	}
	check()
	s.ok(j.Close())
	s.reopen()
	j, _ = s.resume(j.ID())
	check()
	for i, st := range s.history(j.ID()).Steps {
		if st.Size != len(results[i]) {
			s.Errorf("step %d has size %d, want %d", i, st.Size, len(results[i]))
		}
	}
}

func (s *suite) concurrentRecords() {
	const tasks, each = 8, 40
	j := s.begin()
	var wg sync.WaitGroup
	for n := range tasks {
		wg.Go(func() {
			r := j.Task(1, nodeName(n))
			for i := range each {
				key := fmt.Sprint(i)
				result := []byte(text(strings.Repeat(key, 100*i)))
				effect := steps.Step{Kind: steps.Tool, Name: "t", Effect: true}
				if err := r.Begin(s.Context(), key, effect); err != nil {
					s.Error(err)
				}
				j.Event(event.Event{Time: at, Body: event.Warning{Text: key}})
				if err := r.Record(s.Context(), key, effect, result); err != nil {
					s.Error(err)
				}
				if got, err := r.Lookup(s.Context(), key, steps.Step{}); err != nil || !got.Done || !sameJSON(got.Result, result) {
					s.Errorf("task %d step %d: %.50q, %v", n, i, got.Result, err)
				}
				if i%10 == 0 {
					if _, err := s.store.Runs(s.Context(), run.Query{}); err != nil {
						s.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s.ok(j.Close())
	s.reopen()
	h := s.history(j.ID())
	if len(h.Steps) != tasks*each || len(h.Events) != tasks*each {
		s.Fatalf("%d steps and %d events are on record, want %d each", len(h.Steps), len(h.Events), tasks*each)
	}
	seen := make(map[int]bool)
	for _, st := range h.Steps {
		seen[st.Number] = true
		if !st.Done || st.Number < 1 || st.Number > tasks*each {
			s.Fatalf("step %+v", st)
		}
	}
	if len(seen) != tasks*each {
		s.Errorf("%d numbers for %d steps", len(seen), tasks*each)
	}
}

func (s *suite) cancelledContext() {
	j := s.begin()
	s.ok(j.Task(1, "a").Record(cancelled(), "k", steps.Step{Kind: steps.Model}, []byte(`"dear"`)))
	s.known(j.Task(1, "a"), "k", done(`"dear"`))
	s.ok(j.Finished(cancelled(), run.TaskRecord{Step: 1, Result: graph.Result{Node: "a"}, Visit: run.Visit{Step: 1, Node: "a"}}))
	s.ok(j.End(cancelled(), run.Ending{Status: run.Canceled}))
	if got := s.info(j.ID()).Status; got != run.Canceled {
		s.Errorf("the run is %s", got)
	}
}

// record returns a finished task with every field set.
func taskRecord(step int, node string) run.TaskRecord {
	return run.TaskRecord{
		Step: step,
		Result: graph.Result{
			Node: node,
			Writes: []value.Member{
				{Name: "a", Value: value.Of(strings.Repeat(node, 700))},
				{Name: "b", Value: value.ListOf(value.Of(1), value.Of(1.0), value.Value{}).Value()},
			},
			Targets: []string{"x", "y"},
			Taken:   []string{node + ".next[0]", node + ".next[1]"},
			Ended:   true,
			Output:  "out <" + node + ">",
			Failure: &graph.Failure{Node: node, Type: graph.LLMNode, Message: "no"},
		},
		Visit: visit(step, node),
	}
}

func visit(step int, node string) run.Visit {
	return run.Visit{
		Step: step, Node: node, Type: graph.LLMNode, Number: 2, Started: at, Duration: 1234567 * time.Nanosecond,
		Targets: []string{"x"}, Usage: chat.Usage{InputTokens: 1, CachedInputTokens: 2, OutputTokens: 3, ReasoningTokens: 4, Estimated: true},
		Retries: 1, Failed: true, Error: "no",
	}
}

func (s *suite) finishedTasks() {
	ctx := s.Context()
	j := s.begin()
	s.ok(j.Finished(ctx, taskRecord(1, "b")))
	canceled := run.TaskRecord{Step: 1, Result: graph.Result{Node: "c", Canceled: true}, Visit: visit(1, "c")}
	canceled.Visit.Canceled = true
	s.ok(j.Finished(ctx, canceled))
	s.ok(j.Finished(ctx, run.TaskRecord{Step: 1, Result: graph.Result{Node: "a", Output: "first"}}))
	s.ok(j.Finished(ctx, run.TaskRecord{Step: 1, Result: graph.Result{Node: "a", Output: "second"}}))
	want := []run.TaskRecord{{Step: 1, Result: graph.Result{Node: "a", Output: "second"}}, taskRecord(1, "b"), canceled}
	for range 2 { // a run that is interrupted twice has them still
		s.ok(j.Close())
		s.reopen()
		var found run.Recovery
		j, found = s.resume(j.ID())
		s.same("finished tasks", found.Tasks, want)
		s.same("visits", s.history(j.ID()).Visits, []run.Visit{{}, visit(1, "b"), canceled.Visit})
		if found.Last.Step != 0 {
			s.Errorf("the last super-step is %d", found.Last.Step)
		}
	}
	s.ok(j.Commit(ctx, run.Checkpoint{Step: 1, State: state("n", 1)}, []run.Visit{visit(1, "a"), visit(1, "b")}))
	s.ok(j.Finished(ctx, taskRecord(2, "c")))
	s.ok(j.Close())
	s.reopen()
	_, found := s.resume(j.ID())
	s.same("finished tasks of the second super-step", found.Tasks, []run.TaskRecord{taskRecord(2, "c")})
	s.tasksAhead()
}

// tasksAhead keeps tasks of super-steps that have not begun until these are over.
func (s *suite) tasksAhead() {
	ctx := s.Context()
	j := s.begin()
	for step, node := range []string{"a", "b", "c"} {
		s.ok(j.Finished(ctx, taskRecord(step+1, node)))
	}
	for step := range 3 {
		s.ok(j.Commit(ctx, run.Checkpoint{Step: step + 1, State: state("n", step)}, []run.Visit{visit(step+1, "v")}))
		if step == 1 { // the journal knows of the last one also after it was opened
			s.ok(j.Close())
			s.reopen()
			j, _ = s.resume(j.ID())
		}
		want := []run.Visit{visit(1, "v"), visit(2, "v"), visit(3, "v")}[:step+1]
		for left := step + 1; left < 3; left++ {
			want = append(want, visit(left+1, []string{"a", "b", "c"}[left]))
		}
		s.same("visits", s.history(j.ID()).Visits, want)
	}
	s.ok(j.Close())
	s.reopen()
	_, found := s.resume(j.ID())
	s.same("tasks of super-steps that are over", len(found.Tasks), 0)
}

func (s *suite) commit() {
	ctx := s.Context()
	j := s.begin()
	s.record(j.Task(1, "a"), "k", `"kept"`)
	s.ok(j.Finished(ctx, taskRecord(1, "a")))
	one := run.Checkpoint{
		Step: 1, State: state("n", 1, "s", "text"), Position: run.Position{Frontier: []string{"b", "c"}, Waiting: []string{"w"}, Visits: map[string]int{"a": 1}, Failures: 1, Usage: chat.Usage{InputTokens: 10, OutputTokens: 2, ReasoningTokens: 1}},
	}
	s.ok(j.Commit(ctx, one, []run.Visit{visit(1, "a")}))
	two := run.Checkpoint{
		Step: 2, State: state("n", 1, "s", "texts", "t", nil), Position: run.Position{Visits: map[string]int{"a": 1, "b": 1, "c": 4}, Failures: 2, Done: true, Output: "the <end>", Usage: chat.Usage{InputTokens: 20, OutputTokens: 4, ReasoningTokens: 2, CachedInputTokens: 1, Estimated: true}},
	}
	s.ok(j.Commit(ctx, two, []run.Visit{visit(2, "c"), visit(2, "b")}))
	check := func() {
		s.Helper()
		s.same("checkpoint 1", s.checkpoint(j.ID(), 1), one)
		s.same("checkpoint 2", s.checkpoint(j.ID(), 2), two)
		s.same("last checkpoint", s.checkpoint(j.ID(), -1), two)
		h := s.history(j.ID())
		s.same("visits", h.Visits, []run.Visit{visit(1, "a"), visit(2, "c"), visit(2, "b")})
		if len(h.Steps) != 1 || h.Steps[0].Key != "k" {
			s.Errorf("the steps of a finished super-step are not kept: %+v", h.Steps)
		}
		if h.Info.Steps != 2 || h.Info.Failures != 2 || h.Info.Usage != two.Usage {
			s.Errorf("info after the commit: %+v", h.Info)
		}
	}
	check()
	for _, step := range []int{3, -2} {
		s.code(fmt.Sprintf("checkpoint %d", step), second(s.store.Checkpoint(ctx, j.ID(), step)), "not_found")
	}
	s.ok(j.Close())
	s.reopen()
	check()
	j, found := s.resume(j.ID())
	s.same("last", found.Last, two)
	if len(found.Tasks) > 0 {
		s.Errorf("the commit left task records: %+v", found.Tasks)
	}
	s.known(j.Task(1, "a"), "k", done(`"kept"`))
}

// commitOutOfOrder checks that a commit that is refused changes nothing.
func (s *suite) commitOutOfOrder() {
	ctx := s.Context()
	j := s.begin()
	one := run.Checkpoint{Step: 1, State: state("n", 1)}
	s.ok(j.Commit(ctx, one, []run.Visit{visit(1, "a")}))
	s.ok(j.Finished(ctx, taskRecord(2, "b")))
	for _, step := range []int{0, 1, 3} {
		if err := j.Commit(ctx, run.Checkpoint{Step: step, State: state("n", 9)}, []run.Visit{visit(step, "z")}); err == nil {
			s.Errorf("super-step %d was committed after 1", step)
		}
	}
	s.same("last", s.checkpoint(j.ID(), -1), one)
	s.same("visits", s.history(j.ID()).Visits, []run.Visit{visit(1, "a"), visit(2, "b")})
	s.ok(j.Commit(ctx, run.Checkpoint{Step: 2, State: state("n", 2)}, nil))
	s.ok(j.Close())
	j, found := s.resume(j.ID())
	if found.Last.Step != 2 || len(found.Tasks) > 0 {
		s.Errorf("found %+v", found)
	}
	s.ok(j.Close())
}

// openUsage looks at what a run has used: with a super-step that is not finished, after its
// end, and after the process is gone.
func (s *suite) openUsage() {
	ctx := s.Context()
	j := s.begin()
	model := steps.Step{Kind: steps.Model, Name: "m"}
	check := func(when string, tokens int) {
		s.Helper()
		if got := s.info(j.ID()).Usage.Total(); got != tokens {
			s.Errorf("%s: %d tokens are listed, want %d", when, got, tokens)
		}
		if got := s.history(j.ID()).Info.Usage.Total(); got != tokens {
			s.Errorf("%s: %d tokens in the history, want %d", when, got, tokens)
		}
	}
	turn := func(step, input, output int) {
		s.Helper()
		text, err := json.Marshal(strings.Repeat("long ", 1000))
		s.ok(err)
		s.ok(j.Task(step, "a").Record(ctx, fmt.Sprint("model/", output), model,
			fmt.Appendf(nil, `{"message":{"parts":[{"text":%s}]},"usage":{"input_tokens":%d,"output_tokens":%d,"cost":0.5}}`, text, input, output)))
	}
	check("at the start", 0)
	turn(1, 10, 1)
	turn(1, 10, 2)
	s.record(j.Task(1, "a"), "tool/1", `{"usage":{"output_tokens":1000}}`)                // is not a model's
	s.ok(j.Task(1, "b").Record(ctx, "model/1", model, []byte(`"a reply without usage"`))) // of another making
	check("in the first super-step", 23)
	s.ok(j.Commit(ctx, run.Checkpoint{Step: 1, State: state("n", 1), Position: run.Position{Frontier: []string{"a"}, Usage: chat.Usage{InputTokens: 20, OutputTokens: 3}}}, nil))
	check("after it", 23)
	turn(2, 100, 4)
	check("in the second super-step", 127)
	s.ok(j.End(ctx, run.Ending{Status: run.Suspended, Error: "the budget is used up", Code: fault.Limit}))
	s.ok(j.Close())
	check("suspended", 127)
}
