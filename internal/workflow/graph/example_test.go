package graph_test

import (
	"fmt"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

// A run is a loop of Next and Apply. What a node does is up to the caller: here, each writes
// its own name.
func ExamplePlan() {
	g, _, err := graph.Parse("graph.yaml", []byte(`
name: diamond
start: begin
reducers: {seen: append}
initial_state: {seen: []}
nodes:
  begin: {type: script, script: x.sh, next: [left, right]}
  left: {type: script, script: x.sh, next: done}
  right: {type: script, script: x.sh, next: done}
  done: {type: end, output: "{{seen}}"}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := graph.NewPlan(g)
	pr := plan.Begin(graph.NewState(g.InitialState))
	for !pr.Done {
		tasks, err := plan.Next(pr)
		if err != nil {
			fmt.Println(err)
			return
		}
		var results []graph.Result
		for _, t := range tasks {
			fmt.Printf("super-step %d: %s\n", t.Step, t.Node.ID)
			draft := graph.NewDraft(pr.State)
			r := graph.Result{Node: t.Node.ID, Targets: t.Node.Next}
			if t.Node.Type == graph.EndNode {
				r.Ended, r.Output = true, t.Node.End.Output.Lenient(draft)
			} else {
				draft.Set("seen", value.Of(t.Node.ID))
			}
			r.Writes = draft.Writes()
			results = append(results, r)
		}
		if pr, err = plan.Apply(pr, results); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(pr.Output)
	// Output:
	// super-step 1: begin
	// super-step 2: left
	// super-step 2: right
	// super-step 3: done
	// ["begin","left","right"]
}
