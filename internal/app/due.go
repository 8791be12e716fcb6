package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/webhook"
	"loki/internal/workflow/schedule"
)

// Due is what [App.RunDue] did.
type Due struct {
	Outcomes []schedule.Outcome
	Resumed  []string            // ids
	Runs     map[string]run.Info // those of Outcomes and Resumed, as they are now
}

// maxResumed is how often a run is resumed at most.
const maxResumed = 3

// RunDue does what is due now, without a server: it starts the runs of schedules and resumes runs that are due or were interrupted, so
// many at once, and returns when nothing is at work. Runs that are at work when ctx ends are interrupted. Times that come meanwhile are left to the next call.
// If only names a schedule, a run of that one starts instead. Observer gets the events of all.
func (a *App) RunDue(ctx context.Context, jobs int, only string, observer event.Emitter) (did Due, err error) {
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
	schedules := a.Schedules(hosted.Store, hosted.Runs)
	start := time.Now()
	schedules.Now = func() time.Time { return start }
	tries := make(map[string]int)
	if only != "" {
		o, err := schedules.FireNow(ctx, only)
		if err == nil {
			did.Outcomes = []schedule.Outcome{o}
			_, err = hosted.Runs.Wait(ctx, o.Run)
		}
		if err != nil {
			return did, err
		}
	}
	for only == "" {
		outcomes, _, tickErr := schedules.Tick(ctx)
		did.Outcomes = append(did.Outcomes, outcomes...)
		resumed, resumeErr := hosted.Runs.ResumeDue(ctx, func(id string) bool { return tries[id] < maxResumed })
		if err := errors.Join(tickErr, resumeErr); err != nil {
			return did, err
		}
		for _, id := range resumed {
			if tries[id]++; tries[id] == 1 {
				did.Resumed = append(did.Resumed, id)
			}
		}
		active := hosted.Runs.Active()
		if len(active) == 0 && len(outcomes)+len(resumed) == 0 {
			break
		}
		if len(active) > 0 {
			if _, err := hosted.Runs.Wait(ctx, active[0].ID); err != nil {
				return did, err
			}
		}
	}
	if only == "" {
		if len(a.Config.Alerts) > 0 {
			a.checkAlerts(ctx, hosted)
		}
		a.retain(ctx, hosted.Store)
	}
	did.Runs = make(map[string]run.Info)
	ids := did.Resumed
	for _, o := range did.Outcomes {
		if o.Run != "" {
			ids = append(ids, o.Run)
		}
	}
	for _, id := range ids {
		if did.Runs[id], err = hosted.Store.Info(ctx, id); err != nil {
			return did, err
		}
	}
	return did, nil
}

// Limits of how alerts are sent without a server.
const (
	alertsWait = 30 * time.Second // for targets that answer late
	alertsAge  = 48 * time.Hour   // after which no target is tried again
)

// checkAlerts looks once for what the alerts are about, and waits until each target that is due was tried.
func (a *App) checkAlerts(ctx context.Context, hosted Hosted) {
	alerts, start := a.Alerts(hosted.Store, hosted.Desk, ""), time.Now()
	if err := alerts.Check(ctx); err != nil {
		a.Log().WarnContext(ctx, "alerts cannot be checked", "error", err)
	}
	sent, err := alerts.List(ctx)
	if err != nil {
		return // the next call sends what is left
	}
	limit, cancel := context.WithTimeout(ctx, alertsWait)
	defer cancel()
	for _, one := range sent {
		i := slices.IndexFunc(a.Config.Alerts, func(r *alert.Rule) bool { return r.Name == one.Rule })
		for waits := i >= 0 && start.Sub(one.At) < alertsAge; waits; {
			tried, err := hosted.Desk.Deliveries(one.ID)
			isDue := func(d webhook.Delivery) bool { return !d.Again.IsZero() && d.Again.Before(start) }
			waits = err == nil && (len(tried) < len(a.Config.Alerts[i].To) || slices.ContainsFunc(tried, isDue)) && retry.Sleep(limit, 20*time.Millisecond) == nil
		}
	}
}
