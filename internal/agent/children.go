package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"loki/internal/agent/team"
	"loki/internal/base/fault"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
)

// Inherit returns a value for each variable that a child declares: the parent's, else the default.
// The user is not asked.
func Inherit(of Agent, parent map[string]string) (map[string]string, error) {
	preset := make(map[string]string)
	for _, v := range of.InForce.Variables {
		if value, ok := parent[v.Name]; ok {
			preset[v.Name] = value
		}
	}
	var missing []string
	values, err := Values(of.InForce.Variables, preset, func(v graph.Variable) (string, bool, error) {
		missing = append(missing, fmt.Sprintf("%s (%s)", v.Name, v.Description))
		return "", true, nil
	})
	if err == nil && len(missing) > 0 {
		err = fault.New(fault.Config, "agent %s has variables without a value: %s. A child gets the values of the variables that its parent has under the same names", of.Name, strings.Join(missing, ", ")).
			WithHint("declare the variables in the parent, too, or give them a default in %s", of.Definition.File)
	}
	return values, err
}

// Candidates lists the agents that can be started.
func (l Library) Candidates() ([]team.Candidate, error) {
	names, err := l.Names()
	if err != nil {
		return nil, err
	}
	var list []team.Candidate
	for _, name := range names {
		if _, defined := l.Exists(name); !defined {
			continue
		}
		one := team.Candidate{Name: name}
		if ref, err := l.Find(name); err == nil {
			if of, _, err := l.Load(ref); err == nil { // what is wrong is reported when it is started
				one.Description = of.InForce.Description
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// Cache keeps agents that were loaded. The zero value is empty. It may be used from several goroutines.
type Cache struct {
	mu     sync.Mutex
	loaded map[Ref]loaded // guarded by mu
}

type loaded struct {
	agent    Agent
	findings graph.Findings
}

// Load returns an agent as it is now, and what is wrong with it. Its definition is read again only if it has changed.
func (c *Cache) Load(agents *Library, ref Ref) (Agent, graph.Findings, error) {
	c.mu.Lock()
	l, known := c.loaded[ref]
	c.mu.Unlock()
	if known && agents.Unchanged(l.agent) {
		return l.agent, l.findings, nil
	}
	of, findings, err := agents.Load(ref)
	if err != nil {
		return of, findings, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded == nil {
		c.loaded = make(map[Ref]loaded)
	}
	c.loaded[ref] = loaded{of, findings}
	return of, findings, nil
}

// FileName names a file as seen from the agent's directory or from that of the user's
// functions, if it is in one of them.
func (l Library) FileName(ref Ref, path string) string {
	if rel, err := filepath.Rel(ref.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	if rel, err := filepath.Rel(config.Absolute(l.Paths.FunctionsDir), path); err == nil && filepath.IsLocal(rel) {
		return "functions/" + filepath.ToSlash(rel)
	}
	return path
}
