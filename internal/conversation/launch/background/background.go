// Package background starts the runs of agents that no user waits for: of schedules, of triggers, and of requests. It also
// forgets outdated runs.
package background

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"loki/internal/agent"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule"
)

// Service prepares the runs. Its methods may be called from several goroutines.
type Service struct {
	Config *config.Config
	Paths  *config.Paths
	Agents *agent.Library
	Log    func() *slog.Logger
	Dir    func() (string, error)          // returns the working directory
	Runs   func() *run.Service             // of this process
	Events func(event.Emitter) event.Scope // without secrets
	// Detached returns the job of an agent that is recorded and works without who has started it. Variables has a value for each.
	Detached func(ctx context.Context, r Run, variables map[string]string) (run.Job, error)
	Prune    func(left []run.Info) error // removes what belongs to no run that is left

	rescheduled atomic.Pointer[[]*schedule.Schedule] // of a configuration that was read again; nil before

	ownMu sync.Mutex
	own   map[string]ownSchedules // by the files of agents, as they were read last; guarded by ownMu
}

// Run is a run of an agent that no front end waits for.
type Run struct {
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

// Job returns the job of a background run: what it asks waits on record, and nothing depends on who has started it. To
// start it, call [manager.Manager.Start] with the job, on a server or with --run-due alike. It returns once the run is on record, and
// its claims with it:
//
//	job, err := s.Job(ctx, background.Run{
//		Agent: of, Prompt: "Review it", Events: m.Events(), Beginning: run.Beginning{
//			Origin: &run.Origin{Kind: run.OfTrigger, Name: "pr", Outside: true},
//			Claims: []run.Entry{{Key: run.StartKey("trigger/pr/" + delivery), Run: run.NewRun}}, // a unique key
//		},
//	})
//	id, err := m.Start(ctx, job)
//	conflict, again := errors.AsType[*run.ConflictError](err) // again: it was started before, as the run conflict.Run
//
// Errors are those of Detached, and of values of variables.
func (s *Service) Job(ctx context.Context, r Run) (run.Job, error) {
	r.Agent.Within = r.Terms.Within()
	variables, err := values(r.Agent, r.Variables)
	if err != nil {
		return run.Job{}, err
	}
	job, err := s.Detached(ctx, r, variables)
	if err != nil {
		return run.Job{}, err
	}
	if r.Terms != (run.Terms{}) {
		job.Info.Terms = &r.Terms
	}
	job.Info.Beginning, job.Info.Owner = r.Beginning, r.Start.Owner
	return job, r.Start.admit(&job.Info)
}

// values returns the values of an agent's variables. It does not ask for a missing one: no user is present.
func values(of agent.Agent, given map[string]string) (map[string]string, error) {
	return agent.Values(of.InForce.Variables, given, func(graph.Variable) (string, bool, error) { return "", false, nil })
}
