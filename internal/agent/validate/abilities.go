package validate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// Ability is something that an agent may do: the program of others that it is, a program that may be started for it, an agent that it may start, a document that
// it reads, a tool that its models may call, or a variable that it gets.
type Ability struct {
	Kind string `json:"kind"`         // program, script, agent, document, tool, server, hook or environment
	Name string `json:"name"`         // id of the node; name of the tool, the server or the variable; kind of the hook
	Of   string `json:"of,omitempty"` // file of the script or the tool, name of the agent, source of the document, command of the hook

	// Level, with what is beyond it, is what the program runs at as long as the agent is trusted, or is not, as now. It is empty
	// for what starts no program, and [sandbox.Read] for tools that run at the level that a call asks for.
	Level sandbox.Level `json:"level,omitempty"`
	Hosts []string      `json:"hosts,omitempty"`
	Read  []string      `json:"read,omitempty"`
	Write []string      `json:"write,omitempty"`
	// Most is the highest level that a call of the tool can be granted, or that the agent can have; empty for an agent
	// without a bound.
	Most sandbox.Level `json:"most,omitempty"`
	// Declared is what the script or the tool declares if it gets less.
	Declared string `json:"declared,omitempty"`
	// Withheld says that the agent does not get it, since it is not trusted.
	Withheld bool `json:"withheld,omitempty"`

	changes, reaches bool // whether it can change something, and reach the network
}

// Effects reports whether an agent, or one that it starts, may change something, and whether it may reach the network for anything but models,
// as far as [Service.Abilities] say. What is not known may do both.
func (s *Service) Effects(ctx context.Context, of agent.Agent) (changes, reaches bool) {
	seen := make(map[string]bool)
	var look func(of agent.Agent)
	look = func(of agent.Agent) {
		seen[of.Name] = true
		for _, b := range s.Abilities(ctx, of) {
			if b.Kind != "agent" || b.Withheld {
				changes, reaches = changes || b.changes && !b.Withheld, reaches || b.reaches && !b.Withheld
				continue
			}
			name := cmp.Or(b.Of, b.Name)
			if seen[name] {
				continue
			}
			ref, err := s.Tools.Agents.Find(name)
			if err != nil {
				changes, reaches = true, true
				continue
			}
			child, _, err := s.Tools.Agents.Load(ref)
			if err != nil {
				changes, reaches = true, true
				continue
			}
			child.Within = of.Within
			look(child)
		}
	}
	look(of)
	return changes, reaches
}

// local reports whether a tool of this program is known not to reach the network.
func local(name string) bool { return strings.HasPrefix(name, "fs_") || name == "get_current_time" }

// Abilities returns what an agent may do, as far as its definition and its scripts say. Nothing is started.
func (s *Service) Abilities(ctx context.Context, of agent.Agent) []Ability {
	v := validator{Service: s, of: of, d: of.InForce, g: of.GraphInForce()}
	bounds, trusted := s.Tools.Trust.Bounds(of, ""), s.Tools.Trust.Trusts(of)
	program := func(kind, name, file string, declared sandbox.Declaration) Ability {
		held := s.Tools.Trust.Bounds(of, file).Of(declared)
		b := Ability{Kind: kind, Name: name, Of: file, Level: held.Level, Hosts: held.Hosts, Read: held.Read, Write: held.Write}
		b.changes, b.reaches = held.Level.Covers(sandbox.Write), held.Level.Covers(sandbox.Network)
		if text := declared.String(); declared.Level != "" && text != held.String() {
			b.Declared = text
		}
		return b
	}
	var list []Ability
	switch {
	case v.g != nil:
		for n := range v.g.All() {
			switch {
			case n.Script != nil:
				list = append(list, program("script", n.Name, n.Script.Path(of.Dir), n.Sandbox))
				list[len(list)-1].Of = n.Script.Script
			case n.Agent != nil:
				most := bounds.Most
				if n.Sandbox.Level != "" {
					most = n.Sandbox.Within(most)
				}
				list = append(list, Ability{Kind: "agent", Name: n.Name, Of: n.Agent.Agent, Most: most.Level})
			case n.RAG != nil:
				for _, document := range n.RAG.Documents {
					list = append(list, Ability{Kind: "document", Name: n.Name, Of: document})
				}
			}
		}
	case v.d.Team.CanSpawn:
		agents := v.d.Team.Spawnable
		if len(agents) == 0 {
			agents = []string{"*"}
		}
		for _, name := range agents {
			list = append(list, Ability{Kind: "agent", Name: name, Most: bounds.Most.Level})
		}
	}
	if h := v.d.Harness; h != nil {
		held := sandbox.Declaration{Level: sandbox.Network, Hosts: h.Hosts, Write: h.State}.Within(bounds.Most)
		list = append(list, Ability{
			Kind: "program", Name: h.Name, Of: strings.Join(h.Command, " "), Level: held.Level, Hosts: held.Hosts, Write: held.Write, Withheld: !trusted, changes: true, reaches: true,
		})
		for _, name := range h.Env {
			if !strings.Contains(name, "=") {
				list = append(list, Ability{Kind: "environment", Name: name, Withheld: !trusted})
			}
		}
	}
	for _, document := range v.d.Documents {
		list = append(list, Ability{Kind: "document", Name: of.Name, Of: document})
	}
	tools, _ := v.listedTools(ctx) // what is wrong is not the matter here
	for _, t := range tools {
		b := Ability{Kind: "tool", Name: t.Declaration().Name}
		if own, ok := t.(tool.FromFile); ok {
			file, _, _ := own.Source() // its path is known without the text
			b = program(b.Kind, b.Name, file, t.Hints().Sandbox)
			b.Of = own.File()
		} else if _, ok := t.(tool.Confined); ok {
			b.Level, b.Most = sandbox.Read, cmp.Or(bounds.Most.Level, sandbox.Full)
			b.changes, b.reaches = b.Most.Covers(sandbox.Write), b.Most.Covers(sandbox.Network)
		} else {
			b.changes, b.reaches = !t.Hints().ReadOnly || t.Hints().Writes, !local(b.Name)
		}
		list = append(list, b)
	}
	for _, name := range v.d.MCPServers {
		name, _ = mcp.Optional(name)
		b := Ability{Kind: "server", Name: name, Withheld: !trusted, changes: true, reaches: true}
		if servers, err := s.Servers(); err == nil {
			if server, ok := servers.Lookup(name); ok && server.Type == mcp.Stdio {
				b.Level, b.Hosts = cmp.Or(server.Sandbox.Level, sandbox.Full), server.Sandbox.Hosts
			}
		}
		list = append(list, b)
	}
	for _, h := range v.d.Hooks {
		list = append(list, Ability{
			Kind: "hook", Name: string(h.Kind), Of: h.Line(), Level: sandbox.Least(sandbox.Write, v.d.Sandbox.Level), Withheld: !trusted, changes: v.d.Sandbox.Level != sandbox.Read,
		})
	}
	for _, name := range slices.Sorted(slices.Values(v.d.Environment)) {
		list = append(list, Ability{Kind: "environment", Name: name, Withheld: !trusted})
	}
	return list
}
