package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

// node reads one entry of nodes and adds what can be read of it to the graph.
func (p *parser) node(e yamldoc.Entry) {
	n := &Node{ID: e.Key}
	p.current = InnerName(p.g.within, n.ID)
	defer func() { p.current = p.g.within }()
	m := e.Node.Map()
	if m == nil {
		return
	}
	var kind string
	switch {
	case !m.Has("type"):
		p.require(m, "type")
		return
	case !m.Text("type", &kind):
		return
	case !slices.Contains(Types[:], Type(kind)):
		m.Get("type").Errorf("unknown node type %q", kind).Hint = yamldoc.OneOf(kind, names(Types[:]))
		return
	}
	n.Type = Type(kind)
	p.id(n, e, m)
	m.Text("description", &n.Description)
	p.pick = pickFirst
	yamldoc.Choice(m, "pick", &p.pick, pickFirst, pickAll)
	p.next(n, m)
	p.join(n, m)
	m.Bool("defer", &n.Defer)
	p.require(m, p.requiredOf(n)...)
	p.fields(n, m)
	if p.pick == pickAll && len(n.Choices) == 0 {
		m.Get("pick").Warnf("pick has no edges to pick from").Hint = edgeHint
	}
	p.warnUnread(m, func(key string) string { return elsewhere(n.Type, key) })
	p.g.Nodes = append(p.g.Nodes, n)
	p.g.byID[n.ID] = n
}

// fields reads what only nodes of some types have: the fields of one type, and those that several share, by their keys.
func (p *parser) fields(n *Node, m *yamldoc.Map) {
	map[Type]func(n *Node, m *yamldoc.Map){
		AgentNode: p.agent, ScriptNode: p.script, ApprovalNode: p.approval, InputNode: p.input, LLMNode: p.llm, RAGNode: p.rag,
		MapNode: p.mapOver, GraphNode: p.subgraph, ToolNode: p.tool, WaitNode: p.wait, EndNode: p.end,
	}[n.Type](n, m)
	for key, read := range map[string]func(n *Node, m *yamldoc.Map){
		"state_updates": p.updates, "on_uncertain": p.onUncertain, "cache": p.cache, "sandbox": p.sandbox, "expires": p.expires,
	} {
		if slices.Contains(optionalFields[n.Type], key) {
			read(n, m)
		}
	}
	if n.Type != EndNode {
		p.failures(n, m)
	}
}

// require reports the fields that are missing, with a hint about what is required.
func (p *parser) require(m *yamldoc.Map, keys ...string) {
	for _, problem := range m.Require(keys...) {
		problem.Hint = requiredHint()
	}
}

// id checks the node's id.
func (p *parser) id(n *Node, e yamldoc.Entry, m *yamldoc.Map) {
	bad := func(hint, format string, args ...any) {
		p.ids = append(p.ids, idProblem{e.Node.KeyErrorf, fmt.Sprintf(format, args...), hint})
	}
	var id string
	if m.Text("id", &id); id != "" && id != n.ID {
		p.ids = append(p.ids, idProblem{
			m.Get("id").Errorf, fmt.Sprintf("id %q differs from %q, the key of the node", id, n.ID), "make them the same, or leave id out",
		})
	}
	switch {
	case n.ID == "":
		bad("", "a node id must not be empty")
	case n.Type != RAGNode:
	case n.ID == "graph" || n.ID == "config":
		bad("choose another id", "a rag node cannot be called %q: older versions kept its knowledge base in %s.yaml, which is the agent's own", n.ID, n.ID)
	case strings.ContainsAny(n.ID, `/\`):
		bad("choose another id", "a rag node cannot be called %q: its knowledge base is a file of that name, and the id has a path separator", n.ID)
	}
}

// next reads the successors: nothing, a node id, a list of them, or a choice.
func (p *parser) next(n *Node, m *yamldoc.Map) {
	next := m.Get("next")
	if next == nil || next.Kind() == yamldoc.Null {
		return
	}
	n.HasNext = true
	if next.Kind() == yamldoc.List && !hasEdges(next) {
		n.Next, _ = next.Strs()
		n.FanOut = len(n.Next) > 1
		return
	}
	n.Next = p.exit(n, "next", next)
}

// goTo reads where a run goes, and stores the first node that this leads to.
func (p *parser) goTo(n *Node, m *yamldoc.Map, key string, dst *string) {
	if at := m.Get(key); at != nil && at.Kind() != yamldoc.Null {
		if targets := p.exit(n, key, at); len(targets) > 0 {
			*dst = targets[0]
		}
	}
}

func (p *parser) updates(n *Node, m *yamldoc.Map) {
	updates := m.Map("state_updates")
	if updates == nil {
		return
	}
	n.HasUpdates = true
	n.Updates = make([]Update, 0, updates.Len())
	for e := range updates.All() {
		if text, ok := e.Node.Str(); ok {
			n.Updates = append(n.Updates, Update{e.Key, ParseTemplate(text)})
		}
	}
}

func (p *parser) sandbox(n *Node, m *yamldoc.Map) {
	n.Sandbox, _ = sandbox.ReadDeclaration(m.Get("sandbox")) // what is wrong is reported to the document
}

// templates returns a reader of m's templates.
func templates(m *yamldoc.Map) func(key string, dst *Template) bool {
	return func(key string, dst *Template) bool {
		var text string
		if !m.Str(key, &text) {
			return false
		}
		*dst = ParseTemplate(text)
		return true
	}
}

func (p *parser) agent(n *Node, m *yamldoc.Map) {
	n.Agent = &Agent{OutputSchema: outputShape(m)}
	m.Str("agent", &n.Agent.Agent)
	templates(m)("prompt", &n.Agent.Prompt)
	n.Agent.Worktree = ReadWorktree(m)
	n.Agent.Skills = skillsIn(m)
}

// skillsIn reads the key skills: a text, or a list, of which an empty one means none. It returns "" if there is no such key.
func skillsIn(m *yamldoc.Map) (setting string) {
	list := m.Get("skills")
	if list == nil || list.Kind() != yamldoc.List {
		m.Str("skills", &setting)
		return setting
	}
	var names []string
	m.Strs("skills", &names)
	return cmp.Or(strings.Join(names, ","), "none")
}

// outputShape reads an output_schema.
func outputShape(m *yamldoc.Map) *value.Value { return schemaIn(m, "output_schema") }

// schemaIn reads the value under key, which must be a JSON Schema; nil for none.
func schemaIn(m *yamldoc.Map, key string) *value.Value {
	shape := optional(key, m.Value)
	if shape == nil {
		return nil
	}
	compileAt(m.Get(key), *shape)
	return shape
}

// compileAt compiles the JSON Schema that stands at a node; nil for one that is not valid, which is reported.
func compileAt(at *yamldoc.Node, shape value.Value) *schema.Schema {
	form, err := schema.Compile(shape)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		for _, v := range invalid.Violations {
			problem := at.At(v.Path).Errorf("not valid JSON Schema: %s", v.Message)
			if strings.HasPrefix(v.Message, "must be ") {
				problem.Hint = schemaHint
			}
		}
	}
	return form
}

const schemaHint = `types are string, number, integer, boolean, object, array and null; a property is a mapping such as {type: string}; leave the type out for any`

func (p *parser) script(n *Node, m *yamldoc.Map) {
	n.Script = &Script{}
	m.Str("script", &n.Script.Script)
}

func (p *parser) approval(n *Node, m *yamldoc.Map) {
	a := &Approval{Default: optional("default", templates(m))}
	n.Approval = a
	templates(m)("question", &a.Question)
	m.Strs("options", &a.Options)
	for e := range m.Map("routes").All() {
		r := Route{Answer: e.Key}
		if targets := p.exit(n, r.place(), e.Node); len(targets) > 0 {
			r.Target = targets[0]
			a.Routes = append(a.Routes, r)
		}
	}
	p.goTo(n, m, "on_other", &a.OnOther)
	a.Assignees = assignees(m)
}

func (p *parser) input(n *Node, m *yamldoc.Map) {
	n.Input = &Input{Default: optional("default", templates(m))}
	templates(m)("question", &n.Input.Question)
	m.Str("validation", &n.Input.Validation)
	n.Input.Assignees = assignees(m)
}

func (p *parser) llm(n *Node, m *yamldoc.Map) {
	n.LLM = &LLM{
		Instructions:  optional("instructions", templates(m)),
		Sampling:      ReadSampling(m),
		MaxAttempts:   DefaultMaxAttempts,
		MaxIterations: DefaultMaxIterations,
		OutputSchema:  outputShape(m),
	}
	templates(m)("prompt", &n.LLM.Prompt)
	m.Strs("tools", &n.LLM.Tools)
	n.LLM.Skills = skillsIn(m)
	if v := m.Get("memory"); v != nil && v.Kind() == yamldoc.Bool {
		m.Foreign("memory") // a switch of related programs
	} else {
		yamldoc.Choice(m, "memory", &n.LLM.Memory, chat.MemoryOff, chat.MemoryRead, chat.MemoryPropose)
	}
	m.Str("model", &n.LLM.Model)
	p.others(m)
	m.Uint("max_attempts", &n.LLM.MaxAttempts)
	m.Uint("max_iterations", &n.LLM.MaxIterations)
}

// others makes the keys known that graphs of related programs have and that do nothing here.
func (p *parser) others(m *yamldoc.Map) {
	m.Foreign("skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions", "enabled_macros", "spawnable_agents")
}

func (p *parser) rag(n *Node, m *yamldoc.Map) {
	n.RAG = &RAG{
		Query:        ParseTemplate("{{" + PromptKey + "}}"),
		ChunkSize:    optional("chunk_size", m.Uint),
		ChunkOverlap: optional("chunk_overlap", m.Uint),
		BatchSize:    optional("batch_size", m.Uint),
	}
	m.Strs("documents", &n.RAG.Documents)
	templates(m)("query", &n.RAG.Query)
	m.Uint("top_k", &n.RAG.TopK)
	m.Str("embedding_model", &n.RAG.EmbeddingModel)
	m.Str("reranker_model", &n.RAG.RerankerModel)
	m.Foreign("extractor_model", "extractor_prompt", "graph_hops", "driver")
}

func (p *parser) end(n *Node, m *yamldoc.Map) {
	n.End = &End{}
	templates(m)("output", &n.End.Output)
}
