package ground

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
)

// OwnDir returns a directory for a program that is started for the user, see [environ.OwnDir].
func (g *Ground) OwnDir(name string) (string, error) {
	workspace, err := WorkingDir()
	if err != nil {
		return "", err
	}
	if root := filepath.VolumeName(workspace) + string(filepath.Separator); g.Looking && workspace != root {
		return root, nil // no directory is made
	}
	return environ.OwnDir(workspace, g.Paths.StateDir, g.Env.Get("XDG_RUNTIME_DIR"), name)
}

// workspace returns the directory that models write in, and the kept places in it.
func (g *Ground) workspace() (dir string, kept []string) {
	dir, err := WorkingDir()
	if err != nil {
		dir = string(filepath.Separator) // nothing is outside
	}
	return dir, sandbox.KeptPlaces(dir)
}

// ProgramChild is what programs get that are started for the user, and not for a model: nothing in it leads them to code in the
// workspace.
func (g *Ground) ProgramChild() environ.Child {
	child := g.Child()
	child.Environ = g.Apart(child.Environ)
	return child
}

// Apart returns an environment without what leads to code in the workspace, see [environ.Apart].
func (g *Ground) Apart(env []string) []string {
	dir, kept := g.workspace()
	env, _ = environ.Apart(env, dir, kept)
	return env
}

// ApartScripts returns what makes the environment of scripts that are not confined, nil in one of trusted_dirs. The runner of
// TypeScript resolves imports by the settings in the working directory.
func (g *Ground) ApartScripts() func(env []string) []string {
	dir, _ := g.workspace()
	if g.Trust.Own(g.Agents.At(dir, dir)) {
		return nil
	}
	return func(env []string) []string {
		if runtime.GOOS != "windows" {
			env = append(slices.Clip(env), "TSX_TSCONFIG_PATH="+os.DevNull)
		}
		return g.Apart(env)
	}
}
