package background

import (
	"context"
	"errors"
	"slices"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/webhook"
	"loki/internal/workflow/schedule"
)

// Due is what [Service.RunDue] did.
type Due struct {
	Outcomes []schedule.Outcome
	Resumed  []string            // ids
	Runs     map[string]run.Info // those of Outcomes and Resumed, as they are now
}

// maxResumed is how often a run is resumed at most.
const maxResumed = 3

// RunDue starts the runs of schedules that are due now and resumes runs that are due or were interrupted, and returns when nothing is at
// work. Times that come meanwhile are left to the next call. If only names a schedule, a run of that one starts instead.
func (s *Service) RunDue(ctx context.Context, m *manager.Manager, store run.Store, only string) (did Due, err error) {
	schedules := s.Schedules(store, m)
	start := time.Now()
	schedules.Now = func() time.Time { return start }
	tries := make(map[string]int)
	if only != "" {
		o, err := schedules.FireNow(ctx, only)
		if err == nil {
			did.Outcomes = []schedule.Outcome{o}
			_, err = m.Wait(ctx, o.Run)
		}
		if err != nil {
			return did, err
		}
	}
	for only == "" {
		outcomes, _, tickErr := schedules.Tick(ctx)
		did.Outcomes = append(did.Outcomes, outcomes...)
		resumed, resumeErr := m.ResumeDue(ctx, func(id string) bool { return tries[id] < maxResumed })
		if err := errors.Join(tickErr, resumeErr); err != nil {
			return did, err
		}
		for _, id := range resumed {
			if tries[id]++; tries[id] == 1 {
				did.Resumed = append(did.Resumed, id)
			}
		}
		active := m.Active()
		if len(active) == 0 && len(outcomes)+len(resumed) == 0 {
			break
		}
		if len(active) > 0 {
			if _, err := m.Wait(ctx, active[0].ID); err != nil {
				return did, err
			}
		}
	}
	did.Runs = make(map[string]run.Info)
	ids := did.Resumed
	for _, o := range did.Outcomes {
		if o.Run != "" {
			ids = append(ids, o.Run)
		}
	}
	for _, id := range ids {
		if did.Runs[id], err = store.Info(ctx, id); err != nil {
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

// CheckAlerts looks once for what the alerts are about, and waits until each target that is due was tried.
func (s *Service) CheckAlerts(ctx context.Context, alerts *alert.Service, desk *webhook.Desk) {
	start := time.Now()
	if err := alerts.Check(ctx); err != nil {
		s.Log().WarnContext(ctx, "alerts cannot be checked", "error", err)
	}
	sent, err := alerts.List(ctx)
	if err != nil {
		return // the next call sends what is left
	}
	limit, cancel := context.WithTimeout(ctx, alertsWait)
	defer cancel()
	for _, one := range sent {
		i := slices.IndexFunc(s.Config.Alerts, func(r *alert.Rule) bool { return r.Name == one.Rule })
		for waits := i >= 0 && start.Sub(one.At) < alertsAge; waits; {
			tried, err := desk.Deliveries(one.ID)
			isDue := func(d webhook.Delivery) bool { return !d.Again.IsZero() && d.Again.Before(start) }
			waits = err == nil && (len(tried) < len(s.Config.Alerts[i].To) || slices.ContainsFunc(tried, isDue)) && retry.Sleep(limit, 20*time.Millisecond) == nil
		}
	}
}
