package cli

import (
	"context"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/conversation/launch/background"
	"loki/internal/frontend/api"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule"
)

// addScheduleAt makes a schedule at a server, which checks it.
func (c *command) addScheduleAt(ctx context.Context, s *farServer, _ *face) error {
	d, err := c.scheduleDoc()
	if err != nil {
		return err
	}
	made, err := s.AddSchedule(ctx, api.ScheduleRequest{Name: c.opts.value, Doc: d})
	if err != nil {
		return err
	}
	c.reportSchedule(made.Name, made.Next, "the server starts its runs")
	return nil
}

func (c *command) listSchedulesAt(ctx context.Context, s *farServer, _ *face) error {
	from, until, err := c.planTimes()
	if err != nil {
		return err
	}
	plan, err := s.SchedulePlan(ctx, from, until)
	if err != nil {
		return err
	}
	return c.printPlan(plan)
}

func (c *command) showOutcomesAt(ctx context.Context, s *farServer, _ *face) error {
	list, err := s.ScheduleTimes(ctx, c.opts.value)
	if err != nil {
		return err
	}
	return c.printOutcomes(list)
}

// pauseScheduleAt returns what pauses a schedule at a server, or ends that.
func pauseScheduleAt(paused bool) func(*command, context.Context, *farServer, *face) error {
	return func(c *command, ctx context.Context, s *farServer, _ *face) error {
		return s.PauseSchedule(ctx, c.opts.value, paused)
	}
}

func (c *command) deleteScheduleAt(ctx context.Context, s *farServer, _ *face) error {
	return s.DeleteSchedule(ctx, c.opts.value)
}

// runPoll is how often a run at a server is looked at.
const runPoll = 250 * time.Millisecond

// startScheduledAt starts a run of a schedule at a server, and waits until it rests.
func (c *command) startScheduledAt(ctx context.Context, s *farServer, _ *face) error {
	o, err := s.RunSchedule(ctx, c.opts.value)
	if err != nil {
		return err
	}
	for {
		r, err := s.Run(ctx, o.RunID)
		if err != nil {
			return err
		}
		if !r.Active && !r.Queued {
			info := run.Info{ID: r.ID, Status: run.Status(r.Status), Code: fault.Code(r.Code), Failures: r.Failures}
			return c.reportDue(background.Due{Outcomes: []schedule.Outcome{{Name: c.opts.value, Due: o.Due, Run: o.RunID}}, Runs: map[string]run.Info{o.RunID: info}})
		}
		if err := retry.Sleep(ctx, runPoll); err != nil {
			return err
		}
	}
}
