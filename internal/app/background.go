package app

import (
	"context"

	"loki/internal/agent"
	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
)

// Background is a run of an agent that no front end waits for.
type Background struct {
	Agent     agent.Agent
	Prompt    string
	Variables map[string]string // values of the agent's variables
	State     []value.Member    // of a graph at its start, over what its definition says
	Model     string            // answers where the agent does not name a model; "" leaves it to the configuration
	Terms     run.Terms         // consent, budget and the like
	Start     Start

	// Beginning is what starts the run by itself; zero for a client.
	Beginning run.Beginning

	Events event.Scope // that of the manager which starts it, see [manager.Manager.Events]
}

// Start says by which rules a background run starts, beside those of its agent.
type Start struct {
	gate.Rules
	Place string       // of the rules, such as "trigger/NAME"; empty for a request
	Names graph.Lookup // what the template of the key reads; nil for what it reads at an agent
	Owner *auth.Owner  // whose the run is, and the keys of its requests; nil for the user of the command line
}

// admit adds the rules to those of a run.
func (s Start) admit(i *run.Info) error {
	scope := ""
	if s.Owner != nil {
		scope = s.Owner.Subject
	}
	return i.Admit(s.Rules, scope, s.Place, s.Names)
}

// BackgroundJob returns the job of a background run: what it asks waits on record, and nothing depends on who has started it. To
// start it, call [manager.Manager.Start] with the job, on a server or with --run-due alike. It returns once the run is on record, and
// its claims with it:
//
//	job, err := a.BackgroundJob(ctx, app.Background{
//		Agent: of, Prompt: "Review it", Events: m.Events(), Beginning: run.Beginning{
//			Origin: &run.Origin{Kind: run.OfTrigger, Name: "pr", Outside: true},
//			Claims: []run.Entry{{Key: run.StartKey("trigger/pr/" + delivery), Run: run.NewRun}}, // a unique key
//		},
//	})
//	id, err := m.Start(ctx, job)
//	conflict, again := errors.AsType[*run.ConflictError](err) // again: it was started before, as the run conflict.Run
//
// Errors are those of [App.DetachedJob], and of values of variables.
func (a *App) BackgroundJob(ctx context.Context, b Background) (run.Job, error) {
	b.Agent.Within = b.Terms.Within()
	variables, err := backgroundVariables(b.Agent, b.Variables)
	if err != nil {
		return run.Job{}, err
	}
	job, err := a.DetachedJob(ctx, AgentRun{
		Agent: b.Agent, Prompt: b.Prompt, Variables: variables, Given: b.Variables, State: b.State, Model: b.Model, NoStream: b.Terms.NoStream,
		Events: b.Events, Asker: ask.Unavailable{}, Yes: b.Terms.Yes,
	})
	if err != nil {
		return run.Job{}, err
	}
	if b.Terms != (run.Terms{}) {
		job.Info.Terms = &b.Terms
	}
	job.Info.Beginning, job.Info.Owner = b.Beginning, b.Start.Owner
	return job, b.Start.admit(&job.Info)
}

// backgroundVariables returns the values of an agent's variables where nobody can be asked for a missing one.
func backgroundVariables(of agent.Agent, given map[string]string) (map[string]string, error) {
	return agent.Values(of.InForce.Variables, given, func(graph.Variable) (string, bool, error) { return "", false, nil })
}
