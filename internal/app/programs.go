package app

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
)

// ownDir returns a directory for a program that is started for the user, see [environ.OwnDir].
func (a *App) ownDir(name string) (string, error) {
	workspace, err := workingDir()
	if err != nil {
		return "", err
	}
	if root := filepath.VolumeName(workspace) + string(filepath.Separator); a.looking && workspace != root {
		return root, nil // no directory is made
	}
	return environ.OwnDir(workspace, a.Paths.StateDir, a.Env.Get("XDG_RUNTIME_DIR"), name)
}

// workspace returns the directory that models write in, and the kept places in it.
func (a *App) workspace() (dir string, kept []string) {
	dir, err := workingDir()
	if err != nil {
		dir = string(filepath.Separator) // nothing is outside
	}
	return dir, sandbox.KeptPlaces(dir)
}

// programChild is what programs get that are started for the user, and not for a model: nothing in it leads them to code in the
// workspace.
func (a *App) programChild() environ.Child {
	child := a.Child()
	child.Environ = a.apart(child.Environ)
	return child
}

// apart returns an environment without what leads to code in the workspace, see [environ.Apart].
func (a *App) apart(env []string) []string {
	dir, kept := a.workspace()
	env, _ = environ.Apart(env, dir, kept)
	return env
}

// apartScripts returns what makes the environment of scripts that are not confined, nil in one of trusted_dirs. The runner of
// TypeScript resolves imports by the settings in the working directory.
func (a *App) apartScripts() func(env []string) []string {
	dir, _ := a.workspace()
	if a.Trust.Own(a.Agents.At(dir, dir)) {
		return nil
	}
	return func(env []string) []string {
		if runtime.GOOS != "windows" {
			env = append(slices.Clip(env), "TSX_TSCONFIG_PATH="+os.DevNull)
		}
		return a.apart(env)
	}
}
