package environ

import (
	"os"
	"path/filepath"
)

// OwnDir returns a directory for a program that is started for the user, which neither a model nor a project writes in, nor in one
// above it, since package runners look there, too. It is made if it is not there. Where the workspace holds the directory of
// state, such as the home directory, it is in the directory for the runtime or for temporary files of the user, or is the root
// directory.
func OwnDir(workspace, state, runtime, name string) (string, error) {
	for _, place := range []string{state, runtime, os.TempDir()} {
		if !filepath.IsAbs(place) || Inside(workspace, nil)(place) || place != state && writtenByOthers(place) {
			continue
		}
		dir := filepath.Join(place, "programs", name)
		if place != state {
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
	dir := filepath.Join(state, "programs", name)
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
