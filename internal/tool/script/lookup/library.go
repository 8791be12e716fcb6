// Package lookup finds tools by their names: those in scripts of the user, and those of the program.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/script"
)

// usualTools are the tools of the program that there are unless visible_tools says
// otherwise: tools that read, search and edit files, the shell, the time, and fetching
// pages. What sends, pays or needs a key is there only if it is named.
var usualTools = [...]string{
	"execute_command", "fetch_url_via_curl", "fs_cat", "fs_glob", "fs_grep", "fs_ls", "fs_mkdir", "fs_patch", "fs_read", "fs_rm", "fs_write",
	"get_current_time",
}

// Options configure New.
type Options struct {
	Scripts script.Options // how scripts are read and run
	Dir     string         // of the scripts
	Natives tool.Set       // the tools of the program
	Visible []string       // the setting visible_tools; nil without it
	// Alias returns the names, with commas between, that a name in the setting mapping_tools means.
	Alias  func(name string) (names string, ok bool)
	Config string // the file of the configuration, for messages
}

// Library is where tools are found by name: the scripts of the user, and the tools of the
// program. A script is read when its tools are asked for. It belongs to one goroutine.
type Library struct {
	Options
	files  []string                // scripts in the directory, in the order in which they count
	loaded map[string]loadedScript // by file
}

type loadedScript struct {
	tools []tool.Tool
	err   error
}

// New returns the tools there are.
func New(o Options) (*Library, error) {
	l := &Library{Options: o, loaded: make(map[string]loadedScript)}
	found, err := os.ReadDir(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the directory of tools")
	}
	for _, e := range found {
		if !e.IsDir() && process.Supported(process.Ext(e.Name())) {
			l.files = append(l.files, e.Name())
		}
	}
	slices.SortFunc(l.files, tool.CompareFiles)
	return l, nil
}

// Path returns the path of a script in the directory.
func (l *Library) Path(file string) string { return filepath.Join(l.Dir, file) }

// FileOf returns the script that name means, "" for none. With an extension it is that
// very file. Without one it is the first of .sh, .py and .ts; that goes for the tools of
// the program with any extension.
func (l *Library) FileOf(name string) string {
	if slices.Contains(l.files, name) {
		return name
	}
	short := tool.Name(name)
	if _, native := l.Natives.Lookup(short); short != name && !native {
		return ""
	}
	plain := strings.NewReplacer("-", "_")
	i := slices.IndexFunc(l.files, func(file string) bool { return tool.Name(file) == short })
	if i < 0 {
		i = slices.IndexFunc(l.files, func(file string) bool { return plain.Replace(tool.Name(file)) == short })
	}
	if i < 0 {
		return ""
	}
	return l.files[i]
}

// Find returns the tools that name means: a tool, or a script with all it gives. The error
// is a [*tool.UnknownError], or says what is wrong with the script.
func (l *Library) Find(ctx context.Context, name string) ([]tool.Tool, error) {
	if file := l.FileOf(name); file != "" {
		return l.Load(ctx, file)
	}
	if native, ok := l.Natives.Lookup(name); ok {
		return []tool.Tool{native}, nil
	}
	if tool.Name(name) == name {
		// One of several functions of a script.
		for _, file := range l.files {
			if names, err := script.Names(l.Path(file), l.Scripts); err != nil || !slices.Contains(names, name) {
				continue
			}
			tools, err := l.Load(ctx, file)
			return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return t.Declaration().Name != name }), err
		}
	}
	return nil, &tool.UnknownError{Name: name, Available: l.Names()}
}

// ForEntry returns the tools that an entry of an agent's list of tools means: those of an alias, or
// the ones that Find returns. Names in an alias that mean nothing are left out.
func (l *Library) ForEntry(ctx context.Context, name string) ([]tool.Tool, error) {
	if slices.ContainsFunc(builtin.UserTools(nil, ask.Question{}), func(t tool.Tool) bool { return t.Declaration().Name == name }) {
		return nil, nil // each agent has these
	}
	list, isAlias := l.Alias(name)
	if !isAlias {
		return l.Find(ctx, name)
	}
	var tools []tool.Tool
	for member := range strings.SplitSeq(list, ",") {
		found, err := l.Find(ctx, strings.TrimSpace(member))
		if _, unknown := errors.AsType[*tool.UnknownError](err); err != nil && !unknown {
			return nil, err
		}
		tools = append(tools, found...)
	}
	return tools, nil
}

// Load returns the tools of a script.
func (l *Library) Load(ctx context.Context, file string) ([]tool.Tool, error) {
	if known, ok := l.loaded[file]; ok {
		return known.tools, known.err
	}
	tools, err := script.Load(l.Path(file), l.Scripts)
	tools = l.Adapt(ctx, tools)
	l.loaded[file] = loadedScript{tools, err}
	return tools, err
}

// Adapt returns the tools of a script without those whose names no provider takes, each of which is a warning. Those with the name
// of a tool of the program stand in for it.
func (l *Library) Adapt(ctx context.Context, tools []tool.Tool) []tool.Tool {
	return standIns(validlyNamed(ctx, tools), l.Natives)
}

// validlyNamed returns tools without those whose names no provider takes, each of which is a warning.
func validlyNamed(ctx context.Context, tools []tool.Tool) []tool.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool {
		name := t.Declaration().Name
		if tool.ValidName(name) {
			return false
		}
		file := ""
		if f, ok := t.(tool.FromFile); ok {
			file = " of " + f.File()
		}
		event.WarnText(ctx, fmt.Sprintf(`the tool %q%s is left out: a name has 1 to 64 ASCII letters, digits, "_" and "-"`, name, file))
		return true
	})
}

// standIns returns tools of scripts. Those with the name of a tool of the program stand in
// for it.
func standIns(tools []tool.Tool, natives tool.Set) []tool.Tool {
	tools = slices.Clone(tools)
	for i, t := range tools {
		own, fromFile := t.(tool.FromFile)
		if native, ok := natives.Lookup(t.Declaration().Name); ok && fromFile {
			tools[i] = builtin.StandIn(own, native)
		}
	}
	return tools
}

// Names are those under which there are tools, sorted. Scripts that are wrong have none.
func (l *Library) Names() []string {
	names := slices.Clone(l.Natives.Names())
	for _, file := range l.files {
		own, err := script.Names(l.Path(file), l.Scripts)
		if err == nil {
			names = append(names, own...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// VisibleFiles are the scripts that the configuration makes visible: those that
// visible_tools names or, without it, all but the ones that take the place of tools that
// would not be there.
func (l *Library) VisibleFiles() []string {
	names := l.Visible
	if names == nil {
		return slices.DeleteFunc(slices.Clone(l.files), func(file string) bool { return l.isHidden(tool.Name(file)) })
	}
	var files []string
	for _, name := range names {
		if file := l.FileOf(name); file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// isHidden reports whether a name is that of a built-in tool that is visible only if it
// is listed.
func (l *Library) isHidden(name string) bool {
	_, native := l.Natives.Lookup(name)
	return native && !slices.Contains(usualTools[:], name)
}

// Pool returns the tools that conversations may be given. A script among them that is
// wrong or gone is left out with a warning; the others stay.
func (l *Library) Pool(ctx context.Context) tool.Pool {
	if l.Visible == nil {
		return l.usual(ctx)
	}
	var tools []tool.Tool
	for _, name := range l.Visible {
		found, err := l.Find(ctx, name)
		if unknown, ok := errors.AsType[*tool.UnknownError](err); ok {
			err = fmt.Errorf("visible_tools in %s: there is no tool %s", l.Config, name)
			if near := yamldoc.Nearest(tool.Name(name), unknown.Available); near != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, near)
			}
		}
		if err != nil {
			event.Warn(ctx, err)
		}
		tools = append(tools, found...)
	}
	return tool.NewPool(tools...)
}

// usual returns the tools that there are without visible_tools: the usual ones of the
// program, and all of the user's own.
func (l *Library) usual(ctx context.Context) tool.Pool {
	var tools []tool.Tool
	for _, name := range usualTools {
		if l.FileOf(name) == "" {
			native, _ := l.Natives.Lookup(name)
			tools = append(tools, native)
		}
	}
	for _, file := range l.VisibleFiles() {
		found, err := l.Load(ctx, file)
		if err != nil && !errors.Is(err, script.ErrNoTool) { // modules that tools use are there too
			event.Warn(ctx, err)
		}
		for _, t := range found {
			if !l.isHidden(t.Declaration().Name) {
				tools = append(tools, t)
			}
		}
	}
	return tool.NewPool(tools...)
}

// MissingWarnings returns the warnings about names that the user wrote and that are not visible tools,
// with how to make them visible where that is possible.
func (l *Library) MissingWarnings(ctx context.Context, names []string) (texts []string) {
	var invisible []string
	for _, name := range names {
		_, err := l.Find(ctx, name)
		switch missing, unknown := errors.AsType[*tool.UnknownError](err); {
		case unknown && strings.HasPrefix(name, "user__"): // which are there where the user can be asked
		case unknown:
			text := "no tool is called " + name
			if near := yamldoc.Nearest(name, missing.Available); near != "" {
				text += "; did you mean " + near + "?"
			}
			texts = append(texts, text)
		case !slices.Contains(invisible, name):
			invisible = append(invisible, name)
		}
	}
	if len(invisible) == 0 {
		return texts
	}
	text := "the model does not get " + strings.Join(invisible, ", ")
	if l.Visible == nil {
		text += fmt.Sprintf(": only the usual tools are visible; list all that you use under visible_tools in %s", l.Config)
	} else {
		text += fmt.Sprintf(": visible_tools in %s does not list that; add what the model may use", l.Config)
	}
	return append(texts, text)
}

// All returns the tools there are, after others. Scripts that are wrong are left out.
func (l *Library) All(ctx context.Context, others ...tool.Tool) (tool.Set, error) {
	for _, name := range l.Names() {
		if found, err := l.Find(ctx, name); err == nil {
			others = append(others, found...)
		}
	}
	return tool.Set{}.With(others...)
}
