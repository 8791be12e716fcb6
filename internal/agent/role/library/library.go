// Package library finds what is written in one file each, such as roles and macros, by name.
package library

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

// Files are the files of a kind of thing. A name is that of a file without the extension.
type Files struct {
	Dir       string // the user's; need not exist
	Bundled   fs.FS  // that are part of the program; the user's of the same name win
	Kind      string // what a file is, for people: one word
	Extension string
}

// Names returns all names, ascending.
func (f Files) Names() ([]string, error) {
	names, err := f.list(os.DirFS(f.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Config, err, "reading the %ss", f.Kind)
	}
	bundled, err := f.list(f.Bundled)
	if err != nil {
		return nil, err
	}
	names = append(names, bundled...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (f Files) list(dir fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(dir, ".")
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), f.Extension); ok && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, name)
		}
	}
	return names, err
}

// Read returns the text called name and the path of its file, which is empty if it is part of the program.
// One that does not exist is a [*fault.Error] with code NotFound.
func (f Files) Read(name string) (text []byte, file string, err error) {
	if !filepath.IsLocal(name+f.Extension) || strings.ContainsRune(name, 0) || len(name) > 250 {
		return nil, "", f.Unknown(name)
	}
	file = f.Path(name)
	text, err = yamldoc.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = fs.ReadFile(f.Bundled, name+f.Extension); err != nil {
			return nil, "", f.Unknown(name)
		}
		return text, "", nil
	}
	if err != nil {
		return nil, "", fault.Wrap(fault.Config, err, "%s %s", f.Kind, name)
	}
	return text, file, nil
}

// Path returns the path of the user's file called name, which need not exist.
func (f Files) Path(name string) string { return filepath.Join(f.Dir, name+f.Extension) }

// Unknown returns the error that nothing is called name.
func (f Files) Unknown(name string) error {
	err := fault.New(fault.NotFound, "no %s is called %q", f.Kind, name).ThatMisses(f.Kind)
	names, _ := f.Names()
	if near := yamldoc.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	if len(names) > 0 {
		return err.WithHint("there are %s; a new one is a file %s", strings.Join(names, ", "), f.Path("NAME"))
	}
	return err
}
