package app

import (
	"os"
	"strings"

	"loki/internal/fault"
	"loki/internal/sandbox"
	"loki/internal/value"
)

// Sandbox returns what confines the programs that are started in the working directory. It is made once, as long as
// that directory stays the same.
func (a *App) Sandbox() (*sandbox.Sandbox, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sandbox == nil || a.sandboxDir != dir {
		home, _ := os.UserHomeDir() // without one, ~ stands for nothing
		a.sandboxDir = dir
		a.sandbox = sandbox.New(sandbox.Options{
			Settings: a.Config.Sandbox, Workspace: dir, Home: home, Own: []string{a.Paths.ConfigDir, a.Paths.StateDir, a.Paths.CacheDir}, Getenv: a.Env.Get,
		})
	}
	return a.sandbox, nil
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
