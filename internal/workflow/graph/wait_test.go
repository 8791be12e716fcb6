package graph_test

import (
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

func TestParseWaitNode(t *testing.T) {
	g := parse(t, `name: x
start: a
nodes:
  a: {type: wait, for: 10m, next: b}
  b: {type: wait, for: 1.5, next: c}
  c: {type: wait, until: "{{when}}", next: d}
  d: {type: wait, signal: paid, timeout: 60, default: {by: "{{who}}", n: 1}, schema: {type: object}, fallback: z, state_updates: {p: "{{signal}}"}, next: e}
  e: {type: wait, signal: paid, next: f}
  f: {type: wait, signal: sent, next: z}
  z: {type: end}
`)
	if a, b := *g.Node("a").Wait.For, *g.Node("b").Wait.For; a != 10*time.Minute || b != 1500*time.Millisecond {
		t.Errorf("they wait for %v and %v", a, b)
	}
	if w := g.Node("c").Wait; w.Until.Source != "{{when}}" || w.For != nil || w.Signal != "" {
		t.Errorf("%+v", w)
	}
	d := g.Node("d")
	if d.Wait.Signal != "paid" || d.Timeout != time.Minute || !d.HasTimeout || d.Fallback != "z" || d.Wait.Schema == nil || len(d.Updates) != 1 {
		t.Errorf("%+v", d)
	}
	state := graph.NewState(value.ObjectOf(value.Member{Name: "who", Value: value.ListOf(value.Of("Ada")).Value()}))
	if got := d.Wait.DefaultIn(state).String(); got != `{"by":["Ada"],"n":1}` {
		t.Errorf("the default is %s", got)
	}
	if got := strings.Join(g.Signals(), ","); got != "paid,sent" {
		t.Errorf("signals are %s", got)
	}
	if nodes := g.Waits("paid"); len(nodes) != 2 || nodes[0].ID != "d" || nodes[1].ID != "e" || g.Waits("") != nil {
		t.Errorf("%d nodes wait", len(nodes))
	}
}

// badWaits are the fields of waits that cannot be read, and what is said about them.
var badWaits = []struct{ fields, want string }{
	{"next: z", "2:6: nodes.a: a wait needs one of for, until and signal"},
	{"for: 5, until: x", "a wait has only one of for, until and signal"},
	{"for: 5, signal: x", "a wait has only one of for, until and signal"},
	{"for: soon", `2:24: nodes.a.for: expected a time of 0 or more, found the string "soon"`},
	{"for: -5", "expected a time of 0 or more"},
	{"signal: ''", "nodes.a.signal: a signal needs a name"},
	{"signal: 5", "nodes.a.signal: expected a string"},
	{"until: x, default: 5", "nodes.a.default: default is for a wait with signal"},
	{"for: 5, schema: {}", "nodes.a.schema: schema is for a wait with signal"},
	{"signal: x, schema: {type: text}", "nodes.a.schema.type: not valid JSON Schema"},
}

func TestWaitNodesThatCannotBeRead(t *testing.T) {
	for _, tt := range badWaits {
		_, _, err := graph.Parse("g.yaml", []byte("nodes:\n  a: {type: wait, "+tt.fields+"}\nname: x\nstart: a\n"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.fields, err, tt.want)
		}
	}
}

func TestWaitRules(t *testing.T) {
	for _, tt := range []struct {
		rule       graph.Rule
		name       string
		node, want string
	}{
		{graph.RuleWait, "no_time", "until: tomorrow", `4:26 error [a] until is "tomorrow", which is not a time as RFC 3339 has it`},
		{graph.RuleWait, "a_time", "until: '2026-12-24T18:00:00Z'", ""},
		{graph.RuleWait, "a_template", "until: '{{when}}'", ""},
		{graph.RuleWait, "default_of_another_form", "signal: paid, timeout: 5, default: {n: x}, schema: {properties: {n: {type: integer}}}", `4:58 error [a] the default does not match schema: /n: must be an integer, got the string "x"`},
		{graph.RuleWait, "default_with_template", "signal: paid, timeout: 5, default: {n: '{{n}}'}, schema: {properties: {n: {type: integer}}}", ""},
		{graph.RuleTimeoutDefault, "timeout_alone", "signal: paid, timeout: 5", "4:42 warning [a] there is neither default nor fallback, so the node fails without a signal within 5 seconds"},
		{graph.RuleTimeoutDefault, "with_fallback", "signal: paid, timeout: 5, fallback: z", ""},
		{graph.RuleTimeoutDefault, "default_alone", "signal: paid, default: 5", "4:42 warning [a] the default of a wait is for when its timeout is over, and there is none"},
		{graph.RuleTimeoutDefault, "both", "signal: paid, timeout: 5, default: 5", ""},
		{graph.RuleUndefinedRead, "until", "until: '{{when}}'", `4:26 warning [a] {{when}} is read, but nothing writes "when", so the node always fails`},
		{graph.RuleScopedUpdate, "dropped", "signal: paid, state_updates: {signal: '{{signal}}'}", `4:57 warning [a] "signal" is there only while the state_updates are made, so this one is dropped`},
		{graph.RuleUndefinedRead, "updates", "signal: paid, state_updates: {p: '{{signal.by}}'}", ""},
	} {
		t.Run(string(tt.rule)+"/"+tt.name, func(t *testing.T) {
			src := top + "nodes:\n  a: {type: wait, " + tt.node + ", next: z}\n" + tail
			if got := rules(graph.Validate(parse(t, src), world), tt.rule); got != tt.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", src, got, tt.want)
			}
		})
	}
	unrecorded := parse(t, top+"settings: {durability: off}\nnodes:\n  a: {type: wait, signal: paid, next: b}\n  b: {type: wait, for: 5, next: z}\n"+tail)
	if got := rules(graph.Validate(unrecorded, world), graph.RuleWait); got != "5:27 error [a] a signal cannot reach a run that is not recorded" {
		t.Error(got)
	}
	if got := rules(graph.Validate(parse(t, top+mapOver("{type: wait, for: 5}")), world), graph.RuleMapBranch); !strings.Contains(got, "of type wait, which a map cannot run") {
		t.Error(got)
	}
	if got := graph.Validate(parse(t, top+fan("{type: wait, for: 5, next: z}", "{type: wait, signal: s, state_updates: {k: x}, next: z}")), world).Errors(); len(got) > 0 {
		t.Errorf("waits in parallel: %v", got)
	}
}
