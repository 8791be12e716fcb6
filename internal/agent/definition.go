package agent

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"loki/internal/agent/harness"
	"loki/internal/agent/team"
	"loki/internal/agent/team/todo"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/tool/permission"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
)

// Definition is what an agent is set to. It is immutable once it is read.
//
// That of a graph agent is derived from its graph, see [FromGraph].
type Definition struct {
	Name        string // for display; an agent is identified by the name of its directory
	Description string
	Version     string

	Model         string // id, "" for the model in force where the agent is started
	chat.Sampling        // where Model is empty, what is not set here is as configured
	GlobalTools   []string
	MCPServers    []string
	Variables     []graph.Variable
	Starters      []string // conversation starters: texts of turns that a user may choose from
	Documents     []string // sources of the knowledge base, see the documentation
	Environment   []string // names of variables that scripts get although they look like secrets
	Permission    permission.Rules
	Sandbox       sandbox.Declaration // of tools that declare nothing, and the most that calls can be granted
	Hooks         []hook.Hook

	Session *string // to begin with; nil for the configured one, "" for none

	Instructions         string // system prompt, without the variables filled in
	Dynamic              bool   // the agent's _instructions tool writes the system prompt instead
	CompressionThreshold *int   // tokens of a session, 0 for never; nil leaves it to the configuration

	WorkspaceInstructions *bool       // the agent gets what the workspace tells models; nil leaves it to the configuration
	Memory                chat.Memory // what the agent may do with what is remembered; "" leaves it to the configuration
	Mode                  chat.Mode   // that conversations with the agent begin in; "" leaves it to them
	Skills                *string     // that the agent is offered, see skill.Choose; nil leaves it to the configuration

	Todo        todo.Settings
	Team        team.Limits
	InjectSpawn bool // the system prompt explains the tools for children

	Harness    *harness.Setting // the program of others that is the agent; nil for none
	Worktree   *graph.Worktree  // it works in a copy of the repository; nil if it does not
	Budget     graph.Budget
	Durability graph.Durability
	Rules      gate.Rules // by which its runs start

	File string // path it was read from, for messages
	Text []byte // as it was read

	places      graph.Places
	permissions value.Value // permission as it is written
	hooks       value.Value // likewise
}

// Pos returns where path is in the definition of a plain agent: "model",
// "global_tools[1]", or the nearest enclosing path.
func (d *Definition) Pos(path string) graph.Pos { return d.places.At(path) }

// defaults returns the settings of a definition that says nothing.
func defaults() *Definition {
	return &Definition{
		Todo: todo.Settings{Max: todo.DefaultMax, Inject: true},
		Team: team.DefaultLimits(), InjectSpawn: true,
		Durability: graph.DurabilityProcess,
	}
}

// Parse reads the definition of a plain agent. The name of the file is used in messages; src
// is kept and must not change.
//
// The findings are warnings, among them those about keys that mean nothing; they are returned
// with an error, too. The error has code fault.Config, and its chain holds the
// [yamldoc.Problem] of everything that is wrong, see [graph.ErrorFindings].
func Parse(file string, src []byte) (*Definition, graph.Findings, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Config, err, "")
	}
	d := defaults()
	d.File, d.Text = file, src
	m := doc.Root().Map()
	m.Renamed("agent_prelude", "agent_session")
	m.Require("name")
	for _, s := range settings {
		d.read(m, s)
	}
	d.check(m)
	m.Ignore("schedules") // see package schedule
	m.Foreign("skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions", "enabled_macros")
	m.Done()
	findings := graph.WarningFindings(doc.Warnings())
	if err := doc.Err(); err != nil {
		return nil, findings, fault.Wrap(fault.Config, err, "").WithHint("%s", doc.Errors()[0].Hint)
	}
	d.places = graph.PlacesOf(doc.Root())
	return d, findings, nil
}

// check reports values that have the right type and cannot be used all the same.
func (d *Definition) check(m *yamldoc.Map) {
	if n := m.Get("name"); n != nil && n.Kind() != yamldoc.Null && strings.TrimSpace(d.Name) == "" {
		n.Errorf("name must not be empty")
	}
	d.checkHarness(m)
	for i, n := range m.List("documents") {
		if i < len(d.Documents) && escapes(d.Documents[i]) {
			n.Errorf("%q leads out of the agent's directory", d.Documents[i]).Hint = "write the absolute path, or one that begins with ~/"
		}
	}
	names := make(map[string]bool)
	for i, n := range m.List("variables") {
		if i >= len(d.Variables) {
			break
		}
		if name := d.Variables[i].Name; names[name] {
			n.Warnf("the variable %q is declared twice, and the first declaration counts", name)
		} else {
			names[name] = true
		}
	}
	if p := d.Permission; p.Default == permission.Allow || p.Default == "" && slices.ContainsFunc(p.List, func(r permission.Rule) bool { return r.Action == permission.Allow }) {
		m.Get("permission").Warnf("rules of an agent can ask or deny, not allow: its allow rules have no effect").Hint = "allow it in your config.yaml"
	}
	for key, used := range map[string]bool{"unattended": d.Permission.Unattended != "", "keep_env": d.Permission.KeepEnv != nil, "trust": d.Permission.Trust != nil} {
		if used {
			m.Map("permission").Get(key).Warnf("permission.%s has no effect for an agent", key).Hint = "it belongs to your config.yaml"
		}
	}
	if n := m.Get("spawnable_agents"); n != nil && !d.Team.CanSpawn {
		n.Warnf("spawnable_agents has no effect without can_spawn_agents: true")
	}
	for _, limit := range []struct {
		key string
		max int
	}{{"max_concurrent_agents", d.Team.MaxConcurrent}, {"max_agent_depth", d.Team.MaxDepth}} {
		if n := m.Get(limit.key); n != nil && d.Team.CanSpawn && limit.max == 0 {
			n.Warnf("with %s: 0 the agent cannot start other agents", limit.key).Hint = "write 1 or more, or can_spawn_agents: false"
		}
	}
}

// checkHarness reports settings that have no effect on a program of others.
func (d *Definition) checkHarness(m *yamldoc.Map) {
	if d.Harness == nil {
		return
	}
	for _, key := range []string{"model", "temperature", "top_p", "reasoning_effort"} {
		if n := m.Get(key); n != nil && n.Kind() != yamldoc.Null {
			p := n.KeyErrorf("%s cannot be set beside harness: the program has a model of its own", key)
			if p.Hint = "leave it out"; key == "model" {
				p.Hint = "set the model of the program: harness: {acp: " + d.Harness.Name + ", model: NAME}"
			}
		}
	}
	if d.Dynamic || len(d.Documents) > 0 {
		m.Get("harness").Errorf("harness does not go with dynamic_instructions and documents")
	}
	if problem, hint := d.Harness.CheckBudget(d.Budget.USD, d.Budget.Tokens); problem != "" {
		m.Get("budget").Errorf("%s", problem).Hint = hint
	}
}

// escapes reports whether a document is a relative path that leads out of its directory.
// The path may be that of a loader, as in pdf:a.pdf.
func escapes(document string) bool {
	if strings.Contains(document, "://") {
		return false
	}
	if loader, path, ok := strings.Cut(document, ":"); ok && !strings.ContainsAny(loader, `/\`) {
		document = path
	}
	if strings.HasPrefix(document, "/") || strings.HasPrefix(document, "~/") {
		return false
	}
	return slices.Contains(strings.FieldsFunc(document, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// FromGraph returns the definition of the graph agent whose directory is called name. It has
// the settings that graphs have; the others are off.
func FromGraph(name string, g *graph.Graph) *Definition {
	d := &Definition{
		Name: name, Description: g.Description, Model: g.Model, Sampling: g.Sampling,
		GlobalTools: g.GlobalTools, MCPServers: g.MCPServers, Variables: g.Variables, Starters: g.ConversationStarters,
		Environment: g.Environment, Sandbox: g.Sandbox, Hooks: g.Hooks, Team: team.DefaultLimits(), Budget: g.Settings.Budget, Durability: g.Settings.Durability, Rules: g.Rules,
		File: g.File, Text: g.Text,
	}
	_, d.Team.CanSpawn = g.Find(func(n *graph.Node) bool { return n.Type == graph.AgentNode })
	return d
}

// readFile reads a definition file of either kind.
func readFile(ref Ref, file string) ([]byte, error) {
	src, err := yamldoc.ReadFile(file)
	if err != nil {
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError.Err // the path is in our message already
		}
		return nil, fault.Wrap(fault.Config, err, "the definition of agent %s, %s, cannot be read", ref.Name, file)
	}
	return src, nil
}
