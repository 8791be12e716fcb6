package engine

import (
	"slices"

	"loki/internal/llm/chat"
)

// hasTools reports whether the model may call tools, of the request or of its caller.
func (c *call) hasTools() bool { return c.req.Tools != nil || len(c.req.Client) > 0 }

// tools returns the declarations of all tools that the model may call.
func (c *call) tools() []chat.Tool {
	if c.req.Tools == nil {
		return c.req.Client
	}
	own := c.req.Tools.Declarations()
	if len(c.req.Client) == 0 {
		return own
	}
	visible := slices.DeleteFunc(slices.Clone(own), func(t chat.Tool) bool { return c.isClient(t.Name) })
	return append(visible, c.req.Client...)
}

// isClient reports whether the caller runs the tool called name.
func (c *call) isClient(name string) bool {
	return slices.ContainsFunc(c.req.Client, func(t chat.Tool) bool { return t.Name == name })
}

// split returns the calls that are run here, and the ones that the caller runs.
func (c *call) split(calls []chat.ToolCall) (own, client []chat.ToolCall) {
	if len(c.req.Client) == 0 {
		return calls, nil
	}
	for _, call := range calls {
		if c.req.Tools == nil || c.isClient(call.Name) {
			client = append(client, call)
			continue
		}
		own = append(own, call)
	}
	return own, client
}
