package app

import (
	"os"
	"path/filepath"

	"loki/internal/agent/memory"
	"loki/internal/agent/workspace"
	"loki/internal/llm/event"
)

// Memory returns the facts that the user and models keep for later conversations, always the same store.
func (a *App) Memory() *memory.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.facts == nil {
		a.facts = &memory.Store{Dir: filepath.Join(a.Paths.ConfigDir, "memory"), Hide: a.Hide, Warn: event.WarnText}
	}
	return a.facts
}

// MemoryPlace returns which facts belong to the working directory and to the agent with sessions of a scope, "" for none.
func (a *App) MemoryPlace(scope string) memory.Place {
	var p memory.Place
	home, _ := os.UserHomeDir() // without one, a repository is looked for in all directories above
	if dir, err := os.Getwd(); err == nil && a.host == nil {
		p.Workspace = memory.WorkspaceName(workspace.Root(dir, home))
	}
	if scope != "" {
		p.Agent = memory.AgentName(scope)
	}
	return p
}
