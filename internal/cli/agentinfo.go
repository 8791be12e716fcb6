package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"loki/internal/agent"
	"loki/internal/conversation"
	"loki/internal/graph"
	"loki/internal/value"
	"loki/internal/yamldoc"
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

	KnowledgeBases []baseSummary `json:"knowledge_bases,omitempty"`
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

// agentInfo describes the agent of -a.
func (c *command) agentInfo(ctx context.Context) error {
	of, err := c.agent()
	if err != nil {
		return err
	}
	if of.Graph == nil {
		return c.plainInfo(ctx, of)
	}
	if c.opts.hasSession {
		if _, err := c.isGraph(); err != nil { // it has none
			return err
		}
	}
	info := newAgentInfo(of.Ref, of.GraphInForce())
	if info.KnowledgeBases, err = c.agentBases(ctx, of); err != nil {
		return err
	}
	if c.opts.output != outputText {
		return printJSON(c.Out, info)
	}
	return info.print(c.Out)
}

// plainInfo describes a plain agent as a YAML document, or the same as JSON. Variables that the
// user would be asked for have no value.
func (c *command) plainInfo(ctx context.Context, of agent.Agent) error {
	var unset []string
	values, err := agent.Values(of.InForce.Variables, c.given(), func(v graph.Variable) (string, bool, error) {
		unset = append(unset, v.Name)
		return "", true, nil
	})
	if err != nil {
		return err
	}
	for _, name := range unset {
		delete(values, name)
	}
	config, inForce, err := c.app.Describe(ctx, of, values)
	if err != nil {
		return err
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
		{Name: "data_dir", Value: value.Of(of.Dir)},
		{Name: "config_file", Value: value.Of(of.Definition.File)},
	}...)
	bases, err := c.agentBases(ctx, of)
	if err != nil {
		return err
	}
	for _, base := range bases {
		members = append(members, value.Member{Name: "knowledge_base", Value: value.Of(base.String())})
	}
	if c.opts.hasSession {
		conv := c.app.Conversations().Begin(conversation.Options{})
		who := c.app.PlainAgent(of, nil, nil, func(context.Context) (map[string]string, error) { return values, nil })
		who.Instructions = func(context.Context, map[string]string) (string, error) { return "", nil } // of a session that is not there
		if err := conv.UseAgent(ctx, who); err != nil {
			return err
		}
		_, session, err := c.exported(ctx, conv)
		if err != nil {
			return err
		}
		members = append(members, value.Member{Name: "session", Value: session})
	}
	info := value.ObjectOf(members...)
	if c.opts.output != outputText {
		return printJSON(c.Out, info.Value())
	}
	var w yamldoc.Writer
	w.Members(0, info)
	_, err = io.WriteString(c.Out, w.String())
	return err
}

func newAgentInfo(ref agent.Ref, g *graph.Graph) agentInfo {
	info := agentInfo{
		Name: ref.Name, Description: strings.TrimSpace(g.Description), DataDir: ref.Dir, ConfigFile: g.File,
		Model: g.Model, Start: g.Start, Variables: []variableInfo{}, Nodes: []nodeInfo{},
	}
	for _, v := range g.Variables {
		info.Variables = append(info.Variables, variableInfo{v.Name, v.Description, v.Default})
	}
	for _, n := range g.Nodes {
		info.Nodes = append(info.Nodes, nodeInfo{n.ID, string(n.Type)})
	}
	return info
}

// print writes the agent as a YAML document.
func (a agentInfo) print(w io.Writer) error {
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
	_, err := io.WriteString(w, b.String())
	return err
}
