package graph_test

import (
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

// TestStateFindings has what is wrong in the light of the schema of the state, with its place. Each graph has a state in line 2.
func TestStateFindings(t *testing.T) {
	const schema = `state: {n: {type: integer}, s: {type: string}, kind: {enum: [bug, idea]}, list: {type: array, items: {type: object, additionalProperties: false, properties: {id: {type: string}}}}, user: {type: object, additionalProperties: false, properties: {name: {type: string}}}, open: {type: object, properties: {title: {}}}, sum: {type: number, reducer: sum}, all: {type: array, items: {type: integer}, reducer: append}}`
	for name, tt := range map[string]struct {
		strict bool
		nodes  string
		want   string
	}{
		"fine": {true, `
  a: {type: llm, prompt: "{{user.name}} {{list[0].id}} {{open.other}} {{_last_error.message}} {{_loop.a}}", state_updates: {s: "{{output}}", user: "{{open}}", sum: "{{n}}", all: "{{n}}", open: "{{list[1]}}"}, next: z}`, ""},
		"member_excluded": {false, `
  a: {type: llm, prompt: "hello {{user.nmae}}", next: z}`, `4:26 error unknown-member: [a] {{user.nmae}}: user has no member "nmae", so the node always fails | did you mean "name"? valid are name`},
		"member_of_a_text": {false, `
  a: {type: end, output: "{{s.x}}"}`, `4:26 error unknown-member: [a] {{s.x}}: s is a text, and has no member x, so it is always empty`},
		"element_of_an_object": {false, `
  a: {type: end, output: "{{user[1]}}"}`, `4:26 error unknown-member: [a] {{user[1]}}: user is an object, and has no element 1, so it is always empty`},
		"member_of_an_element": {false, `
  a: {type: end, output: "{{list[0].ids}}"}`, `4:26 error unknown-member: [a] {{list[0].ids}}: 0 has no member "ids", so it is always empty | did you mean "id"? valid are id`},
		"member_near_a_known_one": {false, `
  a: {type: end, output: "{{open.titel}}"}`, `4:26 warning unknown-member: [a] {{open.titel}}: the schema of open has no member "titel" | did you mean "title"?`},
		"undefined_although_scripts_write": {true, `
  a: {type: script, script: a.sh, next: b}
  b: {type: end, output: "{{nn}}"}`, `5:26 error undefined-read: [b] {{nn}} is read, but nothing writes "nn", so it is always empty`},
		"undefined_in_when": {true, `
  a: {type: llm, prompt: p, next: [{when: n > 1 || nn > 1, to: z}, {to: z}]}`, `4:52 error undefined-read: [a] nothing writes "nn", so it is always null`},
		"undefined_in_item_if": {false, `
  a: {type: map, over: "{{list}}", as: i, branch: b, collect_into: open_list, item_if: "i.id == wanted", next: z}
  b: {type: llm, prompt: "{{i.id}}"}`, `4:97 warning undefined-read: [a] nothing writes "wanted", so it is always null`},
		"undefined_in_enough": {false, `
  a: {type: map, over: "{{list}}", as: i, branch: b, collect_into: r, enough: "len(results) >= wanted", next: z}
  b: {type: llm, prompt: "{{i.id}}"}`, `4:96 warning undefined-read: [a] nothing writes "wanted", so it is always null`},
		"item_if_of_a_member": {false, `
  a: {type: map, over: "{{list}}", as: i, branch: b, collect_into: r, item_if: "i.ids == 'x'", next: z}
  b: {type: llm, prompt: "{{i.ids}}"}`, `4:82 warning condition: [a] the object has no member "ids" | did you mean "id"? valid are id
5:26 error unknown-member: [b] {{i.ids}}: i has no member "ids", so the node always fails | did you mean "id"? valid are id`},
		"enough_of_a_wrong_type": {false, `
  a: {type: map, over: "{{list}}", as: i, branch: b, collect_into: r, enough: "results > 2", next: z}
  b: {type: llm, prompt: "{{i.id}}"}`, `4:88 warning condition: [a] > takes a number or a text, and finds null or a list
4:88 warning condition: [a] this is always false: a list is compared with a number`},
		"over": {false, `
  a: {type: map, over: "{{s}}", as: i, branch: b, collect_into: r, next: z}
  b: {type: llm, prompt: "{{i}}"}`, `4:24 error items: [a] over: {{s}} is a text, and neither a list nor an object, so the map always fails`},
		"when_is_never_a_boolean": {false, `
  a: {type: llm, prompt: p, next: [{when: s, to: z}, {to: z}]}`, `4:43 error condition: [a] the result is null or a text, and must be a boolean`},
		"when_never_holds": {false, `
  a: {type: llm, prompt: p, next: [{when: "kind == 'bugs'", to: z}, {to: z}]}`, `4:49 warning condition: [a] this is always false: the value is never "bugs" | did you mean "bug"? valid are bug, idea`},
		"route_of_an_enum": {false, `
  a: {type: llm, prompt: p, next: {on: "{{kind}}", routes: {bug: z, bugs: z}}}`, `4:52 error missing-route: [a] {{kind}} can be "idea", which has no route | add a route for it, or otherwise:
4:75 warning unused-route: [a] {{kind}} is never "bugs" | did you mean "bug"?`},
		"constant": {false, `
  a: {type: llm, prompt: p, state_updates: {kind: wish, n: "5", s: "5", sum: one}, next: z}`, `4:51 error state-type: [a] "kind" never fits the schema of the state: must be one of "bug", "idea", got the string "wish"
4:60 error state-type: [a] "n" never fits the schema of the state: must be an integer, got the string "5"
4:78 error state-type: [a] "sum" never fits the schema of the state: it must be a number, and a text without placeholders is a text`},
		"answer_is_a_text": {false, `
  a: {type: llm, prompt: p, state_updates: {n: "{{output}}", s: "{{output}}", all: "{{output}}"}, next: z}`, `4:48 error state-type: [a] "n" never fits the schema of the state: it must be a number, and {{output}} is a text
4:84 error state-type: [a] "all" never fits the schema of the state: it must be a number, and {{output}} is a text`},
		"several_placeholders_are_a_text": {false, `
  a: {type: llm, prompt: p, state_updates: {n: "{{n}}{{n}}"}, next: z}`, `4:48 error state-type: [a] "n" never fits the schema of the state: it must be a number, and a template of more than one placeholder is a text`},
		"another_key": {false, `
  a: {type: llm, prompt: p, state_updates: {n: "{{user}}", s: "{{n}}"}, next: z}`, `4:48 error state-type: [a] "n" never fits the schema of the state: it must be a number, and {{user}} is a text or an object`},
		"output_schema": {false, `
  a: {type: llm, prompt: p, output_schema: {properties: {n: {type: string}, s: {type: string}, kind: {enum: [wish]}}}, next: z}`, `4:58 error state-type: [a] "n" never fits the schema of the state: it must be a number, and the output_schema gives a text
4:96 error state-type: [a] "kind" never fits the schema of the state: the output_schema gives none of the values that it may have`},
		"output_schema_is_updated": {false, `
  a: {type: llm, prompt: p, output_schema: {properties: {n: {type: string}}}, state_updates: {n: "{{list[0]}}"}, next: z}`, `4:98 error state-type: [a] "n" never fits the schema of the state: it must be a number, and {{list[0]}} is a text or an object`},
		"options": {false, `
  a: {type: approval, question: q, options: [bug, idea, wish], routes: {bug: z, idea: z, wish: z}, on_other: z, state_updates: {kind: "{{choice}}", s: "{{choice}}", open: o}}`, `4:57 error state-type: [a] state_updates write the answer to "kind", whose schema the option "wish" does not fit: must be one of "bug", "idea", got the string "wish" | write the option as the schema has it, or add it there
4:172 error state-type: [a] "open" never fits the schema of the state: must be an object, got the string "o"`},
		"options_that_fit": {true, `
  a: {type: approval, question: q, options: [bug], routes: {bug: z}, on_other: z, state_updates: {kind: "{{choice}}"}}`, ""},
		"options_are_not_written": {false, `
  a: {type: approval, question: q, options: [wish], routes: {wish: z}, on_other: z, state_updates: {kind: bug, s: "{{choice}} {{kind}}"}}`, ""},
		"options_for_a_number": {false, `
  a: {type: approval, question: q, options: [wish], routes: {wish: z}, on_other: z, state_updates: {n: "{{choice}}", all: "{{choice}}"}}`, `4:104 error state-type: [a] "n" never fits the schema of the state: it must be a number, and {{choice}} is a text
4:123 error state-type: [a] "all" never fits the schema of the state: it must be a number, and {{choice}} is a text`},
		"collect_into": {false, `
  a: {type: map, over: "{{list}}", as: i, branch: b, collect_into: user, next: z}
  b: {type: llm, prompt: "{{i.id}}", state_updates: {n: "{{output}}"}}`, `4:68 error state-type: [a] "user" never fits the schema of the state: it must be an object, and a map collects a list`},
		"strict": {true, `
  a: {type: llm, prompt: p, output_schema: {properties: {m: {}}}, state_updates: {nn: "{{output}}"}, next: b}
  b: {type: map, over: "{{list}}", as: i, branch: c, collect_into: lists, next: z}
  c: {type: llm, prompt: "{{i.id}}", state_updates: {o: "{{output}}"}}`, `4:58 error unknown-state-key: [a] "m" is written, but state declares no such key, and strict_state is true
4:87 error unknown-state-key: [a] "nn" is written, but state declares no such key, and strict_state is true
5:68 error unknown-state-key: [b] "lists" is written, but state declares no such key, and strict_state is true | did you mean "list"?`},
	} {
		t.Run(name, func(t *testing.T) {
			text := "name: x\n" + schema + "\nnodes:" + tt.nodes + "\n  z: {type: end}\nstart: a\n"
			if tt.strict {
				text += "strict_state: true\n"
			}
			g, found, err := graph.Parse("g", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range append(found, graph.Validate(g, graph.ValidateEnv{})...) {
				if f.Rule == graph.RuleUnreachable || f.Rule == graph.RuleMissingScript || f.Rule == graph.RuleMapBranch || f.Rule == graph.RuleMissingNext || f.Rule == graph.RuleUnreachableEnd {
					continue
				}
				got = append(got, line(f))
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), tt.want)
			}
		})
	}
}
