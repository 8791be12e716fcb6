package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/validate/draft/planner"
	"loki/internal/agent/workspace/ground"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/launch"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/mcp/servers"
	"loki/internal/tool/permission"
)

// builtinTools are the tools that are part of the program, for work in a directory, "" for the working directory. These are made once, as long as the
// working directory stays the same. Their children do not see the user's keys.
func (a *App) builtinTools(dir string) (tool.Set, error) {
	own := dir != ""
	dir, err := ground.WorkIn(dir)
	if err != nil {
		return tool.Set{}, err
	}
	box, err := a.SandboxUnder(permission.Rules{}, dir)
	if err != nil {
		return tool.Set{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nativesDir == dir {
		return a.natives, nil
	}
	set, err := tool.NewSet(append(builtin.Tools(builtin.Options{
		Child: a.Child(), Getenv: a.Setting, Dir: dir, Sandbox: box, CommandTimeout: a.Config.ToolTimeout, Locks: &a.fileLocks, Ask: a.askWeb, Client: a.guest.Client,
	}), planner.Tools(a.Planner)...)...)
	if err == nil && !own {
		a.natives, a.nativesDir = set, dir
	}
	return set, err
}

// askWeb puts a query to a model that searches the web, within the budget of the request whose
// tool it is.
func (a *App) askWeb(ctx context.Context, model, query string) (string, error) {
	rc := a.RequestContext(model, true)
	rc.Events, rc.Budget = event.NewScope(event.Discard, event.Source{}, nil), engine.BudgetOf(ctx)
	ask := a.live
	if a.DryRun() {
		ask = a.dry
	}
	reply, err := ask.Run(ctx, &rc, engine.Request{Messages: []chat.Message{chat.Text(chat.User, query)}})
	chat.MeterOf(ctx).Add(reply.Usage, false)
	return reply.Text, err
}

// judge returns what decides about the calls of an agent, the zero value for none, by rules, by grants, which may be nil, and by rules of
// its own.
func (a *App) judge(rules permission.Rules, grants *permission.Memory, of agent.Agent) (*permission.Judge, error) {
	root, err := ground.WorkIn(of.Workdir)
	if err != nil {
		return nil, err
	}
	var own permission.Rules
	if of.InForce != nil {
		own = of.InForce.Permission
	}
	box, err := a.Sandbox()
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	dirs, files := a.OwnPlaces()
	var made string
	if t := a.Worktrees().Look(root); t != nil {
		made = t.Root
	}
	judge, err := permission.New(permission.Options{
		Rules: rules, Root: root, Home: home, Protected: slices.Concat(dirs, files, a.CodePlaces()), Made: made, Shell: a.Shell().Name, Sandboxed: box.Support().Files,
		Memory: grants, Once: grants == nil, Agent: of.Name, Own: own, Ignored: a.IgnoredIn(of.Workdir),
	})
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "permission")
	}
	return judge, nil
}

// grants are what the user has allowed for good, or for as long as the program runs.
func (a *App) grants() *permission.Memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.memory == nil {
		a.memory = permission.NewMemory(filepath.Join(a.Paths.ConfigDir, "permissions.yaml"))
	}
	return a.memory
}

// Toolbox returns a box with the tool that name means, for a user who tries it, and the
// name under which it is declared: any tool that a model can be offered. If there is none
// the box has all that there are. done releases what the box holds.
func (a *App) Toolbox(ctx context.Context, name string, asker ask.Asker, yes bool) (box *tool.Box, declared string, done func(), err error) {
	done = func() {}
	hooks := a.Hooks(nil)
	asker = hooks.Asker(asker)
	tools, err := a.lookUpTools(ctx, name, asker)
	if err == nil && len(tools) == 0 {
		if file, err := a.MCP.ServerFile(); err == nil {
			if invoke, of := file.Through(name); invoke != "" {
				return nil, "", done, fault.New(fault.NotFound, "there is no tool %s: the tools of that MCP server are called through %s", name, invoke).
					WithHint(`loki --call-tool %s '{"tool": "%s", "arguments": {}}'`, invoke, of)
			}
		}
		tools, done, err = a.serverTools(ctx, name, asker)
	}
	if err != nil {
		return nil, "", done, err
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, "", done, fault.Wrap(fault.Config, err, "tool %s", name)
	}
	switch _, ok := set.Lookup(name); {
	case ok, set.Len() == 0:
		declared = name
	case set.Len() == 1:
		declared = set.Names()[0] // name is that of its file
	default:
		return nil, "", done, fault.New(fault.Usage, "%s gives several tools", name).
			WithHint("name one of them: %s", strings.Join(set.Names(), ", "))
	}
	if set.Len() == 0 {
		if set, err = a.allTools(ctx, asker); err != nil {
			return nil, "", done, err
		}
	}
	calls, err := a.calls(agent.Agent{}, asker, yes)
	if err != nil {
		return nil, "", done, err
	}
	calls.Tools, calls.Hooks = set, hooks
	return tool.NewBox(calls), declared, done, nil
}

// lookUpTools returns the tools that name means, without those of MCP servers: none if
// there is no such tool.
func (a *App) lookUpTools(ctx context.Context, name string, asker ask.Asker) ([]tool.Tool, error) {
	library, err := a.toolsIn(a.Paths.FunctionsDir, asker, "")
	if err != nil {
		return nil, err
	}
	tools, err := library.Find(ctx, name)
	if _, unknown := errors.AsType[*tool.UnknownError](err); !unknown {
		return tools, err
	}
	for _, t := range launch.UserTools(asker, "") {
		if t.Declaration().Name == name {
			return []tool.Tool{t}, nil
		}
	}
	return nil, nil
}

// serverTools returns the tool of an MCP server that is called name, none if there is no
// such tool. Only servers that may have it are started.
func (a *App) serverTools(ctx context.Context, name string, asker ask.Asker) (tools []tool.Tool, done func(), err error) {
	done = func() {}
	scope, err := a.serverScope(ctx, event.FromContext(ctx), asker, a.Config.MCPServerSupport, servers.ChooseOffering(name))
	if scope == nil || err != nil {
		return nil, done, err
	}
	if tools, err = servers.Tool(ctx, scope, name); err != nil {
		scope.Close()
		return nil, done, err
	}
	return tools, scope.Close, nil
}

// allTools returns the tools there are, but for those of MCP servers. Scripts that are
// wrong are left out.
func (a *App) allTools(ctx context.Context, asker ask.Asker) (tool.Set, error) {
	library, err := a.toolsIn(a.Paths.FunctionsDir, asker, "")
	if err != nil {
		return tool.Set{}, err
	}
	return library.All(ctx, launch.UserTools(asker, "")...)
}

// calls says how the tools of an agent, the zero value for none, are called in a run. The agent may have rules of its own. The asker may be nil. What a client of a server allows holds for the run, since others use the server, too.
func (a *App) calls(of agent.Agent, asker ask.Asker, yes bool) (tool.Options, error) {
	grants, serving := a.grants(), a.host != nil
	if serving {
		grants = grants.ForRun()
	}
	judge, err := a.judge(a.Config.Permission, grants, of)
	if err != nil {
		return tool.Options{}, err
	}
	var decides tool.Judge = judge
	if a.guest.Judge != nil {
		decides = a.guest.Judge(judge)
	}
	return tool.Options{
		Judge: decides, AutoConfirm: yes || tool.AutoConfirm(a.Env.Environ()), Asker: asker, From: ask.Question{Agent: of.Name},
		Trusts: a.Config.Permission.Trusts, ForRun: serving, Timeout: a.Config.ToolTimeout, MaxOutput: a.Config.ToolMaxOutput,
	}, nil
}
