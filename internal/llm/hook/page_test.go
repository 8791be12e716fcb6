package hook_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
)

const page = "../../../docs/hooks.md"

// blocks returns the code blocks of the page in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, part := range strings.Split(string(src), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		found = append(found, block+"\n")
	}
	return found
}

// example returns the hook of the page with a name.
func example(t *testing.T, name string) hook.Hook {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("the examples need jq")
	}
	for _, block := range blocks(t, "yaml") {
		doc, err := yamldoc.Parse(page, []byte(block))
		if err != nil {
			t.Fatal(err)
		}
		hooks := hook.Read(doc.Root().Map().Get("hooks"), hook.Kinds())
		if err := doc.Err(); err != nil {
			t.Fatal(err)
		}
		for _, h := range hooks {
			if h.Name == name {
				return h
			}
		}
	}
	t.Fatalf("the page has no hook %s", name)
	return hook.Hook{}
}

func TestExampleThatRefuses(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"git push": true, "git -C sub push --force": true, "cd x && git push": true, "git status": false, "echo push": false, "gitk": false,
	} {
		args, _ := json.Marshal(map[string]string{"command": command})
		d, warnings := run(t, options(t, example(t, "no-push")), hook.Event{Kind: hook.BeforeTool, Tool: &hook.ToolCall{Name: "execute_command", Arguments: args}})
		if d.Refused() != want || want && d.Reason != "pushing is for the user to do" {
			t.Errorf("%s: %+v, %s", command, d, warnings)
		}
	}
	// It fails closed.
	d, _ := run(t, options(t, example(t, "no-push")), hook.Event{Kind: hook.BeforeTool, Tool: &hook.ToolCall{Name: "execute_command", Arguments: json.RawMessage("{}")}})
	if !d.Refused() {
		t.Error("a call without a command is let through")
	}
}

func TestExampleThatFormats(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gofmt"); err != nil {
		t.Skip("the example needs gofmt")
	}
	for _, tt := range []struct{ name, src, want, note string }{
		{"a.go", "package  a\n", "package a\n", ""},
		{"b.go", "package\n", "package\n", "gofmt cannot read the file: it has a syntax error"},
		{"c.txt", "package  a\n", "package  a\n", ""},
	} {
		file := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(file, []byte(tt.src), 0o600); err != nil {
			t.Fatal(err)
		}
		args, _ := json.Marshal(map[string]string{"path": file, "contents": tt.src})
		d, warnings := run(t, options(t, example(t, "format")), hook.Event{Kind: hook.AfterTool, Tool: &hook.ToolCall{Name: "fs_write", Arguments: args, Result: new("ok")}})
		got, _ := os.ReadFile(file)
		note := ""
		if len(d.Notes) > 0 {
			note = d.Notes[0].Text
		}
		if string(got) != tt.want || note != tt.note || warnings != "" {
			t.Errorf("%s: %q, note %q, warnings %q", tt.name, got, note, warnings)
		}
	}
}

func TestExampleThatLogs(t *testing.T) {
	t.Parallel()
	o := options(t, example(t, "log"))
	home := t.TempDir()
	o.Child.Environ = append(o.Child.Environ, "HOME="+home)
	for range 2 {
		if d, warnings := run(t, o, call()); d.Refused() || warnings != "" {
			t.Errorf("got %+v, %s", d, warnings)
		}
	}
	log, _ := os.ReadFile(filepath.Join(home, "loki-tools.log"))
	if strings.Count(string(log), `"agent":"coder","tool":"fs_write","arguments":{"path":"a"}}`+"\n") != 2 {
		t.Errorf("the log is %s", log)
	}
}

// TestSchemas compares the schemas of the page with what is sent and what is accepted.
func TestSchemas(t *testing.T) {
	t.Parallel()
	docs := blocks(t, "json")
	compile := func(text string) *schema.Schema {
		v, err := value.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.Compile(v)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if len(docs) != 3 {
		t.Fatalf("the page has %d blocks of JSON", len(docs))
	}
	events, answers := compile(docs[1]), compile(docs[2])
	check := func(s *schema.Schema, text []byte) {
		v, err := value.ParseJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := s.Validate(v); len(wrong) > 0 {
			t.Errorf("%s: %v", text, wrong)
		}
	}
	check(events, []byte(docs[0]))
	image := chat.Text(chat.User, "look")
	image.Parts = append(image.Parts, chat.Part{Type: chat.ImagePart, URL: "data:image/png;base64,AA=="})
	reply := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "1", Name: "t", Arguments: "{}"}}}
	result := chat.Text(chat.ToolRole, "ok")
	result.ToolName = "t"
	for _, e := range []hook.Event{
		call(),
		{Kind: hook.AfterTool, Tool: &hook.ToolCall{Name: "t", Arguments: json.RawMessage("{}"), Result: new(""), Failed: true}},
		{Kind: hook.BeforeModel, Model: &hook.ModelCall{ID: "c:m", Turn: 1, Tools: []string{"t"}, Messages: hook.Messages(chat.Text(chat.System, "s"), image, reply, result)}},
		{Kind: hook.AfterModel, Model: &hook.ModelCall{ID: "c:m", Turn: 2, Reply: &hook.Messages(reply)[0], Stop: chat.StopToolCalls, Usage: &chat.Usage{InputTokens: 1}}},
		{Kind: hook.SessionStart, Session: "work"},
		{Kind: hook.Question, Question: &hook.Asked{Text: "May it?", Options: []string{"yes", "no"}, Consent: true}},
	} {
		e.Hook, e.Run, e.Agent, e.AgentID, e.Depth, e.Node = "h", "r", "a", "a-1", 1, "n"
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		check(events, text)
	}
	for _, text := range []string{`{}`, `{"action":"refuse","reason":"r","note":"n"}`, `{"arguments":{"a":1}}`} {
		check(answers, []byte(text))
		if _, err := hook.ParseAnswer(hook.BeforeTool, []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
