package app

import (
	"cmp"
	"context"
	"path/filepath"

	"loki/internal/agent"
	"loki/internal/agent/team/job"
	"loki/internal/agent/team/todo"
	"loki/internal/base/process/sandbox"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	sessionsdb "loki/internal/conversation/session/postgres"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/llm/event"
	"loki/internal/llm/hook"
	"loki/internal/tool"
)

// Conversations returns what begins conversations with the configured models.
func (a *App) Conversations() *conversation.Service {
	cfg, empty := a.Config, new("")
	s := &conversation.Service{
		Engine: a.live, Dry: a.dry, Servers: a.startServers, ServerNames: a.MCP.Names, Agent: a.conversationAgent,
		CheckReranker: func(ctx context.Context, id string) error { _, err := a.Models.Reranker(ctx, id); return err },
		Hooks: func(with *conversation.Agent) *hook.Runner {
			if with == nil {
				return a.Hooks(nil)
			}
			return a.Hooks(&with.Agent)
		},
		Roles: a.Roles, Sessions: a.Sessions, Tools: a.kit, InputLimit: a.inputLimit, ModelID: a.modelID, DryRun: a.DryRun(), Unkept: a.Player != nil,
		Settings:    chat.Settings{Model: cfg.Model, Sampling: cfg.Sampling, EnabledTools: cfg.EnabledTools, EnabledMCPServers: cfg.EnabledMCPServers, Skills: cfg.Skills},
		Todo:        todo.Settings{Enabled: cfg.AutoContinue, Max: cfg.MaxAutoContinues, Inject: cfg.InjectTodoInstructions, Prompt: *cmp.Or(cfg.ContinuationPrompt, empty)},
		NoStream:    !cfg.Stream,
		SaveSession: cfg.SaveSession, Remember: cfg.REPLSession, Workspace: a.fromWorkspace, SkillTools: a.Trust.SkillTools, SkillTokens: int(cfg.SkillListTokens), Instruct: instructs(cfg.WorkspaceInstructions), Memory: a.conversationMemory(), Jobs: a.jobs(),
		SourceOf: a.Worktrees().Of, Place: a.agentPlace,
		Recents:    session.Recents{Path: filepath.Join(a.Paths.StateDir, "last"), Hide: a.Hide},
		Durability: cfg.ChatDurability, Runs: a.liveRuns(),
		Save: cfg.Save, PromptLog: cfg.PromptLog, InDatabase: cfg.Store != nil, Highlight: cfg.Highlight,
		Switches:     conversation.Switches{NoTools: !cfg.FunctionCallingSupport, NoServers: !cfg.MCPServerSupport},
		TopK:         a.topK,
		MessagesFile: &session.MessagesFile{Path: a.Paths.MessagesFile, Hide: a.Hide},
		Compression: conversation.Compression{
			Threshold: cfg.CompressionThreshold, Model: *cmp.Or(cfg.SummarizationModel, empty), Prompt: *cmp.Or(cfg.SummarizationPrompt, empty), ContextPrompt: *cmp.Or(cfg.SummaryContextPrompt, empty),
		},
	}
	return s
}

// topK returns how many passages the knowledge base called name finds for a question, or one that is built now if name is empty.
func (a *App) topK(name string) int {
	if file, err := a.Knowledge().Library().File(name); name != "" && err == nil {
		if stats, err := a.Knowledge().Stats(context.Background(), name, file); err == nil {
			return stats.Settings.TopK
		}
	}
	return a.Config.RAGTopK
}

// inputLimit returns how many tokens the model called id takes, 0 if that is not known.
func (a *App) inputLimit(id string) int {
	m, err := a.Catalog.Resolve(id, catalog.Chat)
	if err != nil {
		return 0
	}
	return m.MaxInputTokens
}

// modelID returns the whole id of the chat model called id, or of the one that is asked if id is empty. An id that means nothing stays.
func (a *App) modelID(id string) string {
	m, err := a.Catalog.Resolve(id, catalog.Chat)
	if err != nil {
		return id
	}
	return m.ID()
}

// agentSessions returns the directory with the sessions of an agent, see [App.SessionScope].
func (a *App) agentSessions(scope string) string {
	if dir, ok := a.agentDirs.Load(scope); ok {
		return filepath.Join(dir.(string), "sessions")
	}
	return a.Paths.Agent(scope).SessionsDir
}

// Sessions returns the store of sessions, always the same, so that all users of a session
// share it.
func (a *App) Sessions() (session.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions != nil {
		return a.sessions, nil
	}
	o := session.Options{Counter: token.For, Warn: event.Warn, Hide: a.Hide}
	db, err := a.Database()
	if err != nil {
		return nil, err
	}
	if db != nil {
		a.sessions = sessionsdb.New(db, o)
		return a.sessions, nil
	}
	store, err := filestore.New(filestore.Options{Options: o, Dir: a.Paths.SessionsDir, AgentDir: a.agentSessions})
	if err != nil {
		return nil, err
	}
	a.sessions = store
	return store, nil
}

// kit returns what a question is asked with, see [conversation.Service].
func (a *App) kit(ctx context.Context, w conversation.Wanted) (kit conversation.Kit, done func(), err error) {
	if w.Agent != nil {
		if err := a.Trust.Settle(event.NewContext(ctx, w.Events), w.Agent.Agent, w.Asker); err != nil {
			return kit, func() {}, err
		}
	}
	base, release, err := a.Knowledge().Searcher(ctx, w)
	if err != nil {
		return kit, release, err
	}
	prepare := a.chatKit
	if w.Agent != nil {
		prepare = a.agentKit
	}
	kit, inner, err := prepare(ctx, w)
	if kit.Knowledge = base; err == nil {
		kit.Template, err = rag.ParseTemplate(*cmp.Or(a.Config.RAGTemplate, new("")))
	}
	return kit, func() {
		inner()
		release()
	}, err
}

// chatKit is kit without an agent.
func (a *App) chatKit(ctx context.Context, w conversation.Wanted) (kit conversation.Kit, done func(), err error) {
	done = func() {}
	if kit.Calling = !w.NoTools; w.NoTools && w.NoServers {
		return kit, done, nil
	}
	if kit.Tools, err = a.selectTools(ctx, w); err != nil {
		return kit, done, err
	}
	scope, err := a.serversOf(ctx, w)
	if err != nil {
		return kit, done, err
	}
	if scope != nil {
		done = scope.Close
		kit.More = func(ctx context.Context) []tool.Tool { return scope.More(ctx, nil) }
		more, err := scope.Tools(ctx)
		if err != nil { // of some servers; the others work
			if err := w.Events.Emit(ctx, event.Warning{Text: err.Error()}); err != nil {
				return kit, done, err
			}
		}
		if kit.Tools, err = kit.Tools.With(more...); err != nil {
			return kit, done, err
		}
	}
	kit.Calls, err = a.calls(agent.Agent{}, w.Asker, w.Yes)
	kit.Calls.AtMost = sandbox.Level(w.Sandbox)
	return kit, done, err
}

// selectTools picks the tools that the settings enable, and warns of names without a tool.
func (a *App) selectTools(ctx context.Context, w conversation.Wanted) (tool.Set, error) {
	if w.EnabledTools == nil || *w.EnabledTools == "" || w.NoTools {
		return tool.Set{}, nil
	}
	library, err := a.toolsIn(a.Paths.FunctionsDir, w.Asker, "")
	if err != nil {
		return tool.Set{}, err
	}
	if most := (sandbox.Declaration{Level: sandbox.Level(w.Sandbox)}); most.Level != "" {
		if most.Level == sandbox.Network {
			most.Hosts = []string{"*"} // scripts keep the hosts that they declare
		}
		library.Scripts.Bounds = func(file string) sandbox.Bounds { return a.Trust.Bounds(agent.Agent{Within: most}, file) }
	}
	selected := library.Pool(ctx).Pick(*w.EnabledTools, a.Config.MappingTools.Get)
	if !w.Usual {
		for _, text := range library.MissingWarnings(ctx, selected.Unknown) {
			if err := w.Events.Emit(ctx, event.Warning{Text: text, Once: true}); err != nil {
				return tool.Set{}, err
			}
		}
	}
	return tool.NewSet(selected.Tools...)
}

// jobs returns what bounds the jobs of conversations, nil where there are none: a run that is recorded or played from a cassette offers models what
// it offered before.
func (a *App) jobs() *job.Options {
	if a.Taped() || a.Models.StandIn != "" {
		return nil
	}
	o := &job.Options{Jobs: a.Config.Jobs, Dir: a.JobsDir(), Secrets: &a.used}
	if a.host != nil {
		o.Known = &a.host.jobs
	} else {
		o.Ignored = a.IgnoredIn
	}
	return o
}

// JobsDir returns the directory with the logs of jobs, and the records of kept ones.
func (a *App) JobsDir() string { return filepath.Join(a.Paths.StateDir, "jobs") }
