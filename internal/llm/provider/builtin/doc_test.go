package builtin

import (
	"os"
	"strings"
	"testing"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/builtin/script"
)

// yamlBlocks returns the YAML blocks of the user document.
func yamlBlocks(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../../../docs/builtin-models.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(data), "```yaml\n")[1:] {
		block, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatalf("a block is not closed: %.40q", part)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// Every rule file in the document can be read; the configuration is YAML.
func TestDocumentedRuleFiles(t *testing.T) {
	files := 0
	for _, block := range yamlBlocks(t) {
		doc, err := yamldoc.Parse("builtin-models.md", []byte(block))
		if err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		if doc.Root().Map().Has("clients") {
			continue // config.yaml
		}
		files++
		if _, err := script.Parse("builtin-models.md", []byte(block)); err != nil {
			t.Errorf("%v\n%s", err, block)
		}
	}
	if files < 3 {
		t.Errorf("%d rule files, want at least the three of the document", files)
	}
}

// The complete example does what its comments say.
func TestDocumentedExample(t *testing.T) {
	var example string
	for _, block := range yamlBlocks(t) {
		if strings.HasPrefix(block, "# tests/weather.yaml") {
			example = block
		}
	}
	p := New(Options{ScriptFile: writeScript(t, example)})
	call := chat.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Rome","days":1}`}
	asked := user("What is the weather in Rome?")
	answered := append(asked,
		chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{call}},
		chat.Message{Role: chat.ToolRole, ToolCallID: call.ID, Parts: chat.Text(chat.ToolRole, "Rome 21 degrees, sunny").Parts})
	strict := []chat.Message{chat.Text(chat.System, "Be strict."), chat.Text(chat.User, "A draft.")}

	for _, tt := range []struct {
		name     string
		messages []chat.Message
		origin   provider.Origin
		text     string
		calls    int
		kind     provider.ErrorKind
	}{
		{name: "call", messages: asked, origin: provider.Origin{Turn: 1}, calls: 1},
		{name: "result", messages: answered, origin: provider.Origin{Turn: 2}, text: "It is fine: Rome 21 degrees, sunny"},
		{name: "overloaded", messages: user("the forecast"), kind: provider.RateLimited},
		{name: "works_again", messages: user("the forecast"), text: "Rain, then sun."},
		{name: "strict_node", messages: strict, origin: provider.Origin{Node: "critic"}, text: "This needs work."},
		{name: "node", messages: user("A draft."), origin: provider.Origin{Node: "editor"}, text: "Good as it is."},
		{name: "default", messages: user("A draft."), text: "I have no rule for: A draft."},
	} {
		r := collect(t, p, provider.Request{Model: Script, Messages: tt.messages, Origin: tt.origin, Stream: true})
		var kind provider.ErrorKind
		if e, ok := r.Err.(*provider.Error); ok {
			kind = e.Kind
		}
		if r.Text != tt.text || len(r.ToolCalls) != tt.calls || kind != tt.kind {
			t.Errorf("%s: got %+v", tt.name, r)
		}
		if tt.calls == 1 && (r.ToolCalls[0] != call || r.Reasoning != "I have to look that up.") {
			t.Errorf("%s: got %+v, want the call %+v", tt.name, r, call)
		}
	}
}
