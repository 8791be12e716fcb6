package graph

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// Files returns the text of the definition of a subgraph, by its path relative to the agent's directory, with slashes. The path
// is local: it does not lead out of the directory by itself.
type Files func(path string) ([]byte, error)

// Beside returns the files in a directory. Files that links lead to elsewhere are left out.
func Beside(dir string) Files {
	return func(name string) ([]byte, error) {
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		file, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(root, file); err != nil || !filepath.IsLocal(rel) {
			return nil, errOutside
		}
		return yamldoc.ReadFile(file)
	}
}

var (
	errOutside     = errors.New("it is a link that leads out of the agent's directory")
	errNotRecorded = errors.New("it is not a part of the record")
	errNoFiles     = errors.New("a text alone has no files beside it")
)

// Bounds of subgraphs, which keep a few lines from becoming very many nodes.
const (
	maxInside   = 16  // levels of subgraphs in each other
	maxIncluded = 200 // definitions that nodes name
)

// nest is what the parsers of a definition and of its subgraphs have in common.
type nest struct {
	files    Files
	texts    map[string][]byte
	chain    []string // the files that are being read
	included int
	parsers  []*parser // in document order, the outermost first

	warnings Findings
	unknowns []*yamldoc.Problem // warnings about unknown keys, which warnings has
	problems []*yamldoc.Problem // of the files of subgraphs
}

// locate tells the graphs where their parts stand.
func (n *nest) locate() {
	places := make(map[*yamldoc.Doc]Places)
	for _, p := range n.parsers {
		if places[p.doc] == nil {
			places[p.doc] = PlacesOf(p.doc.Root())
		}
		p.g.pos = places[p.doc]
	}
}

// checkAll looks at what is well typed.
func (n *nest) checkAll() []*yamldoc.Problem {
	var problems []*yamldoc.Problem
	for _, p := range n.parsers {
		problems = append(problems, p.check()...)
	}
	return problems
}

// warnAll takes the warnings of the document of p but those about unknown keys, which it has already.
func (p *parser) warnAll(unknowns []*yamldoc.Problem) {
	for _, warning := range p.doc.Warnings() {
		if !slices.Contains(unknowns, warning) {
			f := problemFinding(SeverityWarning, RuleUnknownKey, warning)
			f.File = p.g.file()
			if p.g.IsInner() {
				f.Node = strings.TrimSuffix(p.g.within+"/"+f.Node, "/")
			}
			p.warnings = append(p.warnings, f)
		}
	}
}

// innerFields are those of the top level of a definition that a subgraph can have, in the node as in a file of its own.
var innerFields = []string{"start", "nodes", "state", "strict_state", "initial_state", "reducers", "settings", "model", "temperature", "top_p", "reasoning_effort"}

// agentFields are those of the top level that are about the agent as a whole. The file of a subgraph cannot have them.
var agentFields = []string{"default_model", "global_tools", "mcp_servers", "conversation_starters", "variables", "environment", "sandbox", "hooks", "schedules", "priority", "concurrency_key", "concurrency_limit", "overlap", "throttle", "debounce"}

// subgraph reads a node that runs nodes of its own.
func (p *parser) subgraph(n *Node, m *yamldoc.Map) {
	n.Sub = &Subgraph{}
	s := n.Sub
	if with := m.Map("with").Node(); with != nil {
		if v, ok := with.Value(); ok {
			s.With.Source = v.AsObject()
		}
	}
	p.outputs(s, m.Map("outputs"))
	if name := InnerName(p.g.within, n.ID); strings.Count(name, "/") >= maxInside {
		m.Node().Errorf("subgraphs are in each other on more than %d levels", maxInside).Hint = "move some of the nodes out"
	} else if m.Has("file") {
		m.Str("file", &s.File)
		p.include(n, m)
	} else {
		p.require(m, "start", "nodes")
		inner := p.inner(n, p.doc, m)
		inner.g.File, inner.g.included, inner.g.Text = p.g.File, p.g.included, p.g.Text
		inner.g.base = p.g.base + "nodes." + n.ID + "."
		inner.current = inner.g.within
		inner.definition(m)
		inner.current = ""
	}
}

// inner returns the parser of the subgraph of n, which stands at m.
func (p *parser) inner(n *Node, doc *yamldoc.Doc, m *yamldoc.Map) *parser {
	inner := newParser(doc, "", nil)
	inner.nest, inner.at, inner.version = p.nest, m, Version
	p.parsers = append(p.parsers, inner)
	g := inner.g
	n.Sub.Graph = g
	g.innerModel = p.g.innerModel
	g.Name, g.within = n.ID, InnerName(p.g.within, n.ID)
	for key := range n.Sub.With.Source.All() {
		g.given = append(g.given, key)
	}
	outer := p.g.Settings
	g.Settings.Durability, g.Settings.LogStateSnapshots, g.Settings.ValidateBeforeRun = outer.Durability, outer.LogStateSnapshots, outer.ValidateBeforeRun
	g.Settings.OnFailure, g.Settings.FailureInherited = outer.OnFailure, outer.FailureWritten || outer.FailureInherited
	return inner
}

// definition reads what is the same of subgraphs in nodes and in files.
func (p *parser) definition(m *yamldoc.Map) {
	m.Text("model", &p.g.Model)
	p.g.innerModel = cmp.Or(p.g.Model, p.g.innerModel)
	p.g.Sampling = ReadSampling(m)
	p.settings(m.Map("settings"))
	p.work(m)
}

// wholeRun is the hint for settings that subgraphs do not have.
func wholeRun(key string) string {
	if slices.Contains(settingFields, key) {
		return key + " is about the run as a whole: set it in the settings at the top of " + FileName
	}
	return ""
}

// outputs reads what leaves a subgraph.
func (p *parser) outputs(s *Subgraph, m *yamldoc.Map) {
	for e := range m.All() {
		at, ok := e.Node.Str()
		if !ok {
			continue
		}
		o := Output{Key: e.Key, Path: ParseTemplate("{{" + at + "}}")}
		if hole, ok := o.Path.single(); !ok || len(hole.path) == 0 {
			e.Node.Errorf("%q is not the path of a value in the state of the subgraph", at).Hint = "write a key, then .member or [number] as often as needed, without braces: report.title"
			continue
		}
		s.Outputs = append(s.Outputs, o)
	}
}

// include reads the subgraph of n from the file that the node names.
func (p *parser) include(n *Node, m *yamldoc.Map) {
	at := m.Get("file")
	for _, key := range innerFields {
		if m.Has(key) {
			m.Get(key).Errorf("%s stands beside file", key).Hint = "write it in the file, or the nodes here and no file"
		}
	}
	// Whatever is wrong, the node has a graph.
	name := path.Clean(filepath.ToSlash(n.Sub.File))
	stop := func(hint, format string, args ...any) {
		n.Sub.Graph = &Graph{}
		if at.Kind() == yamldoc.String {
			at.Errorf(format, args...).Hint = hint
		}
	}
	const local = "name a file in the directory of the agent, by its path below that"
	switch {
	case n.Sub.File == "" || !filepath.IsLocal(n.Sub.File) || slices.Contains(strings.Split(filepath.ToSlash(n.Sub.File), "/"), ".."):
		stop(local, "%q is not a path in the agent's directory", n.Sub.File)
		return
	case slices.Contains(p.chain, name) || name == filepath.Base(p.parsers[0].g.File):
		chain := append(slices.Clone(p.chain), name)
		if slices.Contains(p.chain, name) {
			chain = chain[slices.Index(chain, name):]
		} else {
			chain = append([]string{name}, chain...)
		}
		stop("a subgraph cannot contain itself; for repetition use edges with a max", "the files run each other in a circle: %s", strings.Join(chain, " -> "))
		return
	case p.included >= maxIncluded:
		stop("name fewer files, or each less often", "nodes name more than %d definitions", maxIncluded)
		return
	}
	p.included++
	src, known := p.texts[name]
	if !known {
		var err error
		if src, err = p.read(name); err != nil {
			stop(local, "the definition %s cannot be read: %v", name, err)
			return
		}
		p.texts[name] = src
	}
	file := filepath.Join(filepath.Dir(p.parsers[0].g.File), filepath.FromSlash(name))
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		n.Sub.Graph = &Graph{}
		p.problems = append(p.problems, yamldoc.AsProblems(err)...)
		return
	}
	top := doc.Root().Map()
	inner := p.inner(n, doc, top)
	inner.g.File, inner.g.included, inner.g.Text = file, true, src
	p.chain = append(p.chain, name)
	inner.current = inner.g.within
	inner.whole(top)
	p.chain = p.chain[:len(p.chain)-1]
	inner.warnAll(p.unknowns)
	p.problems = append(p.problems, doc.Errors()...)
}

// read returns the text of a file.
func (n *nest) read(name string) ([]byte, error) {
	if n.files == nil {
		return nil, errNoFiles
	}
	src, err := n.files(name)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err // the path is in our message already
	}
	return src, err
}

// whole reads a file that is a subgraph.
func (p *parser) whole(m *yamldoc.Map) {
	if m == nil {
		return
	}
	p.require(m, "start", "nodes")
	for _, key := range agentFields {
		if at := m.Get(key); at != nil && at.Kind() != yamldoc.Null {
			at.Errorf("%s is about the agent, not about a subgraph of it", key).Hint = fmt.Sprintf("write it at the top of %s", FileName)
		}
	}
	m.Text("name", &p.g.Name)
	m.Text("description", &p.g.Description)
	m.Text("version", &p.version)
	p.definition(m)
	p.warnUnread(m, nil)
}
