package launch

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/node"
	"loki/internal/agent/team"
	"loki/internal/agent/team/job"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile/cache"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/redact"
	"loki/internal/tool"
	"loki/internal/tool/permission"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// GraphJob is [Service.AgentJob] for a graph agent.
func (s *Service) GraphJob(ctx context.Context, r Run) (run.Job, error) {
	g := r.Agent.Graph
	events := r.Events.With(func(s *event.Source) { s.Agent = r.Agent.Name })
	ctx = event.NewContext(ctx, events)
	if r.Member == nil { // a child asks through its parent
		r.Asker = s.Hooks(nil).Asker(r.Asker)
	}
	if err := s.Trust.Settle(ctx, r.Agent, r.Asker); err != nil {
		return run.Job{}, err
	}
	tools, err := s.Tools.Of(ctx, r.Agent, r.Variables, r.Asker)
	if err == nil {
		tools, err = tools.With(UserTools(r.answers(), r.Agent.Name)...)
	}
	if err != nil {
		return run.Job{}, err
	}
	files, err := node.Files(g, r.Agent.Dir, tools, func(path string) string { return s.Agents.FileName(r.Agent.Ref, path) })
	if err != nil {
		return run.Job{}, err
	}
	if r.Member == nil {
		s.Tools.ChildFiles(ctx, s.Agents.For(r.Agent.Ref), g, files)
	}
	if g.Settings.ValidateBeforeRun {
		if err := s.refuseInvalid(ctx, events, r.Agent); err != nil {
			return run.Job{}, err
		}
	}
	if !r.Recorded { // one that continues may not need them any more
		if err := s.Knowledge().ReadyBases(ctx, events, r.Agent, r.Asker); err != nil {
			return run.Job{}, err
		}
	}
	dir, err := ground.WorkingDir()
	if err != nil {
		dir = ""
	}
	plan := graph.NewPlan(g)
	prompt := r.Prompt
	if g.Schema.IsSecret(graph.PromptKey) {
		prompt = "***" // the state has it
	}
	job := run.Job{
		Info: run.Info{
			Agent: r.Agent.Name, AgentDir: r.Agent.Dir, ByName: r.Agent.ByName(), Dir: dir, Graph: g.Name,
			Fingerprint: graph.Fingerprint(g), Definition: g.Bundle(), Files: files,
			Prompt: prompt, Variables: r.Variables, Model: r.Model, EqualWrites: true,
		},
		Graph: g, Start: run.StartCheckpoint(plan, initialState(r)),
		Durability: g.Settings.Durability, Limit: g.Settings.Budget, LimitIn: "settings.budget in " + g.File, Events: events,
		Make: func(ctx context.Context, p run.Point) (run.Work, func() error, error) {
			nodes, done, err := s.nodes(ctx, r, plan, tools, events, p)
			return run.Graph{Plan: plan, Nodes: nodes, Start: p.Last, Tasks: p.Tasks, Set: p.Set, Before: p.Before, Stops: p.Stops, Past: p.Past, Keep: p.Keep, Canceled: p.Canceled}, done, err
		},
	}
	return job, r.Agent.Admit(&job.Info)
}

// nodes returns what runs the nodes of a graph, and what releases it.
func (s *Service) nodes(ctx context.Context, r Run, plan *graph.Plan, tools tool.Set, events event.Scope, p run.Point) (*node.Runner, func() error, error) {
	child, err := s.ScriptChild(r.Agent, r.Variables)
	if err != nil {
		return nil, nil, err
	}
	calls, err := s.AgentCalls(r, tools)
	if err != nil {
		return nil, nil, err
	}
	calls.Hooks = s.Hooks(&r.Agent)
	if err := s.WarnOfHooks(ctx, events, r.Agent); err != nil {
		return nil, nil, err
	}
	calls.AtMost, calls.Mode = s.Trust.Bounds(r.Agent, "").Most.Level, r.Mode
	scope, err := s.agentServers(ctx, r, events)
	if err != nil {
		return nil, nil, err
	}
	o := node.Options{
		Plan: plan, Engine: s.engineOf(r), Context: s.graphContext(r, p.Budget), Asker: r.answers(), Escalated: r.Escalated, User: r.Asker, Agent: r.Agent.Name,
		Scripts: node.Scripts{
			Apart:    s.ApartScripts(),
			AgentDir: r.Agent.Dir, Dir: r.Agent.Workdir, Child: child, Parent: s.Parent(r.Agent), Consent: s.planConsent(r, s.Trust.ScriptConsent(r.Agent, r.Asker)),
			Sandbox: s.SandboxOf(r.Agent), Bounds: func(path string) sandbox.Bounds { return r.modeBounds(s.Trust.Bounds(r.Agent, path)) }, Reads: s.ScriptReads(r.Agent.Dir),
		},
		Tools: tools, Dry: r.Dry || s.DryRun(), OldWrites: r.Member == nil && p.Resumed && !p.Info.EqualWrites,
		Calls: calls,
		Team:  func(n *graph.Node) team.Options { return s.Children(r, n, s.GraphModel(r), p.Budget) },
	}
	allow := s.skillConsent(r, calls.Judge, events)
	o.Skills = func(ctx context.Context, setting string) (*skill.Loader, string, error) {
		_, all, err := s.FromWorkspace(ctx, conversation.FromWorkspace{
			Caller: conversation.Caller{Events: events, Asker: r.Asker}, Skills: setting, AgentDir: r.Agent.Dir, Dir: r.Agent.Workdir,
		})
		l, list, _ := skill.Offer(all, setting, int(s.Config.SkillListTokens))
		if l != nil && calls.Judge != nil && calls.AtMost == "" && !calls.AutoConfirm && slices.ContainsFunc(l.Skills, func(s skill.Skill) bool { return len(s.AllowedTools) > 0 }) {
			l.Allow = allow
		}
		return l, list, err
	}
	o.Memory = s.nodeMemory(r)
	if scope != nil {
		o.Servers, o.MoreOfServers, o.ServerTool = scope.ToolsOf, scope.More, scope.Tool
	}
	var release func()
	if o.Knowledge, release, err = s.Knowledge().NodeBases(ctx, events, r.Agent, r.Asker, r.Recorded); err != nil {
		if scope != nil {
			scope.Close()
		}
		return nil, nil, err
	}
	if !r.Dry && !s.DryRun() && !s.Taped() { // a dry run has no results, and a cassette is to have all
		o.Cache = sealedCache{s, cache.Files{Dir: filepath.Join(s.Paths.CacheDir, "nodes")}}
	}
	if !r.Dry {
		bound := s.Jobs()
		if bound != nil {
			bound.Ignored = nil // its jobs end with the run
		}
		o.Jobs = job.New(bound)
	}
	nodes := node.New(o)
	return nodes, func() error {
		job.Tell(context.WithoutCancel(ctx), events, o.Jobs.Close("the run ended"))
		if scope != nil {
			scope.Close()
		}
		release()
		nodes.Close()
		return nil
	}, nil
}

// plans reports whether the agent was started by a conversation in plan mode, in which nothing is changed.
func (r Run) plans() bool { return r.Mode != nil && r.Mode() == chat.ModePlan }

// modeBounds returns what scripts of the agent may do in the mode.
func (r Run) modeBounds(b sandbox.Bounds) sandbox.Bounds {
	if r.plans() {
		b.Most = sandbox.Declaration{Level: sandbox.Read}
	}
	return b
}

// planConsent returns consent for the scripts of an agent: in plan mode they run only if a sandbox holds them.
func (s *Service) planConsent(r Run, consent func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, path string) error {
		if box, err := s.Sandbox(); r.plans() && (err != nil || !box.Support().Files) {
			return fault.New(fault.Tool, "%s was not run: plan mode changes nothing, and there is no sandbox here to hold it", path)
		}
		if consent == nil {
			return nil
		}
		return consent(ctx, path)
	}
}

// engineOf returns what asks the models of an agent.
func (s *Service) engineOf(r Run) *engine.Engine {
	if r.Dry || s.DryRun() {
		return s.Dry
	}
	return s.Engine
}

// graphContext returns the model and the sampling of a graph's requests.
func (s *Service) graphContext(r Run, budget *run.Budget) engine.RequestContext {
	rc := s.RequestContext(s.GraphModel(r), r.NoStream)
	rc.Sampling, rc.Hooks = r.Agent.InForce.Sampling.Over(rc.Sampling), s.Hooks(&r.Agent)
	if budget != nil {
		rc.Budget = budget
	}
	return rc
}

// refuseInvalid returns an error if the graph of an agent is not valid, and emits the
// warnings about it. That no edge leads to some nodes is usual where scripts choose the way,
// so only --validate shows it. That a script is elsewhere does not matter to a run either.
func (s *Service) refuseInvalid(ctx context.Context, events event.Scope, of agent.Agent) error {
	findings := s.Validator().Findings(ctx, of, nil)
	if len(findings.Errors()) > 0 {
		return fault.Wrap(fault.Config, findings.Err(), "graph execution failed for agent %s", of.Name).
			WithHint("see all findings: loki --validate %s", of.Arg)
	}
	for _, f := range findings.Warnings() {
		switch f.Rule {
		case graph.RuleUnreachable, graph.RuleUnreachableEnd, graph.RuleOutsideScript, graph.RuleFailureText, graph.RuleKnowledge: // a failure is reported when it happens, and what is to be built comes next
			continue
		}
		if err := events.Emit(ctx, event.Warning{Text: f.String()}); err != nil {
			return err
		}
	}
	return nil
}

// initialState is the declared one with what the caller says, and the prompt.
func initialState(r Run) graph.State {
	return graph.NewState(r.Agent.Graph.InitialState).With(r.State...).With(value.Member{Name: graph.PromptKey, Value: value.Of(r.Prompt)})
}

// GraphModel is the id of the model that llm nodes use unless they name one: what
// the user asked for, the agent's environment variable, the graph's model, the
// configured one, and last the graph's default_model.
func (s *Service) GraphModel(r Run) string {
	id := cmp.Or(r.Model, r.Agent.InForce.Model, s.Config.Model)
	if id == "" && r.Agent.Graph.DefaultModel != "" {
		if _, err := s.Catalog.Default(); err != nil || s.Player != nil && s.Player.Cassette.Model == "" {
			return r.Agent.Graph.DefaultModel
		}
	}
	return id
}

// skillConsent returns what asks the user about the tools that a skill lists, when a node of a graph loads it. A yes holds for the run.
func (s *Service) skillConsent(r Run, judge tool.Judge, events event.Scope) func(ctx context.Context, s skill.Skill) error {
	var mu sync.Mutex // nodes run side by side
	var asked []string
	kept := s.Trust.SkillTools
	return func(ctx context.Context, s skill.Skill) error {
		mu.Lock()
		defer mu.Unlock()
		grants, err := s.Allow(ctx, skill.Consent{
			Asker: r.Asker, From: ask.Question{Agent: r.Agent.Name, Depth: events.Depth, Child: events.AgentID}, For: "run", Asked: &asked, Kept: kept,
			Warn: func(err error) { _ = events.Emit(ctx, event.Warning{Text: err.Error()}) },
		})
		if err != nil || len(grants) == 0 {
			return err
		}
		return judge.Remember(ctx, permission.Run, grants)
	}
}

// sealedCache is a cache on the disk without the secrets in the results.
type sealedCache struct {
	service *Service
	files   cache.Files
}

// Get implements [node.Cache].
func (c sealedCache) Get(key string) ([]byte, bool) {
	data, ok := c.files.Get(key)
	return []byte(redact.Unseal(string(data), c.service.Unmark)), ok
}

// Put implements [node.Cache].
func (c sealedCache) Put(key string, data []byte, ttl time.Duration) {
	c.files.Put(key, []byte(c.service.Secrets.Seal(string(data))), ttl)
}
