package app

import (
	"cmp"
	"os"
	"path/filepath"

	"loki/internal/agent/memory"
	factpostgres "loki/internal/agent/memory/postgres"
	"loki/internal/agent/workspace"
	"loki/internal/conversation"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/sqlite"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/setup/config"
)

// Memory returns the facts that the user and models keep for later conversations, always the same store.
func (a *App) Memory() *memory.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.facts == nil {
		a.facts = memory.NewStore(filepath.Join(a.Paths.ConfigDir, "memory"))
		a.facts.Hide, a.facts.Warn, a.facts.Meaning = a.Hide, event.WarnText, a.meaning("user")
	}
	return a.facts
}

// MemoryOf returns the facts of the owner of a conversation, always the same store: those of the user of the command line if it is nil and there
// is no database that servers share.
func (a *App) MemoryOf(owner *auth.Owner) *memory.Store {
	a.mu.Lock()
	host := a.host
	a.mu.Unlock()
	if host == nil || owner == nil && host.db == nil {
		return a.Memory()
	}
	subject := ""
	if owner != nil {
		subject = owner.Subject
	}
	host.mu.Lock()
	defer host.mu.Unlock()
	s := host.facts[subject]
	if s == nil {
		if s = memory.NewStore(filepath.Join(a.Paths.ConfigDir, "memory", "owners", memory.OwnerName(subject))); host.db != nil {
			s = &memory.Store{Files: factpostgres.New(host.db, subject)}
		}
		s.Hide, s.Warn, s.Meaning = a.Hide, event.WarnText, a.meaning(memory.OwnerName(subject))
		host.facts[subject] = s
	}
	return s
}

// meaning returns what finds facts by vectors, if the settings name a model for them. Its knowledge base is a file of that name in the cache.
func (a *App) meaning(name string) *memory.Meaning {
	return &memory.Meaning{
		Models: a.Models, Base: sqlite.New(filepath.Join(a.Paths.CacheDir, "memory", name+rag.Extension)),
		Settings: func() (string, float64) {
			if a.DryRun() {
				return "", 0
			}
			return *cmp.Or(a.Config.RAGEmbeddingModel, new("")), *cmp.Or(a.Config.RAGThreshold, new(0.))
		},
	}
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

// conversationMemory returns what conversations remember. A server has a memory if api.memory says so, and a run that is recorded or played from a cassette asks what
// it asked before, whatever is remembered.
func (a *App) conversationMemory() *conversation.Memory {
	mode := a.Config.Memory
	if a.host != nil {
		if mode = a.ServerMemory(); mode == chat.MemoryOff {
			return nil
		}
	}
	return &conversation.Memory{
		Of: a.MemoryOf, Place: a.MemoryPlace, Mode: mode, Off: a.Taped() || a.Models.StandIn != "", Tokens: int(a.Config.MemoryTokens),
		TrustsPath: a.TrustsPath, TrustsTool: a.Config.Permission.Trusts,
	}
}

// ServerMemory returns what models of a server may do with what is remembered.
func (a *App) ServerMemory() chat.Memory { return cmp.Or(a.Config.API, config.DefaultAPI()).Memory }
