package run_test

import (
	"context"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
)

// writers writes small numbers into keys with reducers, in the ways in which nodes write.
type writers struct{ seed uint64 }

// The ways in which a node writes a number.
const (
	idle     = iota
	explicit // as state_updates and results do
	printed  // a script prints the keys
	echoed   // a script prints the state that it was given
	changed  // likewise, with the number added to total
	ways
)

// choice returns how a visit of a node writes which number.
func (w writers) choice(node string, visit int) (way int, n int64) {
	rnd := rand.New(rand.NewPCG(w.seed, crc64.Checksum(fmt.Appendf(nil, "%s %d", node, visit), crc64.MakeTable(crc64.ECMA))))
	if way = rnd.IntN(ways); node < "script" {
		way = rnd.IntN(explicit + 1)
	}
	return way, int64(rnd.IntN(3))
}

// Execute implements [run.Executor].
func (w writers) Execute(_ context.Context, t *run.Task) graph.Result {
	if strings.HasPrefix(t.Node.ID, "end") {
		return graph.Result{Ended: true}
	}
	res := graph.Result{Targets: t.Node.Next}
	if c := t.Node.Choices["next"]; c != nil {
		res.Targets = nil
		taken, _ := c.Take(t.Draft, t.Loop, expr.Env{})
		for _, way := range taken {
			res.Targets, res.Taken = append(res.Targets, way.To), append(res.Taken, way.ID)
		}
		return res
	}
	if t.Node.ID == "begin" {
		return res
	}
	way, n := w.choice(t.Node.ID, t.Visit)
	number := value.Of(n)
	reducers := map[string]graph.Reducer{"total": graph.ReduceSum, "log": graph.ReduceAppend, "most": graph.ReduceMax}
	switch way {
	case explicit:
		for key := range reducers {
			t.Draft.Set(key, number)
		}
	case printed:
		t.Draft.Merge(value.ObjectOf(value.Member{Name: "total", Value: number}, value.Member{Name: "log", Value: number}, value.Member{Name: "most", Value: number}), reducers)
	case echoed:
		t.Draft.Merge(t.Draft.State().Object(), reducers)
	case changed:
		total, _ := t.Draft.Get("total")
		now, _ := total.AsFloat()
		t.Draft.Merge(t.Draft.State().With(value.Member{Name: "total", Value: value.Of(int64(now) + n)}).Object(), reducers)
	}
	return res
}

// TestWritesCount compares what reducers make of the writes of nodes in fan-outs and loops with a model: an explicit write and the
// keys that a script prints count, also if they are what was there, and a state that a script prints as it was given does not.
func TestWritesCount(t *testing.T) {
	const text = `name: writes
settings: {scheduling: SCHEDULING, max_loop_iterations: 30}
reducers: {total: sum, log: append, most: max}
initial_state: {total: 1, log: [], most: 0, other: kept}
start: begin
nodes:
  begin: {type: llm, prompt: p, next: [llm1, llm2, script1, script2]}
  llm1: {type: llm, prompt: p, next: join}
  llm2: {type: llm, prompt: p, next: join}
  script1: {type: script, script: x.sh, next: join}
  script2: {type: script, script: x.sh, next: join}
  join: {type: llm, prompt: p, join: all, next: [{to: begin, max: ROUNDS}, {to: end}]}
  end: {type: end, output: x}
`
	for seed := range uint64(200) {
		w, rounds := writers{seed}, 1+int(seed%4)
		total, most, log := int64(1), int64(0), "["
		for visit := range rounds + 1 {
			before := total
			for _, node := range []string{"llm1", "llm2", "script1", "script2"} {
				way, n := w.choice(node, visit+1)
				switch way {
				case explicit, printed:
					total, most = total+n, max(most, n)
					log += fmt.Sprintf("%d,", n)
				case changed:
					if n > 0 {
						total += before + n
					}
				}
			}
		}
		want := fmt.Sprintf(`{"log":%s],"most":%d,"other":"kept","total":%d}`, strings.TrimSuffix(log, ","), most, total)
		for _, scheduling := range []string{"steps", "dataflow"} {
			plan := graphPlan(t, strings.NewReplacer("SCHEDULING", scheduling, "ROUNDS", fmt.Sprint(rounds)).Replace(text))
			out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: plan, Nodes: w, Start: run.StartCheckpoint(plan, graph.NewState(plan.Graph().InitialState))}})
			if got := string(out.State.AppendJSON(nil)); err != nil || got != want {
				t.Fatalf("seed %d, %s: %s, %v, want %s", seed, scheduling, got, err, want)
			}
		}
	}
}
