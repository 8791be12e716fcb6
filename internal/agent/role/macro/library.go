package macro

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

const extension = ".yaml"

// Library finds macros.
type Library struct {
	Dir     string // the user's macros, NAME.yaml each; need not exist
	Bundled fs.FS  // macros that are part of the program; the user's of the same name win
}

// Names returns the names of all macros, ascending.
func (l Library) Names() ([]string, error) {
	names, err := list(os.DirFS(l.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Config, err, "reading the macros")
	}
	bundled, err := list(l.Bundled)
	if err != nil {
		return nil, err
	}
	names = append(names, bundled...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

func list(dir fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(dir, ".")
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extension); ok && !e.IsDir() && name != "" {
			names = append(names, name)
		}
	}
	return names, err
}

// Load reads the macro called name. One that does not exist is a [*fault.Error] with code
// NotFound, an invalid one has code Config. The warnings are for the user.
func (l Library) Load(name string) (Macro, []*yamldoc.Problem, error) {
	text, file, err := l.read(name)
	if err != nil {
		return Macro{}, nil, err
	}
	m, warnings, err := Parse(name, file, text)
	if err != nil {
		return Macro{}, warnings, fault.Wrap(fault.Config, err, "macro %s", name)
	}
	return m, warnings, nil
}

func (l Library) read(name string) (text []byte, file string, err error) {
	if !Valid(name) {
		return nil, "", l.unknown(name)
	}
	file = filepath.Join(l.Dir, name+extension)
	text, err = yamldoc.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = fs.ReadFile(l.Bundled, name+extension); err != nil {
			return nil, "", l.unknown(name)
		}
		return text, "", nil
	}
	if err != nil {
		return nil, "", fault.Wrap(fault.Config, err, "macro %s", name)
	}
	return text, file, nil
}

// Valid reports whether a macro can have that name: it is the name of a file in a directory.
func Valid(name string) bool {
	return name != "" && filepath.IsLocal(name+extension) && !strings.ContainsAny(name, `/\`)
}

func (l Library) unknown(name string) error {
	err := fault.New(fault.NotFound, "no macro is called %q", name)
	names, _ := l.Names()
	if near := yamldoc.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("there are %s; a new one is a file %s", strings.Join(names, ", "), filepath.Join(l.Dir, "NAME"+extension))
}
