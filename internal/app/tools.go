package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"loki/internal/ask"
	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/mcp"
	"loki/internal/permission"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

// usualTools are the tools there are unless visible_tools says otherwise: those that
// need no key of some service.
var usualTools = [...]string{
	"execute_command", "execute_py_code", "execute_sql_code", "fetch_url_via_curl", "fs_cat", "fs_glob", "fs_grep", "fs_ls", "fs_mkdir", "fs_patch",
	"fs_read", "fs_rm", "fs_write", "get_current_time", "get_current_weather", "search_arxiv", "search_wikipedia", "web_search_loki",
}

// builtinTools are the tools that are part of the program. Their children do not see
// the user's keys.
func (a *App) builtinTools() ([]tool.Tool, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	return builtin.Tools(builtin.Options{
		Child: a.Child(), Getenv: a.Env.Get, Dir: dir, CommandTimeout: a.Config.ToolTimeout, Locks: &a.fileLocks, Ask: a.askWeb,
	}), nil
}

// askWeb puts a query to a model that searches the web.
func (a *App) askWeb(ctx context.Context, model, query string) (string, error) {
	e, err := a.Engine()
	if err != nil {
		return "", err
	}
	rc := a.Context(model, true)
	rc.Events = event.NewScope(event.Discard, event.Source{}, nil)
	reply, err := e.Run(ctx, &rc, engine.Request{Messages: []chat.Message{chat.Text(chat.User, query)}})
	return reply.Text, err
}

// judge returns what decides about the calls of an agent, "" for none.
func (a *App) judge(agent string) (*permission.Judge, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	home, _ := os.UserHomeDir() // without one, ~ stands for nothing
	judge, err := permission.New(permission.Options{
		Rules: a.Config.Permission, Root: root, Home: home, Protected: []string{a.Paths.ConfigDir}, Shell: a.Shell().Name,
		Memory: a.grants(), Agent: agent,
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

// tools returns the tools that are in force for a conversation, nil if there are none.
// done releases what they hold.
func (c *Conversation) tools(ctx context.Context, s Settings) (tools engine.Tools, done func(), err error) {
	done = func() {}
	set, err := c.selectTools(ctx, s)
	if err != nil {
		return nil, done, err
	}
	if deref(s.EnabledMCPServers) != "" {
		scope, err := c.app.serverScope(ctx, c.events, c.asker, func(f *mcp.File, aliases map[string]string) mcp.Selection {
			return f.Select(*s.EnabledMCPServers, aliases)
		})
		if err != nil {
			return nil, done, err
		}
		if scope != nil {
			done = scope.Close
			more, err := scope.Tools(ctx)
			if err != nil { // of some servers; the others work
				if err := c.events.Emit(ctx, event.Warning{Text: err.Error()}); err != nil {
					return nil, done, err
				}
			}
			if set, err = set.With(more...); err != nil {
				return nil, done, err
			}
		}
	}
	if set.Len() == 0 {
		return nil, done, nil
	}
	tools, err = c.app.box(set, "", c.asker, c.yes)
	return tools, done, err
}

// selectTools picks the tools that the settings enable. What they name and is not there
// is told.
func (c *Conversation) selectTools(ctx context.Context, s Settings) (tool.Set, error) {
	if deref(s.EnabledTools) == "" || !c.app.Config.FunctionCallingSupport {
		return tool.Set{}, nil
	}
	visible, err := c.app.VisibleTools()
	if err != nil {
		return tool.Set{}, err
	}
	names, unknown := tool.Pick(*s.EnabledTools, c.app.Config.MappingTools.Get, visible.Names())
	for _, name := range unknown {
		if err := c.events.Emit(ctx, event.Warning{Text: "no tool is called " + name}); err != nil {
			return tool.Set{}, err
		}
	}
	return visible.Select(names)
}

// VisibleTools are the tools that conversations may be given: those that visible_tools
// names, or else the usual ones and all of the user's own.
func (a *App) VisibleTools() (tool.Set, error) {
	all, err := a.AllTools()
	if err != nil {
		return tool.Set{}, err
	}
	names := a.Config.VisibleTools
	if names == nil {
		unusual, err := a.builtinTools()
		if err != nil {
			return tool.Set{}, err
		}
		unusual = slices.DeleteFunc(unusual, func(t tool.Tool) bool { return slices.Contains(usualTools[:], t.Declaration().Name) })
		names = slices.DeleteFunc(slices.Clone(all.Names()), func(name string) bool {
			t, _ := all.Lookup(name)
			return slices.Contains(unusual, t) // the user's own of this name is another one
		})
	}
	set, err := all.Select(names)
	if err != nil {
		return tool.Set{}, fault.Wrap(fault.Config, err, "visible_tools in %s", a.Config.File)
	}
	return set, nil
}

// AllTools are the tools there are: the user's own scripts, and those of the program
// whose names no script has.
func (a *App) AllTools() (tool.Set, error) { return a.toolsBelow(a.Paths.FunctionsDir) }

// toolsBelow are all tools; scripts get root as theirs.
func (a *App) toolsBelow(root string) (tool.Set, error) {
	own, err := a.ownTools(root)
	if err != nil {
		return tool.Set{}, err
	}
	set, err := tool.Set{}.With(own...) // of scripts with the same name the first counts
	if err != nil {
		return tool.Set{}, fault.Wrap(fault.Config, err, "the tools in %s", a.Paths.ToolsDir())
	}
	bundled, err := a.builtinTools()
	if err != nil {
		return tool.Set{}, err
	}
	return set.With(bundled...)
}

// Toolbox returns a box with all tools that there are, for whoever wants to try one.
func (a *App) Toolbox(asker ask.Asker, yes bool) (*tool.Box, error) {
	set, err := a.AllTools()
	if err != nil {
		return nil, err
	}
	return a.box(set, "", asker, yes)
}

// box returns a box with tools whose calls are judged. The asker may be nil.
func (a *App) box(set tool.Set, agent string, asker ask.Asker, yes bool) (*tool.Box, error) {
	judge, err := a.judge(agent)
	if err != nil {
		return nil, err
	}
	o := tool.Options{
		Tools: set, Judge: judge, AutoConfirm: yes || tool.AutoConfirm(a.Env.Environ()),
		Timeout: a.Config.ToolTimeout, MaxOutput: a.Config.ToolMaxOutput,
	}
	if asker != nil {
		from := ask.Question{Agent: agent}
		o.Consent, o.Confirm = tool.ConsentWith(asker, from), tool.ConfirmWith(asker, from)
	}
	return tool.NewBox(o), nil
}
