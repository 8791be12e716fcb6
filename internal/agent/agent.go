// Package agent finds and loads agents.
//
// An agent is a directory. One that holds a graph.yaml is a graph agent: a workflow.
// One that holds a config.yaml is a plain agent: a model in a tool loop. The name
// of an agent is that of its directory.
package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Ref says which agent is meant.
type Ref struct {
	Name string // name of the directory
	Dir  string // the agent's directory
	Arg  string // what the user wrote to mean it
	// Beside is a directory whose agents this one knows by name, before the installed ones; "" for
	// none. It is that of the agent's own directory if the user named that, and
	// children have that of their parent.
	Beside string
}

// ByName reports whether the user named the agent, and not a directory.
func (r Ref) ByName() bool { return r.Arg == r.Name }

// Library finds agents.
type Library struct {
	Paths config.Paths
	// Beside is [Ref.Beside] of the agent that looks for others; "" for the user.
	Beside string
	// Bundled lists the agents that are part of the program, and Install writes one
	// of them to the agents directory where files are missing.
	Bundled []string
	Install func(name string) error
	// InstallShared writes what bundled agents have in common, for one whose directory is
	// configured to be elsewhere, and is therefore not installed. Nil writes nothing.
	InstallShared func() error
	// Stage, if set, takes the place of Install: it returns a directory with the agent, outside of the agents directory.
	Stage func(name string) (dir string, err error)
	// Note, if set, gets what the user has to know of an agent's files once; it may be called several times with the same text.
	Note func(text string)
	// Files are those of the bundled agents, below their names.
	Files fs.FS
	// Getenv returns variables of the environment, "" for unset ones. Nil has none.
	Getenv func(name string) string
}

// For returns the library as the agent at ref has it.
func (l Library) For(ref Ref) Library {
	l.Beside = ref.Beside
	return l
}

// At returns the agent at a directory, an absolute path, which need not be there. Arg is what
// the user wrote to mean it.
func (l Library) At(dir, arg string) Ref {
	ref := Ref{Name: filepath.Base(dir), Dir: dir, Arg: arg, Beside: filepath.Dir(dir)}
	if installed, err := filepath.Abs(l.Paths.AgentsDir); err == nil && ref.Beside == installed {
		ref.Beside = ""
	}
	return ref
}

// beside returns the agent called name in the directory whose agents come first.
func (l Library) beside(name string) (ref Ref, ok bool) {
	if l.Beside == "" || name == "" || strings.HasPrefix(name, ".") || isPath(name) {
		return Ref{}, false
	}
	dir := filepath.Join(l.Beside, name)
	return Ref{Name: name, Dir: dir, Arg: dir, Beside: l.Beside}, hasDefinition(dir)
}

// DirsBeside returns the directories of the agents that come before the installed ones, by their
// names. A directory that cannot be read has none.
func (l Library) DirsBeside() map[string]string {
	if l.Beside == "" {
		return nil
	}
	dirs := make(map[string]string)
	entries, _ := os.ReadDir(l.Beside)
	for _, e := range entries {
		if ref, ok := l.beside(e.Name()); ok {
			dirs[ref.Name] = ref.Dir
		}
	}
	return dirs
}

// Names lists the agents there are, beside the one that looks for others, installed or part of
// the program, ascending. Directories whose names begin with a dot do not count.
func (l Library) Names() ([]string, error) {
	names := slices.AppendSeq(slices.Clone(l.Bundled), maps.Keys(l.DirsBeside()))
	entries, err := os.ReadDir(l.Paths.AgentsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && isDir(filepath.Join(l.Paths.AgentsDir, e.Name())) { // a link to one counts
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Entry is an agent in a list.
type Entry struct {
	Name        string `json:"name"`
	Kind        string `json:"kind,omitempty"` // graph or plain; empty if it cannot be read
	Description string `json:"description,omitempty"`
	Error       string `json:"error,omitempty"` // why the definition cannot be used, on one line
}

// List lists the agents that Names names, with what their definitions say. Nothing is installed.
func (l Library) List() ([]Entry, error) {
	names, err := l.Names()
	list := make([]Entry, 0, len(names))
	for _, name := range names {
		list = append(list, l.entry(name))
	}
	return list, err
}

func (l Library) entry(name string) Entry {
	of, err := l.Peek(name)
	if err != nil {
		return Entry{Name: name, Error: strings.Join(strings.Fields(err.Error()), " ")}
	}
	kind := "plain"
	if of.Graph != nil {
		kind = "graph"
	}
	return Entry{Name: name, Kind: kind, Description: strings.Join(strings.Fields(of.Definition.Description), " ")}
}

// Peek loads the agent that name means without installing it.
func (l Library) Peek(name string) (Agent, error) {
	if isPath(name) {
		ref, err := l.findDir(name)
		if err != nil {
			return Agent{}, err
		}
		of, _, err := l.Load(ref)
		return of, err
	}
	ref := Ref{Name: name, Dir: l.Paths.Agent(name).Dir, Arg: name}
	of, _, err := l.Load(ref)
	if fault.CodeOf(err) == fault.NotFound && slices.Contains(l.Bundled, name) {
		return l.loadBundled(ref)
	}
	return of, err
}

func isPath(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") || name == "." || name == ".."
}

// loadBundled loads the definition of an agent of the program that is not installed.
func (l Library) loadBundled(ref Ref) (Agent, error) {
	if src, err := fs.ReadFile(l.Files, ref.Name+"/"+graph.FileName); err == nil {
		g, _, err := graph.Read(graph.FileName, src, func(path string) ([]byte, error) { return fs.ReadFile(l.Files, ref.Name+"/"+path) })
		if err != nil {
			return Agent{}, err
		}
		of, _ := l.OfGraph(ref, g)
		return of, nil
	}
	src, err := fs.ReadFile(l.Files, ref.Name+"/config.yaml")
	if err != nil {
		return Agent{}, err
	}
	d, _, err := Parse("config.yaml", src)
	if err != nil {
		return Agent{}, err
	}
	of, _ := l.Plain(ref, d)
	return of, nil
}

// Find returns the agent that name means: a directory if it is written as a path,
// otherwise the agent of that name. An agent that is part of the program is installed
// the first time it is found.
func (l Library) Find(name string) (Ref, error) {
	if isPath(name) {
		return l.findDir(name)
	}
	if ref, ok := l.beside(name); ok {
		return ref, nil
	}
	if name == "" {
		return Ref{}, fault.New(fault.Usage, "the name of an agent is missing").WithHint("list them with: loki --list agents")
	}
	ref := Ref{Name: name, Dir: l.Paths.Agent(name).Dir, Arg: name, Beside: l.Beside}
	if isDir(ref.Dir) && !slices.Contains(l.Bundled, name) {
		return ref, nil
	}
	if slices.Contains(l.Bundled, name) {
		return l.install(ref)
	}
	return Ref{}, l.unknown(name)
}

// install writes a bundled agent, unless a place outside the agents directory is configured or the user has a definition there.
// It returns the agent, which is in another directory if it is staged.
func (l Library) install(ref Ref) (Ref, error) {
	elsewhere := ref.Dir != filepath.Join(l.Paths.AgentsDir, ref.Name)
	var err error
	switch {
	case !elsewhere && (hasDefinition(ref.Dir) || l.Stage != nil && isFull(ref.Dir)):
	case l.Stage != nil && !elsewhere:
		if ref.Dir, err = l.Stage(ref.Name); err != nil {
			err = fault.Wrap(fault.Config, err, "reading the agent %s", ref.Name)
		}
	case l.Stage != nil:
	case elsewhere:
		if l.InstallShared != nil {
			err = l.InstallShared()
		}
	default:
		err = l.Install(ref.Name)
	}
	if err != nil && l.Stage == nil {
		err = fault.Wrap(fault.Config, err, "installing the agent %s to %s", ref.Name, ref.Dir).
			WithHint("set LOKI_CONFIG_DIR to a directory that can be written")
	}
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// isFull reports whether a directory holds anything.
func isFull(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return len(entries) > 0
}

func (l Library) findDir(path string) (Ref, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return Ref{}, err
	}
	if !isDir(dir) {
		return Ref{}, noDir(path)
	}
	return l.At(dir, path), nil
}

// noDir is the error for a path that is not that of a directory.
func noDir(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fault.New(fault.NotFound, "no agent directory at %s", path).ThatMisses("agent").
			WithHint("an agent is a directory with a config.yaml or a %s; those with names: loki --list agents", graph.FileName)
	}
	dir := filepath.Dir(path)
	if filepath.IsLocal(dir) { // a name without a slash is that of an installed agent
		dir = "." + string(filepath.Separator) + strings.TrimPrefix(dir, ".")
	}
	return fault.New(fault.NotFound, "%s is a file, and an agent is a directory", path).WithHint("if it is the agent's %s, name the directory: %s", filepath.Base(path), dir)
}

func (l Library) unknown(name string) error {
	err := fault.New(fault.NotFound, "no agent is called %q: there is no directory %s", name, l.Paths.Agent(name).Dir).ThatMisses("agent")
	names, listErr := l.Names()
	if listErr != nil {
		return err
	}
	near := yamldoc.Nearest(name, names)
	if near == "" {
		near = nearHere(name)
	}
	if near != "" {
		return err.WithHint("did you mean %s? All agents: loki --list agents", near)
	}
	return err.WithHint("all agents: loki --list agents")
}

// nearHere returns the path of an agent in the present directory whose name is like name, "" if there is none.
func nearHere(name string) string {
	entries, _ := os.ReadDir(".")
	var names []string
	for _, e := range entries {
		if e.IsDir() && hasDefinition(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if near := yamldoc.Nearest(name, names); near != "" {
		return "." + string(filepath.Separator) + near
	}
	return ""
}

// Exists says what is at the directory of the agent called name: known is false if
// there is no directory, defined if it does not hold exactly one definition.
func (l Library) Exists(name string) (known, defined bool) {
	if ref, ok := l.beside(name); ok {
		_, err := l.File(ref)
		return true, err == nil
	}
	dir := l.Paths.Agent(name).Dir
	if slices.Contains(l.Bundled, name) {
		return true, true
	}
	_, err := l.File(Ref{Name: name, Dir: dir, Arg: name})
	return isDir(dir), err == nil
}

// Agent is an agent with its definition.
type Agent struct {
	Ref
	Definition *Definition  // of the file; a run keeps this one, so that it can be resumed in another environment
	Graph      *graph.Graph // of the file; nil for a plain agent
	InForce    *Definition  // with what the environment says, see [Library.Plain]

	Within  sandbox.Declaration // the most that the agent which has started it allows; the zero value without such a bound
	Workdir string              // the directory in which it works, absolute; "" for the working directory
	AtMost  sandbox.Level       // what it may do, since an agent that is not trusted has started it; "" without such a bound

	// Uncertain says what to do about a call that was cut off, as the node that has started it says; "" leaves it to the agent.
	Uncertain graph.Uncertain
}

// Admit adds the rules of the agent to those by which a run of it starts.
func (a Agent) Admit(i *run.Info) error {
	place := "agent/" + a.Name
	if !a.ByName() {
		place = "agent/" + a.Dir
	}
	err := i.Admit(a.InForce.Rules, "", place, nil)
	if err != nil {
		return fault.Wrap(fault.Config, err, "agent %s", a.Name)
	}
	return nil
}

// GraphInForce returns the graph with the settings in force, nil for a plain agent.
func (a Agent) GraphInForce() *graph.Graph {
	if a.Graph == nil {
		return nil
	}
	g := *a.Graph
	g.Model, g.Sampling, g.GlobalTools = a.InForce.Model, a.InForce.Sampling, a.InForce.GlobalTools
	g.MCPServers, g.Variables = a.InForce.MCPServers, a.InForce.Variables
	return &g
}

// Pos returns where path is in the agent's file.
func (a Agent) Pos(path string) graph.Pos {
	if a.Graph != nil {
		return a.Graph.Pos(path)
	}
	return a.Definition.Pos(path)
}

// Load reads the definition of an agent of either kind and lays what the environment says
// over it. The findings are warnings; they are returned with an error, too. The error has code
// fault.Config or, if there is no definition, fault.NotFound; what is wrong in the file can be
// taken from it with [graph.ErrorFindings].
func (l Library) Load(ref Ref) (Agent, graph.Findings, error) {
	file, err := l.File(ref)
	if err != nil {
		return Agent{Ref: ref}, nil, err
	}
	if filepath.Base(file) == graph.FileName && file == ref.GraphFile() {
		g, warnings, err := graph.Load(file)
		if err != nil {
			return Agent{Ref: ref}, warnings, fault.Wrap(fault.Config, err, "failed to load graph.yaml for agent %s", ref.Name)
		}
		of, more := l.OfGraph(ref, g)
		return of, append(warnings, more...), nil
	}
	src, err := readFile(ref, file)
	if err != nil {
		return Agent{Ref: ref}, nil, err
	}
	d, warnings, err := Parse(file, src)
	if index := filepath.Join(ref.Dir, indexFile); err != nil && file != index && exists(index) {
		return Agent{Ref: ref}, warnings, fault.Wrap(fault.Config, err, "failed to load the definition of agent %s", ref.Name).
			WithHint("copy what %s has into config.yaml, and remove it: an agent is defined by one file", index)
	}
	if err != nil {
		return Agent{Ref: ref}, warnings, fault.Wrap(fault.Config, err, "failed to load the definition of agent %s", ref.Name)
	}
	if filepath.Base(file) == indexFile {
		l.readIndex(ref, d)
	}
	of, more := l.Plain(ref, d)
	return of, append(warnings, more...), nil
}

// readIndex completes a definition in an index.yaml with the tools in tools.txt beside it.
func (l Library) readIndex(ref Ref, d *Definition) {
	note := "is read as the config.yaml of the agent, and can be renamed"
	if list, err := os.ReadFile(filepath.Join(ref.Dir, "tools.txt")); err == nil && d.GlobalTools == nil {
		for line := range strings.Lines(string(list)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				d.GlobalTools = append(d.GlobalTools, line)
			}
		}
		note += "; the tools in tools.txt belong to its key global_tools"
	}
	if l.Note != nil {
		l.Note(d.File + " " + note)
	}
}

// Unchanged reports whether a plain agent that was loaded before would be the same if it were loaded
// now: its definition has the same text. Of graph agents it is not known.
func (l Library) Unchanged(before Agent) bool {
	if before.Graph != nil {
		return false
	}
	file, err := l.File(before.Ref)
	if err != nil || file != before.Definition.File {
		return false
	}
	text, err := os.ReadFile(file)
	return err == nil && bytes.Equal(text, before.Definition.Text)
}

// Plain returns the plain agent of a definition with what the environment says of it, see
// [Override], under the name in the definition and that of the directory. The findings are
// about variables that do not count.
func (l Library) Plain(ref Ref, d *Definition) (Agent, graph.Findings) {
	inForce, findings := Override(d, l.getenv(), d.Name, ref.Name)
	return Agent{Ref: ref, Definition: d, InForce: inForce}, findings
}

// OfGraph is [Library.Plain] for a graph agent, whose name is that of the directory.
func (l Library) OfGraph(ref Ref, g *graph.Graph) (Agent, graph.Findings) {
	d := FromGraph(ref.Name, g)
	inForce, findings := Override(d, l.getenv(), ref.Name)
	return Agent{Ref: ref, Definition: d, Graph: g, InForce: inForce}, findings
}

func (l Library) getenv() func(string) string {
	if l.Getenv == nil {
		return func(string) string { return "" }
	}
	return l.Getenv
}

// File returns the path of the definition of an agent: its graph.yaml, or its config.yaml. It
// is an error if there are both or neither.
func (l Library) File(ref Ref) (string, error) {
	graphFile, configFile := ref.GraphFile(), l.configFile(ref)
	switch isGraph, isPlain := exists(graphFile), exists(configFile); {
	case isGraph && isPlain:
		return "", fault.New(fault.Config, "agent %s has both config.yaml and graph.yaml in %s, but each kind of agent is defined by one file alone", ref.Name, ref.Dir).
			WithHint("remove config.yaml to make it a graph agent, or graph.yaml to make it a plain one")
	case isGraph:
		return graphFile, nil
	case isPlain:
		return configFile, nil
	case exists(filepath.Join(ref.Dir, indexFile)):
		return filepath.Join(ref.Dir, indexFile), nil
	}
	err := fault.New(fault.NotFound, "agent %s has neither config.yaml nor graph.yaml in %s", ref.Name, ref.Dir)
	if slices.Contains(l.Bundled, ref.Name) {
		return "", err.WithHint("the directory is yours, so the agent of the program with this name is not installed: give the directory another name to have it")
	}
	return "", err.
		WithHint("define it there: by a config.yaml, a model with instructions and tools, or by a graph.yaml, a workflow")
}

// configFile is where a plain agent's definition would be; the agent of a directory
// has it there, whatever the environment says about agents of its name.
func (l Library) configFile(ref Ref) string {
	if paths := l.Paths.Agent(ref.Name); paths.Dir == ref.Dir {
		return paths.ConfigFile
	}
	return filepath.Join(ref.Dir, "config.yaml")
}

// indexFile is the definition of an agent that comes from AIChat.
const indexFile = "index.yaml"

func hasDefinition(dir string) bool {
	return exists(filepath.Join(dir, graph.FileName)) || exists(filepath.Join(dir, "config.yaml")) || exists(filepath.Join(dir, indexFile))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Values returns the value of each variable that an agent declares: the one the user
// preset, else its default, else what ask answers. The error lists the variables
// that are left without a value; presets for variables the agent does not declare
// are an error too.
func Values(declared []graph.Variable, preset map[string]string, ask func(graph.Variable) (string, bool, error)) (map[string]string, error) {
	values := make(map[string]string, len(declared))
	var missing, known []string
	for _, v := range declared {
		known = append(known, v.Name)
		if given, ok := preset[v.Name]; ok {
			values[v.Name] = given
			continue
		}
		if v.Default != nil {
			values[v.Name] = *v.Default
			continue
		}
		answer, ok, err := ask(v)
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, fmt.Sprintf("%s (%s)", v.Name, v.Description))
			continue
		}
		values[v.Name] = answer
	}
	for _, name := range slices.Sorted(maps.Keys(preset)) {
		if !slices.Contains(known, name) {
			err := fault.New(fault.Usage, "the agent has no variable %q", name)
			switch near := yamldoc.Nearest(name, known); {
			case near != "":
				return nil, err.WithHint("did you mean %s?", near)
			case known == nil:
				return nil, err.WithHint("it has no variables")
			}
			return nil, err.WithHint("it has: %s", strings.Join(known, ", "))
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.Usage, "the agent needs a value for %s", strings.Join(missing, ", ")).
			WithHint("give it with: --agent-variable NAME VALUE")
	}
	return values, nil
}

// GraphFile returns the path of the graph definition, which need not exist.
func (r Ref) GraphFile() string { return filepath.Join(r.Dir, graph.FileName) }
