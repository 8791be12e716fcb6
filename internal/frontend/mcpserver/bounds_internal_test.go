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
	"loki/internal/base/sandbox"
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
