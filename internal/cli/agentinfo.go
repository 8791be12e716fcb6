package cli

import (
	"fmt"
	"io"
	"strings"

	"loki/internal/agent"
	"loki/internal/fault"
	"loki/internal/graph"
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
func (c *command) agentInfo() error {
	of, err := c.agent()
	if err != nil {
		return err
	}
	if of.Graph == nil {
		return fault.New(fault.Config, "agent %s is defined by config.yaml", of.Name)
	}
	info := newAgentInfo(of.Ref, of.GraphInForce())
	if c.opts.output != outputText {
		return printJSON(c.Out, info)
	}
	return info.print(c.Out)
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
	fmt.Fprintf(&b, "data_dir: %q\nconfig_file: %q\n", a.DataDir, a.ConfigFile)
	_, err := io.WriteString(w, b.String())
	return err
}
