package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"loki/internal/base/process/environ"
)

// Find returns the path of the program that name means to a process with environment
// env. The standard library would use this process's PATH. The error is a *StartError.
func Find(name string, env []string) (string, error) {
	if name == "" {
		return "", &StartError{Program: "program", Reason: "path is empty", Err: exec.ErrNotFound}
	}
	if filepath.Base(name) != name {
		return name, nil
	}
	path, ok := environ.Lookup(env, "PATH")
	if !ok || runtime.GOOS == "windows" {
		found, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			return "", notFound(name)
		}
		if err != nil {
			return "", &StartError{Program: name, Reason: err.Error(), Err: err}
		}
		return found, nil
	}
	for _, dir := range filepath.SplitList(path) {
		// A relative entry would run whatever lies in the working directory.
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", notFound(name)
}
