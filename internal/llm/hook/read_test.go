package hook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/hook"
)

// read returns the hooks of a text and its problems, one a line.
func read(t *testing.T, src string, kinds []hook.Kind) ([]hook.Hook, string) {
	t.Helper()
	doc, err := yamldoc.Parse("config.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	hooks := hook.Read(doc.Root().Map().Get("hooks"), kinds)
	var problems []string
	for _, p := range append(doc.Errors(), doc.Warnings()...) {
		problems = append(problems, fmt.Sprintf("%d:%d %s", p.Pos.Line, p.Pos.Column, p.Msg))
	}
	return hooks, strings.Join(problems, "\n")
}

func TestRead(t *testing.T) {
	t.Parallel()
	hooks, problems := read(t, `hooks:
  after_tool:
    - {command: [gofmt, -w, x.go], name: format, match: fs_*, timeout: 1m, on_failure: refuse}
  before_tool:
    - command: ./guard.sh
    - {command: log, timeout: 2, on_failure: continue}
  session_end:
`, hook.Kinds())
	if problems != "" {
		t.Error(problems)
	}
	want := []hook.Hook{
		{Kind: hook.BeforeTool, Name: "before_tool[0]", Command: "./guard.sh", Timeout: 10 * time.Second, OnFailure: hook.Refuse, Where: "config.yaml:5"},
		{Kind: hook.BeforeTool, Name: "before_tool[1]", Command: "log", Timeout: 2 * time.Second, OnFailure: hook.Continue, Where: "config.yaml:6"},
		{Kind: hook.AfterTool, Name: "format", Args: []string{"gofmt", "-w", "x.go"}, Match: "fs_*", Timeout: time.Minute, OnFailure: hook.Refuse, Where: "config.yaml:3"},
	}
	if fmt.Sprint(hooks) != fmt.Sprint(want) || fmt.Sprintf("%#v", hooks) != fmt.Sprintf("%#v", want) {
		t.Errorf("got %#v", hooks)
	}
}

func TestReadMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"list", "hooks: []", "1:8 expected a mapping, found a list"},
		{"kind", "hooks: {before_tol: []}", `1:9 unknown key "before_tol"`},
		{"key", "hooks: {before_tool: [{command: x, onfailure: refuse}]}", `1:36 unknown key "onfailure"`},
		{"no_command", "hooks: {before_tool: [{name: x}]}", `1:23 required field "command" is missing`},
		{"text", "hooks: {before_tool: [x]}", `1:23 expected a mapping, found the string "x"`},
		{"empty_command", "hooks: {before_tool: [{command: ' '}]}", "1:33 the command is empty"},
		{"number", "hooks: {before_tool: [{command: 1}]}", "1:33 expected a string, found the number 1"},
		{"no_program", "hooks: {before_tool: [{command: []}]}", "1:33 the list names no program"},
		{"name", "hooks: {before_tool: [{command: x, name: ''}]}", "1:42 a name is one line of text"},
		{"match", "hooks: {before_tool: [{command: x, match: ''}]}", "1:43 the pattern is empty, so the hook would never run"},
		{"timeout", "hooks: {before_tool: [{command: x, timeout: 0}]}", "1:45 a hook has more than 0 and up to 300 seconds"},
		{"long_timeout", "hooks: {before_tool: [{command: x, timeout: 1h}]}", "1:45 a hook has more than 0 and up to 300 seconds"},
		{"on_failure", "hooks: {before_tool: [{command: x, on_failure: stop}]}", `1:48 unknown value "stop"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, got := read(t, tt.in, hook.Kinds()); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
	if _, got := read(t, "hooks: {question: [{command: x}]}", hook.AgentKinds()); got != `1:9 unknown key "question"` {
		t.Errorf("an agent: %s", got)
	}
}

// FuzzRead checks that no text makes the reader panic, and that what it accepts can be run.
func FuzzRead(f *testing.F) {
	f.Add("hooks: {before_tool: [{command: x, match: '*', timeout: 1, on_failure: continue, name: a}]}")
	f.Add("hooks: {question: [{command: [a, b]}], session_end: null}")
	f.Add("hooks: [[")
	f.Fuzz(func(t *testing.T, src string) {
		doc, err := yamldoc.Parse("f", []byte(src))
		if err != nil || doc.Root().Kind() != yamldoc.Mapping {
			return
		}
		hooks := hook.Read(doc.Root().Map().Get("hooks"), hook.Kinds())
		if doc.Err() != nil {
			return
		}
		for _, h := range hooks {
			if (h.Command == "") == (len(h.Args) == 0) || h.Timeout <= 0 || h.Timeout > hook.MaxTimeout || h.Name == "" {
				t.Fatalf("%#v", h)
			}
		}
	})
}
