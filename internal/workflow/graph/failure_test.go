package graph_test

import (
	"testing"
	"time"

	"loki/internal/workflow/graph"
)

// failing are nodes of all types but end, without next and what they say of failures.
var failing = map[graph.Type]string{
	graph.AgentNode:    "agent: helper, prompt: p",
	graph.ScriptNode:   "script: ok.sh",
	graph.ApprovalNode: "question: q, options: [], routes: {}, on_other: z",
	graph.InputNode:    "question: q",
	graph.LLMNode:      "prompt: p",
	graph.RAGNode:      "documents: [d]",
	graph.MapNode:      "over: '{{initial_prompt}}', as: i, branch: one, collect_into: all",
	graph.ToolNode:     "tool: t",
	graph.GraphNode:    "start: b, nodes: {b: {type: end}}",
	graph.WaitNode:     "until: '{{initial_prompt}}'",
}

// TestFailureFields: fallback, retry and timeout can be read at every node but an end, are a part of what the graph means, and lead
// to where a run goes.
func TestFailureFields(t *testing.T) {
	for _, kind := range graph.Types {
		fields, ok := failing[kind]
		if ok == (kind == graph.EndNode) {
			t.Fatalf("%s: no example", kind)
		}
		if !ok {
			continue
		}
		src := func(more string) string {
			return top + "nodes:\n  a: {type: " + string(kind) + ", " + fields + more + "}\n  one: {type: llm, prompt: p}\n" + tail
		}
		g := parse(t, src(", fallback: z, retry: {attempts: 3}, timeout: 7"))
		n := g.Node("a")
		if n.Fallback != "z" || n.Retry == nil || n.Retry.Attempts != 3 || n.Timeout != 7*time.Second || !n.HasTimeout {
			t.Errorf("%s: %+v", kind, n)
		}
		targets, ok := graph.NewPlan(g).OnFailure(n)
		if !ok || len(targets) != 1 || targets[0] != "z" {
			t.Errorf("%s: a failure leads to %v, %v", kind, targets, ok)
		}
		plain := parse(t, src(""))
		for _, more := range []string{", fallback: z", ", retry: {attempts: 3}", ", timeout: 7"} {
			if changes := graph.Diff(plain, parse(t, src(more))); len(changes) != 1 {
				t.Errorf("%s%s: differences %q", kind, more, changes)
			}
		}
		choice := parse(t, src(", fallback: [{when: 1 < 2, to: z}, {to: one}]"))
		edges := 0
		for _, e := range choice.Edges(choice.Node("a")) {
			if e.Field == "fallback" {
				edges++
			}
		}
		if edges != 2 {
			t.Errorf("%s: %d edges of a choice", kind, edges)
		}
	}
}

func TestFailureRules(t *testing.T) {
	const retry = ", retry: {attempts: 2}"
	for _, tt := range []struct {
		rule             graph.Rule
		name, node, want string
	}{
		{graph.RuleRetry, "question_in_time", "{type: input, question: q, timeout: 5, next: z" + retry + "}", ""},
		{graph.RuleRetry, "question_with_a_span", "{type: input, question: q, expires: 36h, next: z" + retry + "}", ""},
		{graph.RuleRetry, "question_with_a_rule", "{type: input, question: q, validation: len(input) > 2, next: z" + retry + "}", ""},
		{graph.RuleRetry, "question_of_no_end", "{type: input, question: q, next: z" + retry + "}", "4:42 warning [a] retry tries nothing again: without a timeout the question waits for as long as it takes"},
		{graph.RuleRetry, "question_until_a_time", "{type: input, question: q, expires: '2030-12-24T18:00:00Z', next: z" + retry + "}", "4:75 warning [a] retry tries nothing again: the question expires at a time that is the same for all tries"},
		{graph.RuleRetry, "question_with_a_default", "{type: input, question: q, default: d, timeout: 5, next: z" + retry + "}", "4:66 warning [a] retry tries nothing again: the default is taken when the time is over"},
		{graph.RuleRetry, "signal", "{type: wait, signal: s, timeout: 5, fallback: z, next: z" + retry + "}", ""},
		{graph.RuleRetry, "signal_of_no_end", "{type: wait, signal: s, next: z" + retry + "}", "4:39 warning [a] retry tries nothing again: without a timeout the node waits for as long as it takes"},
		{graph.RuleRetry, "span", "{type: wait, for: 5, next: z" + retry + "}", "4:36 warning [a] retry tries nothing again: a wait for a span does not fail"},
		{graph.RuleRetry, "map", "{type: map, over: '{{initial_prompt}}', as: i, branch: one, collect_into: all, next: z" + retry + "}", ""},
		{graph.RuleRetry, "map_that_skips", "{type: map, over: '{{initial_prompt}}', as: i, branch: one, collect_into: all, on_error: skip, next: z" + retry + "}", "4:110 warning [a] retry tries nothing again: a failed item does not fail the map, see on_error"},
		{graph.RuleRetry, "map_that_skips_some", "{type: map, over: '{{initial_prompt}}', as: i, branch: one, collect_into: all, on_error: skip, min_success: 2, next: z" + retry + "}", ""},
		{graph.RuleWait, "timeout_of_a_time", "{type: wait, until: '{{initial_prompt}}', timeout: 5, next: z}", ""},
		{graph.RuleWait, "timeout_before_the_end", "{type: wait, for: 10m, timeout: 5, next: z}", "4:38 error [a] the timeout is over before the 600 seconds to wait for, so the node always fails"},
		{graph.RuleWait, "timeout_after_the_end", "{type: wait, for: 5, timeout: 5, next: z}", "4:36 warning [a] the timeout has no effect, since the wait is over after 5 seconds"},
		{graph.RuleTimeoutDefault, "question_with_fallback", "{type: input, question: q, timeout: 5, fallback: z, next: z}", ""},
		{graph.RuleTimeoutDefault, "expiry_with_fallback", "{type: input, question: q, expires: 36h, fallback: z, next: z}", ""},
	} {
		t.Run(string(tt.rule)+"/"+tt.name, func(t *testing.T) {
			src := top + "nodes:\n  a: " + tt.node + "\n  one: {type: llm, prompt: p}\n" + tail
			if got := rules(graph.Validate(parse(t, src), world), tt.rule); got != tt.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", src, got, tt.want)
			}
		})
	}
	const nowhere = "the fallback of a branch leads nowhere"
	if got := rules(graph.Validate(parse(t, top+mapOver("{type: script, script: ok.sh, fallback: z}")), world), graph.RuleMapBranch); got == "" {
		t.Error("the finding is missing: " + nowhere)
	}
	if got := rules(graph.Validate(parse(t, top+mapOver("{type: llm, prompt: p, fallback: z}")), world), graph.RuleMapBranch); got != "" {
		t.Error(got)
	}
}
