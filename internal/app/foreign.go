package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/harness"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool"
)

// Programs returns the programs of others that agents are which are called by name.
func (a *App) Programs() (all []*harness.Program) {
	names, _ := a.Agents.Names() // those that can be found
	for _, name := range names {
		ref, err := a.Agents.Find(name)
		if err != nil {
			continue
		}
		of, _, err := a.Agents.Load(ref)
		if err != nil || of.InForce == nil || of.InForce.Harness == nil {
			continue
		}
		if p, _, err := a.foreign(of); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// foreign returns the program of others that an agent is, as it runs here, and the tools that serve it.
func (a *App) foreign(of agent.Agent) (*harness.Program, tool.Set, error) {
	if !a.Trust.Trusts(of) {
		return nil, tool.Set{}, trust.Refusal(of, "its program is not started")
	}
	dir, err := ground.WorkIn(of.Workdir)
	if err != nil {
		return nil, tool.Set{}, err
	}
	all, err := a.builtinTools(of.Workdir)
	if err != nil {
		return nil, tool.Set{}, err
	}
	var tools []tool.Tool
	for name, t := range all.All() {
		if name == "fs_cat" || name == "fs_write" || name == "execute_command" {
			tools = append(tools, t)
		}
	}
	served, err := tool.NewSet(tools...)
	if err != nil {
		return nil, tool.Set{}, err
	}
	s := of.InForce.Harness
	home, _ := os.UserHomeDir() // without it the places below it are left out
	p := &harness.Program{Setting: s, Agent: of.Name, Version: Version, Dir: dir, Home: home, Snapshot: a.Recorder != nil}
	if p.Sandbox, err = a.SandboxOf(of)(); err != nil {
		return nil, tool.Set{}, err
	}
	p.Held = sandbox.Declaration{Level: sandbox.Network, Hosts: s.Hosts}.Within(a.Trust.Bounds(of, "").Most)
	if p.Env, err = a.ForeignEnv(s, dir); err != nil {
		return nil, tool.Set{}, err
	}
	command := s.Command[0]
	if strings.ContainsAny(command, `/\\`) && !filepath.IsAbs(command) {
		command = filepath.Join(of.Dir, command)
	}
	if p.Path, _ = process.Find(command, p.Env); p.Path == "" { // the error is that of CheckInstalled
		p.Refused, _ = process.Find(command, a.Child().Environ)
	}
	log := a.programLog()
	p.Stderr = func(line string) { fmt.Fprintf(log, "[%s] %s\n", of.Name, line) }
	return p, served, nil
}
