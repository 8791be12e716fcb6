//go:build unix

package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"loki/internal/base/text/sample"
	"loki/internal/workflow/run"
)

const killQuestions = `
name: kill
start: first
sandbox: full
settings: {max_concurrency: 2}
initial_state: {items: [1, 2, 3]}
nodes:
  first: {type: script, script: count.sh, next: [each, name, review, think, work]}
  each: {type: map, over: "{{items}}", as: item, branch: ask, collect_into: answers, next: join}
  ask: {type: approval, question: "Item {{item}}?", options: [yes, no]}
  name: {type: input, question: "Name?", state_updates: {name: "{{input}}"}, next: join}
  review: {type: approval, question: "Good?", options: [yes], routes: {yes: join}, on_other: join, state_updates: {good: "{{choice}}"}}
  think: {type: llm, prompt: think, state_updates: {thought: "{{output}}"}, next: join}
  work: {type: script, script: count.sh, state_updates: {}, next: join}
  join: {type: llm, prompt: "{{answers}} {{name}} {{good}}", join: all, state_updates: {joined: "{{output}}"}, next: done}
  done: {type: end, output: "{{answers}} {{name}} {{good}} {{thought}} {{joined}}"}
`

// TestKillBetweenAnswers answers the questions of a run one by one, each in a process of its own, and kills one of these
// processes at each of the writes of its journal. In the end all is as if nothing had been killed, whatever the order.
func TestKillBetweenAnswers(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the graph's scripts need bash")
	}
	s := scenario{
		files: map[string]string{"agent/graph.yaml": killQuestions, "agent/count.sh": countScript}, agent: "./agent", asks: true, effects: 2,
		act: func(req killRequest) map[string]any { return says("said " + req.Messages[len(req.Messages)-1].Content) },
	}
	calm := newWorld(t, s)
	if status, _ := calm.spawn("start", 0, 0); status != 8 {
		t.Fatalf("exit status %d", status)
	}
	if status, _ := calm.spawn("answer", 0, 0); status != 0 { // all at once
		t.Fatalf("exit status %d", status)
	}
	want := calm.outcome()
	operations := make([]int, 5) // of the processes that answer one question
	one := func(w *world, first bool, killAt int) (status, n int) {
		mode := "last"
		if first {
			mode = "first"
		}
		return w.spawn(mode, killAt, 0)
	}
	counted := newWorld(t, s)
	counted.spawn("start", 0, 0)
	for i := range operations {
		status, n := one(counted, i%2 == 0, 0)
		if last := i == len(operations)-1; last != (status == 0) || !last && status != 8 {
			t.Fatalf("answer %d: exit status %d", i, status)
		}
		operations[i] = n
	}
	if got := counted.outcome(); fmt.Sprint(got) != fmt.Sprint(want) || counted.repeated() != 0 {
		t.Errorf("answered one by one it differs:\n got %+v\nwant %+v", got, want)
	}
	stride := 4 * sample.Step(3)
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		stride = 1
	}
	number := 0
	for i, n := range operations {
		for at := 1; at <= n; at++ {
			if number++; number%stride != 0 {
				continue
			}
			t.Run(fmt.Sprintf("answer_%d_write_%02d", i, at), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, s)
				w.spawn("start", 0, 0)
				for k := range i {
					one(w, k%2 == 0, 0)
				}
				if status, _ := one(w, i%2 == 0, at); status != -1 {
					t.Errorf("exit status %d, but it should have been killed", status)
				}
				for range 10 { // the others, one by one
					h, _ := w.history()
					if h.Info.Status == run.Done {
						break
					}
					if len(h.Pending) == 0 {
						w.spawn("resume", 0, 0)
						continue
					}
					one(w, at%2 == 0, 0)
				}
				if got := w.outcome(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("it differs:\n got %+v\nwant %+v", got, want)
				}
			})
		}
	}
}
