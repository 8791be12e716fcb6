package summary

import (
	"context"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/workflow/schedule"
)

// Schedule describes a schedule.
func Schedule(ctx context.Context, s *schedule.Service, k *schedule.Kept) (api.Schedule, error) {
	d := api.Schedule{Name: k.Name, Agent: k.Agent, State: k.State(), Next: timeOf(k.Next(s.Now())), Stored: k.Stored()}
	switch {
	case k.Cron != "":
		d.When = k.Cron
	case k.Every != "":
		d.When = "every " + k.Every
	default:
		d.When = "at " + k.At
	}
	if k.Err != nil {
		d.Error = k.Err.Error()
	}
	last, err := s.History(ctx, k.Name, 1)
	if len(last) > 0 {
		d.Last = &ScheduleTimes(last)[0]
	}
	return d, err
}

// ScheduleTimes describes outcomes. It is never nil.
func ScheduleTimes(outcomes []schedule.Outcome) []api.ScheduleTime {
	list := make([]api.ScheduleTime, len(outcomes))
	for i, o := range outcomes {
		list[i] = api.ScheduleTime{Due: o.Due.UTC(), Outcome: "fired", RunID: o.Run, Reason: o.Reason, Count: o.Count, LateSeconds: o.LateSeconds, Error: o.Error}
		if o.Run == "" {
			list[i].Outcome = "skipped"
		}
	}
	return list
}

// SchedulePlan describes what the schedules that a caller may see do from one time to another.
func SchedulePlan(ctx context.Context, s *schedule.Service, from, to time.Time, visible func(*schedule.Kept) bool) (*api.SchedulePlan, error) {
	times, all, err := s.Plan(ctx, from, to)
	plan := &api.SchedulePlan{Schedules: []api.Schedule{}, Plan: []api.PlannedTime{}}
	hidden := make(map[string]bool)
	for _, k := range all {
		if hidden[k.Name] = !visible(k); hidden[k.Name] {
			continue
		}
		d, err := Schedule(ctx, s, k)
		if err != nil {
			return nil, err
		}
		plan.Schedules = append(plan.Schedules, d)
	}
	for _, t := range times {
		if !hidden[t.Name] {
			plan.Plan = append(plan.Plan, api.PlannedTime{Name: t.Name, Due: t.Due.UTC(), Local: t.Due.Format(time.RFC3339), Skipped: t.Skipped})
		}
	}
	return plan, err
}
