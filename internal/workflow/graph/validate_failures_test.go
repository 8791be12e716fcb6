package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

// TestFailureTexts: the text of an error that a graph does not look at is reported where a user or a tool takes it for a result.
func TestFailureTexts(t *testing.T) {
	const write = "a: {type: llm, prompt: p, state_updates: {r: '{{output}}'}, next: b}\n  "
	const end = "e: {type: end, output: done}\n"
	for _, tt := range []struct{ name, head, nodes, want string }{
		{"end", "", write + "b: {type: end, output: 'It is {{r}}'}\n", `6:26 [b] {{r}} in the output of the graph can be the text of an error: node "a" has no fallback, and the run continues when it fails`},
		{"question", "", write + "b: {type: approval, question: 'Publish {{r}}?', options: [y], routes: {y: e}, on_other: e}\n  " + end, "6:33 [b] {{r}} in the question"},
		{"input", "", write + "b: {type: input, question: q, default: '{{r}}', next: e}\n  " + end, "6:42 [b] {{r}} in the question"},
		{"tool", "", write + "b: {type: tool, tool: mail, arguments: {to: ada, body: {text: '{{r}}'}}, next: e}\n  " + end, "6:65 [b] {{r}} in the call of tool mail"},
		{"copied", "", write + "b: {type: input, question: q, state_updates: {s: 'x{{r}}'}, next: c}\n  c: {type: end, output: '{{s}}'}\n", "7:26 [c] {{s}} in the output"},
		{"reduced", "reducers: {r: append}\ninitial_state: {r: []}", write + "b: {type: input, question: q, state_updates: {r: '{{input}}'}, next: c}\n  c: {type: end, output: '{{r}}'}\n", "8:26 [c] {{r}} in the output"},
		{"items", "initial_state: {l: [1]}", "a: {type: map, over: '{{l}}', as: i, branch: m, collect_into: r, next: b}\n  m: {type: llm, prompt: p, next: b}\n  b: {type: end, output: '{{r}}'}\n", `[b] {{r}} in the output of the graph can be the text of an error: node "a"`},
		{"tool_for_each", "", write + "b: {type: map, over: '{{r}}', as: i, branch: m, collect_into: x, next: e}\n  m: {type: tool, tool: mail, arguments: {body: '{{i}}'}}\n  " + end, "[m] {{i}} in the call of tool mail"},
		{"subgraph", "", "a: {type: graph, start: s, nodes: {s: {type: llm, prompt: p, state_updates: {x: '{{output}}'}, next: t}, t: {type: end, output: '{{x}}'}}, next: e}\n  " + end, "[a/t] {{x}} in the output"},
		{"out_of_a_subgraph", "", "a: {type: graph, outputs: {r: x}, start: s, nodes: {s: {type: llm, prompt: p, state_updates: {x: '{{output}}'}, next: t}, t: {type: end}}, next: b}\n  b: {type: end, output: '{{r}}'}\n", "[b] {{r}} in the output"},
		{"into_a_subgraph", "", write + "b: {type: graph, with: {k: '{{r}}'}, start: t, nodes: {t: {type: end, output: '{{k}}'}}, next: e}\n  " + end, "[b/t] {{k}} in the output"},

		{"fails", "settings: {on_failure: fail}", write + "b: {type: end, output: '{{r}}'}\n", ""},
		{"accepted", "settings: {on_failure: continue}", write + "b: {type: end, output: '{{r}}'}\n", ""},
		{"accepted_around_it", "settings: {on_failure: continue}", "a: {type: graph, start: s, nodes: {s: {type: llm, prompt: p, state_updates: {x: '{{output}}'}, next: t}, t: {type: end, output: '{{x}}'}}, next: e}\n  " + end, ""},
		{"fallback", "", "a: {type: llm, prompt: p, state_updates: {r: '{{output}}'}, fallback: e, next: b}\n  b: {type: end, output: '{{r}}'}\n  " + end, ""},
		{"looked_at", "", "a: {type: llm, prompt: p, state_updates: {r: '{{output}}'}, next: [{when: \"_last_error.node == 'a'\", to: e}, {to: b}]}\n  b: {type: end, output: '{{r}}'}\n  " + end, ""},
		{"written_anew", "", write + "b: {type: input, question: q, state_updates: {r: '{{input}}'}, next: c}\n  c: {type: end, output: '{{r}}'}\n", ""},
		{"member", "", "a: {type: llm, prompt: p, output_schema: {type: object, properties: {n: {type: integer}}}, state_updates: {r: '{{output.n}}'}, next: b}\n  b: {type: end, output: '{{r}}'}\n", ""},
		{"only_to_a_model", "", write + "b: {type: llm, prompt: '{{r}}', next: e}\n  " + end, ""},
		{"another_way", "", "s: {type: input, question: q, next: [{when: 1 > 2, to: a}, {to: e}]}\n  a: {type: llm, prompt: p, state_updates: {r: '{{output}}'}, next: z}\n  z: {type: end}\n  e: {type: end, output: '{{r}}'}\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := "a"
			if strings.HasPrefix(tt.nodes, "s:") {
				start = "s"
			}
			g := parse(t, "name: x\n"+tt.head+"\nstart: "+start+"\nnodes:\n  "+tt.nodes)
			var found []string
			for _, f := range graph.Validate(g, graph.ValidateEnv{}) {
				if f.Rule == graph.RuleFailureText {
					found = append(found, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f))
				}
			}
			if got := strings.Join(found, "\n"); tt.want == "" && got != "" || !strings.Contains(got, tt.want) || len(found) > 1 {
				t.Errorf("found %s, want %s", got, tt.want)
			}
		})
	}
}

// TestFirstReads: a key with a reducer is not in the state before the first write.
func TestFirstReads(t *testing.T) {
	const end = "e: {type: end, output: '{{notes}}'}\n  s: {type: script, script: s.sh, next: e}\n"
	for _, tt := range []struct{ name, head, nodes, want string }{
		{"in_the_first_node", "", "a: {type: llm, prompt: '{{notes}}', state_updates: {notes: '{{output}}'}, next: s}\n  " + end, `{{notes}} is read before a node has written "notes", which is not in initial_state, so the node fails; give it a first value: initial_state: {notes: []}`},
		{"on_one_of_two_ways", "", "a: {type: input, question: q, next: [{when: 1 > 2, to: b}, {to: c}]}\n  b: {type: llm, prompt: p, state_updates: {notes: x}, next: c}\n  c: {type: llm, prompt: '{{notes}}', next: s}\n  " + end, "{{notes}} is read before"},
		{"initial", "initial_state: {notes: []}", "a: {type: llm, prompt: '{{notes}}', next: s}\n  " + end, ""},
		{"schema", "state: {notes: {type: array, default: []}}", "a: {type: llm, prompt: '{{notes}}', next: s}\n  " + end, ""},
		{"written_before", "", "a: {type: llm, prompt: p, state_updates: {notes: x}, next: c}\n  c: {type: llm, prompt: '{{notes}}', next: s}\n  " + end, ""},
		{"script_before", "", "a: {type: script, script: s.sh, next: c}\n  c: {type: llm, prompt: '{{notes}}', next: s}\n  " + end, ""},
		{"lenient", "", "a: {type: llm, prompt: p, state_updates: {x: '{{notes}}'}, next: s}\n  " + end, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := parse(t, "name: x\nsettings: {on_failure: fail}\nreducers: {notes: append}\n"+tt.head+"\nstart: a\nnodes:\n  "+tt.nodes)
			var found []string
			for _, f := range graph.Validate(g, graph.ValidateEnv{FileExists: func(string) bool { return true }}) {
				if f.Rule == graph.RuleUndefinedRead {
					found = append(found, f.String()+"; "+f.Hint)
				}
			}
			if got := strings.Join(found, "\n"); tt.want == "" && got != "" || !strings.Contains(got, tt.want) || len(found) > 1 {
				t.Errorf("found %s, want %s", got, tt.want)
			}
		})
	}
}
