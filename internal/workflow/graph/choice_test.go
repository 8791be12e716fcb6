package graph_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
)

// choiceGraph has every form of a choice.
const choiceGraph = `name: x
start: a
nodes:
  a:
    type: script
    script: ok.sh
    next:
      - {when: "score >= 8", to: b}
      - {when: "text contains 'x'", to: a, max: 3}
      - {to: z}
    fallback: {to: a, max: 2}
  b: {type: llm, prompt: p, pick: all, next: [{when: "n > 1", to: c}, {when: "n > 2", to: e}, {to: z}], fallback: [c, e]}
  c: {type: llm, prompt: p, next: {on: "{{kind}}", routes: {bug: d, idea: {to: a, max: 1}}, otherwise: z}}
  d:
    type: approval
    question: q
    options: ["yes", "no"]
    routes: {"yes": z, "no": [{when: "tries < 3", to: a, max: 5}, {to: z}]}
    on_other: {to: c, max: 1}
  e: {type: llm, prompt: p, next: z}
  z: {type: end}
`

func TestEdgesOfChoices(t *testing.T) {
	g := parse(t, choiceGraph)
	var lines []string
	for _, n := range g.Nodes {
		for _, e := range g.Edges(n) {
			id := ""
			if e.Way != nil {
				id = e.Way.ID
			}
			pos := g.Pos(e.Path)
			lines = append(lines, fmt.Sprintf("%s -> %s %s [%s] %s all=%v bounded=%v %d:%d", e.From, e.To, e.Field, e.Label, id, e.All, e.Bounded(), pos.Line, pos.Column))
		}
	}
	want := `a -> b next [score >= 8] a.next[0] all=false bounded=false 8:34
a -> a next [text contains 'x', max 3] a.next[1] all=false bounded=true 9:41
a -> z next [otherwise] a.next[2] all=false bounded=false 10:14
a -> a fallback [max 2] a.fallback all=false bounded=true 11:20
b -> c next [n > 1] b.next[0] all=true bounded=false 12:67
b -> e next [n > 2] b.next[1] all=true bounded=false 12:91
b -> z next [] b.next[2] all=true bounded=false 12:100
b -> c fallback [] b.fallback[0] all=true bounded=false 12:116
b -> e fallback [] b.fallback[1] all=true bounded=false 12:119
c -> d next [bug] c.next.routes.bug all=false bounded=false 13:66
c -> a next [idea, max 1] c.next.routes.idea all=false bounded=true 13:80
c -> z next [otherwise] c.next.otherwise all=false bounded=false 13:104
d -> z routes [yes] all=false bounded=false 18:21
d -> a routes [no: tries < 3, max 5] d.routes.no[0] all=false bounded=true 18:55
d -> z routes [no: otherwise] d.routes.no[1] all=false bounded=false 18:72
d -> c on_other [max 1] d.on_other all=false bounded=true 19:20
e -> z next [] all=false bounded=false 20:35`
	got := strings.ReplaceAll(strings.Join(lines, "\n"), "]  all", "] all")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, f := range graph.Validate(g, world) {
		if f.Severity == graph.SeverityError {
			t.Error(f)
		}
	}
}

// lookup is a state with a JSON text.
func lookup(t *testing.T, json string) graph.State {
	t.Helper()
	v, err := value.ParseJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return graph.NewState(v.AsObject())
}

func TestTake(t *testing.T) {
	g := parse(t, choiceGraph)
	for _, tt := range []struct{ name, node, place, state, want string }{
		{"first", "a", "next", `{"score": 8, "text": "x"}`, "b"},
		{"second", "a", "next", `{"score": 7.5, "text": "xyz"}`, "a"},
		{"otherwise", "a", "next", `{"score": "9", "text": ""}`, "z"},
		{"missing_is_not_larger", "a", "next", `{}`, "z"},
		{"single_edge", "a", "fallback", `{}`, "a"},
		{"all", "b", "next", `{"n": 3}`, "c e z"},
		{"some", "b", "next", `{"n": 2}`, "c z"},
		{"list", "b", "fallback", `{}`, "c e"},
		{"route", "c", "next", `{"kind": "bug"}`, "d"},
		{"route_edge", "c", "next", `{"kind": "idea"}`, "a"},
		{"route_otherwise", "c", "next", `{"kind": "Bug"}`, "z"},
		{"route_missing", "c", "next", `{}`, "z"},
		{"answer", "d", "routes.no", `{"tries": 1}`, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ways, err := g.Node(tt.node).Choices[tt.place].Take(lookup(t, tt.state), nil, expr.Env{})
			if err != nil {
				t.Fatal(err)
			}
			var to []string
			for _, w := range ways {
				to = append(to, w.To)
			}
			if got := strings.Join(to, " "); got != tt.want {
				t.Errorf("it goes to %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTakeFails(t *testing.T) {
	g := parse(t, top+`nodes:
  a: {type: llm, prompt: p, next: [{when: "ok", to: z}, {when: "score > 8", to: z}]}
  b: {type: llm, prompt: p, next: {on: "{{kind}}", routes: {x: z}}}
`+tail)
	for _, tt := range []struct {
		node, state, want string
		noWay             bool
	}{
		{"a", `{"ok": false, "score": 3}`, "no edge holds: ok is false; score > 8 is false", true},
		{"a", `{"score": 9}`, `a.next[0]: the condition ok comes to null, neither true nor false: the state has no "ok" (for a default, write ok ?? false)`, false},
		{"b", `{"kind": "y"}`, `no edge holds: there is no route for {{kind}}, which is "y"`, true},
	} {
		_, err := g.Node(tt.node).Choices["next"].Take(lookup(t, tt.state), nil, expr.Env{})
		if _, noWay := errors.AsType[*graph.NoWayError](err); err == nil || err.Error() != tt.want || noWay != tt.noWay {
			t.Errorf("%s with %s: %v, want %s", tt.node, tt.state, err, tt.want)
		}
	}
}

func TestTakeSeesTheClock(t *testing.T) {
	g := parse(t, top+"nodes:\n  a: {type: llm, prompt: p, next: [{when: now_is_past(at), to: z}, {to: a, max: 9}]}\n"+tail)
	c := g.Node("a").Choices["next"]
	if !c.UsesClock() {
		t.Error("the choice does not depend on the clock")
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for at, want := range map[string]string{"2026-01-02T03:04:05Z": "z", "2026-01-02T03:04:06Z": "a"} {
		ways, err := c.Take(lookup(t, `{"at": "`+at+`"}`), nil, expr.Env{Now: now})
		if err != nil || ways[0].To != want {
			t.Errorf("at %s: %v, %v", at, ways, err)
		}
	}
}

// walk runs a graph of nodes that do nothing but count in n and take their choices, from pr on, for at most steps super-steps.
func walk(t *testing.T, p *graph.Plan, pr graph.Progress, steps int) (graph.Progress, []string) {
	t.Helper()
	var trace []string
	for ; steps > 0 && !pr.Done; steps-- {
		tasks, err := p.Next(pr)
		if err != nil {
			t.Fatal(err)
		}
		var results []graph.Result
		for _, task := range tasks {
			d := graph.NewDraft(pr.State).WithLoop(task.Loop)
			visits, _ := d.Get(graph.LoopKey)
			n, _ := visits.AsObject().Get(task.Node.ID)
			trace = append(trace, task.Node.ID+n.Text())
			r := graph.Result{Node: task.Node.ID, Ended: task.Node.Type == graph.EndNode}
			if c := task.Node.Choices["next"]; c != nil {
				ways, err := c.Take(d, task.Loop, expr.Env{})
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range ways {
					r.Targets, r.Taken = append(r.Targets, w.To), append(r.Taken, w.ID)
				}
			} else {
				r.Targets = task.Node.Next
			}
			results = append(results, r)
		}
		if pr, err = p.Apply(pr, results); err != nil {
			t.Fatal(err)
		}
	}
	return pr, trace
}

const loops = `name: x
start: a
nodes:
  a: {type: llm, prompt: p, next: b}
  b: {type: llm, prompt: p, next: [{to: b, max: 2}, {when: "_loop.a < 3", to: a, max: 5}, {to: z}]}
  z: {type: end}
`

// TestLoopCounts stops a run with two loops after each super-step, and lets a copy of it go on: bounds and visits are those of the whole run.
func TestLoopCounts(t *testing.T) {
	p := graph.NewPlan(parse(t, loops))
	done, trace := walk(t, p, p.Begin(graph.State{}), 99)
	const want = "a1 b1 b2 b3 a2 b4 a3 b5 z1"
	if got := strings.Join(trace, " "); got != want || !done.Done {
		t.Fatalf("the run goes %s, want %s", got, want)
	}
	if got := fmt.Sprint(p.TakenCounts(done)); got != "map[b.next[0]:2 b.next[1]:2]" {
		t.Errorf("taken %s", got)
	}
	for at := range len(trace) {
		before, first := walk(t, p, p.Begin(graph.State{}), at)
		again := p.RestoreTaken(p.Restore(graph.Progress{Step: before.Step, State: before.State, Frontier: before.Frontier}, p.VisitCounts(before)), p.TakenCounts(before))
		_, rest := walk(t, p, again, 99)
		if got := strings.Join(append(first, rest...), " "); got != want {
			t.Errorf("stopped after %d super-steps it goes %s, want %s", at, got, want)
		}
	}
	if counts := p.TakenCounts(p.RestoreTaken(p.Begin(graph.State{}), map[string]int{"gone.next[0]": 3})); len(counts) > 0 {
		t.Errorf("an edge that the plan does not have was restored: %v", counts)
	}
}

// TestLoopKeyOfTheState has a state key with the name of the visits.
func TestLoopKeyOfTheState(t *testing.T) {
	p := graph.NewPlan(parse(t, loops))
	own := lookup(t, `{"_loop": "mine"}`)
	tasks, err := p.Next(p.Begin(own))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := graph.NewDraft(own).WithLoop(tasks[0].Loop).Get(graph.LoopKey); v.Text() != "mine" {
		t.Errorf("%s is %s", graph.LoopKey, v)
	}
}

func TestFingerprintOfChoices(t *testing.T) {
	base := parse(t, choiceGraph)
	for _, tt := range []struct{ name, old, next, diff string }{
		{"spaces_and_parentheses", `"score >= 8"`, `"(score  >=8)"`, ""},
		{"default_written_out", "    script: ok.sh\n", "    script: ok.sh\n    pick: first\n", ""},
		{"condition", "score >= 8", "score >= 9", `nodes.a.next changed`},
		{"bound", "max: 3", "max: 4", `nodes.a.next changed`},
		{"target", `{to: z}], fallback: [c, e]`, `{to: z}], fallback: [e, c]`, `nodes.b.fallback changed from "c", and "e" to "e", and "c"`},
		{"pick", "pick: all, ", "", `nodes.b.next changed`},
		{"value", "{{kind}}", "{{sort}}", `nodes.c.next changed`},
		{"route", "bug: d", "bgu: d", `nodes.c.next changed`},
		{"answer", "tries < 3", "tries < 4", `nodes.d.routes.no changed`},
		{"other", "on_other: {to: c, max: 1}", "on_other: c", `nodes.d.on_other changed from "c" max 1 to "c"`},
		{"fallback", "fallback: {to: a, max: 2}", "fallback: a", `nodes.a.fallback changed from "a" max 2 to "a"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(choiceGraph, tt.old, tt.next, 1)
			if changed == choiceGraph {
				t.Fatal("nothing was changed")
			}
			diff := strings.Join(graph.Diff(base, parse(t, changed)), "\n")
			if same := graph.Fingerprint(base) == graph.Fingerprint(parse(t, changed)); same != (tt.diff == "") || !strings.HasPrefix(diff, tt.diff) || diff == "" != same {
				t.Errorf("same fingerprint: %v, diff %q, want %q", same, diff, tt.diff)
			}
		})
	}
}

// TestChoiceRules has, for every rule about choices, a definition that breaks it and its neighbor that does not.
func TestChoiceRules(t *testing.T) {
	llm := func(next string) string { return "nodes:\n  a: {type: llm, prompt: p, next: " + next + "}\n" + tail }
	const schema = "output_schema: {properties: {kind: {enum: [bug, idea]}, score: {type: integer}}}, "
	typed := func(next string) string {
		return "nodes:\n  a: {type: llm, prompt: p, " + schema + "next: " + next + "}\n" + tail
	}
	for _, tt := range []struct {
		rule            graph.Rule
		name, src, want string
	}{
		{graph.RuleUnknownTarget, "edge", llm(`[{when: x == 1, to: y}, {to: z}]`), `4:55 error [a] next leads to "y", which is not a node`},
		{graph.RuleUnknownTarget, "route", llm(`{on: "{{x}}", routes: {q: y}, otherwise: z}`), `4:61 error [a] next leads to "y", which is not a node`},
		{graph.RuleUnknownTarget, "known", llm(`[{when: x == 1, to: z}, {to: z}]`), ""},

		{graph.RuleCycle, "unbounded", llm(`[{when: x == 1, to: a}, {to: z}]`), `4:55 error the declared edges form a cycle: a -> a`},
		{graph.RuleCycle, "bounded", llm(`[{to: a, max: 3}, {to: z}]`), ""},
		{graph.RuleCycle, "bounded_by_one_of_two", "nodes:\n  a: {type: llm, prompt: p, next: b}\n  b: {type: llm, prompt: p, next: [{to: a, max: 3}, {to: z}]}\n" + tail, ""},
		{
			graph.RuleCycle, "one_way_round_is_not_bounded",
			"nodes:\n  a: {type: llm, prompt: p, next: b}\n  b: {type: llm, prompt: p, next: [{to: a, max: 3}, {to: c}]}\n  c: {type: llm, prompt: p, next: [{when: x == 1, to: a}, {to: z}]}\n" + tail,
			`6:55 error the declared edges form a cycle: a -> b -> c -> a`,
		},
		{
			graph.RuleCycle, "each_way_round_is_bounded",
			"nodes:\n  a: {type: llm, prompt: p, next: b}\n  b: {type: llm, prompt: p, next: [{to: a, max: 3}, {to: c, max: 2}, {to: z}]}\n  c: {type: llm, prompt: p, next: a}\n" + tail, "",
		},
		{graph.RuleCycle, "answer", "nodes:\n  a: {type: approval, question: q, options: [x], routes: {x: z}, on_other: {to: a, max: 3}}\n" + tail, ""},
		{graph.RuleCycle, "fallback", "nodes:\n  a: {type: llm, prompt: p, next: z, fallback: {to: a, max: 1}}\n" + tail, ""},

		{graph.RuleOtherwise, "conditions", llm(`[{when: x == 1, to: z}, {when: x == 2, to: z}]`), `4:29 warning [a] if no edge of next holds, the node fails: no edge is unconditional`},
		{graph.RuleOtherwise, "bounded_last", llm(`[{when: x == 1, to: z}, {to: z, max: 2}]`), `4:29 warning [a] if no edge of next holds, the node fails: no edge is unconditional`},
		{graph.RuleOtherwise, "routes", llm(`{on: "{{x}}", routes: {q: z}}`), `4:29 warning [a] if no edge of next holds, the node fails: no edge is unconditional`},
		{graph.RuleOtherwise, "has_one", llm(`[{when: x == 1, to: z}, {to: z}]`), ""},
		{graph.RuleOtherwise, "routes_otherwise", llm(`{on: "{{x}}", routes: {q: z}, otherwise: z}`), ""},
		{graph.RuleOtherwise, "all_values_are_routed", typed(`{on: "{{kind}}", routes: {bug: z, idea: z}}`), ""},

		{graph.RuleMissingRoute, "value", typed(`{on: "{{kind}}", routes: {bug: z}}`), `4:134 error [a] {{kind}} can be "idea", which has no route`},
		{graph.RuleMissingRoute, "value_otherwise", typed(`{on: "{{kind}}", routes: {bug: z}, otherwise: z}`), ""},
		{graph.RuleMissingRoute, "unknown_values", typed(`{on: "{{score}}", routes: {"1": z}, otherwise: z}`), ""},
		{graph.RuleUnusedRoute, "value", typed(`{on: "{{kind}}", routes: {bug: z, ide: z}, otherwise: z}`), `4:156 warning [a] {{kind}} is never "ide"`},

		{graph.RuleUnreachableEdge, "behind", llm(`[{to: z}, {when: x == 1, to: z}]`), `4:45 warning [a] the edge to "z" is never taken, since the one to "z" before it always holds`},
		{graph.RuleUnreachableEdge, "pick_all", "nodes:\n  a: {type: llm, prompt: p, pick: all, next: [{to: z}, {when: x == 1, to: z}]}\n" + tail, ""},
		{graph.RuleUnreachableEdge, "behind_a_bound", llm(`[{to: a, max: 1}, {to: z}]`), ""},

		{graph.RuleLoopBound, "more_than_visits", llm(`[{to: a, max: 101}, {to: z}]`), `4:49 warning [a] max is 101, but no node runs more often than 100 times (settings.max_loop_iterations)`},
		{graph.RuleLoopBound, "fits", llm(`[{to: a, max: 100}, {to: z}]`), ""},

		{graph.RuleCondition, "no_boolean", llm(`[{when: "initial_prompt + 1", to: z}, {to: z}]`), `4:44 error [a] the result is a number or a text, and must be a boolean`},
		{graph.RuleCondition, "never_holds", typed(`[{when: "score > 5 && kind == 'bgu'", to: z}, {to: z}]`), `4:144 warning [a] this is always false: the value is never "bgu"`},
		{graph.RuleCondition, "wrong_type", typed(`[{when: "score == '9'", to: z}, {to: z}]`), `4:132 warning [a] this is always false: a number is compared with a text`},
		{graph.RuleUndefinedRead, "nothing_writes_it", llm(`[{when: "x == 1", to: z}, {to: z}]`), `4:44 warning [a] nothing writes "x", so it is always null`},
		{graph.RuleCondition, "written", typed(`[{when: "score > 5 && kind == 'bug' && initial_prompt != ''", to: z}, {to: z}]`), ""},
		{graph.RuleCondition, "a_script_may_write_it", "nodes:\n  a: {type: script, script: ok.sh, next: [{when: x == 1, to: z}, {to: z}]}\n" + tail, ""},
		{graph.RuleCondition, "visits", llm(`[{when: "_loop.a < 3", to: z}, {to: z}]`), ""},
		{graph.RuleCondition, "visits_of_no_node", llm(`[{when: "_loop.y < 3", to: z}, {to: z}]`), `4:49 warning [a] the object has no member "y"`},
		{graph.RuleUndefinedRead, "visits", "nodes:\n  a: {type: llm, prompt: '{{_loop.a}} {{_loop.ab}}', next: z}\n" + tail, `4:26 warning [a] {{_loop.ab}} is read, but there is no node "ab"`},
		{graph.RuleUndefinedRead, "route", "nodes:\n  a: {type: llm, prompt: p, next: {on: '{{q}}', routes: {x: z}, otherwise: z}}\n" + tail, `4:40 warning [a] {{q}} is read, but nothing writes "q", so it is always empty`},

		{
			graph.RuleParallelWrite, "pick_all",
			"nodes:\n  a: {type: llm, prompt: p, pick: all, next: [{when: x == 1, to: b}, {to: c}]}\n  b: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n  c: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n" + tail,
			`4:40 error parallel nodes [b, c] all write "k", and no reducer is declared for it`,
		},
		{
			graph.RuleParallelWrite, "pick_first_excludes",
			"nodes:\n  a: {type: llm, prompt: p, next: [{when: x == 1, to: b}, {to: c}]}\n  b: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n  c: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n" + tail, "",
		},
		{
			graph.RuleParallelWrite, "fallback_list",
			"nodes:\n  a: {type: llm, prompt: p, next: z, fallback: [b, c]}\n  b: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n  c: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n" + tail,
			`4:38 error parallel nodes [b, c] all write "k", and no reducer is declared for it`,
		},
		{
			graph.RuleParallelRead, "condition",
			"nodes:\n  a: {type: llm, prompt: p, next: [b, c]}\n  b: {type: llm, prompt: p, next: [{when: k == 'v', to: z}, {to: z}]}\n  c: {type: llm, prompt: p, state_updates: {k: v}, next: z}\n" + tail,
			`5:3 error [b] "b" reads k, which "c" writes in parallel with it`,
		},
	} {
		t.Run(string(tt.rule)+"/"+tt.name, func(t *testing.T) {
			if got := rules(graph.Validate(parse(t, top+tt.src), world), tt.rule); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestCycleHintNamesTheEdge(t *testing.T) {
	findings := graph.Validate(parse(t, top+"nodes:\n  a: {type: llm, prompt: p, next: b}\n  b: {type: llm, prompt: p, next: [{when: x == 1, to: a}, {to: z}]}\n"+tail), world)
	want := "say how often a run may go round: give the edge b.next[0] a max, such as {to: a, max: 3}, and an edge to take after that"
	if len(findings) == 0 || findings[0].Rule != graph.RuleCycle || findings[0].Hint != want {
		t.Errorf("%+v", findings)
	}
}

// TestConditionPlace finds a mistake in a condition that is folded over lines.
func TestConditionPlace(t *testing.T) {
	_, _, err := graph.Parse("g.yaml", []byte(top+"nodes:\n  a:\n    type: llm\n    prompt: p\n    next:\n      - when: >-\n          score >= 8\n          && cuont(votes) > 1\n        to: z\n      - to: z\n"+tail))
	if findings := graph.ErrorFindings(err); len(findings) != 1 || findings[0].Line != 10 || findings[0].Column != 14 || findings[0].Hint != "did you mean count?" ||
		findings[0].Path != "nodes.a.next[0].when" {
		t.Errorf("%+v", findings)
	}
}

// FuzzParseChoice checks that nothing in place of a next makes the reader, the checker or the pictures' edges panic.
// FuzzParseChoice reads a next and walks the graph with a state, as a run does: no bounded way is taken more often than its max.
func FuzzParseChoice(f *testing.F) {
	for _, seed := range []string{
		"z", "[a, z]", "[]", `[{when: "x > 1", to: z}, {to: a, max: 3}]`, `{on: "{{x}}", routes: {a: z, b: {to: a, max: 1}}, otherwise: z}`, "{to: z}", "{on: x}", "{routes: {}}", "[{to: z}, a]",
		"{max: 0}", "[{when: 1, to: z}]", "[[a]]", "{x: y}", `[{when: "_loop.a < 9", to: a, max: 7}, {when: x, to: a, max: 2}, {to: z}]`, `{on: "{{_loop.a}}", routes: {"1": {to: a, max: 2}, "2": {to: a, max: 1}}, otherwise: z}`,
	} {
		for _, state := range []string{`{}`, `{"x":2}`, `{"x":"b"}`, `{"x":true}`} {
			f.Add(seed, state)
		}
	}
	f.Fuzz(func(t *testing.T, next, text string) {
		v, err := value.ParseJSON([]byte(text))
		if err != nil || strings.ContainsAny(next, "\n\r") {
			return
		}
		g, _, err := graph.Parse("g.yaml", []byte(top+"nodes:\n  a: {type: llm, prompt: p, next: "+next+"}\n"+tail))
		if err != nil {
			return
		}
		graph.Validate(g, world)
		graph.Fingerprint(g)
		p := graph.NewPlan(g)
		for pr := p.Begin(graph.NewState(v.AsObject())); !pr.Done && pr.Step < 20; {
			tasks, err := p.Next(pr)
			if err != nil {
				return // a target is no node
			}
			results := make([]graph.Result, len(tasks))
			for i, task := range tasks {
				results[i] = graph.Result{Node: task.Node.ID, Targets: task.Node.Next, Ended: task.Node.Type == graph.EndNode}
				c := task.Node.Choices["next"]
				if c == nil {
					continue
				}
				ways, err := c.Take(graph.NewDraft(pr.State).WithLoop(task.Loop), task.Loop, expr.Env{})
				if err != nil {
					return
				}
				if len(ways) == 0 {
					t.Errorf("%s: neither a way nor an error", next)
				}
				results[i].Targets = nil
				for _, w := range ways {
					results[i].Targets, results[i].Taken = append(results[i].Targets, w.To), append(results[i].Taken, w.ID)
				}
			}
			if pr, err = p.Apply(pr, results); err != nil {
				return
			}
			for _, task := range tasks {
				for _, c := range task.Node.Choices {
					for _, w := range c.Ways {
						if n := p.TakenCounts(pr)[w.ID]; w.Max > 0 && n > w.Max {
							t.Fatalf("%s: %s was taken %d times, and its max is %d", next, w.ID, n, w.Max)
						}
					}
				}
			}
		}
	})
}

func BenchmarkTake(b *testing.B) {
	text, err := os.ReadFile("testdata/choice_bench.yaml")
	if err != nil {
		b.Fatal(err)
	}
	g, _, err := graph.Parse("g.yaml", text)
	if err != nil {
		b.Fatal(err)
	}
	p := graph.NewPlan(g)
	tasks, err := p.Next(p.Begin(graph.NewState(g.InitialState)))
	if err != nil {
		b.Fatal(err)
	}
	d := graph.NewDraft(graph.NewState(g.InitialState)).WithLoop(tasks[0].Loop)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tasks[0].Node.Choices["next"].Take(d, tasks[0].Loop, expr.Env{}); err != nil {
			b.Fatal(err)
		}
	}
}
