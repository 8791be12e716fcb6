// Package validate checks agents against the models, tools, servers and skills of this installation, and lists what they may do.
package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/team"
	"loki/internal/agent/validate/tools"
	"loki/internal/agent/workspace/skill"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/catalog"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/mcp"
	"loki/internal/tool/script"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/schedule"
)

// Service checks agents.
type Service struct {
	Tools     *tools.Service // with the library of agents, the configuration and the trust in agents
	Catalog   *catalog.Catalog
	Knowledge Knowledge
	Loader    func() *input.Loader // of documents
	Servers   func() (*mcp.File, error)
	// Model returns the model of a knowledge base; nil if these are not checked.
	Model func(id string, of catalog.Type) (catalog.Model, error)
	// Skills returns the skills that there are for an agent in a directory.
	Skills func(dir string) []skill.Skill
	// Repository reports whether the working directory is in a repository of git.
	Repository func() bool
	// Playing is set while a cassette is played: MCP servers are not checked then.
	Playing bool
}

// Knowledge is what the knowledge bases of agents have to say.
type Knowledge interface {
	// DocumentAt returns a source of a knowledge base, which is as an agent in dir has it.
	DocumentAt(dir, document string) (string, error)
	// Unbuilt calls f for the knowledge bases of an agent that were not built yet: with the node, nil for a plain agent.
	Unbuilt(of agent.Agent, f func(n *graph.Member, hint string))
}

// Findings checks an agent against what this program, its configuration and the
// agent have: what would keep the agent from running is an error. The findings are in the order of the text. Nothing is started.
// FileExists says which scripts there are, and is nil for those of the file system.
func (s *Service) Findings(ctx context.Context, of agent.Agent, fileExists func(path string) bool) graph.Findings {
	v := validator{Service: s, of: of, d: of.InForce, g: of.GraphInForce()}
	tools := v.tools(ctx)
	v.servers()
	v.knowledge()
	v.outside(ctx)
	v.skills()
	v.worktrees()
	if _, doc, err := schedule.ReadAgent(v.d.File, v.d.Text, of.Name); doc != nil {
		v.findings = append(append(v.findings, graph.ErrorFindings(err)...), graph.WarningFindings(doc.Warnings())...)
	}
	if v.g == nil {
		v.plain(ctx)
		return v.findings.InOrder()
	}
	return append(graph.Validate(v.g, graph.ValidateEnv{
		Dir: of.Dir, FileExists: fileExists,
		Agent: func(name string) (known, defined bool) {
			return s.Tools.Agents.For(of.Ref).Exists(name)
		},
		Context: &graph.AgentContext{
			Functions: tools.Names(),
			HasFunction: func(name string) bool {
				_, err := tools.Select([]string{name})
				return err == nil
			},
			Parameters: func(name string) (value.Value, bool) { return parameters(tools, name) },
			Servers:    v.g.MCPServers,
			Model:      v.model,
		},
	}), v.findings...).InOrder()
}

// parameters returns the schema of the arguments of the one tool that a name means; ok is false if it means several.
func parameters(tools tool.Set, name string) (shape value.Value, ok bool) {
	found, err := tools.Select([]string{name})
	if err != nil || found.Len() != 1 {
		return value.Value{}, false
	}
	if shape, err = value.ParseJSON(found.Declarations()[0].Parameters); err != nil {
		return value.Value{}, true // the tool takes what it gets
	}
	return shape, true
}

// validator finds what the package of a definition cannot know of.
type validator struct {
	*Service
	of       agent.Agent
	d        *agent.Definition // as the environment has it
	g        *graph.Graph      // likewise, nil for a plain agent
	findings graph.Findings
}

func (v *validator) add(severity graph.Severity, rule graph.Rule, n *graph.Member, path, hint, format string, args ...any) {
	f := graph.Finding{Severity: severity, Rule: rule, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint}
	if f.Pos = v.of.Pos(f.Path); n != nil {
		f = n.At(f)
	}
	v.findings = append(v.findings, f)
}

func (v *validator) err(rule graph.Rule, n *graph.Member, path, hint, format string, args ...any) {
	v.add(graph.SeverityError, rule, n, path, hint, format, args...)
}

func (v *validator) model(id string) error {
	_, err := v.Catalog.Resolve(id, catalog.Chat)
	return err
}

// tools checks the tools of the agent, and returns the valid ones, with the tools that each agent has.
func (v *validator) tools(ctx context.Context) tool.Set {
	tools, ok := v.listedTools(ctx)
	if !ok {
		return tool.Set{}
	}
	tools = append(tools, builtin.UserTools(ask.Unavailable{}, ask.Question{})...)
	if v.d.Team.CanSpawn {
		if t, err := team.New(ctx, team.Options{Limits: v.d.Team}); err == nil { // nothing is read, so nothing fails
			tools = append(tools, t.Root().Tools()...)
			t.Root().Close()
		}
	}
	set, err := tool.Set{}.With(tools...)
	if err != nil {
		v.err(graph.RuleToolScript, nil, "", "", "%v", err)
	}
	return set
}

// listedTools checks the tools that the agent lists and those of its own script, and returns the valid ones; ok is
// false if tools cannot be looked up at all.
func (v *validator) listedTools(ctx context.Context) (tools []tool.Tool, ok bool) {
	library, err := v.Tools.LibraryOf(v.of, nil, nil)
	if err != nil {
		v.err(graph.RuleUnknownTool, nil, "global_tools", fault.HintOf(err), "%v", err)
		return nil, false
	}
	if file, o, ok := v.Tools.Script(ctx, v.of, nil, nil); ok {
		own, err := script.Load(file, o)
		if err != nil {
			v.err(graph.RuleToolScript, nil, "", "see what models get of it: loki --tool-schema "+file, "the agent's tools: %v", err)
		}
		tools = own
	}
	for i, name := range v.d.GlobalTools {
		found, err := library.ForEntry(ctx, name)
		path := fmt.Sprintf("global_tools[%d]", i)
		if unknown, ok := errors.AsType[*tool.UnknownError](err); ok {
			v.err(graph.RuleUnknownTool, nil, path, unknownHint(name, unknown.Available), "%s", unknown.WithoutNames())
		} else if err != nil {
			v.err(graph.RuleToolScript, nil, path, "see what models get of it: loki --tool-schema "+library.Path(library.FileOf(name)), "%v", err)
		}
		tools = append(tools, found...)
	}
	return tools, true
}

// outside reports scripts that are not in the agent's directory, nor among the files that agents share.
func (v *validator) outside(ctx context.Context) {
	check := func(n *graph.Member, path string) {
		real, err := trust.Resolve(path)
		if err != nil {
			return // a script that is missing is reported already
		}
		for _, dir := range append(script.Beside(v.of.Dir), v.of.Dir) {
			if trust.Below(dir, "", path) {
				return
			}
		}
		const hint = "put it into the directory of the agent: it is not copied, installed or removed with it"
		key := ""
		if n != nil {
			key = "script"
		}
		v.add(graph.SeverityWarning, graph.RuleOutsideScript, n, key, hint, "script %s is outside of the agent's directory", real)
	}
	if file, _, ok := v.Tools.Script(ctx, v.of, nil, nil); ok {
		check(nil, file)
	}
	if v.g == nil {
		return
	}
	for n := range v.g.All() {
		if n.Script != nil && n.Script.Script != "" {
			check(&n, n.Script.Path(v.of.Dir))
		}
	}
}

// skills checks the names of skills that the agent or its nodes list.
func (v *validator) skills() {
	found := make(map[string][]skill.Skill)
	check := func(n *graph.Member, dir, setting string) {
		if setting == "" {
			return
		}
		if found[dir] == nil {
			found[dir] = v.Skills(dir)
		}
		all := found[dir]
		_, unknown := skill.Choose(all, setting)
		for _, name := range unknown {
			v.err(graph.RuleDefinition, n, "skills", "list them: loki --list skills", "%s", skill.NotFound(name, all))
		}
	}
	if v.d != nil && v.d.Skills != nil {
		check(nil, v.of.Dir, *v.d.Skills)
	}
	if v.g != nil {
		for n := range v.g.All() {
			if n.LLM != nil {
				check(&n, v.of.Dir, n.LLM.Skills)
			}
			if n.Agent == nil {
				continue
			}
			if child, err := v.Tools.Agents.For(v.of.Ref).Find(n.Agent.Agent); err == nil {
				check(&n, child.Dir, n.Agent.Skills)
			}
		}
	}
}

// worktrees warns of agents that work in a worktree where there is no repository.
func (v *validator) worktrees() {
	warn := func(n *graph.Member, w *graph.Worktree) {
		if w != nil && !v.Repository() {
			v.add(graph.SeverityWarning, graph.RuleDefinition, n, "worktree", "run the agent in a git repository, or leave out worktree", "there is no git repository around the working directory, and a worktree is a copy of one")
		}
	}
	warn(nil, v.d.Worktree)
	if v.g == nil {
		return
	}
	for n := range v.g.All() {
		if n.Agent != nil {
			warn(&n, n.Agent.Worktree)
		}
	}
}

// unknownHint says which names there are, and which is likely to be meant.
func unknownHint(name string, available []string) string {
	list := "available: " + strings.Join(available, ", ")
	if near := yamldoc.Nearest(tool.Name(name), available); near != "" {
		return "did you mean " + near + "? " + list
	}
	return list
}

// plain checks what only plain agents have.
func (v *validator) plain(ctx context.Context) {
	d := v.d
	if !v.Tools.Config.FunctionCallingSupport {
		v.err(graph.RuleUnknownTool, nil, "", "set it to true in "+v.Tools.Config.File, "agents need tools, but function_calling_support is off")
	}
	v.namedModel("model", d.Model)
	v.namedModel("summarization_model", d.Team.SummarizationModel)
	if d.Dynamic {
		if _, _, _, err := v.Tools.Dynamic(ctx, v.of, nil, nil); err != nil {
			v.err(graph.RuleToolScript, nil, "dynamic_instructions", fault.HintOf(err), "%v", err)
		}
	}
	v.spawnable()
	if h := d.Harness; h != nil && !v.Playing && !strings.ContainsAny(h.Command[0], `/\`) {
		if _, err := exec.LookPath(h.Command[0]); err != nil {
			v.add(graph.SeverityWarning, graph.RuleMissingScript, nil, "harness", cmp.Or(h.Install, "install it"), "the program %s is not installed", h.Command[0])
		}
	}
	if i, name := graph.Consents(d.Variables); i >= 0 {
		v.add(graph.SeverityWarning, graph.RuleConsent, nil, fmt.Sprintf("variables[%d].default", i), graph.ConsentHint, graph.ConsentMessage, name)
	}
}

// namedModel checks the model under a key, if there is one.
func (v *validator) namedModel(key, id string) {
	if id == "" {
		return
	}
	if err := v.model(id); err != nil {
		v.err(graph.RuleUnknownModel, nil, key, graph.ModelHint(err), "model %q cannot be used: %v", id, err)
	}
}

// spawnable checks the agents that the agent may start.
func (v *validator) spawnable() {
	agents := v.Tools.Agents.For(v.of.Ref)
	for i, name := range v.d.Team.Spawnable {
		path := fmt.Sprintf("spawnable_agents[%d]", i)
		switch known, defined := agents.Exists(name); {
		case !known:
			names, _ := agents.Names()
			v.err(graph.RuleUnknownAgent, nil, path, unknownHint(name, names), "there is no agent %q", name)
		case !defined:
			v.err(graph.RuleUndefinedAgent, nil, path, "", "agent %q is not defined by exactly one of config.yaml and graph.yaml", name)
		}
	}
}

// documents checks the sources of a knowledge base: that of a node, or of the agent for nil.
func (v *validator) documents(n *graph.Member, documents []string) {
	input := v.Loader()
	for i, document := range documents {
		at := fmt.Sprintf("documents[%d]", i)
		stored, err := v.Knowledge.DocumentAt(v.of.Dir, document)
		if err != nil {
			v.err(graph.RuleNoDocuments, n, at, fault.HintOf(err), "%v", err)
			continue
		}
		name, rest, named := strings.Cut(stored, ":")
		if input.Serves(stored) {
			stored, named = rest, false
		}
		if strings.Contains(stored, "://") || strings.HasPrefix(stored, "git@") || strings.ContainsAny(stored, "*?[{") {
			continue
		}
		if _, err := os.Stat(stored); errors.Is(err, fs.ErrNotExist) {
			hint := ""
			if name = filepath.Base(name); named {
				hint = fmt.Sprintf("if %s is meant to be a document loader, add it to document_loaders in %s", name, v.Tools.Config.File)
			}
			v.add(graph.SeverityWarning, graph.RuleNoDocuments, n, at, hint, "there is no file %s", stored)
		}
	}
}

// knowledge checks the knowledge bases of the agent: their models, their sources, and that they are
// there or are built without a question.
func (v *validator) knowledge() {
	if v.g == nil {
		v.documents(nil, v.d.Documents)
	}
	for _, n := range v.ragNodes() {
		v.documents(n, n.RAG.Documents)
		v.knowledgeModel(n, "embedding_model", n.RAG.EmbeddingModel, catalog.Embedding)
		v.knowledgeModel(n, "reranker_model", n.RAG.RerankerModel, catalog.Reranker)
		size, overlap := n.RAG.ChunkSize, n.RAG.ChunkOverlap
		switch {
		case size != nil && rag.CheckChunkSize(*size) != nil:
			v.err(graph.RuleZeroLimit, n, "chunk_size", "", "%v", rag.CheckChunkSize(*size))
		case size != nil && overlap != nil && *overlap >= *size:
			v.err(graph.RuleZeroLimit, n, "chunk_overlap", "5 % of chunk_size is usual", "chunk_overlap has to be less than chunk_size")
		}
	}
	v.Knowledge.Unbuilt(v.of, func(n *graph.Member, hint string) {
		v.add(graph.SeverityWarning, graph.RuleKnowledge, n, "documents", hint, "the knowledge base was not built yet")
	})
}

// ragNodes returns the nodes with knowledge bases.
func (v *validator) ragNodes() (nodes []*graph.Member) {
	if v.g == nil {
		return nil
	}
	for n := range v.g.All() {
		if n.RAG != nil {
			nodes = append(nodes, &n)
		}
	}
	return nodes
}

// knowledgeModel checks the model under a key of a rag node, if there is one.
func (v *validator) knowledgeModel(n *graph.Member, key, id string, of catalog.Type) {
	if id == "" || v.Model == nil {
		return
	}
	if _, err := v.Model(id, of); err != nil {
		v.err(graph.RuleUnknownModel, n, key, fault.HintOf(err), "model %q cannot be used: %v", id, err)
	}
}

// servers checks the MCP servers that the agent lists.
func (v *validator) servers() {
	if len(v.d.MCPServers) == 0 || v.Playing {
		return
	}
	if !v.Tools.Config.MCPServerSupport {
		const off, hint = "lists MCP servers, but mcp_server_support is off", "set it to true in "
		if v.g == nil {
			if slices.ContainsFunc(v.d.MCPServers, mcp.Required) {
				v.err(graph.RuleUnknownMCPServer, nil, "mcp_servers", hint+v.Tools.Config.File, "the agent "+off)
			}
			return
		}
		for n := range v.g.All() {
			if n.LLM != nil && slices.ContainsFunc(n.LLM.Tools, func(name string) bool { return strings.HasPrefix(name, "mcp:") && mcp.Required(name) }) {
				v.err(graph.RuleUnknownMCPServer, &n, "tools", hint+v.Tools.Config.File, "the node "+off)
			}
			if n.Tool == nil {
				continue
			}
			if _, _, ok := n.Tool.Server(); ok {
				v.err(graph.RuleUnknownMCPServer, &n, "tool", hint+v.Tools.Config.File, "the node calls a tool of an MCP server, but mcp_server_support is off")
			}
		}
		return
	}
	servers, err := v.Servers()
	if err != nil {
		v.err(graph.RuleUnknownMCPServer, nil, "mcp_servers", fault.HintOf(err), "%v", err)
		return
	}
	for i, name := range v.d.MCPServers {
		path := fmt.Sprintf("mcp_servers[%d]", i)
		server, _ := servers.Lookup(name)
		chosen := servers.SelectList([]string{name}, v.Tools.Config.MappingMCPServers.Map())
		switch {
		case server.Disabled:
			v.add(graph.SeverityWarning, graph.RuleUnknownMCPServer, nil, path, "", "%s", chosen.Warnings[0])
		case len(chosen.Warnings) > 0:
			v.err(graph.RuleUnknownMCPServer, nil, path, "configure it there, or take it out of mcp_servers", "%s: %s", v.Tools.Agents.Paths.MCPFile(), strings.Join(chosen.Warnings, "; "))
		}
		for _, s := range chosen.Servers {
			if s.Err != nil {
				v.err(graph.RuleUnknownMCPServer, nil, path, fault.HintOf(s.Err), "%v", s.Err)
			}
		}
	}
}
