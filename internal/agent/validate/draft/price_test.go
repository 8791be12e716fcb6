package draft_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/agent/validate/draft"
	"loki/internal/workflow/graph"
)

// facts are those of a world in which a token costs a dollar in and two dollars out.
func facts() draft.Facts {
	const million = 1e6
	return draft.Facts{
		Model: func(id string) draft.Model {
			if id == "secret:model" {
				return draft.Model{ID: id}
			}
			return draft.Model{ID: "a:b", Input: new(million), Output: new(2 * million)}
		},
		Tools: func(*graph.Node) int { return 100 },
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, nodes string
		calls       draft.Range[int]
		input       draft.Range[int]
		output      draft.Range[int]
		usd         draft.Range[float64]
		more        string // of Unknown and Assumed
	}{
		{
			"chain", "a: {type: llm, prompt: abcd, next: b}\n  b: {type: llm, prompt: 'abcd{{initial_prompt}}', next: z}",
			draft.Range[int]{2, 2},
			draft.Range[int]{2, 2002},
			draft.Range[int]{100, 2000},
			draft.Range[float64]{202, 6002},
			"",
		},
		{
			"fan_out", "a: {type: script, script: a.sh, next: [b, c]}\n  b: {type: llm, prompt: abcd, next: z}\n  c: {type: llm, prompt: abcd, next: z}",
			draft.Range[int]{2, 2},
			draft.Range[int]{2, 2},
			draft.Range[int]{100, 2000},
			draft.Range[float64]{202, 4002},
			"",
		},
		{
			"choice", "a: {type: approval, question: q, options: [x], routes: {x: b}, on_other: z}\n  b: {type: llm, prompt: abcd, next: z}",
			draft.Range[int]{0, 1},
			draft.Range[int]{0, 1},
			draft.Range[int]{0, 1000},
			draft.Range[float64]{0, 2001},
			"",
		},
		{
			"fallback", "a: {type: llm, prompt: abcd, next: z, fallback: b}\n  b: {type: llm, prompt: abcd, next: z}",
			draft.Range[int]{1, 2},
			draft.Range[int]{1, 2},
			draft.Range[int]{50, 2000},
			draft.Range[float64]{101, 4002},
			"",
		},
		{
			"tools", "a: {type: llm, prompt: abcd, tools: [x], max_iterations: 3, next: z}",
			draft.Range[int]{1, 3},
			draft.Range[int]{101, 3303},
			draft.Range[int]{50, 3000},
			draft.Range[float64]{201, 9303},
			"",
		},
		{
			"schema", "a: {type: llm, instructions: abcd, prompt: abcd, output_schema: {type: object}, next: z}",
			draft.Range[int]{1, 3},
			draft.Range[int]{2, 6},
			draft.Range[int]{50, 3000},
			draft.Range[float64]{102, 6006},
			"",
		},
		{
			"map", "a: {type: map, over: '{{list}}', as: x, branch: b, collect_into: y, next: z}\n  b: {type: llm, prompt: abcd}",
			draft.Range[int]{0, 10},
			draft.Range[int]{0, 10},
			draft.Range[int]{0, 10000},
			draft.Range[float64]{0, 20010},
			"{{list}} has at most 10 elements for a",
		},
		{
			"agent", "a: {type: agent, agent: x, prompt: abcd, next: z}",
			draft.Range[int]{1, 10},
			draft.Range[int]{1, 100000},
			draft.Range[int]{50, 10000},
			draft.Range[float64]{101, 120000},
			"agent x makes 1 to 10 calls",
		},
		{
			"unknown_price", "a: {type: llm, prompt: abcd, model: 'secret:model', next: b}\n  b: {type: llm, prompt: abcd, next: z}",
			draft.Range[int]{2, 2},
			draft.Range[int]{2, 2},
			draft.Range[int]{100, 2000},
			draft.Range[float64]{101, 2001},
			"secret:model",
		},
		{
			"loop", "a: {type: llm, prompt: abcd, next: b}\n  b: {type: llm, prompt: abcd, next: [{when: 'x == 1', to: a, max: 2}, {to: c}]}\n  c: {type: llm, prompt: abcd, next: z}",
			draft.Range[int]{3, 7},
			draft.Range[int]{3, 7},
			draft.Range[int]{150, 7000},
			draft.Range[float64]{303, 14007},
			"",
		},
		{
			"edges", "a: {type: llm, prompt: abcd, next: [{when: 'x == 1', to: b}, {to: z}]}\n  b: {type: llm, prompt: abcd, next: z}",
			draft.Range[int]{1, 2},
			draft.Range[int]{1, 2},
			draft.Range[int]{50, 2000},
			draft.Range[float64]{101, 4002},
			"",
		},
		{
			"compensation", "a: {type: script, script: a.sh, compensate: u, next: b}\n  b: {type: script, script: b.sh, compensate: u, next: [{when: 'x == 1', to: a, max: 2}, {to: z}]}\n  u: {type: llm, prompt: abcd}",
			draft.Range[int]{0, 6},
			draft.Range[int]{0, 6},
			draft.Range[int]{0, 6000},
			draft.Range[float64]{0, 12006},
			"u runs only if the run fails",
		},
		{
			"compensation_by_a_script", "a: {type: llm, prompt: abcd, compensate: u, next: z}\n  u: {type: script, script: u.sh}",
			draft.Range[int]{1, 1},
			draft.Range[int]{1, 1},
			draft.Range[int]{50, 1000},
			draft.Range[float64]{101, 2001},
			"",
		},
		{"no_model", "a: {type: script, script: a.sh, next: z}", draft.Range[int]{}, draft.Range[int]{}, draft.Range[int]{}, draft.Range[float64]{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := parse(t, "name: x\nstart: a\nnodes:\n  "+tt.nodes+"\n  z: {type: end}\n")
			got := draft.Estimate(g, facts())
			want := draft.Price{Calls: tt.calls, Input: tt.input, Output: tt.output, USD: tt.usd, Unknown: got.Unknown, Assumed: got.Assumed}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if more := strings.Join(append(got.Unknown, got.Assumed...), "\n"); more != tt.more {
				t.Errorf("said is %q, want %q", more, tt.more)
			}
		})
	}
}

// TestEstimateHasABudget: a run does not cost more than its budget.
func TestEstimateHasABudget(t *testing.T) {
	t.Parallel()
	g := parse(t, "name: x\nstart: a\nsettings: {budget: {usd: 0.5}}\nnodes:\n  a: {type: llm, prompt: abcd, next: z}\n  z: {type: end}\n")
	if got := draft.Estimate(g, facts()).USD; math.Abs(got.Most-0.5) > 1e-9 || got.Least > got.Most {
		t.Errorf("%v", got)
	}
}

func TestDoes(t *testing.T) {
	t.Parallel()
	g := parse(t, `
name: x
start: a
nodes:
  a: {type: llm, prompt: "Write\n about {{x}}", model: "a:b", tools: [fs_cat]}
  b: {type: script, script: b.sh}
  c: {type: approval, question: Good?, options: [yes, no], routes: {yes: z, no: z}, on_other: z}
  d: {type: input, question: Which?}
  e: {type: map, over: "{{list}}", as: x, branch: a, collect_into: y}
  f: {type: agent, agent: digest, prompt: ./docs}
  g: {type: rag, documents: [docs, notes]}
  h: {type: end}
  i: {type: tool, tool: fs_cat, arguments: {path: "{{x}}"}}
  j: {type: script, script: j.sh, compensate: b}
  z: {type: end, output: "{{y}}", description: "Prints\n it"}
`)
	var lines []string
	for _, n := range g.Nodes {
		lines = append(lines, draft.Does(n))
	}
	want := []string{
		"asks a:b, with fs_cat: Write about {{x}}", "runs b.sh", "asks you to choose yes, no: Good?", "asks you: Which?", "runs a for each of {{list}}",
		"has agent digest work on: ./docs", "searches docs, notes", "ends with nothing", `calls fs_cat {"path":"{{x}}"}`, "runs j.sh; if the run fails later, b undoes it",
		"Prints it",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
