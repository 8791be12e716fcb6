package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"loki/internal/agent"
	"loki/internal/agent/node"
	"loki/internal/agent/team"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// crew is what the agents of a team have from those that started them.
type crew struct {
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
	c := &crew{app: a, root: r, within: within, started: make(map[*team.Member]AgentRun)}
	return team.Options{
		Limits: r.Agent.InForce.Team, Budget: budget, Start: c.start, Available: c.startable,
		Summarize: func(ctx context.Context, s team.Summary) (string, chat.Usage, error) {
			return a.summarize(ctx, cmp.Or(s.Model, c.of(s.Collector).Model), s)
		},
	}
}

// agents returns where the agents of the team find others: all have those beside the first one.
func (c *crew) agents() agent.Library { return c.app.Agents.For(c.root.Agent.Ref) }

// of returns what m was started with.
func (c *crew) of(m *team.Member) AgentRun {
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
func (c *crew) start(ctx context.Context, s team.Spawn) (team.Child, error) {
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
	variables, err := inherit(of, parent.Variables)
	if err != nil {
		return team.Child{}, err
	}
	r := AgentRun{
		Agent: of, Prompt: s.Prompt, Variables: variables, Model: cmp.Or(of.InForce.Model, parent.Model), NoStream: parent.NoStream,
		Events: s.Member.Events, Asker: s.Member.Patient(parent.Asker), Yes: c.app.consents(parent),
		Servers: parent.Servers, Dry: parent.Dry,
		Member: s.Member, Escalated: parent.Escalated || s.Member.Escalates(),
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

// childFiles adds digests of the agents that the nodes of a graph run, and of those that their
// nodes run, so that an interrupted run goes on with agents that have not changed. What is wrong
// with them is reported elsewhere.
func (a *App) childFiles(ctx context.Context, agents agent.Library, g *graph.Graph, files map[string]string) {
	for n := range g.All() {
		if n.Agent == nil {
			continue
		}
		what := run.ChildFile + n.Agent.Agent
		if _, seen := files[what]; seen {
			continue
		}
		ref, err := agents.Find(n.Agent.Agent)
		if err != nil {
			continue
		}
		of, _, err := agents.Load(ref)
		if err != nil {
			continue
		}
		files[what] = of.Definition.Fingerprint()
		if of.Graph != nil {
			files[what] = graph.Fingerprint(of.Graph)
		}
		tools, err := a.Tools.Of(ctx, of, nil, nil)
		if err != nil {
			continue
		}
		own, err := node.Files(of.Graph, of.Dir, tools, func(path string) string { return a.fileName(ref, path) })
		if err != nil {
			continue
		}
		for name, digest := range own {
			files[what+": "+name] = digest
		}
		if of.Graph != nil {
			a.childFiles(ctx, agents, of.Graph, files)
		}
	}
}

// load returns the agent that is to be started, as it is now, and warns of what is wrong with it.
func (c *crew) load(ctx context.Context, s team.Spawn) (agent.Agent, error) {
	ref, err := c.agents().Find(s.Agent)
	if err != nil {
		return agent.Agent{}, err
	}
	l, err := c.app.loadAgent(ref)
	if err != nil {
		return agent.Agent{}, err
	}
	for _, f := range l.findings {
		if err := s.Member.Events.Emit(ctx, event.Warning{Text: f.String(), Once: true}); err != nil {
			return agent.Agent{}, err
		}
	}
	return l.Agent, nil
}

// loadedAgent is an agent that was loaded, and what is wrong with it.
type loadedAgent struct {
	agent.Agent
	findings graph.Findings
}

// loadAgent returns an agent as it is now. Its definition is read again only if it has changed.
func (a *App) loadAgent(ref agent.Ref) (loadedAgent, error) {
	a.mu.Lock()
	l, known := a.loaded[ref]
	a.mu.Unlock()
	if known && a.Agents.Unchanged(l.Agent) {
		return l, nil
	}
	var err error
	if l.Agent, l.findings, err = a.Agents.Load(ref); err != nil {
		return l, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loaded == nil {
		a.loaded = make(map[agent.Ref]loadedAgent)
	}
	a.loaded[ref] = l
	return l, nil
}

// inherit returns a value for each variable that a child declares: the parent's, else the default.
// The user is not asked.
func inherit(of agent.Agent, parent map[string]string) (map[string]string, error) {
	preset := make(map[string]string)
	for _, v := range of.InForce.Variables {
		if value, ok := parent[v.Name]; ok {
			preset[v.Name] = value
		}
	}
	var missing []string
	values, err := agent.Values(of.InForce.Variables, preset, func(v graph.Variable) (string, bool, error) {
		missing = append(missing, fmt.Sprintf("%s (%s)", v.Name, v.Description))
		return "", true, nil
	})
	if err == nil && len(missing) > 0 {
		err = fault.New(fault.Config, "agent %s has variables without a value: %s. A child gets the values of the variables that its parent has under the same names", of.Name, strings.Join(missing, ", ")).
			WithHint("declare the variables in the parent, too, or give them a default in %s", of.Definition.File)
	}
	return values, err
}

// startable lists the agents that can be started.
func (c *crew) startable(context.Context) ([]team.Candidate, error) {
	agents := c.agents()
	names, err := agents.Names()
	if err != nil {
		return nil, err
	}
	var list []team.Candidate
	for _, name := range names {
		if _, defined := agents.Exists(name); !defined {
			continue
		}
		one := team.Candidate{Name: name}
		if ref, err := agents.Find(name); err == nil {
			if of, _, err := agents.Load(ref); err == nil { // what is wrong is reported when it is started
				one.Description = of.InForce.Description
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// summaryPrompt asks a model to shorten what a child returned.
const summaryPrompt = `You shorten the result of the agent %s for the agent that started it, which reads nothing but your text.
- Begin with the conclusion.
- Keep word for word: code, commands, file paths with line numbers, error messages, names, numbers and identifiers.
- Keep every concrete recommendation and every open question.
- Leave out filler, repetitions and thinking aloud.
- Use a list if there are several findings.
- Aim at less than 30 %% of the length. Add nothing of your own.`

// summarize has a model shorten the output of a child. The user does not see it.
func (a *App) summarize(ctx context.Context, model string, s team.Summary) (string, chat.Usage, error) {
	rc := a.requestContext(model, true)
	rc.Events = event.NewScope(event.Discard, s.Collector.Events.Source, nil)
	rc.Steps = s.Steps
	if s.Collector.Budget != nil {
		rc.Budget = s.Collector.Budget
	}
	reply, err := a.engine.Run(ctx, &rc, engine.Request{Whole: true, Messages: []chat.Message{
		chat.Text(chat.System, fmt.Sprintf(summaryPrompt, s.Agent)),
		chat.Text(chat.User, s.Output),
	}})
	return reply.Text, reply.Usage, err
}
