package graph_test

import (
	"errors"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

func stateGraph(t *testing.T, text string) *graph.Graph {
	t.Helper()
	g, findings, err := graph.Parse("graph.yaml", []byte("name: x\nstart: a\nnodes: {a: {type: script, script: a.sh, next: z}, b: {type: script, script: a.sh, next: z}, z: {type: end}}\n"+text))
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	return g
}

func asValue(t *testing.T, text string) value.Value {
	t.Helper()
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestStateDefaults(t *testing.T) {
	g := stateGraph(t, `
state:
  n: {type: integer, default: 3}
  list: {type: array, reducer: append, default: []}
  other: {type: string, default: unused}
  open: {}
initial_state: {other: given, more: 1}
reducers: {list: append, sum: sum}`)
	if got := g.InitialState.Value().String(); got != `{"other":"given","more":1,"n":3,"list":[]}` {
		t.Error(got)
	}
	if len(g.Reducers) != 2 || g.Reducers["list"] != graph.ReduceAppend {
		t.Error(g.Reducers)
	}
}

// TestStateGuard merges the writes of a and b, which run side by side.
func TestStateGuard(t *testing.T) {
	for _, tt := range []struct {
		name, state, a, b string // the writes to k
		want              string // the error; empty for none
	}{
		{"fits", `{type: integer}`, `1`, ``, ""},
		{"integral_float", `{type: integer}`, `1.0`, ``, ""},
		{"type", `{type: integer}`, `"ten"`, ``, `node "a" wrote state key "k": must be an integer, got the string "ten"`},
		{"of_the_other", `{type: integer}`, ``, `"ten"`, `node "b" wrote state key "k": must be an integer, got the string "ten"`},
		{"member", `{type: object, properties: {value: {type: integer}}}`, `{"value": "ten"}`, ``, `node "a" wrote state key "k": at .value: must be an integer, got the string "ten"`},
		{"element", `{items: {properties: {n: {maximum: 2}}}}`, `[{"n": 1}, {"n": 3}]`, ``, `node "a" wrote state key "k": at [1].n: must be at most 2, got 3`},
		{"missing_member", `{required: [id]}`, `{}`, ``, `node "a" wrote state key "k": at .id: is required, but missing`},
		{"several", `{items: {type: string}}`, `[1, 2, 3]`, ``, `node "a" wrote state key "k": at [0]: must be a string, got the number 1 (and 2 more)`},
		{"enum", `{enum: [bug, idea]}`, `"wish"`, ``, `node "a" wrote state key "k": must be one of "bug", "idea", got the string "wish"`},
		{"long", `{type: integer}`, `"` + strings.Repeat("x", 200) + `"`, ``, `node "a" wrote state key "k": must be an integer, got the string "` + strings.Repeat("x", 78) + `…`},
		{"secret", `{type: object, secret: true, properties: {pin: {type: integer}}}`, `{"pin": "1234"}`, ``, `node "a" wrote state key "k": must be an integer, got ***`},
		{"merged", `{type: array, maxItems: 2, reducer: append, default: [0]}`, `1`, `2`, `node "b" wrote state key "k": must have at most 2 elements, got 3`},
		{"merged_fits", `{type: array, minItems: 2, reducer: append}`, `1`, `2`, ""},
		{"merged_type", `{type: array, items: {type: integer}, reducer: append}`, `"x"`, `2`, `node "a" wrote state key "k": at [0]: must be an integer, got the string "x"`},
		{"merged_too_few", `{type: array, minItems: 3, reducer: append}`, `1`, `2`, `node "a" wrote state key "k": must have at least 3 elements, got 2`},
		{"sum_recovers", `{maximum: 2, reducer: sum}`, `5`, `-4`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := stateGraph(t, "state: {k: "+tt.state+"}")
			p := graph.NewPlan(g)
			pr := p.Begin(graph.NewState(g.InitialState))
			results := []graph.Result{{Node: "a", Targets: []string{"z"}}, {Node: "b", Targets: []string{"z"}}}
			for i, text := range []string{tt.a, tt.b} {
				if text != "" {
					results[i].Writes = []value.Member{{Name: "k", Value: asValue(t, text)}}
				}
			}
			check := func(results []graph.Result) {
				t.Helper()
				next, err := p.Apply(pr, results)
				if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
					t.Errorf("%v, want %s", err, tt.want)
				}
				if err != nil {
					if _, ok := errors.AsType[*graph.NodeError](err); !ok || next.State.Len() != pr.State.Len() {
						t.Errorf("%T, state %s", err, next.State.AppendJSON(nil))
					}
				}
			}
			check(results)
			if tt.b == "" {
				check(results[:1])
			}
		})
	}
}

func TestStrictState(t *testing.T) {
	g := stateGraph(t, "strict_state: true\nstate: {score: {type: integer}}")
	p := graph.NewPlan(g)
	write := func(key string) error {
		_, err := p.Apply(p.Begin(graph.State{}), []graph.Result{{Node: "a", Writes: []value.Member{{Name: key, Value: value.Of(1)}}}})
		return err
	}
	if err := write("score"); err != nil {
		t.Error(err)
	}
	want := `node "a" wrote state key "scor": state declares no such key, and strict_state is true; did you mean "score"?`
	if err := write("scor"); err == nil || err.Error() != want {
		t.Error(err)
	}
	failed := graph.Result{Node: "a", Failure: &graph.Failure{Node: "a"}}
	if _, err := p.Apply(p.Begin(graph.State{}), []graph.Result{failed}); err != nil {
		t.Error("the failure that Loki keeps in the state is refused:", err)
	}
	start := func(key string) error {
		return g.Schema.CheckAll(graph.NewState(value.ObjectOf(value.Member{Name: key, Value: value.Of(1)})))
	}
	if start(graph.PromptKey) != nil || start("other") == nil {
		t.Error("the prompt or another key at the start")
	}
}

func TestStateSchemaIsOfTheCourse(t *testing.T) {
	base := "state: {k: {type: integer, description: old}}"
	for next, want := range map[string]string{
		"state: {k: {type: integer, description: new}}":                  "",
		"state: {k: {type: number}}":                                     `state.k changed from {"type":"integer"} to {"type":"number"}`,
		"state: {k: {type: integer}, l: {}}":                             `state.l was added`,
		"strict_state: true\nstate: {k: {type: integer}}":                `strict_state was added`,
		"state: {k: {type: integer, secret: true}}":                      `state.k changed from {"type":"integer"} to {"type":"integer"} secret`,
		"state: {k: {type: integer, default: 1}}":                        `initial_state.k was added`,
		"state: {k: {type: integer, reducer: sum}}":                      `reducers.k was added`,
		"initial_state: {k: 1}\nstate: {k: {type: integer, default: 2}}": `initial_state.k was added`,
	} {
		got := strings.Join(graph.Diff(stateGraph(t, base), stateGraph(t, next)), "; ")
		if got != want {
			t.Errorf("%s: %q, want %q", next, got, want)
		}
	}
	secret := func(v string) *graph.Graph { return stateGraph(t, "state: {k: {secret: true, default: "+v+"}}") }
	if got := graph.Diff(secret("hunter2"), secret("hunter3")); len(got) != 1 || got[0] != "initial_state.k changed" {
		t.Errorf("a secret value is shown, or not compared: %q", got)
	}
}

func TestStateWords(t *testing.T) {
	for words, hint := range map[string]string{"secrets: true": `did you mean "secret"?`, "reqired: [a]": `did you mean "required"?`, "x-note: 1": "-", "const: 1": "-"} {
		_, findings, err := graph.Parse("g", []byte("name: x\nstart: a\nnodes: {a: {type: end}}\nstate:\n  k:\n    "+words+"\n"))
		switch {
		case err != nil:
			t.Error(err)
		case hint == "-" && len(findings) > 0:
			t.Errorf("%s: %v", words, findings)
		case hint != "-" && (len(findings) != 1 || findings[0].Hint != hint || findings[0].Line != 6 || findings[0].Column != 5):
			t.Errorf("%s: %v", words, findings)
		}
	}
}
