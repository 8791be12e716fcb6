package graph

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/hook"
)

// Load reads the definition in the file at path, and those of its subgraphs beside it; see [Read].
func Load(path string) (*Graph, Findings, error) {
	src, err := yamldoc.ReadFile(path)
	if err != nil {
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError.Err // the path is in our message already
		}
		return nil, nil, fault.Wrap(fault.Config, err, "failed to read graph file at %s", path)
	}
	g, warnings, err := Read(path, src, Beside(filepath.Dir(path)))
	if err != nil {
		return nil, warnings, fault.Wrap(fault.Config, err, "failed to parse graph file")
	}
	return g, warnings, nil
}

// Parse is [Read] for a definition whose subgraphs, if it has any, are all in it.
func Parse(file string, src []byte) (*Graph, Findings, error) { return Read(file, src, nil) }

// Read reads a definition. The name of the file is used in messages and may be
// empty; src is kept and must not change. The definitions of subgraphs that are files of their own come from files, which may be nil.
//
// The warnings are about keys that mean nothing; they are returned with an error,
// too. The error is a [*fault.Error] whose chain holds the [yamldoc.Problem] of
// everything that is wrong, all of the first kind that is found: first syntax, types
// and missing fields, in document order; then, in this order, the version, the node
// ids, the name, the list of nodes and the start. [ErrorFindings] takes it apart.
//
// A parsed graph can be wrong in ways that [Validate] finds: a target may be no
// node, a cycle may be declared.
func Read(file string, src []byte, files Files) (*Graph, Findings, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, nil, parseError("YAML parsing error", file, yamldoc.AsProblems(err))
	}
	p := newParser(doc, file, src)
	p.nest = &nest{files: files, texts: make(map[string][]byte), parsers: []*parser{p}}
	p.at = doc.Root().Map()
	p.graph()
	p.warnAll(p.unknowns)
	slices.SortStableFunc(p.warnings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if problems := append(doc.Errors(), p.problems...); len(problems) > 0 {
		return nil, p.warnings, parseError("YAML parsing error", file, problems)
	}
	if problems := p.checkAll(); len(problems) > 0 {
		return nil, p.warnings, parseError("", file, problems)
	}
	p.nest.locate()
	if len(p.texts) > 0 {
		p.g.Files = p.texts
	}
	return p.g, p.warnings, nil
}

func newParser(doc *yamldoc.Doc, file string, src []byte) *parser {
	return &parser{
		doc: doc,
		g: &Graph{
			Settings: Settings{
				MaxLoopIterations: DefaultMaxLoopIterations,
				MaxConcurrency:    DefaultMaxConcurrency,
				LogStateSnapshots: true,
				ValidateBeforeRun: true,
				OnFailure:         FailContinue,
				Durability:        DurabilityProcess,
				Scheduling:        ScheduleSteps,
			},
			File: file,
			Text: src,
			byID: map[string]*Node{},
		},
	}
}

// parseError makes one error of problems. The hint is that of the first one.
func parseError(prefix, file string, problems []*yamldoc.Problem) error {
	hint := problems[0].Hint
	if len(problems) == 1 {
		return fault.Wrap(fault.Config, &definitionError{problems[0], file}, "%s", prefix).WithHint("%s", hint)
	}
	return fault.Wrap(fault.Config, &definitionError{&several{prefix, problems}, file}, "").WithHint("%s", hint)
}

// definitionError says which file is the outermost one.
type definitionError struct {
	error
	file string
}

// Unwrap returns what is wrong.
func (e *definitionError) Unwrap() error { return e.error }

// several is an error of several lines.
type several struct {
	prefix string
	list   yamldoc.Problems
}

func (s *several) Error() string {
	prefix := strings.TrimPrefix(fmt.Sprintf("%s, %d problems", s.prefix, len(s.list)), ", ")
	return prefix + ":\n  " + strings.ReplaceAll(s.list.Error(), "\n", "\n  ")
}

func (s *several) Unwrap() error { return s.list }

// ErrorFindings returns what an error of [Parse] or [Load] is about as findings of
// the rule [RuleDefinition], nil if the error is of another kind.
func ErrorFindings(err error) Findings {
	var findings Findings
	outer, known := errors.AsType[*definitionError](err)
	for _, p := range yamldoc.AsProblems(err) {
		f := problemFinding(SeverityError, RuleDefinition, p)
		if known && p.File != outer.file {
			f.File = p.File
		}
		findings = append(findings, f)
	}
	return findings
}

// WarningFindings returns what a document warns of as findings of the rule [RuleUnknownKey].
func WarningFindings(warnings []*yamldoc.Problem) Findings {
	var findings Findings
	for _, p := range warnings {
		findings = append(findings, problemFinding(SeverityWarning, RuleUnknownKey, p))
	}
	return findings
}

func problemFinding(severity Severity, rule Rule, p *yamldoc.Problem) Finding {
	node := ""
	for rest, ok := strings.CutPrefix(p.Path, "nodes."); ok; rest, ok = strings.CutPrefix(rest, "nodes.") {
		id := ""
		id, rest, _ = strings.Cut(rest, ".")
		node = InnerName(node, id)
	}
	return Finding{Severity: severity, Rule: rule, Node: node, Path: p.Path, Pos: Pos(p.Pos), Message: p.Msg, Hint: p.Hint}
}

// parser builds a Graph. Problems go to the doc.
type parser struct {
	*nest
	doc      *yamldoc.Doc
	at       *yamldoc.Map // the definition in doc
	g        *Graph
	version  string
	current  string          // id of the node being read
	pick     pick            // of that node
	branches map[string]bool // ids of the nodes that maps run
	ids      []idProblem
}

// idProblem is something wrong with a node's id. It is reported only once the types
// of the whole file and its version are right.
type idProblem struct {
	report    func(format string, args ...any) *yamldoc.Problem
	msg, hint string
}

// graph reads the top level.
func (p *parser) graph() {
	g := p.g
	m := p.at
	if m == nil {
		return
	}
	for _, key := range topRequired {
		if !m.Has(key) { // an empty value is reported later, see check
			p.doc.Root().Errorf("required field %q is missing", key).Hint = requiredHint()
		}
	}
	m.Text("name", &g.Name)
	m.Text("description", &g.Description)
	p.version = Version
	m.Text("version", &p.version)
	m.Text("model", &g.Model)
	m.Text("default_model", &g.DefaultModel)
	g.Sampling = ReadSampling(m)
	p.others(m)
	m.Foreign("memory")
	m.Texts("global_tools", &g.GlobalTools)
	m.Texts("mcp_servers", &g.MCPServers)
	m.Texts("conversation_starters", &g.ConversationStarters)
	g.Environment = ReadEnvironment(m)
	g.Sandbox, _ = sandbox.ReadDeclaration(m.Get("sandbox")) // what is wrong is reported to the document
	g.Hooks = hook.Read(m.Get("hooks"), hook.AgentKinds())
	g.Variables = ReadVariables(m)
	g.Rules = ReadOwnRules(m, g.Variables)
	p.settings(m.Map("settings"))
	p.work(m)
	m.Ignore("schedules") // see package schedule
	p.warnUnread(m, func(key string) string { return elsewhere("", key) })
}

// work reads the nodes of a graph, and the state on which they work.
func (p *parser) work(m *yamldoc.Map) {
	g, state := p.g, readState(m)
	g.Schema, g.InitialState, g.Reducers = state.schema, state.initial, state.reducers
	m.Text("start", &g.Start)
	p.branches = branchIDs(m.Get("nodes"))
	for e := range m.Map("nodes").All() {
		p.node(e)
	}
}

// optional returns what read stores for key, nil if that is nothing.
func optional[T any](key string, read func(string, *T) bool) *T {
	var v T
	if !read(key, &v) {
		return nil
	}
	return &v
}

func (p *parser) settings(m *yamldoc.Map) {
	s := &p.g.Settings
	m.Uint("max_loop_iterations", &s.MaxLoopIterations)
	s.HasTimeout = m.Seconds("timeout", &s.Timeout)
	m.Uint("max_concurrency", &s.MaxConcurrency)
	s.FailureWritten = yamldoc.Choice(m, "on_failure", &s.OnFailure, FailContinue, FailStop)
	s.Budget = ReadBudget(m)
	if p.g.IsInner() {
		p.warnUnread(m, wholeRun)
		return
	}
	m.Bool("log_state_snapshots", &s.LogStateSnapshots)
	m.Bool("validate_before_run", &s.ValidateBeforeRun)
	yamldoc.Choice(m, "durability", &s.Durability, DurabilityProcess, DurabilityPower, DurabilityOff)
	yamldoc.Choice(m, "scheduling", &s.Scheduling, ScheduleSteps, ScheduleDataflow)
	p.warnUnread(m, nil)
}

func readReducers(m *yamldoc.Map) map[string]Reducer {
	if m.Len() == 0 {
		return nil
	}
	reducers := make(map[string]Reducer, m.Len())
	for e := range m.All() {
		if r := readReducer(e.Node, e.Key); r != "" {
			reducers[e.Key] = r
		}
	}
	return reducers
}

// readReducer reads the reducer of a key, "" for none.
func readReducer(n *yamldoc.Node, key string) Reducer {
	name, ok := n.Text()
	if ok && !slices.Contains(ReducerNames[:], Reducer(name)) {
		n.Errorf("unknown reducer %q for state key %q", name, key).Hint = yamldoc.OneOf(name, names(ReducerNames[:]))
		return ""
	}
	return Reducer(name)
}

// warnUnread turns the keys of m that were not read into warnings. hint, which may be
// nil, can say more about a key.
func (p *parser) warnUnread(m *yamldoc.Map, hint func(key string) string) {
	found := m.Done()
	p.unknowns = append(p.unknowns, found...)
	for _, warning := range found {
		f := problemFinding(SeverityWarning, RuleUnknownKey, warning)
		f.Node, f.File = p.current, p.g.file()
		if hint != nil {
			if h := hint(warning.Key); h != "" {
				f.Hint = h
			}
		}
		p.warnings = append(p.warnings, f)
	}
}

// check looks at what is well typed, in the documented order.
func (p *parser) check() []*yamldoc.Problem {
	g, m := p.g, p.at
	var problems []*yamldoc.Problem
	add := func(n *yamldoc.Node, hint, format string, args ...any) {
		problems = append(problems, withHint(n.Errorf(format, args...), hint))
	}
	if p.version != Version {
		add(m.Get("version"), fmt.Sprintf("write version: %q, or leave it out", Version), "unsupported version %q, supported is %q", p.version, Version)
	}
	for _, id := range p.ids {
		problems = append(problems, withHint(id.report("%s", id.msg), id.hint))
	}
	if g.Name == "" {
		add(m.Get("name"), "", "name must not be empty")
	}
	switch {
	case len(g.Nodes) == 0:
		add(m.Get("nodes"), "", "graph %q has no nodes", g.Name)
	case g.Node(g.Start) == nil:
		ids := nodeIDs(g)
		add(m.Get("start"), didYouMean(g.Start, ids), "start node %q does not exist, available nodes: %s", g.Start, strings.Join(ids, ", "))
	}
	return problems
}

func withHint(p *yamldoc.Problem, hint string) *yamldoc.Problem {
	p.Hint = hint
	return p
}

func nodeIDs(g *Graph) []string {
	ids := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		ids[i] = n.ID
	}
	return ids
}
