package ground

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
	"loki/internal/tool/builtin/ignore"
	"loki/internal/tool/permission"
	"loki/internal/tool/script"
)

// Sandbox returns what confines the programs that are started in the working directory. Files that a rule of the configuration
// denies or asks about are closed to them.
func (g *Ground) Sandbox() (*sandbox.Sandbox, error) { return g.SandboxUnder(permission.Rules{}, "") }

// SandboxOf returns what confines the programs of an agent, as [Ground.Sandbox] does. Files that a rule of the agent denies or asks
// about are closed to them, too.
func (g *Ground) SandboxOf(of agent.Agent) func() (*sandbox.Sandbox, error) {
	var rules permission.Rules
	if of.InForce != nil {
		rules = of.InForce.Permission
	}
	return func() (*sandbox.Sandbox, error) { return g.SandboxUnder(rules, of.Workdir) }
}

// WorkingDir returns the working directory. For one that was removed it is the place where it was, so that work which needs no
// files there can be done.
func WorkingDir() (string, error) {
	dir, err := os.Getwd()
	if was := os.Getenv("PWD"); errors.Is(err, fs.ErrNotExist) && filepath.IsAbs(was) {
		return was, nil
	}
	return dir, err
}

// WorkIn returns the directory of the work that is in dir, "" for the working directory.
func WorkIn(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	dir, err := WorkingDir()
	if err != nil {
		return "", fault.Wrap(fault.Failure, err, "the working directory")
	}
	return dir, nil
}

// SandboxUnder returns what confines programs in a directory under the rules of the configuration and those of an agent. It is made
// once for the same rules and directory.
func (g *Ground) SandboxUnder(of permission.Rules, dir string) (*sandbox.Sandbox, error) {
	dir, err := WorkIn(dir)
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	var denied, asked []pattern.Branch
	for _, rules := range []permission.Rules{g.Config.Permission, of} {
		judge, err := permission.New(permission.Options{Rules: rules, Root: dir, Home: home})
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "permission")
		}
		no, ask := judge.ClosedPatterns()
		denied, asked = append(denied, no...), append(asked, ask...)
	}
	key := fmt.Sprintf("%s\x00%q\x00%q", dir, denied, asked)
	g.mu.Lock()
	defer g.mu.Unlock()
	if made, ok := g.sandboxes[key]; ok {
		return made, nil
	}
	own, files := g.OwnPlaces()
	state := g.Paths.StateDir
	if g.Looking {
		state = ""
	}
	settings := g.Config.Sandbox
	if t := g.Worktrees().Look(dir); t != nil {
		dir, settings.Read = t.Root, slices.Concat(settings.Read, t.Read)
	}
	made := sandbox.New(sandbox.Options{
		Settings: settings, Workspace: dir, Home: home, Own: own, Files: files, Scripts: append(g.CodePlaces(), g.SkillsIn("", dir).Own()...), State: state, Denied: denied, Asked: asked, Getenv: g.Env.Get,
		Ignored: func() func(string, bool) string { return g.IgnoredIn(dir).ForPrograms() }, IgnoreFiles: append([]string{ignore.Name}, g.Config.IgnoreFiles...),
	})
	if g.sandboxes == nil {
		g.sandboxes = make(map[string]*sandbox.Sandbox)
	}
	g.sandboxes[key] = made
	return made, nil
}

// OwnPlaces returns the directories and files of this program that are not for models. Each counts by itself, since the working
// directory may be one of the directories, or hold some of them.
func (g *Ground) OwnPlaces() (dirs, files []string) {
	p, in := g.Paths, func(name string) string { return filepath.Join(g.Paths.ConfigDir, name) }
	dirs = []string{p.ConfigDir, p.StateDir, p.CacheDir, p.SessionsDir, p.RAGsDir, in("bundles"), in("memory")}
	files = []string{p.ConfigFile, p.EnvFile, p.VaultFile, p.VaultPasswordFile, g.VaultPasswordFile(), p.ModelsOverrideFile, p.MessagesFile, p.MCPFile(), in("permissions.yaml"), in("trusted.json")}
	return dirs, slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// CodePlaces returns the directories of what runs unconfined, or is followed, at a later time.
func (g *Ground) CodePlaces() []string {
	return []string{g.Paths.FunctionsDir, g.Paths.AgentsDir, g.Paths.RolesDir, g.Paths.MacrosDir}
}

// ScriptReads returns the places of this program that the scripts of the graph of an agent in dir read.
func (g *Ground) ScriptReads(dir string) []string {
	return append(script.Beside(dir),
		filepath.Join(g.Paths.AgentsDir, script.SharedDir), g.Paths.ToolsUtilsDir(), g.Paths.ToolsBinDir(), g.Paths.ToolsDir(), Executable())
}
