package app

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"loki/internal/base/environ"
	"loki/internal/base/sandbox"
)

// ownDir returns a directory for a program that is started for the user, which neither a model nor a project writes in, nor in one
// above it, since package runners look there, too. It is made if it is not there. Where the workspace holds the directory of
// state, such as the home directory, it is in the directory for the runtime or for temporary files of the user, or is the root
// directory.
func (a *App) ownDir(name string) (string, error) {
	workspace, err := workingDir()
	if err != nil {
		return "", err
	}
	for _, place := range []string{a.Paths.StateDir, a.Env.Get("XDG_RUNTIME_DIR"), os.TempDir()} {
		if !filepath.IsAbs(place) || environ.Inside(workspace, nil)(place) || place != a.Paths.StateDir && writtenByOthers(place) {
			continue
		}
		dir := filepath.Join(place, "programs", name)
		if place != a.Paths.StateDir {
			dir = filepath.Join(place, "loki-programs", name)
		}
		if err := os.MkdirAll(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	root := filepath.VolumeName(workspace) + string(filepath.Separator)
	if filepath.Clean(workspace) != root {
		return root, nil
	}
	// The workspace is all there is. A package of its own keeps npm from those above.
	dir := filepath.Join(a.Paths.StateDir, "programs", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}\n"), 0o600)
}

// writtenByOthers reports whether other users write in a directory or in one above it.
func writtenByOthers(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o022 != 0 {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// workspace returns the directory that models write in, and the kept places in it.
func (a *App) workspace() (dir string, kept []string) {
	dir, err := workingDir()
	if err != nil {
		dir = string(filepath.Separator) // nothing is outside
	}
	return dir, keptPlaces(dir)
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

// keptPlaces returns the places in a workspace whose programs are not the work of a model, see [environ.Apart]: of the system, and
// in a home directory in the workspace toolchains and what begins with a dot.
func keptPlaces(workspace string) []string {
	home, _ := os.UserHomeDir() // without one there are no toolchains
	kept := sandbox.ProgramPlaces(home)
	if home != "" && environ.Inside(workspace, nil)(home) {
		entries, _ := os.ReadDir(home) // one that cannot be read has none
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				kept = append(kept, filepath.Join(home, e.Name()))
			}
		}
	}
	return kept
}
