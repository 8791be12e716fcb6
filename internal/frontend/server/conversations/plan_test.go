package conversations_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/server/servertest"
)

// TestPlanMode: a request in plan mode changes nothing, and its plan is a question of the run, whose answer begins the work.
func TestPlanMode(t *testing.T) {
	s := servertest.Start(t, servertest.Files{
		"config.yaml": config("enabled_tools: all", `permission: {rules: [{tool: fs_write, action: allow, path: "/**"}]}`),
		"rules.yaml": `rules:
  - match: {turn: 1}
    tool_calls:
      - {name: fs_write, arguments: {path: "{{text}}", contents: "x"}}
      - {name: plan__propose, arguments: {title: Write it, summary: s, steps: [{text: a}, {text: b}]}}
  - match: {tool_result: '"accepted"'}
    tool_calls: [{name: fs_write, arguments: {path: "{{text}}", contents: "y"}}, {name: todo__clear, arguments: {}}]
default:
  reply: 'then: {{tool_result}}'
`,
	})
	file := t.TempDir() + "/written"
	path := newSession(t, s, `{"model": "builtin:script"}`)
	c := completion(t, s, path+"/completions", `{"mode": "plan", "prompt": `+quote(file)+`}`)
	if c.FinishReason != "question" || c.Question == nil || len(c.Question.Options) != 4 || !strings.HasPrefix(c.Question.Text, "# Write it\n") {
		t.Fatalf("%+v", c)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("it was written before the plan was accepted")
	}
	want(t, s.Post("/v1/runs/"+c.RunID+"/answers", `{`+quote(c.Question.ID)+`: "perhaps"}`), 400)
	want(t, s.Post("/v1/runs/"+c.RunID+"/answers", `{`+quote(c.Question.ID)+`: "accept"}`), 200)
	until(t, 20*time.Second, "the session has the answer", func() bool { return strings.Contains(s.Get(path).Body, "then: ") })
	if text, err := os.ReadFile(file); err != nil || string(text) != "y" {
		t.Errorf("the file has %q, %v", text, err)
	}
	want(t, s.Post("/v1/completions", `{"mode": "write", "prompt": "x", "model": "builtin:script"}`), 400)
}
