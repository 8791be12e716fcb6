package draft

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"loki/internal/workflow/graph"
)

// Write writes the draft, whose graph is g, to the directory of an agent, which is made if it is not there. Scripts come
// first and graph.yaml last, each in one step, so that a directory never holds a new definition without its scripts. Nothing
// is written outside of dir, even if it has links that lead out of it.
func (d Draft) Write(dir string, g *graph.Graph) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, f := range d.Scripts(g) {
		if why := pathFault(f.Path); why != "" {
			err = fmt.Errorf("script %s: %s", f.Path, why)
		}
		if err == nil {
			mode := fs.FileMode(0o755)
			if graph.ScriptExtension(f.Path) == "" || strings.HasSuffix(f.Path, ".yaml") {
				mode = 0o644
			}
			err = replace(root, f.Path, f.Text, mode)
		}
	}
	if err == nil {
		err = replace(root, graph.FileName, d.Graph, 0o644)
	}
	return cmp.Or(err, root.Close())
}

// replace writes a file below root, in place of one that is there.
func replace(root *os.Root, name, text string, mode fs.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), "."+path.Base(name)+".new")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = cmp.Or(err, f.Sync())
	if err = cmp.Or(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}
