package launch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"loki/internal/agent"
	"loki/internal/agent/team"
	"loki/internal/agent/workspace/ground"
	"loki/internal/agent/workspace/skill"
	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// starter starts the agents of a team, with what they have from the agents that started them.
type starter struct {
	service *Service
	root    Run // its Model is the one in force

	node *graph.Node // that starts them; the zero value for none

	mu      sync.Mutex
	started map[*team.Member]Run // likewise
}

// Children says how an agent starts others at a node of its graph, the zero value for none. The model is the one in force for it. What is
// particular to a task is left to the caller.
func (s *Service) Children(r Run, n *graph.Node, model string, budget *run.Budget) team.Options {
	r.Model = model
	if r.Asker == nil {
		r.Asker = ask.Unavailable{}
	}
	c := &starter{service: s, root: r, node: n, started: make(map[*team.Member]Run)}
	return team.Options{
		Limits: r.Agent.InForce.Team, Budget: budget, Start: c.start, Merge: c.merge, Available: func(context.Context) ([]team.Candidate, error) { return c.agents().Candidates() },
		Summarize: func(ctx context.Context, s team.Summary) (string, chat.Usage, error) {
			return team.Shorten(ctx, c.service.engineOf(r), c.service.RequestContext(cmp.Or(s.Model, c.of(s.Collector).Model), true), s)
		},
	}
}

// agents returns where the agents of the team find others: all have those beside the first one.
func (c *starter) agents() agent.Library { return c.service.Agents.For(c.root.Agent.Ref) }

// of returns what m was started with.
func (c *starter) of(m *team.Member) Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.started[m]; ok {
		return r
	}
	return c.root
}

// start prepares an agent that another one starts, see [team.Starter]. It has tools, servers,
// permissions and an environment of its own, and from its parent the bound of what it may do, the values of variables with the
// same name, the model if it has none, and what the user consented to with the command.
func (c *starter) start(ctx context.Context, s team.Spawn) (team.Child, error) {
	agents := c.agents()
	if known, _ := agents.Exists(s.Agent); !known || s.Agent == "" || strings.ContainsAny(s.Agent, `/\`) { // a path is not a name
		names, err := agents.Names()
		if err != nil {
			return team.Child{}, err
		}
		return team.Child{}, fault.New(fault.NotFound, "no agent is called %q; there are %s", s.Agent, strings.Join(names, ", "))
	}
	of, err := c.load(ctx, s)
	if err != nil {
		return team.Child{}, err
	}
	parent := c.of(s.Member.Parent)
	of.AtMost, of.Within = c.service.Trust.AtMost(parent.Agent), c.service.Trust.Bounds(parent.Agent, "").Most
	of.Uncertain = c.node.OnUncertain
	if c.node.Sandbox.Level != "" {
		of.Within = c.node.Sandbox.Within(of.Within)
	}
	variables, err := agent.Inherit(of, parent.Variables)
	if err != nil {
		return team.Child{}, err
	}
	instructs := parent.Instructs
	if parent.Agent.Graph != nil && instructs == nil && of.InForce.WorkspaceInstructions == nil {
		instructs = new(false) // the file of a graph has everything that its nodes get
	}
	skills := parent.Skills
	if parent.Agent.Graph != nil && skills == nil && of.InForce.Skills == nil {
		skills = new(skill.None)
	}
	if n := c.node.Agent; n != nil && n.Skills != "" {
		skills = &n.Skills
	}
	remembers := parent.Memory
	if parent.Agent.Graph != nil && remembers == "" && of.InForce.Memory == "" {
		remembers = chat.MemoryOff
	}
	r := Run{
		Agent: of, Prompt: s.Prompt, Variables: variables, Model: cmp.Or(of.InForce.Model, parent.Model), NoStream: parent.NoStream,
		Events: s.Member.Events, Asker: s.Member.Patient(parent.Asker), Yes: c.service.Consents(parent),
		Servers: parent.Servers, Dry: parent.Dry, Instructs: instructs, Skills: skills, Memory: remembers,
		Mode: parent.Mode, Member: s.Member, Escalated: parent.Escalated || s.Member.Escalates(),
	}
	tree, err := c.worktree(ctx, s, of, parent)
	if err != nil {
		return team.Child{}, err
	}
	if r.Agent.Workdir = parent.Agent.Workdir; tree != nil {
		r.Agent.Workdir = tree.Dir()
	}
	leave := leaveChild(tree, s.Member.Events)
	job, err := c.service.AgentJob(ctx, r)
	if err == nil {
		err = job.CheckStart()
	}
	if err != nil {
		leave(context.WithoutCancel(ctx), false)
		return team.Child{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started[s.Member] = r
	return team.Child{Job: job, Limits: of.InForce.Team, Graph: of.Graph != nil, Leave: leave}, nil
}

// worktree returns the worktree in which a child works, nil if it works where its parent does. It has the same name when the run is resumed.
func (c *starter) worktree(ctx context.Context, s team.Spawn, of agent.Agent, parent Run) (*worktree.Tree, error) {
	w := of.InForce.Worktree
	if s.Worktree && w == nil {
		w = &graph.Worktree{}
	}
	if n := c.node.Agent; n != nil && n.Worktree != nil {
		w = n.Worktree
	}
	if w == nil {
		return nil, nil
	}
	if parent.Mode != nil && parent.Mode() == chat.ModePlan && !s.Resumed {
		return nil, fault.New(fault.Refused, "no worktree is made while a plan is made; without one the agent can look around")
	}
	dir, err := ground.WorkIn(parent.Agent.Workdir)
	if err != nil {
		return nil, err
	}
	end := "" // a run without a record has no id, and does not resume
	if id := s.Member.Events.Run; id != "" {
		sum := sha256.Sum256([]byte(id + "\x00" + s.Member.ID))
		end = hex.EncodeToString(sum[:4])
	}
	return c.service.Worktrees().Open(ctx, dir, worktree.Name(of.Name, end), *c.service.boundWorktree(w, of))
}

// merge merges the branch that a child has left into the work of the member that started it. The user is asked if that is not in a worktree.
func (c *starter) merge(ctx context.Context, m *team.Member, branch string) error {
	r := c.of(m)
	dir, err := ground.WorkIn(r.Agent.Workdir)
	if err != nil {
		return err
	}
	if r.Mode != nil && r.Mode() == chat.ModePlan {
		return fault.New(fault.Refused, "nothing is merged while a plan is made; the branch %s stays", branch)
	}
	if c.service.Worktrees().Look(dir) == nil && !c.service.Consents(r) {
		answer, err := r.Asker.Ask(ctx, ask.Question{
			Kind: ask.Select, Text: "Merge the branch " + branch + " of an agent into your checkout " + dir + "?", Options: []string{"yes", "no"}, Consent: true, Agent: r.Agent.Name,
		})
		if errors.Is(err, ask.ErrUnavailable) {
			return fault.New(fault.Failure, "the user has to consent, and cannot be asked here; the branch %s stays: git merge %s", branch, branch)
		}
		if err != nil {
			return err
		}
		if answer != "yes" {
			return fault.New(fault.Refused, "the user does not want the branch %s to be merged; it stays as a branch", branch)
		}
	}
	return c.service.Worktrees().MergeBranch(ctx, dir, branch)
}

// load returns the agent to start, as it is now, and warns of what is wrong with it.
func (c *starter) load(ctx context.Context, s team.Spawn) (agent.Agent, error) {
	ref, err := c.agents().Find(s.Agent)
	if err != nil {
		return agent.Agent{}, err
	}
	of, findings, err := c.service.loaded.Load(c.service.Agents, ref)
	if err != nil {
		return agent.Agent{}, err
	}
	for _, f := range findings {
		if err := s.Member.Events.Emit(ctx, event.Warning{Text: f.String(), Once: true}); err != nil {
			return agent.Agent{}, err
		}
	}
	return of, nil
}

// WorktreeOf returns how an agent works in a worktree of its own, nil if it does not.
func (s *Service) WorktreeOf(of agent.Agent) *graph.Worktree {
	return s.boundWorktree(of.InForce.Worktree, of)
}

// boundWorktree returns w, which may be nil, without what an agent may not do because it is not trusted.
func (s *Service) boundWorktree(w *graph.Worktree, of agent.Agent) *graph.Worktree {
	if w == nil || s.Trust.Trusts(of) {
		return w
	}
	return &graph.Worktree{Base: w.Base, Dirty: w.Dirty, Finish: w.Finish}
}

// leaveChild returns what ends the work of a child in a worktree, which may be nil, see [team.Child].
func leaveChild(t *worktree.Tree, events event.Scope) func(ctx context.Context, later bool) *team.Work {
	return func(ctx context.Context, later bool) *team.Work {
		if t == nil {
			return nil
		}
		c := t.Leave(ctx, later, events)
		if c == nil {
			return nil
		}
		return &team.Work{Branch: t.KeptBranch(), Commits: c.Commits, Diffstat: c.Stat}
	}
}
