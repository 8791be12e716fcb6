package app

import (
	"os"
	"path/filepath"
	"strings"

	"loki/internal/agent"
	"loki/internal/fault"
	"loki/internal/permission"
	"loki/internal/sandbox"
	"loki/internal/tool/script"
	"loki/internal/value"
)

// Sandbox returns what confines the programs that are started in the working directory. Files that a rule of the configuration
// denies are closed to them.
func (a *App) Sandbox() (*sandbox.Sandbox, error) { return a.sandboxUnder(permission.Rules{}) }

// sandboxOf returns App.Sandbox for the programs of an agent: files that a rule of the agent denies are closed, too.
func (a *App) sandboxOf(of agent.Agent) func() (*sandbox.Sandbox, error) {
	if of.InForce == nil {
		return a.Sandbox
	}
	return func() (*sandbox.Sandbox, error) { return a.sandboxUnder(of.InForce.Permission) }
}

// sandboxUnder returns what confines programs under the rules of the configuration and those of an agent. It is made
// once for the same rules and working directory.
func (a *App) sandboxUnder(own permission.Rules) (*sandbox.Sandbox, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	home, _ := os.UserHomeDir() // without one, ~ stands for nothing
	var denied []string
	for _, rules := range []permission.Rules{a.Config.Permission, own} {
		judge, err := permission.New(permission.Options{Rules: rules, Root: dir, Home: home})
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "permission")
		}
		denied = append(denied, judge.Denied()...)
	}
	key := strings.Join(append(denied, dir), "\x00")
	a.mu.Lock()
	defer a.mu.Unlock()
	if made, ok := a.sandboxes[key]; ok {
		return made, nil
	}
	made := sandbox.New(sandbox.Options{
		Settings: a.Config.Sandbox, Workspace: dir, Home: home, Own: []string{a.Paths.ConfigDir, a.Paths.StateDir, a.Paths.CacheDir}, State: a.Paths.StateDir, Denied: denied, Getenv: a.Env.Get,
	})
	if a.sandboxes == nil {
		a.sandboxes = make(map[string]*sandbox.Sandbox)
	}
	a.sandboxes[key] = made
	return made, nil
}

// bounds returns what the programs of an agent may do with what they declare, and the most that its calls can be granted. It
// looks at the directory of the agent anew each time, see levelCap.
func (a *App) bounds(of agent.Agent) sandbox.Bounds {
	b := sandbox.Bounds{Most: of.Within}
	if of.InForce != nil && of.InForce.Sandbox.Level != "" {
		b.Default = of.InForce.Sandbox
		b.Most = b.Default.Within(of.Within)
	}
	if most := a.levelCap(of); most != "" {
		b.Most, b.Untrusted = sandbox.Declaration{Level: sandbox.Least(b.Most.Level, most)}, true
	}
	return b
}

// scriptReads returns the places of this program that the scripts of the graph of an agent in dir read.
func (a *App) scriptReads(dir string) []string {
	return append(script.Beside(dir),
		filepath.Join(a.Paths.AgentsDir, script.SharedDir), a.Paths.ToolsUtilsDir(), a.Paths.ToolsBinDir(), a.Paths.ToolsDir(), executable())
}

// sandboxInfo returns what the kernel holds, for --info.
func (a *App) sandboxInfo() value.Value {
	box, err := a.Sandbox()
	if err != nil {
		return value.Value{}
	}
	switch s := box.Support(); {
	case !s.Files:
		return value.Of("none: " + s.Missing)
	case s.Missing != "":
		return value.Of(s.How + "; not held: " + s.Missing)
	default:
		return value.Of(s.How)
	}
}

// listed returns the elements of a list as one text, null if there are none.
func listed(list []string) value.Value { return orNull(strings.Join(list, ", ")) }
