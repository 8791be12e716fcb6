package run_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// randomFlow returns a graph of a few branches with choices, loops, ways from one to the other, joins and scripts. Its nodes read and
// write keys of their own, of others, and shared ones. With races, some joins do not wait for all.
func randomFlow(rnd *rand.Rand, races bool) string {
	var b strings.Builder
	branches, length := 2+rnd.IntN(2), 3+rnd.IntN(4)
	b.WriteString("name: flow\nsettings: {scheduling: SCHEDULING, max_loop_iterations: 20, max_concurrency: 50}\nreducers: {log: append, sum: concat}\ninitial_state: {log: [], sum: x}\nstart: top\nnodes:\n")
	b.WriteString("  top: {type: llm, prompt: p, next: [n00, n10" + map[bool]string{true: ", n20"}[branches == 3] + "]}\n")
	other := func() string { return fmt.Sprintf("n%d%d", rnd.IntN(branches), rnd.IntN(length)) }
	for i := range branches {
		for j := range length {
			id := fmt.Sprintf("n%d%d", i, j)
			after := func(skip int) string {
				if j+skip < length {
					return fmt.Sprintf("n%d%d", i, j+skip)
				}
				return "meet"
			}
			kind, prompt := "llm", fmt.Sprintf("{{n%d%d}}", i, rnd.IntN(j+1))
			switch rnd.IntN(10) {
			case 0, 1:
				prompt += " {{" + other() + "}}"
			case 2:
				prompt += " {{sum}}"
			case 3:
				prompt += " {{_loop." + other() + "}}"
			case 4:
				prompt += " {{extra}}"
			}
			kind += ", prompt: '" + prompt + "'"
			if rnd.IntN(25) == 0 {
				kind = "script, script: x.sh"
			}
			next := after(1)
			switch rnd.IntN(14) {
			case 0:
				next = fmt.Sprintf("[{when: \"_loop.%s %% 2 == 0\", to: %s}, {to: %s}]", other(), after(2), after(1))
			case 1, 2:
				next = fmt.Sprintf("[{to: n%d%d, max: %d}, {to: %s}]", i, rnd.IntN(j+1), 1+rnd.IntN(2), after(1))
			case 3:
				next = fmt.Sprintf("[%s, %s]", after(1), after(2))
			case 4:
				next = fmt.Sprintf("[{when: \"len(%s ?? '') > 12\", to: n%d%d}, {to: %s}]", other(), (i+1)%branches, min(j+1, length-1), after(1))
			case 5:
				if rnd.IntN(3) == 0 {
					next = "end"
				}
			}
			key := []string{id, id, id, "log", "sum", fmt.Sprintf("n%d%d", (i+1)%branches, j)}[rnd.IntN(6)]
			extra := []string{"", "", "", "", "", "", ", join: all", ", defer: true"}[rnd.IntN(8)]
			if races && j > 0 && rnd.IntN(4) == 0 {
				extra = ", join: any"
			}
			fmt.Fprintf(&b, "  %s: {type: %s, state_updates: {%s: x}%s, next: %s}\n", id, kind, key, extra, next)
		}
	}
	join := "all"
	if races {
		join = []string{"all", "any", "2"}[rnd.IntN(3)]
	}
	b.WriteString("  meet: {type: llm, prompt: '{{log}} {{sum}}', join: " + join + ", state_updates: {met: x}, next: end}\n  end: {type: end, output: x}\n")
	return b.String()
}

// flow executes nodes that take a random time. What a node writes depends on its visit and on what it reads.
type flow struct {
	seed   uint64
	shared bool // the delays are not those of the seed, so that nodes finish in another order
	races  bool // who wins a race depends on the delays, so they are those of the seed
	fail   string

	mu    sync.Mutex
	trace []string
	early bool        // a task began before an earlier super-step was over
	open  map[int]int // tasks at work by super-step
}

func (f *flow) Execute(ctx context.Context, t *run.Task) graph.Result {
	f.count(t.Step, 1)
	defer f.count(t.Step, -1)
	switch {
	case f.races:
		own := rand.New(rand.NewPCG(f.seed, crc64.Checksum(fmt.Appendf(nil, "%s %d", t.Node.ID, t.Visit), crc64.MakeTable(crc64.ECMA))))
		select {
		case <-time.After(time.Duration(own.Int64N(int64(time.Second)))):
		case <-ctx.Done():
		}
	case f.shared:
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	}
	if err := ctx.Err(); err != nil {
		return graph.Result{Err: err}
	}
	var saw []string
	switch {
	case t.Node.Type == graph.ScriptNode:
		saw = append(saw, string(t.Draft.State().AppendJSON(nil)))
	case t.Node.LLM != nil:
		saw = append(saw, t.Node.LLM.Prompt.Lenient(t.Draft))
	}
	said := fmt.Sprintf("%s.%d(%s)", t.Node.ID, t.Visit, strings.Join(saw, ","))
	if len(said) > 60 {
		said = fmt.Sprintf("%s...%d", said[:40], len(said))
	}
	f.mu.Lock()
	f.trace = append(f.trace, fmt.Sprintf("%03d %s", t.Step, said))
	f.mu.Unlock()
	if t.Short != nil {
		return graph.Result{Err: t.Short}
	}
	if t.Node.ID == f.fail {
		return graph.Result{Err: errors.New("it fails")}
	}
	if t.Node.Type == graph.EndNode {
		return graph.Result{Ended: true, Output: said}
	}
	for _, u := range t.Node.Updates {
		t.Draft.Set(u.Key, value.Of(said))
	}
	if t.Node.Type == graph.ScriptNode {
		t.Draft.Set("extra", value.Of(said))
	}
	choice := t.Node.Choices["next"]
	if choice == nil {
		return graph.Result{Targets: t.Node.Next}
	}
	ways, err := choice.Take(t.Draft, t.Loop, expr.Env{})
	if err != nil {
		return graph.Result{Err: err}
	}
	return graph.Result{Targets: []string{ways[0].To}, Taken: []string{ways[0].ID}}
}

// count counts the tasks at work by super-step.
func (f *flow) count(step, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = make(map[int]int)
	}
	f.open[step] += n
	for other, tasks := range f.open {
		f.early = f.early || n > 0 && tasks > 0 && other < step
	}
}

// outcome is all that comes of a run.
func (f *flow) outcome(out run.Outcome, err error, last run.Checkpoint) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil { // others of the super-step, and ahead of it, may have run or not
		return fmt.Sprintf("%v after %d: %s", err, out.Steps, out.State.AppendJSON(nil))
	}
	slices.Sort(f.trace)
	return fmt.Sprintf("%s %d %s %v\n%s", out.Output, out.Steps, out.State.AppendJSON(nil), last.Visits, strings.Join(slices.Compact(f.trace), "\n"))
}

// TestDataflowIsTheSame runs random graphs in super-steps, and several times as a dataflow with random delays, killed at random
// moments and resumed. What comes of them is the same.
func TestDataflowIsTheSame(t *testing.T) {
	complete, ahead := 0, 0 // runs that came to their end, and those of which a task began before its super-step
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		races := seed%4 == 3
		text := randomFlow(rnd, races)
		fail := ""
		if rnd.IntN(5) == 0 {
			fail = fmt.Sprintf("n%d%d", rnd.IntN(2), rnd.IntN(3))
		}
		plan := graphPlan(t, strings.Replace(text, "SCHEDULING", "steps", 1))
		start := run.StartCheckpoint(plan, graph.NewState(plan.Graph().InitialState))
		play := func(t *testing.T, plan *graph.Plan, nodes *flow, kill bool) string {
			store := memstore.New(nil)
			journal, err := store.Create(t.Context(), run.Info{}, start)
			if err != nil {
				t.Fatal(err)
			}
			work := run.Graph{Plan: plan, Nodes: nodes, Start: start}
			out, err := run.Outcome{}, error(nil)
			if kill {
				left := 1 + rand.IntN(25)
				out, err = run.Run(t.Context(), run.Options{Work: work, Journal: dying{journal, store, new(sync.Mutex), &left}})
				if errors.Is(err, run.ErrLeaseLost) {
					again, found, openErr := store.Open(t.Context(), journal.ID())
					if openErr != nil {
						t.Fatal(openErr)
					}
					work.Start, work.Tasks = found.Last, found.Tasks
					out, err = run.Run(t.Context(), run.Options{Work: work, Journal: again, Resumed: true})
				}
			} else {
				out, err = run.Run(t.Context(), run.Options{Work: work, Journal: journal})
			}
			last, _ := store.Checkpoint(t.Context(), journal.ID(), -1)
			return nodes.outcome(out, err, last)
		}
		want := ""
		synctest.Test(t, func(t *testing.T) { want = play(t, plan, &flow{seed: seed, races: races, fail: fail}, false) })
		flowing := graphPlan(t, strings.Replace(text, "SCHEDULING", "dataflow", 1))
		if strings.Contains(want, "\n") {
			complete++
		}
		for round := range 6 {
			synctest.Test(t, func(t *testing.T) {
				nodes := &flow{seed: seed, shared: true, races: races, fail: fail}
				if got := play(t, flowing, nodes, round > 2); got != want {
					t.Errorf("seed %d, round %d:\n%s\n%s\n\nwant\n%s", seed, round, text, got, want)
				}
				if nodes.early {
					ahead++
				}
			})
		}
		if t.Failed() {
			break
		}
	}
	if t.Logf("%d complete runs, %d ahead", complete, ahead); complete < 100 || ahead < 200 {
		t.Error("that is too few")
	}
}

const twoBranches = `name: branches
settings: {scheduling: SCHEDULING}
start: top
nodes:
  top: {type: llm, prompt: p, next: [a1, b1]}
  a1: {type: llm, prompt: p, state_updates: {a1: x}, next: a2}
  a2: {type: llm, prompt: "{{a1}}", state_updates: {a2: x}, next: a3}
  a3: {type: llm, prompt: "{{a2}}", state_updates: {a3: x}, next: a4}
  a4: {type: llm, prompt: "{{a3}}", state_updates: {a4: x}, next: end}
  b1: {type: llm, prompt: p, state_updates: {b1: x}, next: b2}
  b2: {type: llm, prompt: "{{b1}}", state_updates: {b2: x}, next: b3}
  b3: {type: llm, prompt: "{{b2}}", state_updates: {b3: x}, next: b4}
  b4: {type: llm, prompt: "{{b3}}", state_updates: {b4: x}, next: end}
  end: {type: end, join: all}
`

// TestDataflowIsFaster runs two branches of which one is slow when the other one is fast.
func TestDataflowIsFaster(t *testing.T) {
	for scheduling, want := range map[string]time.Duration{"steps": 40 * time.Second, "dataflow": 22 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			nodes := executor(func(ctx context.Context, task *run.Task) graph.Result {
				switch id := task.Node.ID; {
				case id == "top" || id == "end":
				case (id[0] == 'a') == (id[1]%2 == 0):
					time.Sleep(10 * time.Second)
				default:
					time.Sleep(time.Second)
				}
				return (&flow{}).Execute(ctx, task)
			})
			plan := graphPlan(t, strings.Replace(twoBranches, "SCHEDULING", scheduling, 1))
			begin := time.Now()
			_, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: plan, Nodes: nodes, Start: run.StartCheckpoint(plan, graph.State{})}})
			if took := time.Since(begin); err != nil || took != want {
				t.Errorf("%s took %v, want %v; %v", scheduling, took, want, err)
			}
		})
	}
}
