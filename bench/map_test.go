package bench

import (
	"context"
	"testing"

	"loki/internal/agent/node"
	"loki/internal/base/value"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider/builtin"
	"loki/internal/workflow/graph"
)

// echoModels offers one model that answers at once.
type echoModels struct{ p *builtin.Provider }

func (m echoModels) ChatModel(context.Context, string) (engine.Model, error) {
	return engine.Model{ID: "builtin:echo", Name: "echo", Provider: m.p}, nil
}

// BenchmarkMap1000 runs an llm node with the echo model for each of 1,000 items, at
// most eight at once: the real node behavior and engine, without a network.
func BenchmarkMap1000(b *testing.B) {
	g, _, err := graph.Parse("map.yaml", []byte(`
name: map
start: all
nodes:
  all: {type: map, over: "{{items}}", as: item, branch: one, collect_into: results, next: end}
  one: {type: llm, prompt: "{{item}}"}
  end: {type: end}
`))
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(engine.Options{Models: echoModels{builtin.New(builtin.Options{})}})
	if err != nil {
		b.Fatal(err)
	}
	items := make([]value.Value, 1000)
	for i := range items {
		items[i] = value.Of(i)
	}
	p := graph.NewPlan(g)
	nodes := node.New(node.Options{Plan: p, Engine: e})
	start := graph.NewState(value.ObjectOf(value.Member{Name: "items", Value: value.ListOf(items...).Value()}))
	b.ReportAllocs()
	for b.Loop() {
		out := execute(b, p, nodes, start)
		results, _ := out.State.Get("results")
		if list, _ := results.AsList(); list.Len() != 1000 || list.At(999).Text() != "999" {
			b.Fatal("wrong results")
		}
	}
}
