package macro

import (
	"io/fs"
	"path/filepath"
	"strings"

	"loki/internal/agent/role/library"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

const extension = ".yaml"

// Library finds macros.
type Library struct {
	Dir     string // the user's macros, NAME.yaml each; need not exist
	Bundled fs.FS  // macros that are part of the program; the user's of the same name win
}

func (l Library) files() library.Files {
	return library.Files{Dir: l.Dir, Bundled: l.Bundled, Kind: "macro", Extension: extension}
}

// Names returns the names of all macros, ascending.
func (l Library) Names() ([]string, error) { return l.files().Names() }

// Load reads the macro called name. One that does not exist is a [*fault.Error] with code
// NotFound, an invalid one has code Config. The warnings are for the user.
func (l Library) Load(name string) (Macro, []*yamldoc.Problem, error) {
	if !Valid(name) {
		return Macro{}, nil, l.files().Unknown(name)
	}
	text, file, err := l.files().Read(name)
	if err != nil {
		return Macro{}, nil, err
	}
	m, warnings, err := Parse(name, file, text)
	if err != nil {
		return Macro{}, warnings, fault.Wrap(fault.Config, err, "macro %s", name)
	}
	return m, warnings, nil
}

// Valid reports whether a macro can have that name: it is the name of a file in a directory.
func Valid(name string) bool {
	return name != "" && filepath.IsLocal(name+extension) && !strings.ContainsAny(name, `/\`)
}
