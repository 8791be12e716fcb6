// Package bundle installs the agents that are part of the program.
//
// A bundle is a file system whose top directories are agents, except for .shared, whose files
// agents have in common and which comes along with each of them. Installing copies an
// agent's files to the agents directory, where the user reads and edits them like those
// of any other agent. Existing files belong to the user and are never written to.
//
// Nothing is installed before it is needed: [Ensure] does it when an agent is used for
// the first time. Only [Restore], which the user has to ask for, writes over files.
package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
)

// definitions are the files that define an agent. One of them makes a directory an
// agent, so they are written last: an installation that was cut short leaves no
// agent behind that looks complete.
var definitions = [...]string{"config.yaml", "graph.yaml"}

// shared is the directory of the files that agents have in common.
const shared = ".shared"

// Names returns the names of the agents in the bundle, ascending.
func Names(bundle fs.FS) []string {
	var names []string
	entries, _ := fs.ReadDir(bundle, ".") // a bundle that cannot be read has no agents
	for _, e := range entries {
		if e.IsDir() && e.Name() != shared {
			names = append(names, e.Name())
		}
	}
	return names
}

// Ensure installs the agent called name below agentsDir if it is not there. Files that
// exist are left as they are, and so is an agent of the user's own that has the name.
// A name that is not in the bundle is a [*fault.Error] with code NotFound. Several
// processes may do this at once.
func Ensure(bundle fs.FS, name, agentsDir string) error {
	if !slices.Contains(Names(bundle), name) {
		return fault.New(fault.NotFound, "no agent called %q is part of the program", name)
	}
	_, err := install(bundle, name, agentsDir)
	return err
}

// EnsureShared installs what agents have in common where it is not there, without an agent.
func EnsureShared(bundle fs.FS, agentsDir string) error {
	files, err := filesOf(bundle, shared)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = placeAll(bundle, files, agentsDir)
	return err
}

// install installs one agent and returns the files it wrote, relative to dir.
func install(bundle fs.FS, name, dir string) (written []string, err error) {
	files, err := filesOf(bundle, name)
	if err != nil {
		return nil, fmt.Errorf("reading the bundled agent %s: %w", name, err)
	}
	own, err := isUsersOwn(files, name, dir)
	if !own && err == nil {
		own, err = holdsOthers(bundle, filepath.Join(dir, name), name)
	}
	if own || err != nil {
		return nil, err
	}
	if common, err := filesOf(bundle, shared); err == nil { // a bundle need not have any
		files = append(common, files...)
	}
	return placeAll(bundle, files, dir)
}

// placeAll copies files of the bundle below dir where they are not there, and returns those it
// wrote.
func placeAll(bundle fs.FS, files []string, dir string) (written []string, err error) {
	for _, file := range files {
		wrote, err := place(bundle, file, filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return written, fmt.Errorf("installing %s: %w", file, err)
		}
		if wrote {
			written = append(written, file)
		}
	}
	return written, nil
}

// filesOf returns the files of an agent in the order in which they are installed.
func filesOf(bundle fs.FS, name string) (files []string, err error) {
	var last []string
	err = fs.WalkDir(bundle, name, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case isDefinition(file, name):
			last = append(last, file)
		default:
			files = append(files, file)
		}
		return nil
	})
	return append(files, last...), err
}

// isDefinition reports whether file, of the agent called name, defines it.
func isDefinition(file, name string) bool {
	return path.Dir(file) == name && slices.Contains(definitions[:], path.Base(file))
}

// isUsersOwn reports whether the directory holds a definition that the bundled agent
// does not have. Adding files of the bundle to it could only break it.
func isUsersOwn(files []string, name, dir string) (bool, error) {
	for _, definition := range definitions {
		if slices.Contains(files, path.Join(name, definition)) {
			continue
		}
		if there, err := exists(filepath.Join(dir, name, definition)); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// holdsOthers reports whether a directory holds a file that is not the agent's called name, as it is in the bundle: then it is
// the user's. A part of the agent is what an installation that was cut short has left.
func holdsOthers(bundle fs.FS, dir, name string) (bool, error) {
	others := false
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		shipped, err := fs.ReadFile(bundle, path.Join(name, filepath.ToSlash(rel)))
		if err == nil {
			var there []byte
			if there, err = os.ReadFile(file); err == nil && bytes.Equal(there, shipped) {
				return nil
			}
		}
		others = true
		return fs.SkipAll
	})
	return others, err
}

// place copies a file of the bundle to target unless something is there. The file
// appears there whole or not at all.
func place(bundle fs.FS, file, target string) (wrote bool, err error) {
	if there, err := exists(target); there || err != nil {
		return false, err
	}
	content, err := fs.ReadFile(bundle, file)
	if err != nil {
		return false, err
	}
	err = Replace(target, content)
	return err == nil, err
}

// Replace writes a file with the permissions that go with its name, and the directories
// it is in. The file appears whole, in place of one that was there, or not at all.
func Replace(target string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(target, content, atomicfile.Options{Mode: mode(target)})
}

// Restore copies all files of src below dir, also over files that the user has changed.
// Files that src does not have stay, and so do directories that hold an agent of the
// user's own in place of a bundled one. It returns the files it wrote, relative to dir
// with slashes, also when it fails midway.
func Restore(src fs.FS, dir string) (written []string, err error) {
	own := make(map[string]bool) // top directories that are the user's
	for _, name := range Names(src) {
		files, err := filesOf(src, name)
		if err == nil && slices.ContainsFunc(files, func(f string) bool { return isDefinition(f, name) }) {
			own[name], err = isUsersOwn(files, name, dir)
		}
		if err != nil {
			return nil, err
		}
	}
	err = fs.WalkDir(src, ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && own[file]:
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		content, err := fs.ReadFile(src, file)
		if err == nil {
			err = Replace(filepath.Join(dir, filepath.FromSlash(file)), content)
		}
		if err != nil {
			return fmt.Errorf("installing %s: %w", file, err)
		}
		written = append(written, file)
		return nil
	})
	return written, err
}

// mode is the permissions of an installed file. Embedded files have none of their own.
func mode(file string) fs.FileMode {
	switch filepath.Ext(file) {
	case ".sh", ".py", ".ts":
		return 0o755
	}
	return 0o644
}

// exists reports whether something is at path, even a broken link.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
