package app

import (
	"context"
	"errors"

	"loki/internal/agent/workspace/ground"
	"loki/internal/base/ask"
	"loki/internal/conversation/launch"
	"loki/internal/conversation/launch/background"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// newBackground returns what starts runs that no user waits for.
func (a *App) newBackground() *background.Service {
	return &background.Service{
		Config: a.Config, Paths: &a.Paths, Agents: &a.Agents, Log: a.Log, Dir: ground.WorkingDir, Runs: a.Runs, Events: a.Events,
		Detached: func(ctx context.Context, r background.Run, variables map[string]string) (run.Job, error) {
			return a.DetachedJob(ctx, launch.Run{
				Agent: r.Agent, Prompt: r.Prompt, Variables: variables, Given: r.Variables, State: r.State, Model: r.Model, NoStream: r.Terms.NoStream,
				Events: r.Events, Asker: ask.Unavailable{}, Yes: r.Terms.Yes,
			})
		},
		Prune: func(left []run.Info) error {
			_, err := a.Planner().Prune(left)
			return err
		},
	}
}

// RunDue does what is due now, without a server, see [background.Service.RunDue]: so many runs at once. Runs that are at work when ctx ends are
// interrupted. Observer gets the events of all.
func (a *App) RunDue(ctx context.Context, jobs int, only string, observer event.Emitter) (did background.Due, err error) {
	hosted, err := a.Host(ctx, "", manager.Options{Limit: jobs, Log: a.Log(), Also: observer})
	if err != nil {
		return did, err
	}
	defer func() {
		grace, done := context.WithCancel(context.WithoutCancel(ctx))
		done()
		hosted.Runs.Shutdown(grace)
		err = errors.Join(err, hosted.Close())
	}()
	if did, err = a.Background.RunDue(ctx, hosted.Runs, hosted.Store, only); err != nil || only != "" {
		return did, err
	}
	if len(a.Config.Alerts) > 0 {
		a.Background.CheckAlerts(ctx, a.Alerts(hosted.Store, hosted.Desk, ""), hosted.Desk)
	}
	a.Background.Forget(ctx, hosted.Store)
	return did, nil
}
