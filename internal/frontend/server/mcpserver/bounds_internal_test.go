package mcpserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// confined skips a test where programs have no sandbox.
func confined(t *testing.T, a *app.App) {
	t.Helper()
	box, err := a.Sandbox()
	if err != nil {
		t.Fatal(err)
	}
	if s := box.Support(); !s.Files {
		t.Skip(s.Missing)
	}
}

// TestSandbox: a script of an agent that a call runs does what the setting allows, also when the run resumes at a terminal.
func TestSandbox(t *testing.T) {
	for _, tt := range []struct {
		name, config, want string
	}{
		{"default", "", "made hidden"},
		{"read", "mcp_server: {sandbox: read}\n", "kept hidden"},
		{"full", "mcp_server: {sandbox: full}\n", "made seen"},
	} {
		for _, where := range []string{"call", "resumed"} {
			t.Run(tt.name+"_"+where, func(t *testing.T) {
				c, a := beginApp(t, nil, "", tt.config)
				confined(t, a)
				dir := filepath.Join(a.Paths.AgentsDir, "probe")
				script := "#!/bin/sh\nmade=kept seen=hidden\n(: >here) 2>/dev/null && made=made\n[ -e '" + filepath.Join(a.Paths.ConfigDir, "config.yaml") + "' ] && seen=seen\nprintf '{\"found\": \"%s %s\"}' $made $seen\n"
				if err := errors.Join(
					os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "w.sh"), []byte(script), 0o700),
					os.WriteFile(filepath.Join(dir, "graph.yaml"), []byte("name: probe\nstart: who\nsettings: {on_failure: fail}\nnodes:\n  who: {type: input, question: \"Who?\", state_updates: {who: \"{{input}}\"}, next: w}\n  w: {type: script, script: w.sh, next: e}\n  e: {type: end, output: \"{{found}}\"}\n"), 0o600),
				); err != nil {
					t.Fatal(err)
				}
				for !offers(t, c, "probe") { // it is noticed soon
				}
				id := call(t, c, "probe", map[string]any{"prompt": "it"}).of.RunID
				if where == "call" {
					if got := call(t, c, toolAnswer, map[string]any{"run_id": id, "question_id": "who", "answer": "Ada"}); got.text != tt.want {
						t.Errorf("%+v, want %s", got, tt.want)
					}
					return
				}
				out, err := a.Resume(t.Context(), run.Resumption{Answers: map[string]string{"who": "Ada"}, Continuation: run.Continuation{ID: id, Events: a.Events(event.Discard), Asker: ask.Unavailable{}}})
				if err != nil || out.Output != tt.want {
					t.Errorf("%+v, %v, want %s", out, err, tt.want)
				}
			})
		}
	}
}

// TestDepth: a call that other programs led to is served up to a number of them, and its run has it on record.
func TestDepth(t *testing.T) {
	c, a := beginApp(t, nil, "", "")
	for _, tt := range []struct {
		depth any
		ok    bool
	}{{nil, true}, {0, true}, {tool.MaxDepth, true}, {tool.MaxDepth + 1, false}, {-1, false}, {"x", false}, {1.5, false}} {
		p := &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"prompt": "Ada", "tone": "dry"}}
		if tt.depth != nil {
			p.Meta = mcp.Meta{tool.DepthKey: tt.depth}
		}
		r, err := c.CallTool(t.Context(), p)
		if wire, refused := errors.AsType[*jsonrpc.Error](err); refused != !tt.ok || refused && (wire.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wire.Message, tool.DepthKey)) {
			t.Errorf("%v: %v, %v", tt.depth, r, err)
		}
	}
	store, err := a.OpenRuns()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	infos, err := store.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != 3 || infos[0].Terms.Depth != tool.MaxDepth || infos[0].Terms.Most != sandbox.Write {
		t.Errorf("%+v, %v", infos, err)
	}
}

// offers reports whether a tool is in the list.
func offers(t *testing.T, c *mcp.ClientSession, name string) bool {
	t.Helper()
	for one, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if one.Name == name {
			return true
		}
	}
	return false
}

// TestHints: a tool says whether its agent may change something or reach the network, with the bound of a call.
func TestHints(t *testing.T) {
	for _, tt := range []struct{ config, want string }{
		{"", "ask: reads; asks: changes; fetcher: reads, reaches; greet: reads; loki_ask: reads; parent: changes; shell: changes; shelled: changes; slow: reads; "},
		{"mcp_server: {sandbox: read}\n", "ask: reads; asks: changes; fetcher: reads, reaches; greet: reads; loki_ask: reads; parent: reads; shell: reads; shelled: reads; slow: reads; "},
		{"mcp_server: {sandbox: full}\n", "ask: reads; asks: changes; fetcher: reads, reaches; greet: reads; loki_ask: reads; parent: changes, reaches; shell: changes, reaches; shelled: changes, reaches; slow: reads; "},
	} {
		a := newApp(t, tt.config)
		for name, text := range map[string]string{
			"fetcher/config.yaml": "name: fetcher\ninstructions: Work.\nglobal_tools: [fetch_url_via_curl, fs_cat]\n",
			"shell/config.yaml":   "name: shell\ninstructions: Work.\nglobal_tools: [execute_command]\n",
			"shelled/graph.yaml":  "name: shelled\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: x}\n",
			"shelled/s.sh":        "echo {}\n",
			"parent/graph.yaml":   "name: parent\nstart: s\nnodes:\n  s: {type: agent, agent: shell, prompt: x, next: e}\n  e: {type: end, output: x}\n",
		} {
			path := filepath.Join(a.Paths.AgentsDir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		c, _ := beginWith(t, a, nil, "")
		got := ""
		for one, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(one.Name, ownPrefix) && one.Name != toolAsk {
				continue
			}
			got += one.Name + map[bool]string{true: ": reads", false: ": changes"}[one.Annotations.ReadOnlyHint]
			if *one.Annotations.OpenWorldHint {
				got += ", reaches"
			}
			got += "; "
		}
		if got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.config, got, tt.want)
		}
	}
}

// TestAskInAForm: a model answers in the form that the caller wants, or the call fails.
func TestAskInAForm(t *testing.T) {
	c, _ := beginApp(t, nil, "", "")
	schema := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []string{"n"}}
	if got := call(t, c, toolAsk, map[string]any{"prompt": "Answer with one", "model": "builtin:script", "schema": schema}); got.bad || got.text != `{"n":1}` {
		t.Errorf("%+v", got)
	}
	if got := call(t, c, toolAsk, map[string]any{"prompt": "Answer with none", "model": "builtin:script", "schema": schema}); !got.bad {
		t.Errorf("%+v", got)
	}
	if got := call(t, c, toolAsk, map[string]any{"prompt": `hello`, "schema": map[string]any{"type": 7}}); !got.bad || !strings.Contains(got.text, "schema") {
		t.Errorf("%+v", got)
	}
}
