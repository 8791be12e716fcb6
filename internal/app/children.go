package app

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"loki/internal/agent"
	"loki/internal/agent/skill"
	"loki/internal/agent/team"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// starter starts the agents of a team, with what they have from those that started them.
type starter struct {
	app  *App
	root AgentRun // its Model is the one in force

	within sandbox.Declaration // the most that the node which starts them allows; the zero value without such a bound

	mu      sync.Mutex
	started map[*team.Member]AgentRun // likewise
}

// children says how an agent starts others, which may do no more than within. The model is the one in force for it. What is
// particular to a task is left to the caller.
func (a *App) children(r AgentRun, within sandbox.Declaration, model string, budget *run.Budget) team.Options {
	r.Model = model
	if r.Asker == nil {
		r.Asker = ask.Unavailable{}
	}
	c := &starter{app: a, root: r, within: within, started: make(map[*team.Member]AgentRun)}
	return team.Options{
		Limits: r.Agent.InForce.Team, Budget: budget, Start: c.start, Available: func(context.Context) ([]team.Candidate, error) { return c.agents().Candidates() },
		Summarize: func(ctx context.Context, s team.Summary) (string, chat.Usage, error) {
			return team.Shorten(ctx, a.engine, a.requestContext(cmp.Or(s.Model, c.of(s.Collector).Model), true), s)
		},
	}
}

// agents returns where the agents of the team find others: all have those beside the first one.
func (c *starter) agents() agent.Library { return c.app.Agents.For(c.root.Agent.Ref) }

// of returns what m was started with.
func (c *starter) of(m *team.Member) AgentRun {
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
	of.AtMost, of.Within = c.app.Trust.AtMost(parent.Agent), c.app.Trust.Bounds(parent.Agent, "").Most
	if c.within.Level != "" {
		of.Within = c.within.Within(of.Within)
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
	remembers := parent.Memory
	if parent.Agent.Graph != nil && remembers == "" && of.InForce.Memory == "" {
		remembers = chat.MemoryOff
	}
	r := AgentRun{
		Agent: of, Prompt: s.Prompt, Variables: variables, Model: cmp.Or(of.InForce.Model, parent.Model), NoStream: parent.NoStream,
		Events: s.Member.Events, Asker: s.Member.Patient(parent.Asker), Yes: c.app.consents(parent),
		Servers: parent.Servers, Dry: parent.Dry, Instructs: instructs, Skills: skills, Memory: remembers,
		Mode: parent.Mode, Member: s.Member, Escalated: parent.Escalated || s.Member.Escalates(),
	}
	job, err := c.app.AgentJob(ctx, r)
	if err == nil {
		err = job.CheckStart()
	}
	if err != nil {
		return team.Child{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started[s.Member] = r
	return team.Child{Job: job, Limits: of.InForce.Team, Graph: of.Graph != nil}, nil
}

// load returns the agent that is to be started, as it is now, and warns of what is wrong with it.
func (c *starter) load(ctx context.Context, s team.Spawn) (agent.Agent, error) {
	ref, err := c.agents().Find(s.Agent)
	if err != nil {
		return agent.Agent{}, err
	}
	of, findings, err := c.app.loaded.Load(&c.app.Agents, ref)
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
