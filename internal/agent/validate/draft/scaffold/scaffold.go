// Package scaffold writes the files of a new agent: a definition, a tool, a page about it and a test case, to begin with.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
)

//go:embed plain graph
var files embed.FS

// The kinds of agents.
const (
	Plain = "plain" // a model with instructions and tools
	Graph = "graph" // a workflow
)

// Kinds returns the kinds of agents.
func Kinds() []string { return []string{Plain, Graph} }

var names = text.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Write makes a directory with a new agent of a kind, which has the name of the directory, and returns its files by their names. A directory
// that is there already must be empty; that it is not, or that its name is none of an agent, is an error with code Usage.
func Write(dir, kind string) (written map[string][]byte, err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "the directory %s", text.Visible(dir))
	}
	name := filepath.Base(whole)
	if !names().MatchString(name) {
		return nil, fault.New(fault.Usage, "%q is not a valid name of an agent", name).WithHint("the directory has the name of the agent: letters, digits, - and _, 64 at most")
	}
	there, err := os.ReadDir(whole)
	switch {
	case len(there) > 0:
		return nil, fault.New(fault.Usage, "%s is not empty, so nothing was written", text.Visible(dir)).WithHint("name a directory that is not there yet")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(fault.Usage, err, "the agent was not written")
	}
	written = make(map[string][]byte)
	err = fs.WalkDir(files, kind, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		at := strings.ReplaceAll(strings.TrimPrefix(path, kind+"/"), "NAME", name)
		written[at] = bytes.ReplaceAll(data, []byte("NAME"), []byte(name))
		return create(filepath.Join(whole, filepath.FromSlash(at)), written[at])
	})
	if err != nil {
		return written, fault.Wrap(fault.Usage, err, "the agent was not written completely")
	}
	return written, nil
}

// create writes a file that is not there yet.
func create(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasSuffix(file, ".sh") {
		mode = 0o755
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
