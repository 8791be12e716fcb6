package process

import (
	"os"
	"path/filepath"
	"strings"
)

// unshim returns the program that a pyenv shim would run, or path itself if it is no
// shim or if the answer is not plain. A shim is a shell script that takes about 0.1 s
// to find out, every time; the rules are simple when the version is named in full:
//
//   - the version is $PYENV_VERSION, or is in the nearest .python-version in
//     $PYENV_DIR or the working directory and above, or in the file "version" of
//     pyenv's root, which is the directory that holds "shims";
//   - of several versions the first one that has the program is taken;
//   - versions lie in "versions" in that root.
//
// A shim also puts the version's programs at the front of PATH. That is not repeated
// here: a script that starts python3 gets the shim, and from it the same version.
//
// Source: pyenv's README ("Understanding Python version selection") and its commands
// version-name, version-file-read and which.
func unshim(path string, env func(string) (string, bool), workDir func() (string, error)) string {
	dir, program := filepath.Split(path)
	dir = filepath.Clean(dir)
	if filepath.Base(dir) != "shims" {
		return path
	}
	root := filepath.Dir(dir)
	for _, version := range pyenvVersions(root, env, workDir) {
		// A version may come from a file in a foreign project and must not lead
		// out of the directory. "system" and prefixes such as 3.12 lead nowhere.
		if !filepath.IsLocal(version) {
			return path
		}
		base := filepath.Join(root, "versions", version)
		if info, err := os.Stat(base); err != nil || !info.IsDir() {
			return path
		}
		file := filepath.Join(base, "bin", program)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return path
}

// pyenvVersions returns the versions that are selected, in order; none if that cannot be
// told.
func pyenvVersions(root string, env func(string) (string, bool), workDir func() (string, error)) []string {
	if v, _ := env("PYENV_VERSION"); v != "" {
		return strings.FieldsFunc(v, func(r rune) bool { return r == ':' })
	}
	work, err := workDir()
	if err != nil {
		return nil
	}
	dir, _ := env("PYENV_DIR")
	for _, dir := range []string{dir, work} {
		if !filepath.IsAbs(dir) {
			continue
		}
		if file, ok := upwards(dir, ".python-version"); ok {
			return readPyenvVersions(file) // also if it is empty: pyenv looks no further
		}
	}
	return readPyenvVersions(filepath.Join(root, "version"))
}

// upwards returns the path of the file called name in dir or the nearest directory
// above it that has one.
func upwards(dir, name string) (string, bool) {
	for {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// maxVersionFile bounds the size of a version file that is read, in bytes.
const maxVersionFile = 4 << 10

// readPyenvVersions returns the versions that a file names. A file that is missing or
// odd names none.
func readPyenvVersions(name string) []string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxVersionFile {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return parsePyenvVersions(string(text))
}

// parsePyenvVersions returns the first word of each line that is neither empty nor a
// comment.
func parsePyenvVersions(text string) []string {
	var versions []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			versions = append(versions, words[0])
		}
	}
	return versions
}
