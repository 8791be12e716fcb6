package cases_test

import (
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/agent/cases"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

const full = `# a comment
agent: ./graphs
prompt: hello
variables: {a: 1, b: 2}
files:
  in.txt: text
cases:
  - name: first
    variables: {b: 3}
    yes: true
    timeout: 5
    script:
      # the rules
      rules:
        - match: {node: a}
          reply: yes
    answers: [one, 2]
    expect:
      exit: 0
      route: [a, b]
      state:
        n: 3
        gone: null
        text: {contains: [x, "y"]}
        object: {contains: 1, other: 2}
      calls:
        - fs_cat
        - name: fs_ls
          arguments: {path: .}
      output: done
      files:
        out.txt: {matches: '^a.b$', lacks: z}
        none.txt: null
      tokens: 10
      cost: 0.5
  - name: second
    cassette: second.yaml
    answers: {ask: fine}
    expect:
      error: failed
      route: {contains: a, lacks: [b]}
      calls: {any: [fs_rm], lacks: fs_ls}
`

func TestParse(t *testing.T) {
	s, err := cases.Parse("dir/x.test.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Cases) != 2 || len(s.Warnings) != 0 {
		t.Fatalf("%d cases, warnings %v", len(s.Cases), s.Warnings)
	}
	a, b := s.Cases[0], s.Cases[1]
	dir, _ := filepath.Abs("dir")
	if a.Agent != filepath.Join(dir, "graphs") || a.Prompt != "hello" || a.Variables["a"] != "1" || a.Variables["b"] != "3" || b.Variables["b"] != "2" || !a.Yes || b.Yes {
		t.Errorf("case %+v", a)
	}
	// Places in the rules are those of the file.
	if lines := strings.Split(string(a.ScriptText), "\n"); len(lines) < 16 || lines[13] != "      rules:" || lines[15] != "          reply: yes" || strings.Contains(string(a.ScriptText), "answers") {
		t.Errorf("script:\n%s", a.ScriptText)
	}
	if b.Cassette != filepath.Join(dir, "second.yaml") || len(b.ScriptText) > 0 {
		t.Errorf("case %+v", b)
	}
	if len(a.Answers) != 2 || a.Answers[1].Text != "2" || b.Answers[0].Question != "ask" {
		t.Errorf("answers %v, %v", a.Answers, b.Answers)
	}
	e := a.Expect
	if !e.Route.IsExact || len(e.State) != 4 || e.State[2].Text == nil || e.State[3].Text != nil || e.Calls.Mode != cases.Exactly || !e.Files[1].Absent {
		t.Errorf("expect %+v", e)
	}
}

func TestParseReportsAllMistakes(t *testing.T) {
	src := `
promt: hello
cases:
  - name: a
    agent: x
    timeout: 0
    script: {rules: []}
    cassette: c.yaml
    files: {../up.txt: no}
    expect:
      exit: many
      route: 5
      output: {matches: '('}
      calls: {any: [], contains: []}
      tokens: -1
  - agent: x
  - name: a
    agent: x
`
	_, err := cases.Parse("x.test.yaml", []byte(src))
	var got []string
	for _, p := range yamldoc.AsProblems(err) {
		got = append(got, p.Error())
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{
		"x.test.yaml:6:14:", "x.test.yaml:8:5: cases[0].cassette: script and cassette exclude each other", "not a path within", "x.test.yaml:11:13:", "x.test.yaml:12:14:",
		"x.test.yaml:13:25:", "x.test.yaml:14:15: cases[0].expect.calls.any: any and contains", "x.test.yaml:15:15:", `required field "name" is missing`, `there is another case called "a"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestCheck(t *testing.T) {
	s, err := cases.Parse("dir/x.test.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	good := func() *cases.Trace {
		return &cases.Trace{
			Route: []string{"a", "b"}, Output: "done\n", Questions: []string{"x", "y"},
			State: map[string]value.Value{
				"n": value.Of(3), "text": value.Of("xyz"),
				"object": value.ObjectOf(value.Member{Name: "other", Value: value.Of(2)}, value.Member{Name: "contains", Value: value.Of(1)}).Value(),
			},
			Files: map[string]string{"out.txt": "a\nb"},
			Calls: []cases.MadeCall{
				{Name: "fs_cat", Arguments: value.Of("broken")},
				{Name: "fs_ls", Arguments: value.ObjectOf(value.Member{Name: "path", Value: value.Of(".")}, value.Member{Name: "all", Value: value.Of(true)}).Value()},
			},
		}
	}
	if f := cases.Check(s.Cases[0], good()); len(f) != 0 {
		t.Errorf("failures of a good trace: %v", f)
	}
	for _, tt := range []struct {
		what   string
		change func(*cases.Trace)
	}{
		{"exit", func(t *cases.Trace) { t.Exit = 1 }},
		{"route", func(t *cases.Trace) { t.Route = []string{"a"} }},
		{"state.n", func(t *cases.Trace) { t.State["n"] = value.Of("3") }},
		{"state.gone", func(t *cases.Trace) { t.State["gone"] = value.Of(0) }},
		{"state.text", func(t *cases.Trace) { t.State["text"] = value.Of("x") }},
		{"state.object", func(t *cases.Trace) { delete(t.State, "object") }},
		{"calls", func(t *cases.Trace) { t.Calls = t.Calls[:1] }},
		{"output", func(t *cases.Trace) { t.Output = "done." }},
		{"tokens", func(t *cases.Trace) { t.Usage.InputTokens = 11 }},
		{"cost", func(t *cases.Trace) { t.Usage.Cost = 0.6 }},
		{"cost", func(t *cases.Trace) { t.Usage.CostUnknown = true }},
		{"answers", func(t *cases.Trace) { t.Questions = t.Questions[:1] }},
	} {
		trace := good()
		tt.change(trace)
		if f := cases.Check(s.Cases[0], trace); len(f) != 1 || f[0].What != tt.what || f[0].Pos.Line == 0 {
			t.Errorf("%s: failures %+v", tt.what, f)
		}
	}
	other := good()
	other.Files = map[string]string{"none.txt": ""}
	if f := cases.Check(s.Cases[0], other); len(f) != 2 {
		t.Errorf("files: %+v", f)
	}
	// The second case expects a failure.
	bad := &cases.Trace{Exit: 1, Error: "failed", Route: []string{"c", "a"}, Calls: []cases.MadeCall{{Name: "fs_rm"}}, Questions: []string{"ask@2"}}
	if f := cases.Check(s.Cases[1], bad); len(f) != 0 {
		t.Errorf("failures %+v", f)
	}
	bad = &cases.Trace{Route: []string{"b"}, Calls: []cases.MadeCall{{Name: "fs_ls"}}}
	var whats []string
	for _, f := range cases.Check(s.Cases[1], bad) {
		whats = append(whats, f.What)
	}
	if got := strings.Join(whats, " "); got != "answers exit error route route calls" {
		t.Errorf("failures of %s", got)
	}
}

func TestCover(t *testing.T) {
	g, _, err := graph.Parse("graph.yaml", []byte(`
name: g
start: a
nodes:
  a: {type: map, over: "{{items}}", as: item, branch: b, collect_into: all, next: e}
  b: {type: script, script: b.sh, next: c}
  e: {type: llm, prompt: x, next: c, fallback: d}
  c: {type: end, output: x}
  d: {type: end, output: y}
`))
	if err != nil {
		t.Fatal(err)
	}
	trace := &cases.Trace{Visits: map[string]*cases.Visits{"g": {
		Nodes: map[string]bool{"a": true, "c": true, "e": true}, Edges: map[[2]string]bool{{"a", "e"}: true, {"e", "c"}: true}, Maps: map[string]bool{"a": true},
	}}}
	got := cases.Cover("g", g, []*cases.Trace{trace})
	if got.Visited != 4 || got.Nodes != 5 || got.Taken != 3 || got.Edges != 4 || strings.Join(got.MissingEdges, ",") != "e -> d" || strings.Join(got.MissingNodes, ",") != "d" {
		t.Errorf("coverage %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("cases: [{name: a, agent: b, script: {default: {reply: x}}, expect: {route: [a]}}]"))
	f.Add([]byte("cases:\n- name: x\n  script:\n  - a\n"))
	f.Add([]byte("cases:\n- name: x\n  script: &a\n    rules: []\n- script: *a\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := cases.Parse("x.test.yaml", src)
		if err != nil && len(yamldoc.AsProblems(err)) == 0 {
			t.Errorf("an error without a place: %v", err)
		}
		if err != nil {
			return
		}
		for _, c := range s.Cases {
			cases.Check(c, &cases.Trace{})
		}
	})
}

func TestAccept(t *testing.T) {
	src := `# first comment
cases:
  - name: a # second
    agent: x
    expect:
      route: [a, b] # third

      # fourth
      output: old
      state:
        n: 1
        list:
        - x
        kept: {matches: y}
      calls:
        - fs_cat

        - fs_ls
      files:
        "out put.txt": |
          old

          text
      # fifth
      exit: 0
  - name: b
    agent: x
    expect: {output: in braces}
`
	want := `# first comment
cases:
  - name: a # second
    agent: x
    expect:
      route: [a, c] # third

      # fourth
      output: |-
        two
        lines
      state:
        n: 2
        list: [y, z]
        kept: {matches: y}
      calls:
        - name: fs_rm
          arguments:
            path: "."
      files:
        "out put.txt": |
          new
          text
      # fifth
      exit: 0
  - name: b
    agent: x
    expect: {output: in braces}
`
	s, err := cases.Parse("x.test.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) value.Value { return value.Of(s) }
	trace := &cases.Trace{
		Route: []string{"a", "c"}, Output: "two\nlines", Files: map[string]string{"out put.txt": "new\ntext\n"},
		State: map[string]value.Value{"n": value.Of(2), "list": value.ListOf(text("y"), text("z")).Value(), "kept": text("no")},
		Calls: []cases.MadeCall{{Name: "fs_rm", Arguments: value.ObjectOf(value.Member{Name: "path", Value: text(".")}).Value()}},
	}
	var results []*cases.Result
	for _, c := range s.Cases {
		results = append(results, &cases.Result{Case: c, Trace: trace, Failures: cases.Check(c, trace)})
	}
	got, n := s.Accept(results)
	if string(got) != want || n != 6 {
		t.Errorf("%d accepted:\n%s", n, got)
	}
}
