package node_test

import (
	"strings"
	"testing"

	"loki/internal/base/ask/asktest"
)

// TestMisfits has writes that do not fit the schema of the state: they are failures of their nodes, of which nothing is merged.
func TestMisfits(t *testing.T) {
	const ends = "\n  x: {type: end, output: \"x {{score}} {{_last_error.message}}\"}\n  y: {type: end, output: y}\n"
	for _, tt := range []struct {
		name, text, want string // the output, or what the error has
		world            world
	}{
		{
			"script_with_fallback", `
state: {score: {type: integer, default: 1}}
start: a
nodes:
  a: {type: script, script: a.sh, next: y, fallback: x}` + ends, `x 1 wrote state key "score": must be an integer, got the string "ten"`,
			world{scripts: map[string]string{"a.sh": `echo '{"score": "ten", "other": 1}'`}},
		},
		{
			"llm_on_failure_continue", `
settings: {on_failure: continue}
state: {score: {type: integer}}
start: a
nodes:
  a: {type: llm, prompt: p, state_updates: {score: "{{output}}"}, next: [{when: "_last_error.node == 'a'", to: x}, {to: y}]}` + ends, `x  wrote state key "score": must be an integer, got the string "7"`,
			world{model: replies("7")},
		},
		{
			"llm_on_failure_fail", `
settings: {on_failure: fail}
state: {score: {type: integer}}
start: a
nodes:
  a: {type: llm, prompt: p, state_updates: {score: "{{output}}"}, next: y}` + ends, `error: node "a" wrote state key "score": must be an integer, got the string "7"`,
			world{model: replies("7")},
		},
		{
			"the_first_failure_counts", `
state: {score: {type: integer}}
start: a
nodes:
  a: {type: script, script: a.sh, state_updates: {score: "{{none}}"}, next: y, fallback: x}` + ends, `x  script a.sh: bash failed with exit status 3: busy`,
			world{scripts: map[string]string{"a.sh": `echo busy >&2; exit 3`}},
		},
		{
			"strict_script", `
strict_state: true
state: {score: {type: integer, default: 1}}
start: a
nodes:
  a: {type: script, script: a.sh, next: y, fallback: x}` + ends, `x 1 wrote state key "scor": state declares no such key, and strict_state is true; did you mean "score"?`,
			world{scripts: map[string]string{"a.sh": `echo '{"score": 2, "scor": 2, "_next": "y"}'`}},
		},
		{
			"map", `
initial_state: {items: [1, 2]}
state: {all: {type: array, maxItems: 1}}
start: a
nodes:
  a: {type: map, over: "{{items}}", as: i, branch: b, collect_into: all, next: y, fallback: x}
  b: {type: script, script: b.sh}` + ends, `x  wrote state key "all": must have at most 1 element, got 2`,
			world{scripts: map[string]string{"b.sh": `echo '{"output": 1}'`}},
		},
		{
			"items_may_write_what_is_dropped", `
initial_state: {items: [1, 2]}
strict_state: true
state: {all: {type: array}, items: {type: array}}
start: a
nodes:
  a: {type: map, over: "{{items}}", as: i, branch: b, collect_into: all, next: y}
  b: {type: script, script: b.sh}` + ends, `y`,
			world{scripts: map[string]string{"b.sh": `echo '{"output": 1}'`}},
		},
		{
			"input", `
state: {name: {type: string, minLength: 2}}
start: a
nodes:
  a: {type: input, question: q, state_updates: {name: "{{input}}"}, next: y}` + ends, `error: at node "a": input interaction failed: node "a": answer "A": it cannot be stored in the state: (root): must have at least 2 characters, got 1`,
			world{asker: asktest.NewScripted("A")},
		},
		{
			"merged_value", `
state: {list: {type: array, maxItems: 1, reducer: append, default: [0]}}
start: a
nodes:
  a: {type: script, script: a.sh, next: y, fallback: x}` + ends, `error: node "a" wrote state key "list": must have at most 1 element, got 2`,
			world{scripts: map[string]string{"a.sh": `echo '{"list": 1}'`}},
		},
		{
			"edges_see_no_draft", `
settings: {on_failure: continue}
state: {score: {type: integer, default: 1}}
start: a
nodes:
  a: {type: script, script: a.sh, next: [{when: "score == 'ten'", to: y}, {to: x}]}` + ends, `x 1 wrote state key "score": must be an integer, got the string "ten"`,
			world{scripts: map[string]string{"a.sh": `echo '{"score": "ten"}'`}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := tt.world.drive(t.Context(), t, tt.text)
			if want, fails := strings.CutPrefix(tt.want, "error: "); fails {
				if err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
				}
			} else if err != nil || out.Output != tt.want {
				t.Errorf("output %q, %v, want %q", out.Output, err, tt.want)
			}
		})
	}
}
