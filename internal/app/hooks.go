package app

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/agent"
	"loki/internal/conversation"
	"loki/internal/event"
	"loki/internal/hook"
	"loki/internal/process"
	"loki/internal/redact"
	"loki/internal/sandbox"
	"loki/internal/value"
)

// hooksOf returns what runs the hooks of an agent, if it is trusted, and after them those of the user, who has the last
// word. Of may be nil. The result is nil if there are none, in a dry run, while a cassette is played, and in a process
// that a hook has started.
func (a *App) hooksOf(of *agent.Agent) *hook.Runner {
	list := a.Config.Hooks
	var dir []string
	if of != nil && len(of.InForce.Hooks) > 0 && a.trusted(*of) {
		list, dir = nil, []string{of.Dir}
		for _, h := range of.InForce.Hooks {
			h.Level, h.Env = sandbox.Least(sandbox.Write, of.InForce.Sandbox.Level), []string{"LLM_AGENT_DATA_DIR=" + of.Dir}
			list = append(list, h)
		}
		list = append(list, a.Config.Hooks...)
	}
	if len(list) == 0 || a.dryRun || a.player != nil || a.Env.Get(hook.Variable) != "" {
		return nil
	}
	return hook.New(hook.Options{
		Hooks: list, Shell: a.Shell(), Child: a.Child(), Seal: a.used.Seal, Unseal: a.unsealHook,
		Confine: func(h hook.Hook) (process.Confinement, error) {
			box, err := a.Sandbox()
			if err != nil {
				return nil, err
			}
			return box.Box(sandbox.Declaration{Level: h.Level}, sandbox.Needs{Read: dir}), nil
		},
	})
}

// unsealHook returns what a text of a hook stands for. It gets back the secrets that it was sent the marks of, and no
// others.
func (a *App) unsealHook(text, sent string) string {
	return redact.Unseal(text, func(name string) (string, bool) {
		if !strings.Contains(sent, "***"+name+"***") && !strings.Contains(sent, "***"+name+"/") {
			return "", false
		}
		return a.used.Lookup(name)
	})
}

// talkHooks is hooksOf for conversations, see [conversation.Service].
func (a *App) talkHooks(with *conversation.Agent) *hook.Runner {
	if with == nil {
		return a.hooksOf(nil)
	}
	return a.hooksOf(&with.Agent)
}

// warnOfHooks warns of an agent's hooks that do not run.
func (a *App) warnOfHooks(ctx context.Context, events event.Scope, of agent.Agent) error {
	if len(of.InForce.Hooks) == 0 || a.trusted(of) {
		return nil
	}
	text := fmt.Sprintf("the hooks of agent %s do not run: the agent is not trusted", of.Name)
	return events.Emit(ctx, event.Warning{Text: text, Once: true})
}

// hooksInfo lists the user's hooks, for --info.
func (a *App) hooksInfo() value.Value {
	texts := make([]string, len(a.Config.Hooks))
	for i, h := range a.Config.Hooks {
		texts[i] = string(h.Kind) + ": " + strings.TrimPrefix(h.String(), "hook ")
	}
	return listed(texts)
}
