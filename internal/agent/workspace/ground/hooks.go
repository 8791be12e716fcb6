package ground

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/llm/event/redact"
	"loki/internal/llm/hook"
)

// Hooks returns what runs the hooks of an agent, if it is trusted, and after them those of the user, who has the last
// word. A hook of the user that declares no level, and starts programs that may take code from the working directory, runs at level
// [sandbox.Write]. Of may be nil. The result is nil if there are none, in a dry run, while a cassette is played, and in a process
// that a hook has started.
func (g *Ground) Hooks(of *agent.Agent) *hook.Runner {
	var list []hook.Hook
	needs := make(map[string]string) // what a hook reads beside its level, by where it is defined
	if of != nil && len(of.InForce.Hooks) > 0 && g.Trust.Trusts(*of) {
		for _, h := range of.InForce.Hooks {
			h.Level, h.Env = sandbox.Least(sandbox.Least(sandbox.Write, of.InForce.Sandbox.Level), h.Level), []string{"LLM_AGENT_DATA_DIR=" + of.Dir}
			needs[h.Where] = of.Dir
			list = append(list, h)
		}
	}
	if len(list)+len(g.Config.Hooks) == 0 || g.DryRun() || g.Replayed || g.Env.Get(hook.Variable) != "" {
		return nil
	}
	inside := environ.Inside(g.workspace())
	list = append(list, g.userHooks(inside)...)
	return hook.New(hook.Options{
		Hooks: list, Shell: g.Shell(), Child: g.ProgramChild(), Seal: g.Secrets.Seal, Unseal: g.unsealHook,
		Confine: func(ctx context.Context, h hook.Hook) (process.Confinement, error) {
			box, err := g.Sandbox()
			if err != nil {
				return nil, err
			}
			if h.Bound && box.Support().Files {
				text := fmt.Sprintf("%s runs at level %s of the sandbox, %s", h, h.Level, hook.Unbound)
				g.Once(fmt.Sprintf("hook sandbox %.6x", sha256.Sum256([]byte(h.Line()))), text, func(text string) { event.WarnText(ctx, text) })
			}
			reads := g.hookReads(h, inside)
			if dir, ok := needs[h.Where]; ok {
				reads = append(reads, dir)
			}
			return box.Box(sandbox.Declaration{Level: h.Level}, sandbox.Needs{Read: reads}), nil
		},
	})
}

// userHooks returns the hooks of the user, with the level of the hooks that may take code from a directory that models write in; inside
// reports whether a path is there.
func (g *Ground) userHooks(inside func(path string) bool) []hook.Hook {
	list := slices.Clone(g.Config.Hooks)
	for i, h := range list {
		if h.Level == "" && !h.Harmless(inside) {
			list[i].Level, list[i].Bound = sandbox.Write, true
		}
	}
	return list
}

// hookReads returns what the command of a hook of the user reads beside its level: the files outside of the workspace that it names,
// with what is beside them, except directories that keep credentials, and the configuration directory itself.
func (g *Ground) hookReads(h hook.Hook, inside func(path string) bool) (places []string) {
	home, _ := os.UserHomeDir() // without one, ~ and $HOME mean nothing
	line := strings.NewReplacer("~/", home+"/", "$HOME/", home+"/", "${HOME}/", home+"/").Replace(h.Line())
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\"';|&<>()", r) }) {
		info, err := os.Stat(word)
		if _, closed := sandbox.ClosedReason(home, word); err != nil || !filepath.IsAbs(word) || !info.Mode().IsRegular() || inside(word) || closed {
			continue
		}
		places = append(places, word)
		if dir := filepath.Dir(filepath.Clean(word)); !trust.Below(dir, "", home) && !trust.Below(dir, "", g.Paths.ConfigDir) {
			places = append(places, dir)
		}
	}
	return places
}

// unsealHook returns what a text of a hook stands for. It gets back the secrets that it was sent the marks of, and no
// others.
func (g *Ground) unsealHook(text, sent string) string {
	return redact.Unseal(text, func(name string) (string, bool) {
		if !strings.Contains(sent, "***"+name+"***") && !strings.Contains(sent, "***"+name+"/") {
			return "", false
		}
		return g.Secrets.Lookup(name)
	})
}

// WarnOfHooks warns of an agent's hooks that do not run.
func (g *Ground) WarnOfHooks(ctx context.Context, events event.Scope, of agent.Agent) error {
	if len(of.InForce.Hooks) == 0 || g.Trust.Trusts(of) {
		return nil
	}
	text := fmt.Sprintf("the hooks of agent %s do not run: the agent is not trusted", of.Name)
	return events.Emit(ctx, event.Warning{Text: text, Once: true})
}

// UserHooks returns the hooks of the user, with the levels of the confined ones.
func (g *Ground) UserHooks() []hook.Hook { return g.userHooks(environ.Inside(g.workspace())) }
