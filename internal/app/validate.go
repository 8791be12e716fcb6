package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/node"
	"loki/internal/tool"
	"loki/internal/tool/script"
)

// Validate checks a graph in the light of what this program, its configuration and the
// agent have: what would keep the agent from running is an error. Nothing is started.
func (a *App) Validate(ctx context.Context, of agent.Agent) graph.Findings {
	v := validator{app: a, ref: of.Ref, g: of.GraphInForce()}
	tools := v.tools(ctx)
	v.servers()
	v.nodes()
	return append(graph.Validate(v.g, graph.ValidateEnv{
		Dir: of.Dir,
		Agent: func(name string) (known, defined bool) {
			return a.Agents.Exists(name)
		},
		Context: &graph.AgentContext{
			Functions: tools.Names(),
			HasFunction: func(name string) bool {
				_, err := tools.Select([]string{name})
				return err == nil
			},
			Servers: v.g.MCPServers,
			Model: func(id string) error {
				_, err := a.resolve(id)
				return err
			},
		},
	}), v.findings...)
}

// validator finds what package graph cannot know of.
type validator struct {
	app      *App
	ref      agent.Ref
	g        *graph.Graph // as the environment has it
	findings graph.Findings
}

func (v *validator) add(severity graph.Severity, rule graph.Rule, n *graph.Node, path, hint, format string, args ...any) {
	f := graph.Finding{Severity: severity, Rule: rule, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil {
		f.Node, f.Path = n.ID, "nodes."+n.ID+"."+path
	}
	f.Pos = v.g.Pos(f.Path)
	v.findings = append(v.findings, f)
}

func (v *validator) err(rule graph.Rule, n *graph.Node, path, hint, format string, args ...any) {
	v.add(graph.SeverityError, rule, n, path, hint, format, args...)
}

// tools checks the tools that the agent lists and those of its own script, and returns
// those that are in order.
func (v *validator) tools(ctx context.Context) tool.Set {
	shelf, err := v.app.shelf(v.ref.Dir, nil)
	if err != nil {
		v.err(graph.RuleUnknownTool, nil, "global_tools", fault.HintOf(err), "%v", err)
		return tool.Set{}
	}
	var tools []tool.Tool
	if file, o, ok := v.app.agentScript(ctx, v.ref, nil, nil); ok {
		own, err := script.Load(file, o)
		if err != nil {
			v.err(graph.RuleToolScript, nil, "", "see what models get of it: loki --tool-schema "+file, "the agent's tools: %v", err)
		}
		tools = own
	}
	for i, name := range v.g.GlobalTools {
		found, err := shelf.find(ctx, name)
		path := fmt.Sprintf("global_tools[%d]", i)
		if unknown, ok := errors.AsType[*tool.UnknownError](err); ok {
			v.err(graph.RuleUnknownTool, nil, path, "available: "+strings.Join(unknown.Available, ", "), "there is no tool %q", name)
		} else if err != nil {
			v.err(graph.RuleToolScript, nil, path, "see what models get of it: loki --tool-schema "+shelf.path(shelf.fileOf(name)), "%v", err)
		}
		tools = append(tools, found...)
	}
	set, err := tool.Set{}.With(append(tools, userTools(nil, "")...)...)
	if err != nil {
		v.err(graph.RuleToolScript, nil, "", "", "%v", err)
	}
	return set
}

// servers checks the MCP servers that the agent lists.
func (v *validator) servers() {
	if len(v.g.MCPServers) == 0 {
		return
	}
	if !v.app.Config.MCPServerSupport {
		for _, n := range v.g.Nodes {
			if n.LLM != nil && slices.ContainsFunc(n.LLM.Tools, func(name string) bool { return strings.HasPrefix(name, "mcp:") }) {
				v.err(graph.RuleUnknownMCPServer, n, "tools", "set it to true in "+v.app.Config.File, "the node lists MCP servers, but mcp_server_support is off")
			}
		}
		return
	}
	servers, err := v.app.mcpServers()
	if err != nil {
		v.err(graph.RuleUnknownMCPServer, nil, "mcp_servers", fault.HintOf(err), "%v", err)
		return
	}
	for i, name := range v.g.MCPServers {
		path := fmt.Sprintf("mcp_servers[%d]", i)
		server, _ := servers.file.Lookup(name)
		chosen := servers.file.SelectList([]string{name}, v.app.serverAliases())
		switch {
		case server.Disabled:
			v.add(graph.SeverityWarning, graph.RuleUnknownMCPServer, nil, path, "", "%s", chosen.Warnings[0])
		case len(chosen.Warnings) > 0:
			v.err(graph.RuleUnknownMCPServer, nil, path, "configure it there, or take it out of mcp_servers", "%s: %s", v.app.Paths.MCPFile(), strings.Join(chosen.Warnings, "; "))
		}
		for _, s := range chosen.Servers {
			if s.Err != nil {
				v.err(graph.RuleUnknownMCPServer, nil, path, fault.HintOf(s.Err), "%v", s.Err)
			}
		}
	}
}

// nodes reports nodes of types that cannot be run.
func (v *validator) nodes() {
	for _, n := range v.g.Nodes {
		if !node.Runs(n.Type) {
			v.err(graph.RuleNodeType, n, "type", node.InsteadHint, "this version cannot run %s nodes yet", n.Type)
		}
	}
}
