package graph_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

// everything has a node of each type and a value for every field.
const everything = `name: x
description: d
model: m
default_model: n
temperature: 1
top_p: 1
global_tools: [t]
mcp_servers: [s]
conversation_starters: [c]
variables: [{name: v, description: d, default: e}]
settings: {max_loop_iterations: 5, timeout: 5, max_concurrency: 2, on_failure: fail, budget: {usd: 1, tokens: 1, seconds: 1}, durability: power}
initial_state: {k: 1, j: {z: 1, a: [2]}}
reducers: {k: append}
start: llm
nodes:
  agent: {type: agent, description: d, agent: c, prompt: p, output_schema: {type: object}, timeout: 3, retry: {attempts: 2}, on_uncertain: ask, state_updates: {k: v}, next: end}
  script: {type: script, script: s.sh, fallback: end, retry: {attempts: 2}, on_uncertain: retry, cache: {ttl: 5, key: k}, state_updates: {k: v, j: w}, next: [llm, end]}
  approval: {type: approval, question: q, options: [x], routes: {x: end}, on_other: end, default: x, timeout: 1}
  input: {type: input, question: q, default: d, validation: len(input) > 0, next: end}
  llm:
    {type: llm, prompt: p, instructions: i, tools: [t], model: m, temperature: 1, top_p: 1, max_attempts: 2, max_iterations: 2, output_schema: {type: array}, fallback: end, join: all, next: end}
  rag: {type: rag, documents: [d], query: q, top_k: 1, embedding_model: e, reranker_model: r, chunk_size: 1, chunk_overlap: 1, batch_size: 1, next: end}
  map: {type: map, over: o, as: i, branch: script, output_key: k, collect_into: r, max_concurrency: 1, next: end}
  end: {type: end, output: o}
`

// newer has nodes of the types that were added after the fingerprint of everything was pinned.
const newer = `  tool: {type: tool, tool: t, arguments: {a: [1]}, output_schema: {type: object}, fallback: end, timeout: 1, retry: {attempts: 2}, on_uncertain: ask, cache: {ttl: 1}, next: end}
  wait: {type: wait, for: 10, state_updates: {k: v}, next: end}
  until: {type: wait, until: "{{t}}", next: end}
  signal: {type: wait, signal: s, timeout: 1, default: {a: 1}, schema: {type: object}, fallback: end, next: end}
`

// TestFingerprintSeesEveryField changes each field of a definition in turn, so that no
// field is forgotten when one is added.
func TestFingerprintSeesEveryField(t *testing.T) {
	ignored := []string{
		"Name", "Description", "ConversationStarters[]", "Variables[].Description", "File", "Text", "FanOut",
		"Settings.MaxLoopIterations", "Settings.Timeout", "Settings.HasTimeout", "Settings.LogStateSnapshots", "Settings.ValidateBeforeRun",
		"Settings.MaxConcurrency", "Settings.Budget.USD", "Settings.Budget.Tokens", "Settings.Budget.Duration", "Settings.Durability", "Settings.Scheduling", "Settings.FailureInherited", "Retry.Most",
		"Rules.Priority", "Rules.Key", "Rules.Limit", "Rules.Overlap", "Rules.Throttle", "Rules.Debounce",
	}
	const boxed = "sandbox: {level: network, hosts: [h], read: [r], write: [w]}"
	g := parse(t, strings.NewReplacer("start:", boxed+"\nstart:", "agent: c,", "agent: c, "+boxed+",", "script: s.sh,", "script: s.sh, "+boxed+",").Replace(everything+newer))
	before := graph.Fingerprint(g)
	seen := 0
	checker := func(owner string) func(path string) {
		return func(path string) {
			seen++
			if changed := graph.Fingerprint(g) != before; changed == slices.Contains(ignored, path) {
				t.Errorf("%s of %s: the fingerprint changes: %v", path, owner, changed)
			}
		}
	}
	alter(reflect.ValueOf(g).Elem(), "", checker("the graph"))
	for _, n := range g.Nodes {
		n.HasTimeout = true // or a change of Timeout means nothing
		before = graph.Fingerprint(g)
		alter(reflect.ValueOf(n).Elem(), "", checker(n.ID))
	}
	if seen < 100 || graph.Fingerprint(g) != before {
		t.Errorf("%d fields were changed, and the graph is the same afterwards: %v", seen, graph.Fingerprint(g) == before)
	}
}

// alter changes each leaf below v, calls check, and changes it back.
func alter(v reflect.Value, path string, check func(path string)) {
	set := func(changed any) {
		old := reflect.ValueOf(v.Interface())
		v.Set(reflect.ValueOf(changed).Convert(v.Type()))
		check(path)
		v.Set(old)
	}
	switch x := v.Interface().(type) {
	case graph.Template:
		set(graph.ParseTemplate(x.Source + "!"))
		return
	case value.Value:
		set(value.Of("other"))
		return
	case *value.Object:
		set(x.Merge(value.ObjectOf(value.Member{Name: "other", Value: value.Of(1)})))
		return
	case []*graph.Node:
		return // each is altered on its own
	case []byte:
		set(append(slices.Clone(x), '#'))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			alter(v.Elem(), path, check)
		}
	case reflect.Struct:
		for field, f := range v.Fields() {
			if field.IsExported() {
				alter(f, strings.TrimPrefix(path+"."+field.Name, "."), check)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			alter(v.Index(i), path+"[]", check)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			old := v.MapIndex(key)
			v.SetMapIndex(key, reflect.Value{})
			check(path)
			v.SetMapIndex(key, old)
		}
	case reflect.String:
		set(v.String() + "x")
	case reflect.Bool:
		set(!v.Bool())
	case reflect.Int, reflect.Int64:
		set(v.Int() + 1e9)
	case reflect.Float64:
		set(v.Float() + 1)
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

func TestFingerprint(t *testing.T) {
	const base = "name: x\nstart: a\ninitial_state: {k: 1, j: x}\nreducers: {k: sum, j: concat}\nnodes:\n" +
		"  a: {type: llm, prompt: \"hi {{k}}\", state_updates: {k: \"{{output}}\", j: y}, next: [b, c]}\n  b: {type: script, script: s.sh, next: c}\n  c: {type: end, output: \"{{k}}\"}\n"
	want := graph.Fingerprint(parse(t, base))
	if len(want) != 16 || strings.Trim(want, "0123456789abcdef") != "" {
		t.Errorf("fingerprint %q", want)
	}
	replaced := func(pairs ...string) string {
		s := strings.NewReplacer(pairs...).Replace(base)
		if s == base {
			t.Fatalf("%q is not in the definition", pairs[0])
		}
		return s
	}
	for _, tt := range []struct {
		name, src string
		same      bool
	}{
		{"comment", "# c\n" + base, true},
		{"block_style", replaced("  c: {type: end, output: \"{{k}}\"}", "  c:\n    output: '{{k}}' # all\n    type: end\n"), true},
		{"node_order", replaced("  b: {type: script, script: s.sh, next: c}\n", "", "\nnodes:\n", "\nnodes:\n  b: {type: script, script: s.sh, next: c}\n"), true},
		{"order_of_state_and_reducers", replaced("{k: 1, j: x}", "{j: x, k: 1}", "{k: sum, j: concat}", "{j: concat, k: sum}"), true},
		{"defaults_written_out", replaced("s.sh, next: c", "s.sh, timeout: 30, description: d, id: b, next: [c]"), true},
		{"texts_for_people", base + "description: d\nconversation_starters: [a]\nsettings: {log_state_snapshots: false, on_failure: continue}\n", true},
		{"bounds", base + "settings: {budget: {usd: 1}, timeout: 5, max_loop_iterations: 7, max_concurrency: 1, durability: power}\n", true},
		{"empty_lists", base + "global_tools: []\nmcp_servers: []\nvariables: []\n", true},
		{"order_of_updates", replaced("{k: \"{{output}}\", j: y}", "{j: y, k: \"{{output}}\"}"), false},
		{"space_in_a_prompt", replaced("hi {{k}}", "hi  {{k}}"), false},
		{"type_of_a_number", replaced("{k: 1,", "{k: 1.0,"), false},
		{"node_renamed", replaced("  b: {", "  d: {", "[b, c]", "[d, c]"), false},
		{"node_added", base + "  d: {type: end}\n", false},
		{"empty_updates", replaced("s.sh, next: c", "s.sh, state_updates: {}, next: c"), false},
		{"retry", replaced("s.sh, next: c", "s.sh, retry: {attempts: 2}, next: c"), false},
		{"tools_none_and_empty", replaced("type: llm,", "type: llm, tools: [],"), false},
		{"join_any", replaced("s.sh, next: c", "s.sh, join: any, next: c"), false},
		{"join_number", replaced("s.sh, next: c", "s.sh, join: 2, next: c"), false},
		{"defer", replaced("s.sh, next: c", "s.sh, defer: true, next: c"), false},
		{"defer_written_out", replaced("s.sh, next: c", "s.sh, defer: false, join: null, next: c"), true},
		{"on_failure", base + "settings: {on_failure: fail}\n", false},
		{"model", base + "model: m\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, next := parse(t, base), parse(t, tt.src)
			if same := graph.Fingerprint(next) == want; same != tt.same {
				t.Errorf("the fingerprint is the same: %v", same)
			}
			for _, diff := range [][]string{graph.Diff(old, next), graph.Diff(next, old)} {
				if empty := len(diff) == 0; empty != tt.same {
					t.Errorf("difference %q", diff)
				}
			}
		})
	}
}

// TestFingerprintSeesEveryDigit: two numbers that begin alike differ.
func TestFingerprintSeesEveryDigit(t *testing.T) {
	for _, key := range []string{"temperature", "top_p"} {
		a := parse(t, everything)
		b := parse(t, strings.Replace(everything, "\n"+key+": 1\n", "\n"+key+": 0.125\n", 1))
		c := parse(t, strings.Replace(everything, "\n"+key+": 1\n", "\n"+key+": 0.126\n", 1))
		if x, y, z := graph.Fingerprint(a), graph.Fingerprint(b), graph.Fingerprint(c); x == y || y == z {
			t.Errorf("%s of 1, 0.125 and 0.126: %s, %s, %s", key, x, y, z)
		}
	}
}

// TestFingerprintsAreStable pins two: runs on record are compared with them by later
// versions of the program.
func TestFingerprintsAreStable(t *testing.T) {
	const bare = `name: x
start: agent
nodes:
  agent: {type: agent, agent: c, prompt: p, next: script}
  script: {type: script, script: s.sh, next: approval}
  approval: {type: approval, question: q, options: [x], routes: {x: input}, on_other: input}
  input: {type: input, question: q, next: llm}
  llm: {type: llm, prompt: p, next: rag}
  rag: {type: rag, documents: [d], next: map}
  map: {type: map, over: o, as: i, branch: b, collect_into: r, next: end}
  b: {type: llm, prompt: p}
  end: {type: end}
`
	for _, tt := range []struct{ name, src, want string }{
		{"every_field", everything, "58634e88c6f54219"},
		{"only_what_has_to_be_there", bare, "49723350c33efb31"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := graph.Fingerprint(parse(t, tt.src)); got != tt.want {
				t.Errorf("got %s, want %s; runs that were started before this change can no longer be resumed", got, tt.want)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	old, next := parse(t, string(readFile(t, "testdata/diff/old.yaml"))), parse(t, string(readFile(t, "testdata/diff/new.yaml")))
	golden(t, "testdata/diff/want.txt", strings.Join(graph.Diff(old, next), "\n")+"\n")
}
