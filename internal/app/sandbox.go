package app

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
func (a *App) Sandbox() (*sandbox.Sandbox, error) { return a.sandboxUnder(permission.Rules{}, "") }

// sandboxOf returns App.Sandbox for the programs of an agent: so are files that a rule of the agent denies or asks about.
func (a *App) sandboxOf(of agent.Agent) func() (*sandbox.Sandbox, error) {
	var rules permission.Rules
	if of.InForce != nil {
		rules = of.InForce.Permission
	}
	return func() (*sandbox.Sandbox, error) { return a.sandboxUnder(rules, of.Workdir) }
}

// workingDir returns the working directory. For one that was removed it is the place where it was, so that work which needs no
// files there can be done.
func workingDir() (string, error) {
	dir, err := os.Getwd()
	if was := os.Getenv("PWD"); errors.Is(err, fs.ErrNotExist) && filepath.IsAbs(was) {
		return was, nil
	}
	return dir, err
}

// workIn returns the directory of the work that is in dir, "" for the working directory.
func workIn(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	dir, err := workingDir()
	if err != nil {
		return "", fault.Wrap(fault.Failure, err, "the working directory")
	}
	return dir, nil
}

// sandboxUnder returns what confines programs in a directory under the rules of the configuration and those of an agent. It is made
// once for the same rules and directory.
func (a *App) sandboxUnder(of permission.Rules, dir string) (*sandbox.Sandbox, error) {
	dir, err := workIn(dir)
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // if there is none, ~ is not expanded
	var denied, asked []pattern.Branch
	for _, rules := range []permission.Rules{a.Config.Permission, of} {
		judge, err := permission.New(permission.Options{Rules: rules, Root: dir, Home: home})
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "permission")
		}
		d, a := judge.ClosedPatterns()
		denied, asked = append(denied, d...), append(asked, a...)
	}
	key := fmt.Sprintf("%s\x00%q\x00%q", dir, denied, asked)
	a.mu.Lock()
	defer a.mu.Unlock()
	if made, ok := a.sandboxes[key]; ok {
		return made, nil
	}
	own, files := a.ownPlaces()
	state := a.Paths.StateDir
	if a.looking {
		state = ""
	}
	settings := a.Config.Sandbox
	if t := a.Worktrees().Look(dir); t != nil {
		dir, settings.Read = t.Root, slices.Concat(settings.Read, t.Read)
	}
	made := sandbox.New(sandbox.Options{
		Settings: settings, Workspace: dir, Home: home, Own: own, Files: files, Scripts: append(a.codePlaces(), a.skillsIn("", dir).Own()...), State: state, Denied: denied, Asked: asked, Getenv: a.Env.Get,
		Ignored: func() func(string, bool) string { return a.ignoredIn(dir).ForPrograms() }, IgnoreFiles: append([]string{ignore.Name}, a.Config.IgnoreFiles...),
	})
	if a.sandboxes == nil {
		a.sandboxes = make(map[string]*sandbox.Sandbox)
	}
	a.sandboxes[key] = made
	return made, nil
}

// ownPlaces returns the directories and files of this program that are not for models. Each counts by itself, since the working
// directory may be one of the directories, or hold some of them.
func (a *App) ownPlaces() (dirs, files []string) {
	p, in := a.Paths, func(name string) string { return filepath.Join(a.Paths.ConfigDir, name) }
	dirs = []string{p.ConfigDir, p.StateDir, p.CacheDir, p.SessionsDir, p.RAGsDir, in("bundles"), in("memory")}
	files = []string{p.ConfigFile, p.EnvFile, p.VaultFile, p.VaultPasswordFile, a.vaultPasswordFile(), p.ModelsOverrideFile, p.MessagesFile, p.MCPFile(), in("permissions.yaml"), in("trusted.json")}
	return dirs, slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// codePlaces returns the directories of what runs unconfined, or is followed, at a later time.
func (a *App) codePlaces() []string {
	return []string{a.Paths.FunctionsDir, a.Paths.AgentsDir, a.Paths.RolesDir, a.Paths.MacrosDir}
}

// scriptReads returns the places of this program that the scripts of the graph of an agent in dir read.
func (a *App) scriptReads(dir string) []string {
	return append(script.Beside(dir),
		filepath.Join(a.Paths.AgentsDir, script.SharedDir), a.Paths.ToolsUtilsDir(), a.Paths.ToolsBinDir(), a.Paths.ToolsDir(), executable())
}
