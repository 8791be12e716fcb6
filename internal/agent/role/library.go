package role

import (
	"io/fs"

	"loki/internal/agent/role/library"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

// Library finds roles.
type Library struct {
	Dir       string                           // the user's roles, NAME.md each; need not exist
	Bundled   fs.FS                            // roles that are part of the program; the user's of the same name win
	Variables func(name string) (string, bool) // of prompts, see [Expand]; nil for none
}

func (l Library) files() library.Files {
	return library.Files{Dir: l.Dir, Bundled: l.Bundled, Kind: "role", Extension: ".md"}
}

// Names returns the names of all roles, ascending.
func (l Library) Names() ([]string, error) { return l.files().Names() }

// Load reads the role called name. A role that does not exist is a [*fault.Error] of code
// NotFound, that of an invalid role code Config. The warnings are for the user.
func (l Library) Load(name string) (Role, []*yamldoc.Problem, error) {
	text, file, err := l.files().Read(name)
	if err != nil {
		return Role{}, nil, err
	}
	r, warnings, err := Parse(name, file, string(text))
	if err != nil {
		return Role{}, warnings, fault.Wrap(fault.Config, err, "role %s", name)
	}
	return l.expand(r), warnings, nil
}

// FromText makes the temporary role of a text, which may have front matter.
func (l Library) FromText(text string) (Role, []*yamldoc.Problem, error) {
	r, warnings, err := Parse(Temporary, "", text)
	if err != nil {
		return Role{}, warnings, fault.Wrap(fault.Usage, err, "the prompt")
	}
	return l.expand(r), warnings, nil
}

func (l Library) expand(r Role) Role {
	if l.Variables != nil {
		r.written = &written{r.Prompt, r.Template}
		r.Prompt, r.Template = Expand(r.Prompt, l.Variables), Expand(r.Template, l.Variables)
	}
	return r
}

// File returns the path of the file of a role of the user called name, which need not exist.
func (l Library) File(name string) string { return l.files().Path(name) }
