package graph_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
)

var update = flag.Bool("update", false, "rewrite the expected texts under testdata")

// TestBadDefinitions compares what is said about each testdata/bad/*.yaml, with the
// place, the excerpt and the hint, to the .want file beside it.
func TestBadDefinitions(t *testing.T) {
	for _, file := range definitions(t, "testdata/bad") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, warnings, err := graph.Parse(filepath.Base(file), readFile(t, file))
			if err == nil && len(warnings) == 0 {
				t.Fatal("nothing was found wrong")
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".want", messages(err, warnings))
			if err != nil && fault.CodeOf(err) != fault.Config {
				t.Errorf("code %s", fault.CodeOf(err))
			}
			for i, f := range graph.ErrorFindings(err) {
				if f.Severity != graph.SeverityError || f.Rule != graph.RuleDefinition || f.Line == 0 || f.Message != yamldoc.AsProblems(err)[i].Msg {
					t.Errorf("finding %+v", f)
				}
			}
		})
	}
}

func definitions(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no definitions", err)
	}
	return files
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// messages returns the text that a user sees.
func messages(err error, warnings graph.Findings) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	for _, p := range yamldoc.AsProblems(err) {
		fmt.Fprintf(&b, "\n%s\n", p.Excerpt())
		if p.Hint != "" {
			fmt.Fprintf(&b, "hint: %s\n", p.Hint)
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "%s\n", line(w))
	}
	return b.String()
}

// line is a finding on one line.
func line(f graph.Finding) string {
	s := fmt.Sprintf("%d:%d %s %s: %s", f.Line, f.Column, f.Severity, f.Rule, f)
	if f.Hint != "" {
		s += " | " + f.Hint
	}
	return s
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(readFile(t, file)); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func parse(t *testing.T, src string) *graph.Graph {
	t.Helper()
	g, _, err := graph.Parse("graph.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// with returns a graph of one node a with the given fields, and an end node b.
func with(t *testing.T, fields string) *graph.Node {
	t.Helper()
	return parse(t, "name: x\nstart: a\nnodes:\n  a: {"+fields+"}\n  b: {type: end}\n").Node("a")
}

func TestLoadUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graph.yaml")
	_, _, err := graph.Load(path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "failed to read graph file at "+path) || strings.Count(err.Error(), path) != 1 {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graph.yaml")
	write := func(src string) {
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("name: x\nstart: a\nnodes:\n  a: {type: end, foo: 1}\n")
	g, warnings, err := graph.Load(path)
	if err != nil || g.File != path || g.Name != "x" || len(warnings) != 1 {
		t.Errorf("graph %+v, warnings %v, error %v", g, warnings, err)
	}
	write("name: x\nstart: a\nnodes:\n  a: {type: ends}\n")
	_, _, err = graph.Load(path)
	if want := "failed to parse graph file: YAML parsing error: " + path + `:4:13: nodes.a.type: unknown node type "ends"`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if hint := fault.HintOf(err); !strings.Contains(hint, "map") || !strings.Contains(hint, `"end"`) {
		t.Errorf("hint %q", hint)
	}
}

func TestTopLevelDefaults(t *testing.T) {
	g := parse(t, "name: x\nstart: a\nnodes: {a: {type: end}}\n")
	want := graph.Settings{MaxLoopIterations: 100, MaxConcurrency: 8, LogStateSnapshots: true, ValidateBeforeRun: true, OnFailure: graph.FailContinue, Durability: graph.DurabilityProcess, Scheduling: graph.ScheduleSteps}
	if g.Settings != want {
		t.Errorf("settings %+v", g.Settings)
	}
	if g.Model != "" || g.DefaultModel != "" || g.Temperature != nil || g.TopP != nil || g.GlobalTools != nil || g.InitialState.Len() != 0 || g.Reducers != nil {
		t.Errorf("graph %+v", g)
	}
}

func TestEmptyValuesAreDefaults(t *testing.T) {
	const empty = "description:\nversion:\nmodel: ~\ntemperature: null\nglobal_tools:\nmcp_servers:\nconversation_starters:\nvariables:\n" +
		"settings:\ninitial_state:\nreducers:\nname: x\nstart: a\nnodes:\n  a: {type: end, id: , description: , next: , join: , state_updates: , output: }\n"
	g := parse(t, empty)
	plain := parse(t, "name: x\nstart: a\nnodes:\n  a: {type: end}\n")
	if g.Settings != plain.Settings || !reflect.DeepEqual(g.Nodes, plain.Nodes) || g.GlobalTools != nil || g.InitialState.Len() != 0 {
		t.Errorf("%+v\n%+v", g, plain)
	}
}

func TestTopLevel(t *testing.T) {
	g := parse(t, `name: 7
description: true
version: 1.0
model: a:b
default_model: c:d
temperature: 1
top_p: 0.5
global_tools: [fs, 1]
mcp_servers: [m]
conversation_starters: [yes, "no"]
variables:
  - {name: v, description: w}
  - {name: v2, description: w2, default: 5}
settings:
  max_loop_iterations: 0x10
  timeout: 0
  log_state_snapshots: false
  validate_before_run: False
  max_concurrency: 3
  on_failure: fail
initial_state: {z: 1, a: [1.0, yes, 017, 2024-01-02, ~], o: {y: 1, x: 18446744073709551615}}
reducers: {a: append, b: extend, c: concat, d: sum, e: max, f: min, g: merge, h: overwrite}
start: 1
nodes:
  1: {type: end}
`)
	if g.Name != "7" || g.Description != "true" || g.Model != "a:b" || g.DefaultModel != "c:d" || *g.Temperature != 1 || *g.TopP != 0.5 || g.Start != "1" {
		t.Errorf("graph %+v", g)
	}
	if got := fmt.Sprint(g.GlobalTools, g.MCPServers, g.ConversationStarters); got != "[fs 1] [m] [yes no]" {
		t.Error(got)
	}
	if g.Variables[0].Default != nil || *g.Variables[1].Default != "5" || g.Variables[1].Description != "w2" {
		t.Errorf("variables %+v", g.Variables)
	}
	want := graph.Settings{MaxLoopIterations: 16, HasTimeout: true, MaxConcurrency: 3, OnFailure: graph.FailStop, FailureWritten: true, Durability: graph.DurabilityProcess, Scheduling: graph.ScheduleSteps}
	if g.Settings != want {
		t.Errorf("settings %+v", g.Settings)
	}
	if got := g.InitialState.Value().String(); got != `{"z":1,"a":[1.0,"yes","017","2024-01-02",null],"o":{"y":1,"x":18446744073709551615}}` {
		t.Error(got)
	}
	for i, name := range graph.ReducerNames {
		if key := string(rune('a' + i)); g.Reducers[key] != name {
			t.Errorf("reducer of %s is %q", key, g.Reducers[key])
		}
	}
}

// TestStartRules: all that is wrong with the rules for starts is reported at once, and a key reads only variables that there are.
func TestStartRules(t *testing.T) {
	const rest = "\nname: g\nstart: a\nnodes: {a: {type: end}}\nvariables: [{name: who, description: d}]"
	for _, tt := range []struct {
		rules          string
		errors, warned []string
	}{
		{rules: "concurrency_key: '{{variables.who}} {{agent}} {{prompt}} {{variables}}'\noverlap: skip"},
		{rules: "overlap: queue"},
		{rules: "overlap: cancel", warned: []string{"overlap: cancel has no effect without concurrency_key or concurrency_limit"}},
		{
			rules:  "concurrency_key: '{{variables.whom}}'\noverlap: wait\nthrottle: 5/25h\ndebounce: 25h",
			errors: []string{`a key has no {{variables.whom}}; did you mean "variables.who"?`, `unknown value "wait"`, `"5/25h" is not`, `"25h0m0s" is not`},
		},
		{rules: "concurrency_key: '{{agent.name}}'", errors: []string{"a key has no {{agent.name}}"}},
	} {
		_, warned, err := graph.Parse("g.yaml", []byte(tt.rules+rest))
		for _, want := range []struct {
			found graph.Findings
			texts []string
		}{{graph.ErrorFindings(err), tt.errors}, {warned, tt.warned}} {
			ok := len(want.found) == len(want.texts)
			for i := 0; ok && i < len(want.found); i++ {
				ok = strings.Contains(want.found[i].Message, want.texts[i])
			}
			if !ok {
				t.Errorf("%s: %v, want %q", tt.rules, want.found, want.texts)
			}
		}
	}
}

func TestNodeOrderAndIDs(t *testing.T) {
	g := parse(t, "name: x\nstart: z\nnodes:\n  z: {type: end, id: z}\n  a: {type: end, id: \"\"}\n  m: {type: end}\n")
	var ids []string
	for _, n := range g.Nodes {
		ids = append(ids, n.ID)
		if g.Node(n.ID) != n {
			t.Errorf("node %s is not found by its id", n.ID)
		}
	}
	if got := strings.Join(ids, " "); got != "z a m" {
		t.Error(got)
	}
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		name, next string
		want       []string
		has, fan   bool
	}{
		{"absent", "", nil, false, false},
		{"null", ", next: ~", nil, false, false},
		{"string", ", next: b", []string{"b"}, true, false},
		{"one_element", ", next: [b]", []string{"b"}, true, false},
		{"several", ", next: [b, c]", []string{"b", "c"}, true, true},
		{"same_twice", ", next: [b, b]", []string{"b", "b"}, true, true},
		{"empty_list", ", next: []", []string{}, true, false},
		{"bare_yes", ", next: yes", []string{"yes"}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := with(t, "type: llm, prompt: p"+tt.next)
			if !reflect.DeepEqual(n.Next, tt.want) || n.HasNext != tt.has || n.FanOut != tt.fan {
				t.Errorf("next %#v, has %v, fan-out %v", n.Next, n.HasNext, n.FanOut)
			}
		})
	}
}

func TestNodeDefaults(t *testing.T) {
	tmpl := graph.ParseTemplate
	for _, tt := range []struct {
		name, fields string
		want         graph.Node
	}{
		{"agent", "type: agent, agent: c, prompt: p", graph.Node{
			Type: graph.AgentNode, Timeout: 300 * time.Second, HasTimeout: true, Agent: &graph.Agent{Agent: "c", Prompt: tmpl("p")},
		}},
		{"script", "type: script, script: s.sh", graph.Node{
			Type: graph.ScriptNode, Timeout: 30 * time.Second, HasTimeout: true, Script: &graph.Script{Script: "s.sh"},
		}},
		{"approval", "type: approval, question: q, options: [], routes: {}, on_other: b", graph.Node{
			Type: graph.ApprovalNode, Approval: &graph.Approval{Question: tmpl("q"), Options: []string{}, OnOther: "b"},
		}},
		{"input", "type: input, question: q", graph.Node{Type: graph.InputNode, Input: &graph.Input{Question: tmpl("q")}}},
		{"llm", "type: llm, prompt: p", graph.Node{
			Type: graph.LLMNode, LLM: &graph.LLM{Prompt: tmpl("p"), MaxAttempts: 1, MaxIterations: 10},
		}},
		{"rag", "type: rag, documents: []", graph.Node{
			Type: graph.RAGNode, Timeout: 120 * time.Second, HasTimeout: true,
			RAG: &graph.RAG{Documents: []string{}, Query: tmpl("{{initial_prompt}}")},
		}},
		{"map", `type: map, over: "{{l}}", as: i, branch: c, collect_into: r`, graph.Node{
			Type: graph.MapNode, Map: &graph.Map{Over: tmpl("{{l}}"), As: "i", Branch: "c", CollectInto: "r", OutputKey: "output"},
		}},
		{"end", "type: end", graph.Node{Type: graph.EndNode, End: &graph.End{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.ID = "a"
			if got := with(t, tt.fields); !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", *got, tt.want)
			}
		})
	}
}

func TestNodeFields(t *testing.T) {
	tmpl := graph.ParseTemplate
	schema := value.ObjectOf(value.Member{Name: "type", Value: value.Of("array")}).Value()
	half, two := 0.5, 2
	updates := []graph.Update{{Key: "z", Template: tmpl("{{output}}")}, {Key: "a", Template: tmpl("x")}}
	const common = `, next: b, join: all, defer: true, description: d, timeout: 7, state_updates: {z: "{{output}}", a: x}`
	for _, tt := range []struct {
		name, fields string
		want         graph.Node
	}{
		{"agent", "type: agent, agent: c, prompt: p, output_schema: {type: array}" + common, graph.Node{
			Type: graph.AgentNode, Agent: &graph.Agent{Agent: "c", Prompt: tmpl("p"), OutputSchema: &schema},
		}},
		{"script", "type: script, script: s.sh, fallback: b" + common, graph.Node{
			Type: graph.ScriptNode, Fallback: "b", Script: &graph.Script{Script: "s.sh"},
		}},
		{"approval", "type: approval, question: q, options: [yes, no], routes: {yes: b, no: a, 1: b}, on_other: b, assignees: [ada, \"1\"]" + common, graph.Node{
			Type: graph.ApprovalNode, Approval: &graph.Approval{
				Question: tmpl("q"), Options: []string{"yes", "no"}, OnOther: "b",
				Routes: []graph.Route{{Answer: "yes", Target: "b"}, {Answer: "no", Target: "a"}, {Answer: "1", Target: "b"}}, Assignees: []string{"ada", "1"},
			},
		}},
		{"input", `type: input, question: q, default: "", validation: len(input) > 0` + common, graph.Node{
			Type: graph.InputNode, Input: &graph.Input{Question: tmpl("q"), Default: new(graph.Template), Validation: "len(input) > 0"},
		}},
		{"llm", "type: llm, prompt: p, instructions: i, tools: [], model: m, temperature: 0.5, top_p: 0.5, fallback: b, max_attempts: 0, max_iterations: 2, output_schema: {type: array}" + common, graph.Node{
			Type: graph.LLMNode, Fallback: "b", LLM: &graph.LLM{
				Prompt: tmpl("p"), Instructions: new(tmpl("i")), Tools: []string{}, Model: "m", Sampling: chat.Sampling{Temperature: &half, TopP: &half}, MaxIterations: 2, OutputSchema: &schema,
			},
		}},
		{"rag", "type: rag, documents: [d], query: q, top_k: 3, embedding_model: e, reranker_model: r, chunk_size: 2, chunk_overlap: 2, batch_size: 2" + common, graph.Node{
			Type: graph.RAGNode, RAG: &graph.RAG{
				Documents: []string{"d"}, Query: tmpl("q"), TopK: 3, EmbeddingModel: "e", RerankerModel: "r", ChunkSize: &two, ChunkOverlap: &two, BatchSize: &two,
			},
		}},
		{"end", "type: end, output: o" + strings.Replace(common, "timeout: 7, ", "", 1), graph.Node{Type: graph.EndNode, End: &graph.End{Output: tmpl("o")}}},
		{"map", "type: map, over: o, as: i, branch: c, collect_into: r, output_key: k, max_concurrency: 0" + strings.SplitAfter(common, "timeout: 7")[0], graph.Node{
			Type: graph.MapNode, Map: &graph.Map{Over: tmpl("o"), As: "i", Branch: "c", CollectInto: "r", OutputKey: "k", HasMaxConcurrency: true},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.ID, tt.want.Description, tt.want.Join, tt.want.Defer, tt.want.Next, tt.want.HasNext = "a", "d", graph.JoinAll, true, []string{"b"}, true
			if tt.want.Type != graph.EndNode {
				tt.want.Timeout, tt.want.HasTimeout = 7*time.Second, true
			}
			if tt.want.Type != graph.MapNode {
				tt.want.Updates, tt.want.HasUpdates = updates, true
			}
			if got := with(t, tt.fields); !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", *got, tt.want)
			}
		})
	}
}

func TestAbsentIsNotEmpty(t *testing.T) {
	absent, empty, null := with(t, "type: script, script: s.sh"), with(t, "type: script, script: s.sh, state_updates: {}"), with(t, "type: script, script: s.sh, state_updates: ~")
	if absent.HasUpdates || !empty.HasUpdates || null.HasUpdates {
		t.Error(absent.HasUpdates, empty.HasUpdates, null.HasUpdates)
	}
	if n := with(t, "type: agent, agent: c, prompt: p, timeout: 0"); n.Timeout != 0 || !n.HasTimeout {
		t.Errorf("a timeout of zero is %v, %v", n.Timeout, n.HasTimeout)
	}
}

func TestPositionsInDefinition(t *testing.T) {
	g := parse(t, `name: x
start: a
settings:
  timeout: 5
reducers: {k: append}
nodes:
  a:
    type: llm
    prompt: |
      hi
    next:
      - b
      - c
    state_updates: {out: "{{output}}"}
  b:
    type: approval
    question: q
    options: [yes, no]
    routes: {yes: c, no: c}
    on_other: c
  c: {type: end}
`)
	for path, want := range map[string]graph.Pos{
		"name":                      {Line: 1, Column: 7},
		"settings":                  {Line: 3, Column: 1},
		"settings.timeout":          {Line: 4, Column: 12},
		"settings.max_concurrency":  {Line: 3, Column: 1}, // the nearest there is
		"reducers.k":                {Line: 5, Column: 15},
		"nodes.a":                   {Line: 7, Column: 3},
		"nodes.a.prompt":            {Line: 9, Column: 13},
		"nodes.a.next":              {Line: 11, Column: 5},
		"nodes.a.next[1]":           {Line: 13, Column: 9},
		"nodes.a.state_updates.out": {Line: 14, Column: 26},
		"nodes.b.options[1]":        {Line: 18, Column: 20},
		"nodes.b.routes.yes":        {Line: 19, Column: 19},
		"nodes.b.options[9]":        {Line: 18, Column: 5},
		"nodes.c":                   {Line: 21, Column: 3},
		"nodes.c1.next":             {Line: 6, Column: 1}, // not the node whose name it begins with
	} {
		if got := g.Pos(path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

func TestExamples(t *testing.T) {
	env := graph.ValidateEnv{
		Dir:        "/x",
		FileExists: func(path string) bool { return strings.HasPrefix(path, "/x/scripts/") },
		Agent:      func(name string) (bool, bool) { return name == "researcher", true },
		Context:    &graph.AgentContext{Functions: []string{"web_search"}, Servers: []string{"papers"}, Model: func(string) error { return nil }},
	}
	for _, file := range definitions(t, "testdata/examples") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			g, warnings, err := graph.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(warnings, graph.Validate(g, env)...) {
				t.Error(line(f))
			}
		})
	}
}

// FuzzParse checks that nothing makes the parser or the validator panic, and that
// what is said stays inside the text.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"testdata/bad", "testdata/examples"} {
		files, err := filepath.Glob(dir + "/*.yaml")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	env := graph.ValidateEnv{
		Dir:        "/x",
		FileExists: func(string) bool { return false },
		Agent:      func(string) (bool, bool) { return true, false },
		Context:    &graph.AgentContext{Model: func(string) error { return errors.New("no such model") }},
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		g, findings, err := graph.Parse("f", src)
		findings = append(findings, graph.ErrorFindings(err)...)
		if err == nil {
			again, _, err := graph.Parse("g", src)
			if err != nil || graph.Fingerprint(g) != graph.Fingerprint(again) || len(graph.Diff(g, again)) > 0 {
				t.Errorf("the same text read twice differs: %v, %q", err, graph.Diff(g, again))
			}
			if g.Node(g.Start) == nil || g.Name == "" {
				t.Error("a graph without a start or a name")
			}
			findings = append(findings, graph.Validate(g, env)...)
		}
		lines := strings.Count(string(src), "\n") + strings.Count(string(src), "\r") + 1
		for _, finding := range findings {
			if finding.Line < 0 || finding.Line > lines {
				t.Errorf("%s is outside the %d lines", line(finding), lines)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var src strings.Builder
	src.WriteString("name: x\nstart: n0\nnodes:\n")
	for i := range 1999 {
		fmt.Fprintf(&src, "  n%d:\n    type: llm\n    prompt: \"hello {{initial_prompt}}\"\n    next: n%d\n", i, i+1)
	}
	src.WriteString("  n1999: {type: end}\n")
	text := []byte(src.String())
	for b.Loop() {
		g, _, err := graph.Parse("f", text)
		if err != nil {
			b.Fatal(err)
		}
		if findings := graph.Validate(g, graph.ValidateEnv{}); len(findings) > 0 {
			b.Fatal(findings)
		}
	}
}

// TestInfiniteState reads numbers that JSON does not have as null, with a warning.
func TestInfiniteState(t *testing.T) {
	g, warnings, err := graph.Parse("g.yaml", []byte("name: x\nstart: a\ninitial_state: {limit: .inf, list: [1, .nan], n: 2}\nnodes:\n  a: {type: end}\n"))
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[0].Message, ".inf cannot be expressed in JSON and is null") {
		t.Fatalf("%v, %v", warnings, err)
	}
	if got := string(g.InitialState.Value().AppendJSON(nil)); got != `{"limit":null,"list":[1,null],"n":2}` {
		t.Error(got)
	}
}

// TestMisplacedFields: the hint about a field that stands in the wrong place says where it belongs.
func TestMisplacedFields(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"tools: [x]\nnodes:\n  z: {type: end}", "the top level has no tools, it is a field of llm nodes"},
		{"timeout: 5\nnodes:\n  z: {type: end}", "the top level has no timeout, it is a field of settings"},
		{"next: z\nnodes:\n  z: {type: end}", "the top level has no next, it is a field of nodes"},
		{"nodse: 5\nnodes:\n  z: {type: end}", `did you mean "nodes"?`},
		{"nodes:\n  z: {type: end, tools: [x]}", "end nodes have no tools, it is a field of llm"},
		{"nodes:\n  z: {type: end, reducers: {}}", "end nodes have no reducers, it is a field of the top level"},
		{"nodes:\n  z: {type: end, max_loop_iterations: 5}", "end nodes have no max_loop_iterations, it is a field of settings"},
	} {
		_, warnings, err := graph.Parse("", []byte("name: x\nstart: z\n"+tt.src+"\n"))
		if err != nil || len(warnings) != 1 || warnings[0].Hint != tt.want {
			t.Errorf("%s: %v, %v", tt.src, warnings, err)
		}
	}
}
