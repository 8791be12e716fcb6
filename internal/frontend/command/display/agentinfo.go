package display

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/knowledge"
	"loki/internal/workflow/graph"
)

// agentInfo is an agent as --info shows it; the JSON form is machine output.
type agentInfo struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	DataDir     string         `json:"data_dir"`
	ConfigFile  string         `json:"config_file"`
	Model       string         `json:"model,omitempty"`
	Start       string         `json:"start"`
	Variables   []variableInfo `json:"variables"`
	Nodes       []nodeInfo     `json:"nodes"`

	KnowledgeBases []knowledge.Summary `json:"knowledge_bases,omitempty"`
}

type variableInfo struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Default     *string `json:"default,omitempty"`
}

type nodeInfo struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// AgentInfo describes an agent, as a YAML document and as what machine output has. Values are those of the
// variables of a plain agent, and session is the one that it is in, null for none.
func AgentInfo(ctx context.Context, a *app.App, of agent.Agent, values map[string]string, session value.Value) (text string, machine any, err error) {
	bases, err := a.Knowledge().OfAgent(ctx, of)
	if err != nil {
		return "", nil, err
	}
	if of.Graph != nil {
		info := newAgentInfo(of.Ref, of.GraphInForce())
		info.KnowledgeBases, info.DataDir, info.ConfigFile = bases, a.DisplayPath(info.DataDir), a.DisplayPath(info.ConfigFile)
		return info.yaml(), info, nil
	}
	config, inForce, err := a.Tools.Describe(ctx, of, values)
	if err != nil {
		return "", nil, err
	}
	var variables []value.Member
	for _, v := range of.InForce.Variables {
		if text, ok := values[v.Name]; ok {
			variables = append(variables, value.Member{Name: v.Name, Value: value.Of(text)})
		}
	}
	members := []value.Member{{Name: "name", Value: value.Of(of.Name)}}
	if len(variables) > 0 {
		members = append(members, value.Member{Name: "variables", Value: value.ObjectOf(variables...).Value()})
	}
	members = append(members, []value.Member{
		{Name: "config", Value: config.Value()},
		{Name: "definition", Value: inForce.Value()},
		{Name: "data_dir", Value: value.Of(a.DisplayPath(of.Dir))},
		{Name: "config_file", Value: value.Of(a.DisplayPath(of.Definition.File))},
	}...)
	for _, base := range bases {
		members = append(members, value.Member{Name: "knowledge_base", Value: value.Of(base.String())})
	}
	if session.Kind() != value.Null {
		members = append(members, value.Member{Name: "session", Value: session})
	}
	info := value.ObjectOf(members...)
	var w yamldoc.Writer
	w.Members(0, info)
	return w.String(), info.Value(), nil
}

func newAgentInfo(ref agent.Ref, g *graph.Graph) agentInfo {
	info := agentInfo{
		Name: ref.Name, Description: strings.TrimSpace(g.Description), DataDir: ref.Dir, ConfigFile: g.File,
		Model: g.Model, Start: g.Start, Variables: []variableInfo{}, Nodes: []nodeInfo{},
	}
	for _, v := range g.Variables {
		info.Variables = append(info.Variables, variableInfo{v.Name, v.Description, v.Default})
	}
	for n := range g.All() {
		info.Nodes = append(info.Nodes, nodeInfo{n.Name, string(n.Type)})
	}
	return info
}

// yaml returns the agent as a YAML document.
func (a agentInfo) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\n", a.Name)
	if a.Description != "" {
		fmt.Fprintf(&b, "description: %q\n", a.Description)
	}
	if len(a.Variables) > 0 {
		b.WriteString("variables:\n")
		for _, v := range a.Variables {
			fmt.Fprintf(&b, "  - name: %s\n    description: %q\n", v.Name, v.Description)
			if v.Default != nil {
				fmt.Fprintf(&b, "    default: %q\n", *v.Default)
			}
		}
	}
	if a.Model != "" {
		fmt.Fprintf(&b, "model: %s\n", a.Model)
	}
	fmt.Fprintf(&b, "start: %s\nnodes:\n", a.Start)
	for _, n := range a.Nodes {
		fmt.Fprintf(&b, "  %s: %s\n", n.ID, n.Type)
	}
	if len(a.KnowledgeBases) > 0 {
		b.WriteString("knowledge_bases:\n")
		for _, base := range a.KnowledgeBases {
			fmt.Fprintf(&b, "  %s: %q\n", base.Name, base.String())
		}
	}
	fmt.Fprintf(&b, "data_dir: %q\nconfig_file: %q\n", a.DataDir, a.ConfigFile)
	return b.String()
}
