package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/agent"
	"loki/internal/ask"
	"loki/internal/cache"
	"loki/internal/engine"
	"loki/internal/environ"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/mcp"
	"loki/internal/node"
	"loki/internal/provider"
	"loki/internal/run"
	"loki/internal/tool"
	"loki/internal/tool/script"
	"loki/internal/value"
)

// GraphRun is what it takes to run a graph agent.
type GraphRun struct {
	Agent     agent.Ref
	Graph     *graph.Graph
	Prompt    string
	Variables map[string]string // a value for every variable the graph declares
	Given     map[string]string // the part of them that the user gave with this command
	Model     string            // id the user asked for; "" leaves it to graph and configuration
	NoStream  bool
	Emitter   event.Emitter
	Asker     ask.Asker
	Yes       bool // whatever tools would ask is answered with yes

	// Filled in by check.
	tools tool.Set          // what nodes may list
	files map[string]string // see App.contents

	answered []string // questions that were answered to resume the run
}

// RunGraph runs a graph agent to its end. The error is a [*fault.Error].
func (a *App) RunGraph(ctx context.Context, r GraphRun) (run.Outcome, error) {
	if err := a.check(ctx, &r); err != nil {
		return run.Outcome{}, err
	}
	plan := graph.NewPlan(r.Graph)
	return a.start(ctx, r, plan, run.StartCheckpoint(plan, initialState(r)), "")
}

// check refuses a run that cannot work before there is a record of it: one that lists
// tools that do not exist and, as far as its settings ask for that, one whose graph is
// not valid.
func (a *App) check(ctx context.Context, r *GraphRun) (err error) {
	if r.tools, err = a.agentTools(*r); err != nil {
		return err
	}
	if r.files, err = a.contents(*r, r.tools); err != nil {
		return err
	}
	if !r.Graph.Settings.ValidateBeforeRun {
		return nil
	}
	findings := a.Validate(r.Agent, r.Graph)
	if len(findings.Errors()) > 0 {
		return invalidGraph(r.Agent, findings)
	}
	return warnFindings(ctx, *r, findings)
}

// start begins a run at a checkpoint and records it.
func (a *App) start(ctx context.Context, r GraphRun, plan *graph.Plan, start run.Checkpoint, parent string) (run.Outcome, error) {
	journal, closeJournal, err := a.newJournal(ctx, r, start, parent)
	if err != nil {
		return run.Outcome{}, err
	}
	defer closeJournal()
	return a.execute(ctx, r, plan, run.Recovery{Last: start}, journal, false)
}

// execute drives a run from what is on record of it. A nil journal records nothing.
func (a *App) execute(ctx context.Context, r GraphRun, plan *graph.Plan, found run.Recovery, journal run.Journal, resumed bool) (run.Outcome, error) {
	engine, err := a.Engine()
	if err != nil {
		return run.Outcome{}, err
	}
	id := run.NewID()
	if journal != nil {
		id = journal.ID()
	}
	budget := run.NewBudget(r.Graph.Settings.Budget, found.Last.Usage)
	budget.Expect(found.Info.Usage.Sub(found.Last.Usage))
	set := a.Overridden(r.Agent, r.Graph)
	rc := a.Context(a.graphModel(r), r.NoStream)
	rc.Temperature = cmp.Or(set.Temperature, rc.Temperature)
	rc.TopP = cmp.Or(set.TopP, rc.TopP)
	rc.Effort = cmp.Or(provider.Effort(set.Effort), rc.Effort)
	if budget != nil {
		rc.Budget = budget
	}
	child, err := a.scriptChild(r)
	if err != nil {
		return run.Outcome{}, err
	}
	judge, err := a.judge(r.Agent.Name)
	if err != nil {
		return run.Outcome{}, err
	}
	scope, err := a.graphServers(ctx, r)
	if err != nil {
		return run.Outcome{}, err
	}
	var servers func(context.Context, []string) ([]tool.Tool, error)
	if scope != nil {
		defer scope.Close()
		servers = scope.ToolsOf
	}
	var results node.Cache
	if !a.dryRun { // whose results are none
		results = sealedCache{a, cache.Files{Dir: filepath.Join(a.Paths.CacheDir, "nodes")}}
	}
	nodes := node.New(node.Options{
		Plan: plan, Engine: engine, Context: rc, Asker: r.Asker, Agent: r.Agent.Name,
		Scripts: node.Scripts{AgentDir: r.Agent.Dir, Child: child, Parent: a.parentAddress},
		Tools:   r.tools, Servers: servers,
		Calls: tool.Options{
			Judge: judge, AutoConfirm: a.consents(r),
			Timeout: a.Config.ToolTimeout, MaxOutput: a.Config.ToolMaxOutput,
		},
		Cache: results, Answered: r.answered,
	})
	defer func() {
		if err := nodes.Close(); err != nil {
			a.warn(err)
		}
	}()
	out, err := run.Run(ctx, run.Options{
		Work:    run.Graph{Plan: plan, Nodes: nodes, Start: found.Last, Tasks: found.Tasks},
		Events:  event.NewScope(a.used.Emitter(r.Emitter), event.Source{Run: id, Agent: r.Agent.Name}, nil),
		Resumed: resumed,
		Journal: journal,
		Budget:  budget,
	})
	switch code := fault.CodeOf(err); {
	case err == nil:
		return out, nil
	case code == fault.Suspended || code == fault.Canceled:
		return out, fault.Wrap(code, err, "").WithHint("%s", resumeHint(err, out, id))
	default:
		return out, fault.Wrap(code, err, "graph execution failed for agent %s", r.Agent.Name).WithHint("%s", resumeHint(err, out, id))
	}
}

// resumeHint is the way on after a run stopped. What its cause says to do comes first.
func resumeHint(err error, out run.Outcome, id string) string {
	hint := fault.HintOf(err)
	switch {
	case errors.Is(err, run.ErrLeaseLost):
		return hint
	case !out.Recorded && fault.CodeOf(err) == fault.Suspended:
		return "the run is not recorded, so run it again: in a terminal, with the answers piped in, one a line, or with --yes if a tool asks"
	case !out.Recorded || strings.Contains(hint, "loki --resume"):
		return hint
	case hint != "":
		return hint + "\nthen go on where it stopped: loki --resume " + id
	}
	if _, ok := errors.AsType[*engine.LaterError](err); ok {
		return "wait for it and go on where it stopped: loki --resume " + id + " --wait"
	}
	return "go on where it stopped: loki --resume " + id
}

// warnFindings emits the warnings about a graph that is going to run. That no edge leads
// to some nodes is usual where scripts choose the way, so only --validate shows it.
func warnFindings(ctx context.Context, r GraphRun, findings graph.Findings) error {
	if r.Emitter == nil {
		return nil
	}
	scope := event.NewScope(r.Emitter, event.Source{Agent: r.Agent.Name}, nil)
	for _, f := range findings.Warnings() {
		if f.Rule == graph.RuleUnreachable || f.Rule == graph.RuleUnreachableEnd {
			continue
		}
		if err := scope.Emit(ctx, event.Warning{Text: f.String()}); err != nil {
			return err
		}
	}
	return nil
}

// initialState is the declared one with the prompt.
func initialState(r GraphRun) graph.State {
	return graph.NewState(r.Graph.InitialState).With(value.Member{Name: graph.PromptKey, Value: value.Of(r.Prompt)})
}

// Overridden returns a graph with what the environment says of its agent, see
// [agent.Override]. It is warned of what does not count. A run keeps the graph of the file,
// so that it can be resumed in another environment.
func (a *App) Overridden(ref agent.Ref, g *graph.Graph) *graph.Graph {
	g, warnings := agent.Override(g, ref.Name, a.Env.Get)
	for _, w := range warnings {
		a.warn(errors.New(w))
	}
	return g
}

// graphModel is the id of the model that llm nodes use unless they name one: what
// the user asked for, the agent's environment variable, the graph's model, the
// configured one, and last the graph's default_model.
func (a *App) graphModel(r GraphRun) string {
	id := cmp.Or(r.Model, a.Overridden(r.Agent, r.Graph).Model, a.Config.Model)
	if id == "" && r.Graph.DefaultModel != "" {
		if _, err := a.Catalog.Default(); err != nil {
			return r.Graph.DefaultModel
		}
	}
	return id
}

// graphServers returns the MCP servers of the graph, nil if it has none. They are
// started when a node needs them and stay until the run is over.
func (a *App) graphServers(ctx context.Context, r GraphRun) (*mcp.Scope, error) {
	names := a.Overridden(r.Agent, r.Graph).MCPServers
	if len(names) == 0 {
		return nil, nil
	}
	events := event.NewScope(a.used.Emitter(emitterOf(r)), event.Source{Agent: r.Agent.Name}, nil)
	return a.serverScope(ctx, events, r.Asker, func(f *mcp.File, aliases map[string]string) mcp.Selection {
		return f.SelectList(names, aliases)
	})
}

// agentTools are the tools that nodes of the graph may list: those of the agent's own
// script, those that global_tools names, and those that ask the user.
func (a *App) agentTools(r GraphRun) (tool.Set, error) {
	shelf, err := a.shelf(r.Agent.Dir)
	if err != nil {
		return tool.Set{}, err
	}
	var tools []tool.Tool
	if file, o, ok := a.agentScript(r.Agent, r.Variables); ok {
		own, err := script.Load(file, o)
		if err != nil {
			return tool.Set{}, err
		}
		tools = standIns(own, shelf.natives)
	}
	for _, name := range a.Overridden(r.Agent, r.Graph).GlobalTools {
		found, err := shelf.find(name)
		if err != nil {
			return tool.Set{}, fault.Wrap(fault.Config, err, "global_tools of graph %s", r.Graph.Name)
		}
		tools = append(tools, found...)
	}
	return tool.Set{}.With(append(tools, userTools(r.Asker, r.Agent.Name)...)...)
}

// invalidGraph is the failure of a run that was not begun.
func invalidGraph(ref agent.Ref, findings graph.Findings) error {
	return fault.Wrap(fault.Config, findings.Err(), "graph execution failed for agent %s", ref.Name).
		WithHint("see all findings: loki --validate %s", ref.Arg)
}

// consents reports whether the user consented beforehand to whatever tools would ask. What
// the agent itself says, by the default of a variable, is not the user's word.
func (a *App) consents(r GraphRun) bool {
	if r.Yes || tool.AutoConfirm(a.Env.Environ()) {
		return true
	}
	for name, v := range r.Given {
		if agent.EnvironName(name) == agent.EnvironName("auto_confirm") && tool.Consents(v) {
			return true
		}
	}
	return false
}

// scriptChild is what an agent's scripts get: the environment of children, and where
// things are.
func (a *App) scriptChild(r GraphRun) (environ.Child, error) {
	child := a.Child(r.Graph.Environment...)
	set := map[string]string{
		"LLM_ROOT_DIR":          a.Paths.ConfigDir,
		"LLM_PROMPT_UTILS_FILE": filepath.Join(a.Paths.FunctionsDir, "utils", "prompt-utils.sh"),
		"LLM_AGENT_DATA_DIR":    r.Agent.Dir,
		"CLICOLOR_FORCE":        "1",
		"FORCE_COLOR":           "1",
	}
	variables, err := a.scriptVariables(r.Variables)
	if err != nil {
		return environ.Child{}, err
	}
	for name, v := range variables {
		set[agent.EnvironName(name)] = v
	}
	if path, ok := a.Env.Lookup("PATH"); ok {
		set["PATH"] = filepath.Join(a.Paths.FunctionsDir, "bin") + string(os.PathListSeparator) + path
	}
	child.Environ = environ.Merge(child.Environ, set)
	return child, nil
}

// emitterOf returns where the events of a run go.
func emitterOf(r GraphRun) event.Emitter {
	if r.Emitter == nil {
		return event.Discard
	}
	return r.Emitter
}
