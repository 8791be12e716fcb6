package app

import (
	"os"
	"path/filepath"
	"slices"

	"loki/internal/agent/memory"
	"loki/internal/agent/trust"
	"loki/internal/agent/workspace"
	"loki/internal/conversation"
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
		p.Workspace = memory.WorkspaceName(workspace.Root(a.Worktrees().Of(dir), home))
	}
	if scope != "" {
		p.Agent = memory.AgentName(scope)
	}
	return p
}

// conversationMemory returns what conversations remember. A server has no memory, and a run that is recorded or played from a cassette asks what
// it asked before, whatever is remembered.
func (a *App) conversationMemory() *conversation.Memory {
	if a.host != nil {
		return nil
	}
	return &conversation.Memory{
		Store: a.Memory(), Place: a.MemoryPlace, Mode: a.Config.Memory, Off: a.recorder != nil || a.player != nil || a.standIn != "", Tokens: int(a.Config.MemoryTokens),
		TrustsPath: a.trustsPath, TrustsTool: a.Config.Permission.Trusts,
	}
}

// trustsPath reports whether a file is in a directory that the user trusts, or in their configuration.
func (a *App) trustsPath(path string) bool {
	path = a.Worktrees().Of(path)
	dirs := append([]string{a.Paths.ConfigDir}, a.Config.TrustedDirs...)
	records, _ := a.Trust.Store().List() // a record that cannot be read has nothing
	for _, r := range records {
		dirs = append(dirs, r.Dir)
	}
	home, _ := os.UserHomeDir() // without one, ~ means nothing
	return slices.ContainsFunc(dirs, func(dir string) bool { return trust.Below(dir, home, path) })
}
