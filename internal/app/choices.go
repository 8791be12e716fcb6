package app

import (
	"context"
	"strings"

	"loki/internal/conversation"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// Choice is a value that a user may choose for a setting.
type Choice struct {
	Name        string
	Description string // one line, perhaps long; may be empty
}

// ToolChoices returns what a list of enabled tools may name: the visible tools, and aliases. Scripts
// that are wrong are left out.
func (a *App) ToolChoices(ctx context.Context) ([]Choice, error) {
	library, err := a.toolsIn(a.Paths.FunctionsDir, nil, "")
	if err != nil {
		return nil, err
	}
	var list []Choice
	quiet := event.NewContext(ctx, event.NewScope(event.Discard, event.Source{}, nil))
	for _, t := range library.Pool(quiet).Pick(tool.All, a.Config.MappingTools.Get).Tools {
		d := t.Declaration()
		about, _, _ := strings.Cut(d.Description, "\n")
		list = append(list, Choice{d.Name, about})
	}
	for _, e := range a.Config.MappingTools {
		list = append(list, Choice{e.Name, e.Value})
	}
	return list, nil
}

// ServerChoices returns what a list of enabled MCP servers may name: those of mcp.json, and aliases. None is
// started.
func (a *App) ServerChoices() ([]Choice, error) {
	names, err := a.MCP.Names()
	list := make([]Choice, len(names))
	for i, name := range names {
		members, _ := a.Config.MappingMCPServers.Get(name)
		list[i] = Choice{name, members}
	}
	return list, err
}

// Servers returns the MCP servers that a conversation asks for, nil if it asks for none. None is started. The caller closes
// them.
func (a *App) Servers(ctx context.Context, w conversation.Wanted) (*mcp.Scope, error) {
	servers, err := a.serversOf(ctx, w)
	scope, _ := servers.(*mcp.Scope)
	return scope, err
}
