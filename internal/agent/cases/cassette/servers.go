package cassette

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// Servers returns servers whose tools are noted in the cassette.
func (r *Recorder) Servers(of mcp.Servers) mcp.Servers { return recordedServers{of, r} }

// Servers returns the servers of the cassette.
func (p *Player) Servers() mcp.Servers { return playedServers(p.Cassette.Servers) }

// recordedServers notes in a cassette which tools there are.
type recordedServers struct {
	mcp.Servers
	recorder *Recorder
}

func (s recordedServers) note(tools []tool.Tool, err error) ([]tool.Tool, error) {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Declaration().Name
	}
	s.recorder.OfferServerTools(names)
	return tools, err
}

// Tools returns the tools of all servers.
func (s recordedServers) Tools(ctx context.Context) ([]tool.Tool, error) {
	return s.note(s.Servers.Tools(ctx))
}

// ToolsOf returns the tools of servers.
func (s recordedServers) ToolsOf(ctx context.Context, ids []string) ([]tool.Tool, error) {
	return s.note(s.Servers.ToolsOf(ctx, ids))
}

// More returns the tools of servers that work.
func (s recordedServers) More(ctx context.Context, ids []string) []tool.Tool {
	tools, _ := s.note(s.Servers.More(ctx, ids), nil)
	return tools
}

// Tool returns a tool of a server.
func (s recordedServers) Tool(ctx context.Context, server, name string) (tool.Bound, error) {
	bound, err := s.Servers.Tool(ctx, server, name)
	if err == nil {
		_, err = s.note([]tool.Tool{bound.Tool}, nil)
	}
	return bound, err
}

// playedServers are the servers of a cassette, which are not started.
type playedServers []string

// Connect does nothing.
func (playedServers) Connect(context.Context) error { return nil }

// More returns nothing: all tools that were offered are there.
func (playedServers) More(context.Context, []string) []tool.Tool { return nil }

// Close does nothing.
func (playedServers) Close() {}

// Tools returns stand-ins for the tools that were offered.
func (s playedServers) Tools(context.Context) ([]tool.Tool, error) { return s.tools(nil), nil }

// ToolsOf returns stand-ins for the tools of servers that were offered.
func (s playedServers) ToolsOf(_ context.Context, ids []string) ([]tool.Tool, error) {
	return s.tools(ids), nil
}

// Tool returns a stand-in for a tool of a server whose call was recorded.
func (s playedServers) Tool(_ context.Context, server, name string) (tool.Bound, error) {
	for _, t := range s.tools([]string{server}) {
		if bound, ok := mcp.Bind(t, name); ok {
			return bound, nil
		}
	}
	return tool.Bound{}, fault.New(fault.Config, "no call of tool %s of the MCP server %s was recorded", name, server)
}

// tools returns the tools of servers, of all for nil. A name says to which server it belongs.
func (s playedServers) tools(ids []string) []tool.Tool {
	var tools []tool.Tool
	for _, name := range s {
		if ids == nil || slices.ContainsFunc(ids, func(id string) bool {
			return strings.Contains(name, strings.ReplaceAll(id, "-", "_")) || strings.Contains(name, id)
		}) {
			tools = append(tools, playedTool(name))
		}
	}
	return tools
}

// playedTool is a tool whose calls are in a cassette.
type playedTool string

// Declaration returns the name.
func (t playedTool) Declaration() chat.Tool { return chat.Tool{Name: string(t)} }

// Hints say that it needs no consent.
func (playedTool) Hints() tool.Hints { return tool.Hints{ReadOnly: true} }

// Call fails: the cassette would have had the result.
func (t playedTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, fmt.Errorf("%s is not called while a cassette is played", string(t))
}
