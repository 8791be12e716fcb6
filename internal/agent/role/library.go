package role

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

const extension = ".md"

// Library finds roles.
type Library struct {
	Dir       string                           // the user's roles, NAME.md each; need not exist
	Bundled   fs.FS                            // roles that are part of the program; the user's of the same name win
	Variables func(name string) (string, bool) // of prompts, see [Expand]; nil for none
}

// Names returns the names of all roles, ascending.
func (l Library) Names() ([]string, error) {
	names, err := list(os.DirFS(l.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Config, err, "reading the roles")
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
		if name, ok := strings.CutSuffix(e.Name(), extension); ok && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, name)
		}
	}
	return names, err
}

// Load reads the role called name. A role that does not exist is a [*fault.Error] of code
// NotFound, that of an invalid role code Config. The warnings are for the user.
func (l Library) Load(name string) (Role, []*yamldoc.Problem, error) {
	text, file, err := l.read(name)
	if err != nil {
		return Role{}, nil, err
	}
	r, warnings, err := Parse(name, file, text)
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

func (l Library) read(name string) (text, file string, err error) {
	if !filepath.IsLocal(name+extension) || strings.ContainsRune(name, 0) || len(name) > 250 {
		return "", "", l.unknown(name)
	}
	file = filepath.Join(l.Dir, name+extension)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = fs.ReadFile(l.Bundled, name+extension); err != nil {
			return "", "", l.unknown(name)
		}
		return string(data), "", nil
	}
	if err != nil {
		return "", "", fault.Wrap(fault.Config, err, "role %s", name)
	}
	return string(data), file, nil
}

// File returns the path of the file of a role of the user called name, which need not exist.
func (l Library) File(name string) string { return filepath.Join(l.Dir, name+extension) }

func (l Library) unknown(name string) error {
	err := fault.New(fault.NotFound, "no role is called %q", name).ThatMisses("role")
	names, _ := l.Names()
	if near := yamldoc.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	if len(names) > 0 {
		return err.WithHint("there are %s; a new one is a file %s", strings.Join(names, ", "), filepath.Join(l.Dir, "NAME"+extension))
	}
	return err
}
