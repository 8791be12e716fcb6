package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

const saga = `
name: saga
start: hotel
reducers: {log: append}
nodes:
  hotel: {type: script, script: x.sh, compensate: cancel_hotel, next: [flight, car]}
  flight: {type: script, script: x.sh, state_updates: {}, compensate: cancel, next: pay}
  car: {type: script, script: x.sh, state_updates: {}, compensate: cancel, next: pay}
  pay: {type: script, script: x.sh, next: [{to: hotel, max: 3}, {to: done}]}
  cancel_hotel: {type: script, script: x.sh}
  cancel: {type: script, script: x.sh}
  done: {type: end}
`

func sagaPlan(t *testing.T) *graph.Plan {
	t.Helper()
	g, findings, err := graph.Parse("graph.yaml", []byte(saga))
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	if found := graph.Validate(g, graph.ValidateEnv{}); len(found) > 0 {
		t.Fatal(found)
	}
	return graph.NewPlan(g)
}

func member(name string, v any) value.Member {
	switch v := v.(type) {
	case int:
		return value.Member{Name: name, Value: value.Of(v)}
	default:
		return value.Member{Name: name, Value: value.Of(fmt.Sprint(v))}
	}
}

// apply folds the results of the next super-step, which are those of the nodes.
func apply(t *testing.T, p *graph.Plan, pr graph.Progress, results ...graph.Result) graph.Progress {
	t.Helper()
	next, err := p.Apply(pr, results)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func effects(pr graph.Progress) string {
	var list []string
	for _, e := range pr.Effects {
		list = append(list, fmt.Sprintf("%s#%d@%d%s", e.Node, e.Visit, e.Step, e.Writes))
	}
	return strings.Join(list, " ")
}

// TestEffects: each visit of a node with a compensation counts that has finished, in the order of their ends. A tolerated failure does not.
func TestEffects(t *testing.T) {
	p := sagaPlan(t)
	pr := p.Begin(graph.NewState(nil))
	pr = apply(t, p, pr, graph.Result{Node: "hotel", Writes: []value.Member{member("id", 7)}, Targets: []string{"flight", "car"}})
	pr = apply(t, p, pr, graph.Result{Node: "flight", Targets: []string{"pay"}}, graph.Result{Node: "car", Targets: []string{"pay"}, Failure: &graph.Failure{Node: "car", Message: "no car"}})
	pr = apply(t, p, pr, graph.Result{Node: "pay", Targets: []string{"hotel"}})
	before := effects(pr)
	next := apply(t, p, pr, graph.Result{Node: "hotel", Targets: []string{"flight", "car"}})
	if want := `hotel#1@1{"id":7} flight#1@2{} hotel#2@4{}`; effects(next) != want || effects(pr) != before {
		t.Errorf("effects %s, want %s; before %s", effects(next), want, before)
	}
	if end := apply(t, p, next, graph.Result{Node: "flight", Ended: true}); len(end.Effects) > 0 {
		t.Errorf("a run that is done has effects %s", effects(end))
	}
}

// TestUndo: what has finished in the failing super-step is undone first. A compensation sees its visit, and one that fails does not stop
// the others.
func TestUndo(t *testing.T) {
	p := sagaPlan(t)
	pr := p.Begin(graph.NewState(nil))
	pr = apply(t, p, pr, graph.Result{Node: "hotel", Writes: []value.Member{member("id", 7)}, Targets: []string{"flight", "car"}})
	why := graph.Undoing{Failure: graph.Failure{Node: "car", Type: graph.ScriptNode, Message: "no car"}, Error: "at car: no car", Code: fault.Tool}
	results := []graph.Result{{Node: "flight", Writes: []value.Member{member("seat", "1a")}}, {Node: "car", Err: fmt.Errorf("no car")}}
	pr, ok := p.Undo(pr, results, why)
	if !ok || pr.Undone() || pr.Undoing.Total != 2 || p.Visits(pr, "car") != 1 || p.Visits(pr, "flight") != 1 || pr.Step != 2 {
		t.Fatalf("%v, %+v", ok, pr)
	}
	if seat, there := pr.State.Get("seat"); there {
		t.Errorf("the state has what a failed super-step wrote: %s", seat)
	}
	if v, _ := pr.State.Get(graph.LastErrorKey); v.String() != `{"node":"car","type":"script","message":"no car"}` {
		t.Errorf("the state says %s", v)
	}
	if _, again := p.Undo(pr, nil, why); again {
		t.Error("it is undone twice")
	}
	steps := []struct{ node, undoes, frontier string }{
		{"cancel", `{"node":"flight","visit":1,"step":2,"writes":{"seat":"1a"}}`, "cancel"},
		{"cancel_hotel", `{"node":"hotel","visit":1,"step":1,"writes":{"id":7}}`, "cancel_hotel"},
	}
	for i, want := range steps {
		tasks, err := p.Next(pr)
		if err != nil || len(tasks) != 1 || tasks[0].Node.ID != want.node || tasks[0].Undoes.Value().String() != want.undoes || tasks[0].Step != 3+i || pr.Frontier[0] != want.frontier {
			t.Fatalf("tasks %+v, %v, want %+v", tasks, err, want)
		}
		result := graph.Result{Node: want.node, Writes: []value.Member{member("log", want.node)}, Targets: []string{"pay"}}
		if i == 0 {
			result.Err = fmt.Errorf("the airline is closed")
		}
		pr = apply(t, p, pr, result)
	}
	if !pr.Undone() || len(pr.Frontier) > 0 || pr.Done || pr.Failures != 1 || p.Visits(pr, "cancel") != 1 {
		t.Errorf("%+v", pr)
	}
	if log, _ := pr.State.Get("log"); log.String() != `["cancel_hotel"]` {
		t.Errorf("the state has %s", log)
	}
	if lost := pr.Undoing.Lost; len(lost) != 1 || lost[0].String() != `node "flight", visit 1: compensation "cancel": the airline is closed` {
		t.Errorf("lost %v", lost)
	}
	if _, err := p.Next(pr); err == nil {
		t.Error("there is a task although all is undone")
	}
}

// TestNothingToUndo: a run without effects fails as it did.
func TestNothingToUndo(t *testing.T) {
	p := sagaPlan(t)
	pr := p.Begin(graph.NewState(nil))
	if next, ok := p.Undo(pr, []graph.Result{{Node: "hotel", Err: fmt.Errorf("full")}}, graph.Undoing{}); ok || next.Undoing != nil || next.Step != 0 {
		t.Errorf("%+v", next)
	}
}

// TestUndoWithoutLimit: the visits of compensations are not bounded, and a compensation that is gone is an error that names it.
func TestUndoWithoutLimit(t *testing.T) {
	text := strings.Replace(saga, "start: hotel", "start: hotel\nsettings: {max_loop_iterations: 1}", 1)
	g, _, err := graph.Parse("graph.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := graph.NewPlan(g)
	pr := p.Begin(graph.NewState(nil))
	pr = apply(t, p, pr, graph.Result{Node: "hotel", Targets: []string{"flight", "car"}})
	pr = apply(t, p, pr, graph.Result{Node: "flight", Targets: []string{"pay"}}, graph.Result{Node: "car", Targets: []string{"pay"}})
	pr, _ = p.Undo(pr, nil, graph.Undoing{})
	for range 2 {
		if _, err := p.Next(pr); err != nil {
			t.Fatal(err)
		}
		pr = apply(t, p, pr, graph.Result{Node: "cancel"})
	}
	g, _, err = graph.Parse("graph.yaml", []byte(strings.Replace(text, "compensate: cancel_hotel, ", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := graph.NewPlan(g).Next(pr); err == nil || !strings.Contains(err.Error(), `node "hotel" has no compensation any more`) {
		t.Error(err)
	}
}

func TestCompensateRules(t *testing.T) {
	const cancel = "\n  c: {type: script, script: ok.sh}\n"
	for _, tt := range []struct {
		rule              graph.Rule
		name, nodes, want string
	}{
		{graph.RuleCompensate, "good", "a: {type: script, script: ok.sh, compensate: c, next: z}" + cancel, ""},
		{graph.RuleMissingNext, "needs_no_next", "a: {type: script, script: ok.sh, compensate: c, next: z}\n  c: {type: llm, prompt: '{{_compensates.writes.id}} {{_last_error.message}}'}\n", ""},
		{graph.RuleUndefinedRead, "reads_what_it_undoes", "a: {type: llm, prompt: p, compensate: c, next: z}\n  c: {type: llm, prompt: '{{_compensates.writes.id}} {{_last_error.message}}'}\n", ""},
		{graph.RuleUndefinedRead, "others_do_not", "a: {type: llm, prompt: '{{_compensates.node}}', next: z}\n", `4:26 warning [a] {{_compensates}} is read, but nothing writes "_compensates", so the node always fails`},
		{graph.RuleUnreachable, "is_reachable", "a: {type: script, script: ok.sh, compensate: c, next: z}" + cancel, ""},
		{graph.RuleCycle, "itself", "a: {type: script, script: ok.sh, compensate: a, next: z}\n", ""},
		{graph.RuleCompensate, "itself", "a: {type: script, script: ok.sh, compensate: a, next: z}\n", "4:48 error [a] a node cannot undo itself"},
		{graph.RuleUnknownTarget, "unknown", "a: {type: script, script: ok.sh, compensate: b, next: z}\n", `4:48 error [a] script compensate leads to "b", which is not a node`},
		{graph.RuleCompensate, "question", "a: {type: script, script: ok.sh, compensate: c, next: z}\n  c: {type: input, question: q}\n", `4:48 error [a] node "c" is of type input, which cannot undo anything`},
		{graph.RuleCompensate, "end", "a: {type: script, script: ok.sh, compensate: z, next: z}\n", `4:48 error [a] node "z" is of type end, which cannot undo anything`},
		{graph.RuleCompensate, "with_next", "a: {type: script, script: ok.sh, compensate: c, next: z}\n  c: {type: script, script: ok.sh, next: z}\n", "5:42 error [c] a compensation leads nowhere, so it must not have next: the next compensation follows it, also if it fails"},
		{graph.RuleCompensate, "with_fallback", "a: {type: script, script: ok.sh, compensate: c, next: z}\n  c: {type: script, script: ok.sh, fallback: z}\n", "5:46 error [c] a compensation leads nowhere, so it must not have fallback: the next compensation follows it, also if it fails"},
		{graph.RuleCompensate, "with_compensation", "a: {type: script, script: ok.sh, compensate: c, next: z}\n  c: {type: script, script: ok.sh, compensate: d}\n  d: {type: script, script: ok.sh}\n", "5:48 error [c] a compensation leads nowhere, so it must not have compensate: the next compensation follows it, also if it fails"},
		{graph.RuleCompensate, "on_the_way", "a: {type: script, script: ok.sh, compensate: c, next: [c, z]}\n  c: {type: script, script: ok.sh, state_updates: {}}\n", `4:58 error "c" is a compensation, to which no other edge may lead`},
		{graph.RuleCompensate, "branch", "a: {type: map, over: '{{initial_prompt}}', as: i, branch: b, collect_into: all, next: z}\n  b: {type: script, script: ok.sh, compensate: c}" + cancel, `5:48 error [b] the branch of map "a" cannot have a compensation: what it does is the effect of the map`},
	} {
		t.Run(string(tt.rule)+"/"+tt.name, func(t *testing.T) {
			src := top + "nodes:\n  " + tt.nodes + tail
			if got := rules(graph.Validate(parse(t, src), world), tt.rule); got != tt.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", src, got, tt.want)
			}
		})
	}
}
