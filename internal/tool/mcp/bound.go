package mcp

import (
	"context"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/tool"
)

// Tool returns a tool of a server, by the ids of both, as models can call it: directly or through the function that runs any
// tool. The server is started for that. If there is no such server here, or it has no such tool, the error has the
// code [fault.Config].
func (s *Scope) Tool(ctx context.Context, server, name string) (tool.Bound, error) {
	l, err := s.link(server)
	if err != nil {
		return tool.Bound{}, fault.Wrap(fault.Config, err, "").WithHint("list it in mcp_servers of the agent")
	}
	if l.server.Err != nil {
		return tool.Bound{}, l.server.Err
	}
	box, err := l.list(ctx)
	if err != nil {
		return tool.Bound{}, err
	}
	t, ok := box.lookup(name)
	if !ok {
		return tool.Bound{}, fault.Wrap(fault.Config, box.missingError(name, server), "")
	}
	offered, err := s.tools(ctx, []*connection{l})
	if err != nil {
		return tool.Bound{}, err
	}
	for _, o := range offered {
		bound := tool.Bound{Tool: o, Name: name, Takes: t.Schema}
		switch o := o.(type) {
		case *invoker:
			return viaInvoker(bound), nil
		case *function:
			if o.of == name {
				return bound, nil
			}
		}
	}
	return tool.Bound{}, fault.Wrap(fault.Config, box.missingError(name, server), "") // the list has changed meanwhile
}

// viaInvoker returns a tool that is called through the function that runs any tool of its server.
func viaInvoker(b tool.Bound) tool.Bound {
	b.Of, b.Sent = "tool", "arguments" // members of invocation
	return b
}

// Bind returns the tool of a server with a name as it is called through t, one of the functions for the server; ok is false
// if it is not. It goes by the name of t, and starts no server.
func Bind(t tool.Tool, name string) (b tool.Bound, ok bool) {
	function := t.Declaration().Name
	b = tool.Bound{Tool: t, Name: name}
	if strings.HasPrefix(function, "mcp__invoke_") {
		return viaInvoker(b), true
	}
	return b, strings.HasSuffix(function, "__"+legal(name))
}
