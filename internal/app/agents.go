package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"loki/internal/agent"
	"loki/internal/agent/node"
	"loki/internal/agent/role"
	"loki/internal/agent/validate"
	"loki/internal/agent/validate/draft/planner"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/skill"
	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/launch"
	"loki/internal/conversation/session"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// PlainAgent returns a plain agent as conversations know it. Variables returns a value for
// each variable of the agent; given is the part of them that the user gave with the command.
func (a *App) PlainAgent(of agent.Agent, given map[string]string, asker ask.Asker, variables func(context.Context) (map[string]string, error)) conversation.Agent {
	who := conversation.Agent{
		Agent: of, Scope: a.SessionScope(of.Ref), Variables: variables, Given: given, Texts: a.texts,
		MessagesFile: &session.MessagesFile{Path: a.Paths.Agent(of.Name).MessagesFile, Hide: a.Hide},
		Session:      a.SessionOf(of), NeedsServers: slices.ContainsFunc(of.InForce.MCPServers, mcp.Required),
		Instructions: func(ctx context.Context, variables map[string]string) (string, error) {
			return a.Tools.Instructions(ctx, of, variables, asker)
		},
	}
	return who
}

// texts returns the values of placeholders in texts of an agent.
func (a *App) texts(variables map[string]string) agent.Texts {
	return agent.Texts{Variables: variables, Special: role.ThisMachine(a.Shell().Name, a.Env.Get).Lookup}
}

// SessionOf returns the name of the session that a plain agent begins with, "" for none.
func (a *App) SessionOf(of agent.Agent) string {
	return *cmp.Or(of.InForce.Session, a.Config.AgentSession, new(""))
}

// SessionScope returns whose sessions those of an agent are: of its name or, if it was found at a
// path, of that very directory.
func (a *App) SessionScope(ref agent.Ref) session.Scope {
	if ref.ByName() {
		return session.Scope(ref.Name)
	}
	sum := sha256.Sum256([]byte(ref.Dir))
	scope := ref.Name + "@" + hex.EncodeToString(sum[:4])
	a.agentDirs.Store(scope, ref.Dir)
	return session.Scope(scope)
}

// agentKit returns what a question to a plain agent is asked with, see [conversation.Service].
func (a *App) agentKit(ctx context.Context, w conversation.Wanted) (kit conversation.Kit, done func(), err error) {
	done = func() {}
	of := w.Agent.Agent
	r := launch.Run{Agent: of, Variables: w.Variables, Given: w.Agent.Given, Asker: w.Asker, Yes: w.Yes, Servers: new(!w.NoServers), Mode: w.Mode}
	if kit.Calling = !w.NoTools; !kit.Calling {
		return kit, done, fault.New(fault.Config, "agent %s works with tools, but function_calling_support is off", of.Name).
			WithHint("set it to true in %s", a.Config.File)
	}
	if slices.ContainsFunc(of.InForce.MCPServers, mcp.Required) && w.NoServers {
		return kit, done, fault.New(fault.Config, "agent %s lists MCP servers, but mcp_server_support is off", of.Name).
			WithHint("set it to true in %s", a.Config.File)
	}
	if kit.Tools, err = a.Tools.Of(ctx, of, w.Variables, w.Asker); err != nil {
		return kit, done, err
	}
	if w.EnabledTools != nil {
		if kit.Tools, err = a.narrowTools(ctx, kit.Tools, w); err != nil {
			return kit, done, err
		}
	}
	if kit.Files, err = node.Files(nil, of.Dir, kit.Tools, func(path string) string { return a.Agents.FileName(of.Ref, path) }); err != nil {
		return kit, done, err
	}
	if kit.Calls, err = a.AgentCalls(r, kit.Tools); err != nil {
		return kit, done, err
	}
	if err := a.WarnOfHooks(ctx, w.Events, of); err != nil {
		return kit, done, err
	}
	kit.Calls.AtMost, kit.Calls.Uncertain = a.Trust.Bounds(of, "").Most.Level, tool.Policy(of.Uncertain)
	if of.InForce.Harness != nil {
		if kit.Foreign, kit.Served, err = a.foreign(of); err != nil {
			return kit, done, err
		}
		kit.Foreign.Looks = a.guest.Looks != nil && a.guest.Looks()
	}
	kit.Team = a.Children(r, &graph.Node{}, w.Model, nil) // the budget is that of the turn
	scope, err := a.serversOf(ctx, w)
	if err != nil || scope == nil {
		return kit, done, err
	}
	kit.More = func(ctx context.Context) []tool.Tool { return scope.More(ctx, nil) }
	more, err := scope.Tools(ctx)
	if err != nil { // of some servers; the others work
		err = w.Events.Emit(ctx, event.Warning{Text: err.Error()})
	}
	if err == nil {
		kit.Tools, err = kit.Tools.With(more...)
	}
	return kit, scope.Close, err
}

// narrowTools returns the tools that a setting enables, from the tools of an agent and the visible ones.
func (a *App) narrowTools(ctx context.Context, own tool.Set, w conversation.Wanted) (tool.Set, error) {
	w.Usual = true // a name may be that of a tool of the agent
	visible, err := a.selectTools(ctx, w)
	if err != nil {
		return tool.Set{}, err
	}
	var tools []tool.Tool
	for _, t := range own.All() {
		tools = append(tools, t)
	}
	tools = tool.NewPool(tools...).Pick(*w.EnabledTools, a.Config.MappingTools.Get).Tools
	for name, t := range visible.All() {
		if _, taken := own.Lookup(name); !taken {
			tools = append(tools, t)
		}
	}
	return tool.NewSet(tools...)
}

// recallPlain returns the job of a plain agent's turn on record as it would be today.
func (a *App) recallPlain(ctx context.Context, ref agent.Ref, info run.Info, c run.Continuation) (run.Job, error) {
	of, findings, err := a.Agents.RecordedPlain(ref, info, c)
	if err != nil {
		return run.Job{}, err
	}
	of.Within = info.Terms.Within()
	for _, f := range findings {
		if err := c.Events.Emit(ctx, event.Warning{Text: f.Message}); err != nil {
			return run.Job{}, err
		}
	}
	who := a.PlainAgent(of, nil, c.Asker, func(context.Context) (map[string]string, error) { return info.Variables, nil })
	return a.Conversations().Recall(ctx, info, c, &who)
}

// Validator returns what checks agents, and says what they may do.
func (a *App) Validator() *validate.Service {
	s := &validate.Service{
		Tools: a.Tools, Catalog: a.Catalog, Knowledge: a.Knowledge(), Loader: a.Loader, Servers: a.MCP.ServerFile, Playing: a.Player != nil,
		Skills: func(dir string) []skill.Skill { return a.Skills(dir).Find() },
		Repository: func() bool {
			dir, err := ground.WorkingDir()
			return err != nil || worktree.InRepository(dir)
		},
	}
	if a.Models.StandIn == "" && a.Player == nil {
		s.Model = a.Models.Find
	}
	return s
}

// Planner returns what examines and writes the plans of the agent that writes graphs.
func (a *App) Planner() *planner.Service {
	return &planner.Service{
		Validator: a.Validator(), Model: a.model, Hide: a.Hide,
		All:     func(ctx context.Context) (tool.Set, error) { return a.allTools(ctx, nil) },
		ModelOf: func(of agent.Agent) string { return a.GraphModel(launch.Run{Agent: of, Model: a.model}) },
	}
}

// newLaunch returns what makes the jobs of agents.
func (a *App) newLaunch() *launch.Service {
	return &launch.Service{Options: launch.Options{
		Ground: a.Ground, Catalog: a.Catalog, Tools: a.Tools, Models: a.Models, Engine: a.live, Dry: a.dry,
		Knowledge: a.Knowledge, Validator: a.Validator, Talks: a.Conversations, Plain: a.PlainAgent, Scope: a.SessionScope,
		Memory: a.conversationMemory, Jobs: a.jobs, FromWorkspace: a.fromWorkspace, Servers: a.serverScope,
		Calls: a.calls, Judge: a.judge, Unmark: a.sealedSecret,
	}}
}
