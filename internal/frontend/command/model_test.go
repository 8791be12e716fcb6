package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"loki/internal/conversation"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/chat"
)

// TestModelShownIsAsked enters whatever can have a model in every order, and compares the model that the prompt and .info show with the
// one that the server is asked for.
func TestModelShownIsAsked(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		asked = append(asked, "s:"+body.Model)
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	graph := func(name, top, node string) string {
		return "name: " + name + "\nversion: \"1.0\"\n" + top + "start: a\nnodes:\n  a: {type: llm, prompt: hello, " + node + "next: z}\n  z: {type: end, output: done}\n"
	}
	clients := "stream: false\nclients:\n  - type: openai-compatible\n    name: s\n    api_base: " + server.URL + "\n    models: [{name: first}, {name: role}, {name: agent}, {name: session}, {name: x}, {name: y}, {name: node}]\n"
	files := map[string]string{
		"config.yaml":               clients,
		"roles/own.md":              "---\nmodel: s:role\n---\nBe short.\n",
		"agents/bare/config.yaml":   "name: bare\ninstructions: help\n",
		"agents/own/config.yaml":    "name: own\nmodel: s:agent\ninstructions: help\n",
		"agents/flow/graph.yaml":    graph("flow", "", ""),
		"agents/fixed/graph.yaml":   graph("fixed", "model: s:agent\n", ""),
		"agents/usual/graph.yaml":   graph("usual", "default_model: s:agent\n", ""),
		"agents/node/graph.yaml":    graph("node", "", "model: s:node, "),
		"macros/enter.yaml":         "steps:\n  - .agent flow\n  - hello\n",
		"macros/entermodel.yaml":    "steps:\n  - .model s:y\n  - .agent flow\n  - hello\n",
		"agents/outer/graph.yaml":   "name: outer\nversion: \"1.0\"\nstart: a\nnodes:\n  a: {type: agent, agent: bare, prompt: hello, next: z}\n  z: {type: end, output: done}\n",
		"agents/around/graph.yaml":  "name: around\nversion: \"1.0\"\nstart: a\nnodes:\n  a: {type: graph, start: b, nodes: {b: {type: llm, prompt: hello, next: c}, c: {type: end, output: done}}, next: z}\n  z: {type: end, output: done}\n",
		"agents/outer2/graph.yaml":  "name: outer2\nversion: \"1.0\"\nstart: a\nnodes:\n  a: {type: agent, agent: own, prompt: hello, next: z}\n  z: {type: end, output: done}\n",
		"agents/outer3/config.yaml": "name: outer3\ninstructions: help\nmodel: s\n",
	}
	const configured = "model: s:x\n"
	for _, tt := range []struct {
		name   string
		option string // of -m
		model  string // in config.yaml
		lines  string // with ; between them, before the question
		want   string // model that is shown
		asked  string // if another one is asked
	}{
		{name: "first_of_the_client", want: "s:first"},
		{name: "configured", model: configured, want: "s:x"},
		{name: "command", option: "s:y", model: configured, want: "s:y"},
		{name: "set", model: configured, lines: ".set model s:y", want: "s:y"},
		{name: "part_of_an_id", lines: ".model s", want: "s:first"},
		{name: "role", lines: ".role own", want: "s:role"},
		{name: "role_and_command", option: "s:y", lines: ".role own", want: "s:y"},
		{name: "model_in_role", lines: ".role own;.model s:y", want: "s:y"},
		{name: "model_before_role", lines: ".model s:y;.role own", want: "s:role"},
		{name: "left_role", lines: ".role own;.exit role", want: "s:first"},
		{name: "session", lines: ".model s:y;.session", want: "s:y"},
		{name: "session_and_command", option: "s:y", lines: ".session", want: "s:y"},
		{name: "model_in_session", lines: ".session;.model s:y", want: "s:y"},
		{name: "role_in_session", lines: ".role own;.session", want: "s:role"},
		{name: "agent", model: configured, lines: ".agent bare", want: "s:x"},
		{name: "agent_of_a_model", model: configured, lines: ".agent own", want: "s:agent"},
		{name: "agent_and_command", option: "s:y", lines: ".agent own", want: "s:y"},
		{name: "model_before_agent", lines: ".model s:y;.agent bare", want: "s:y"},
		{name: "model_in_agent", lines: ".agent own;.model s:y", want: "s:y"},
		{name: "model_before_agent_of_a_model", lines: ".model s:y;.agent own", want: "s:agent"},
		{name: "part_of_an_id_in_agent", lines: ".agent outer3", want: "s:first"},
		{name: "agent_in_session", lines: ".model s:y;.agent bare tour", want: "s:y"},
		{name: "left_agent", lines: ".model s:y;.agent own;.exit agent", want: "s:y"},
		{name: "graph", model: configured, lines: ".agent flow", want: "s:x"},
		{name: "graph_first_of_the_client", lines: ".agent flow", want: "s:first"},
		{name: "graph_and_command", option: "s:y", model: configured, lines: ".agent flow", want: "s:y"},
		{name: "graph_command_and_setting", option: "s:y", model: configured, lines: ".set stream false;.agent flow", want: "s:y"},
		{name: "model_before_graph", model: configured, lines: ".model s:y;.agent flow", want: "s:y"},
		{name: "model_in_graph", model: configured, lines: ".agent flow;.model s:y", want: "s:y"},
		{name: "model_set_in_graph", model: configured, lines: ".agent flow;.set model s:y", want: "s:y"},
		{name: "role_before_graph", model: configured, lines: ".role own;.agent flow", want: "s:x"},
		{name: "graph_of_a_model", model: configured, lines: ".agent fixed", want: "s:agent"},
		{name: "graph_of_a_model_and_command", option: "s:y", model: configured, lines: ".agent fixed", want: "s:y"},
		{name: "model_before_graph_of_a_model", model: configured, lines: ".model s:y;.agent fixed", want: "s:agent"},
		{name: "model_in_graph_of_a_model", model: configured, lines: ".agent fixed;.model s:y", want: "s:y"},
		{name: "graph_with_default", model: configured, lines: ".agent usual", want: "s:x"},
		{name: "graph_with_default_and_no_model", lines: ".agent usual", want: "s:first"},
		{name: "node_of_a_model", model: configured, lines: ".model s:y;.agent node", want: "s:y", asked: "s:node"},
		{name: "subgraph", model: configured, lines: ".model s:y;.agent around", want: "s:y"},
		{name: "child_agent", model: configured, lines: ".model s:y;.agent outer", want: "s:y"},
		{name: "child_agent_of_a_model", model: configured, lines: ".model s:y;.agent outer2", want: "s:y", asked: "s:agent"},
		{name: "left_graph", model: configured, lines: ".model s:y;.agent flow;.exit agent", want: "s:y"},
		{name: "model_of_graph_left", model: configured, lines: ".agent flow;.model s:y;.exit agent", want: "s:x"},
		{name: "macro", option: "s:y", model: configured, lines: ".macro enter", want: "s:y"},
		{name: "macro_after_model", model: configured, lines: ".model s:y;.macro enter", want: "s:y"},
		{name: "macro_with_model", model: configured, lines: ".macro entermodel", want: "s:x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files["config.yaml"] = clients + tt.model
			c, _ := newConsoleWith(t, "", files)
			c.conv = c.App.Conversations().Begin(conversation.Options{Interactive: true, Caller: conversation.Caller{Events: c.Scope}, Settings: chat.Settings{Model: tt.option}})
			do := func(line string) {
				t.Helper()
				asked = nil
				if err := c.Do(t.Context(), line); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			for line := range strings.SplitSeq(tt.lines, ";") {
				do(line)
				if macro := strings.HasPrefix(line, ".macro"); macro && !slices.Equal(asked, []string{"s:y"}) {
					t.Errorf("the macro asks %v", asked)
				}
			}
			if got := c.conv.State().Model; got != tt.want {
				t.Errorf("the prompt shows %s, want %s", got, tt.want)
			}
			if v, _ := display.Info(c.App, c.conv).Get("model"); v.Text() != tt.want {
				t.Errorf(".info shows %s, want %s", v.Text(), tt.want)
			}
			do("hello")
			want := tt.want
			if tt.asked != "" {
				want = tt.asked
			}
			if !slices.Equal(asked, []string{want}) {
				t.Errorf("the server is asked for %v, want %s", asked, want)
			}
		})
	}
}
