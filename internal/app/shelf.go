package app

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
// otherwise: those that read, search and edit files, the shell, the time, and fetching
// pages. What sends, pays or needs a key is there only if it is named.
var usualTools = [...]string{
	"execute_command", "fetch_url_via_curl", "fs_cat", "fs_glob", "fs_grep", "fs_ls", "fs_mkdir", "fs_patch", "fs_read", "fs_rm", "fs_write",
	"get_current_time",
}

// shelf is where tools are found by name: the scripts of the user, and the tools of the
// program. A script is read when its tools are asked for. It belongs to one goroutine.
type shelf struct {
	app     *App
	options script.Options
	files   []string // scripts in the directory of tools, in the order in which they count
	natives tool.Set
	loaded  map[string]loadedScript // by file
}

type loadedScript struct {
	tools []tool.Tool
	err   error
}

// shelf returns the tools there are. Scripts get root as theirs, and talk to the user at the
// terminal if that is where asker asks; it may be nil.
func (a *App) shelf(root string, asker ask.Asker) (*shelf, error) {
	files, err := a.scriptFiles()
	if err != nil {
		return nil, err
	}
	natives, err := a.builtinTools()
	return &shelf{app: a, options: a.scriptOptions(root, asker), files: files, natives: natives, loaded: make(map[string]loadedScript)}, err
}

// scriptFiles are the names of the scripts in the directory of tools.
func (a *App) scriptFiles() ([]string, error) {
	found, err := os.ReadDir(a.Paths.ToolsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the directory of tools")
	}
	var files []string
	for _, e := range found {
		if !e.IsDir() && process.Supported(process.Ext(e.Name())) {
			files = append(files, e.Name())
		}
	}
	slices.SortFunc(files, tool.CompareFiles)
	return files, nil
}

func (s *shelf) path(file string) string { return filepath.Join(s.app.Paths.ToolsDir(), file) }

// fileOf returns the script that name means, "" for none. With an extension it is that
// very file. Without one it is the first of .sh, .py and .ts; that goes for the tools of
// the program with any extension.
func (s *shelf) fileOf(name string) string {
	if slices.Contains(s.files, name) {
		return name
	}
	short := tool.Name(name)
	if _, native := s.natives.Lookup(short); short != name && !native {
		return ""
	}
	plain := strings.NewReplacer("-", "_")
	i := slices.IndexFunc(s.files, func(file string) bool { return tool.Name(file) == short })
	if i < 0 {
		i = slices.IndexFunc(s.files, func(file string) bool { return plain.Replace(tool.Name(file)) == short })
	}
	if i < 0 {
		return ""
	}
	return s.files[i]
}

// find returns the tools that name means: a tool, or a script with all it gives. The error
// is a [*tool.UnknownError], or says what is wrong with the script.
func (s *shelf) find(ctx context.Context, name string) ([]tool.Tool, error) {
	if file := s.fileOf(name); file != "" {
		return s.load(ctx, file)
	}
	if native, ok := s.natives.Lookup(name); ok {
		return []tool.Tool{native}, nil
	}
	if tool.Name(name) == name {
		// One of several functions of a script.
		for _, file := range s.files {
			if names, err := script.Names(s.path(file), s.options); err != nil || !slices.Contains(names, name) {
				continue
			}
			tools, err := s.load(ctx, file)
			return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return t.Declaration().Name != name }), err
		}
	}
	return nil, &tool.UnknownError{Name: name, Available: s.names()}
}

// listed returns the tools that an entry of an agent's list of tools means: those of an alias, or
// those that find returns. Names in an alias that mean nothing are left out.
func (s *shelf) listed(ctx context.Context, name string) ([]tool.Tool, error) {
	if slices.ContainsFunc(builtin.UserTools(nil, ask.Question{}), func(t tool.Tool) bool { return t.Declaration().Name == name }) {
		return nil, nil // each agent has these
	}
	list, isAlias := s.app.Config.MappingTools.Get(name)
	if !isAlias {
		return s.find(ctx, name)
	}
	var tools []tool.Tool
	for member := range strings.SplitSeq(list, ",") {
		found, err := s.find(ctx, strings.TrimSpace(member))
		if _, unknown := errors.AsType[*tool.UnknownError](err); err != nil && !unknown {
			return nil, err
		}
		tools = append(tools, found...)
	}
	return tools, nil
}

// load returns the tools of a script.
func (s *shelf) load(ctx context.Context, file string) ([]tool.Tool, error) {
	if l, ok := s.loaded[file]; ok {
		return l.tools, l.err
	}
	tools, err := script.Load(s.path(file), s.options)
	tools = standIns(named(ctx, tools), s.natives)
	s.loaded[file] = loadedScript{tools, err}
	return tools, err
}

// named returns tools without those whose names no provider takes, each of which is a warning.
func named(ctx context.Context, tools []tool.Tool) []tool.Tool {
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

// names are those under which there are tools, sorted. Scripts that are wrong have none.
func (s *shelf) names() []string {
	names := slices.Clone(s.natives.Names())
	for _, file := range s.files {
		own, err := script.Names(s.path(file), s.options)
		if err == nil {
			names = append(names, own...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// visibleFiles are the scripts that the configuration makes visible: those that
// visible_tools names or, without it, all but those that take the place of tools which
// would not be there.
func (s *shelf) visibleFiles() []string {
	names := s.app.Config.VisibleTools
	if names == nil {
		return slices.DeleteFunc(slices.Clone(s.files), func(file string) bool { return s.isHidden(tool.Name(file)) })
	}
	var files []string
	for _, name := range names {
		if file := s.fileOf(name); file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// isHidden reports whether a name is that of a built-in tool that is visible only if it
// is listed.
func (s *shelf) isHidden(name string) bool {
	_, native := s.natives.Lookup(name)
	return native && !slices.Contains(usualTools[:], name)
}

// visible returns the tools that conversations may be given. A script among them that is
// wrong or gone is left out with a warning; the others stay.
func (s *shelf) visible(ctx context.Context) tool.Pool {
	if s.app.Config.VisibleTools == nil {
		return s.usual(ctx)
	}
	var tools []tool.Tool
	for _, name := range s.app.Config.VisibleTools {
		found, err := s.find(ctx, name)
		if unknown, ok := errors.AsType[*tool.UnknownError](err); ok {
			err = fmt.Errorf("visible_tools in %s: there is no tool %s", s.app.Config.File, name)
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
func (s *shelf) usual(ctx context.Context) tool.Pool {
	var tools []tool.Tool
	for _, name := range usualTools {
		if s.fileOf(name) == "" {
			native, _ := s.natives.Lookup(name)
			tools = append(tools, native)
		}
	}
	for _, file := range s.visibleFiles() {
		found, err := s.load(ctx, file)
		if err != nil && !errors.Is(err, script.ErrNoTool) { // modules that tools use are there too
			event.Warn(ctx, err)
		}
		for _, t := range found {
			if !s.isHidden(t.Declaration().Name) {
				tools = append(tools, t)
			}
		}
	}
	return tool.NewPool(tools...)
}
