// Package bench measures the graph engine alone: the scheduler and the driver with
// nodes that are Go functions, so that nothing but the engine is timed.
package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// work is what the nodes of a benchmark do; an end node does nothing.
type work func(*run.Task)

// Execute implements run.Executor: do the work and follow next.
func (w work) Execute(_ context.Context, t *run.Task) graph.Result {
	if t.Node.Type == graph.EndNode {
		return graph.Result{Ended: true}
	}
	w(t)
	return graph.Result{Targets: t.Node.Next}
}

func nothing(*run.Task) {}

// count adds one to the state key n.
func count(t *run.Task) {
	v, _ := t.Draft.Get("n")
	n, _ := v.AsInt()
	t.Draft.Set("n", value.Of(n+1))
}

// plan parses a definition of script nodes: "a -> b, c" is a node and its next.
func plan(tb testing.TB, head string, nodes ...string) *graph.Plan {
	tb.Helper()
	var b strings.Builder
	start, _, _ := strings.Cut(nodes[0], " ")
	fmt.Fprintf(&b, "name: bench\nstart: %s\n%snodes:\n", start, head)
	for _, n := range nodes {
		id, next, _ := strings.Cut(n, " -> ")
		if next == "" {
			fmt.Fprintf(&b, "  %s: {type: end}\n", id)
			continue
		}
		fmt.Fprintf(&b, "  %s: {type: script, script: x.sh, next: [%s]}\n", id, next)
	}
	g, _, err := graph.Parse("bench.yaml", []byte(b.String()))
	if err != nil {
		tb.Fatal(err)
	}
	return graph.NewPlan(g)
}

func chain(tb testing.TB, n int) *graph.Plan {
	nodes := make([]string, 0, n+1)
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("n%05d -> n%05d", i, i+1))
	}
	return plan(tb, "", append(nodes, fmt.Sprintf("n%05d", n))...)
}

func execute(tb testing.TB, p *graph.Plan, nodes run.Executor, s graph.State) run.Outcome {
	out, err := run.Run(context.Background(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: run.StartCheckpoint(p, s)}})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func repeat(b *testing.B, p *graph.Plan, w work, s graph.State) {
	b.ReportAllocs()
	for b.Loop() {
		execute(b, p, w, s)
	}
}

// BenchmarkChain3 is three nodes in a row that count in one state key.
func BenchmarkChain3(b *testing.B) { repeat(b, chain(b, 3), count, graph.State{}) }

// BenchmarkFanOut5 is five workers side by side that append to a list, and a join.
func BenchmarkFanOut5(b *testing.B) {
	p := plan(b, "reducers: {results: append}\n", "start -> w1, w2, w3, w4, w5",
		"w1 -> join", "w2 -> join", "w3 -> join", "w4 -> join", "w5 -> join", "join -> end", "end")
	repeat(b, p, func(t *run.Task) {
		if t.Node.ID[0] == 'w' {
			t.Draft.Set("results", value.Of(t.Node.ID))
		}
	}, graph.State{})
}

// BenchmarkBurst is 10,000 runs of the three-node chain at once.
func BenchmarkBurst10000(b *testing.B) {
	p := chain(b, 3)
	b.ReportAllocs()
	for b.Loop() {
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() { execute(b, p, work(count), graph.State{}) })
		}
		wg.Wait()
	}
}

// BenchmarkChain10 and BenchmarkChain1000 are rows of nodes that do nothing.
func BenchmarkChain10(b *testing.B)   { repeat(b, chain(b, 10), nothing, graph.State{}) }
func BenchmarkChain1000(b *testing.B) { repeat(b, chain(b, 1000), nothing, graph.State{}) }

// wideChannels is the number of state keys of the wide state, and wideSteps the
// number of super-steps in which each of them grows.
const (
	wideChannels = 15
	wideSteps    = 30
)

// BenchmarkWideState lets 15 lists grow for 30 super-steps to about 15 MB of JSON.
// It also reports the size of the final state and the memory that is live with it.
func BenchmarkWideState(b *testing.B) {
	var head strings.Builder
	head.WriteString("reducers: {")
	for i := range wideChannels {
		fmt.Fprintf(&head, "c%02d: extend, ", i)
	}
	head.WriteString("}\n")
	nodes := make([]string, 0, wideSteps+1)
	for i := range wideSteps {
		nodes = append(nodes, fmt.Sprintf("n%02d -> n%02d", i, i+1))
	}
	p := plan(b, head.String(), append(nodes, fmt.Sprintf("n%02d", wideSteps))...)
	text := value.Of(strings.Repeat("0123456789", 100))
	grow := work(func(t *run.Task) {
		for i := range wideChannels {
			items := make([]value.Value, 32)
			for j := range items {
				items[j] = value.ObjectOf(value.Member{Name: "text", Value: text}, value.Member{Name: "step", Value: value.Of(t.Step)}).Value()
			}
			t.Draft.Set(fmt.Sprintf("c%02d", i), value.ListOf(items...).Value())
		}
	})
	b.ReportAllocs()
	var out run.Outcome
	for b.Loop() {
		out = execute(b, p, grow, graph.State{})
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(len(out.State.AppendJSON(nil)))/1e6, "MB-state")
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-live")
	runtime.KeepAlive(out)
}
