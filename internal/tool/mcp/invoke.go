package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// invoker is the function that runs any tool of a server. It is a [tool.Guard]: the user is
// asked about tools that the server calls destructive.
type invoker struct {
	function
	link     *connection
	describe string // name of the function that describes tools
}

// invocation is the request of a model.
type invocation struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// read returns the arguments of the function. Models write the arguments of the tool as an
// object or as a string that holds one, or leave them out.
func (v *invoker) read(call tool.Call) (invocation, error) {
	args, err := tool.Decode[invocation](call)
	if err != nil {
		return args, err
	}
	if args.Tool == "" {
		return args, fmt.Errorf("tool is missing")
	}
	text := string(bytes.TrimSpace(args.Arguments))
	if text == "" || text == "null" {
		text = "{}"
	}
	var quoted string
	if json.Unmarshal([]byte(text), &quoted) == nil {
		text = quoted
	}
	args.Arguments, err = chat.ParseArguments(text)
	if err != nil {
		return args, fmt.Errorf("arguments: %w", err)
	}
	return args, nil
}

// Consent implements tool.Guard. It does not start the server; Call checks tools that are
// not known yet.
func (v *invoker) Consent(call tool.Call) string {
	args, err := v.read(call)
	if err != nil {
		return "" // Call reports the mistake
	}
	if t, ok := v.knownTool(args.Tool); !ok || !t.Destructive {
		return ""
	}
	return fmt.Sprintf("May the tool %s of the MCP server %s be run? The server marks it as destructive.\n\n    %s",
		text.Visible(args.Tool), text.Visible(v.link.server.ID), text.Visible(string(args.Arguments)))
}

// HintsOf implements tool.Judged: a tool that is known to read only is judged as if it had been called by its own name.
func (v *invoker) HintsOf(call tool.Call) tool.Hints {
	h := v.Hints()
	if args, err := v.read(call); err == nil {
		if t, ok := v.knownTool(args.Tool); ok && t.ReadOnly {
			h.ReadOnly = true // which counts for trusted servers only
		}
	}
	return h
}

// knownTool returns a tool of the server, unless its tools are not known yet. It does not start the server.
func (v *invoker) knownTool(name string) (Tool, bool) {
	if c, err := v.link.current(); err == nil && c != nil {
		if box := c.tools.peek(); box != nil {
			return box.lookup(name)
		}
	}
	return Tool{}, false
}

// Call implements tool.Tool.
func (v *invoker) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := v.read(call)
	if err != nil {
		return tool.Result{}, fmt.Errorf("MCP tool invocation failed: %w", err)
	}
	if call.Unasked { // perhaps only because the tools were not known yet
		box, err := v.link.list(ctx)
		if err != nil {
			return tool.Result{}, fmt.Errorf("MCP tool invocation failed: %w", err)
		}
		if t, ok := box.lookup(args.Tool); ok && t.Destructive {
			return tool.Result{}, fmt.Errorf("%s is marked destructive, and its description has not been read yet. "+
				"Call %s for it first, then repeat this call", args.Tool, v.describe)
		}
	}
	return v.link.call(ctx, args.Tool, args.Arguments, call.Steps)
}
