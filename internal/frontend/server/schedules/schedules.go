// Package schedules serves the schedules that start runs by themselves.
package schedules

import (
	"context"
	"errors"
	"net/http"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/schedule"
)

// Service is what the endpoints work with.
type Service struct {
	App       *app.App
	Schedules *schedule.Service
	Access    auth.Access
}

// Register adds the endpoints.
func Register(a *rest.API, s Service) {
	read := func(path, summary string) rest.Operation {
		return rest.Operation{Method: http.MethodGet, Path: path, Summary: summary, Tag: "Schedules", Scope: auth.ReadSchedules}
	}
	write := func(path, summary string) rest.Operation {
		return rest.Operation{Method: http.MethodPost, Path: path, Summary: summary, Tag: "Schedules", Scope: auth.WriteSchedules, Idempotent: true, Action: audit.ScheduleChange}
	}
	rest.Register(a, read("/v1/schedules", "List the schedules"), s.list)
	rest.Register(a, read("/v1/schedules/{name}", "A schedule as it was written, with its state"), s.show)
	rest.Register(a, read("/v1/schedules/{name}/firings", "The due times of a schedule with their outcomes, newest first"), s.firings)
	rest.Register(a, read("/v1/schedule-plan", "When schedules are due"), s.plan)
	create := write("/v1/schedules", "Have an agent run at times")
	create.Status = http.StatusCreated
	rest.Register(a, create, s.create)
	rest.Register(a, write("/v1/schedules/{name}/pause", "Have a schedule skip its times"), s.pause)
	rest.Register(a, write("/v1/schedules/{name}/continue", "End the pause of a schedule"), s.proceed)
	run := write("/v1/schedules/{name}/run", "Start a run of a schedule now")
	run.Status, run.Action = http.StatusCreated, audit.RunStart
	rest.Register(a, run, s.run)
	remove := write("/v1/schedules/{name}", "Delete a schedule that is not in a file")
	remove.Method, remove.Idempotent = http.MethodDelete, false
	rest.Register(a, remove, s.remove)
}

// one is a request about one schedule.
type one struct {
	Name string `path:"name" maxLength:"64" doc:"of the schedule"`
}

// find returns a schedule, if the caller may see it: those of files and of the command line have no owner, as runs.
func (s Service) find(ctx context.Context, name string) (*schedule.Kept, error) {
	k, err := s.Schedules.Find(ctx, name)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !s.Access.View(rest.Subject(ctx)).Includes(k.Owner()) {
		return nil, rest.NotFound("schedule", name).WithHint("GET /v1/schedules lists the schedules")
	}
	return k, err
}

func (s Service) list(ctx context.Context, in *struct{ rest.Page }) (*api.List[api.Schedule], error) {
	all, err := s.Schedules.List(ctx)
	if err != nil {
		return nil, err
	}
	after, err := rest.Cursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	var list []api.Schedule
	for _, k := range all { // by their names
		if k.Name <= after || !s.Access.View(rest.Subject(ctx)).Includes(k.Owner()) {
			continue
		}
		if len(list) == in.Limit {
			return api.NewList(list, rest.NewCursor(list[len(list)-1].Name)), nil
		}
		d, err := summary.Schedule(ctx, s.Schedules, k)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return api.NewList(list, ""), nil
}

func (s Service) show(ctx context.Context, in *one) (*api.ScheduleDetail, error) {
	k, err := s.find(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	d, err := summary.Schedule(ctx, s.Schedules, k)
	return &api.ScheduleDetail{Schedule: d, Definition: k.Doc}, err
}

// createRequest makes a schedule.
type createRequest struct{ Body api.ScheduleRequest }

func (s Service) create(ctx context.Context, in *createRequest) (*rest.Reply, error) {
	if in.Body.Yes && !rest.Subject(ctx).Allows(auth.WriteRuns) {
		return nil, rest.Forbidden("the key lacks the scope %s, which the member yes needs", auth.WriteRuns)
	}
	c, err := s.App.CheckSchedule(in.Body.Name, in.Body.Doc)
	if wrong, ok := errors.AsType[*schedule.FieldError](err); ok {
		return nil, rest.Invalid(wrong.Field, "%v", wrong)
	}
	if err == nil {
		err = s.Schedules.Add(ctx, c, s.Access.Owner(rest.Subject(ctx)))
	}
	if _, taken := errors.AsType[*schedule.TakenError](err); taken {
		return nil, rest.Conflict("%v", err)
	}
	if err != nil {
		return nil, err
	}
	where := "/v1/schedules/" + c.Name
	rest.Commit(ctx, where)
	d, err := s.show(ctx, &one{c.Name})
	if err != nil {
		return nil, err
	}
	return rest.JSON(http.StatusCreated, d).With("Location", where), nil
}

func (s Service) pause(ctx context.Context, in *one) (*api.ScheduleDetail, error) {
	return s.setPaused(ctx, in, true)
}

func (s Service) proceed(ctx context.Context, in *one) (*api.ScheduleDetail, error) {
	return s.setPaused(ctx, in, false)
}

func (s Service) setPaused(ctx context.Context, in *one, paused bool) (*api.ScheduleDetail, error) {
	if _, err := s.find(ctx, in.Name); err != nil {
		return nil, err
	}
	if err := s.Schedules.Pause(ctx, in.Name, paused); err != nil {
		return nil, err
	}
	return s.show(ctx, in)
}

func (s Service) run(ctx context.Context, in *one) (*rest.Reply, error) {
	k, err := s.find(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if state := k.State(); state == schedule.Invalid || state == schedule.Off {
		return nil, rest.Conflict("schedule %s is %s", k.Name, state)
	}
	o, err := s.Schedules.FireNow(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	where := "/v1/runs/" + o.Run
	rest.Commit(ctx, where)
	return rest.JSON(http.StatusCreated, &summary.ScheduleTimes([]schedule.Outcome{o})[0]).With("Location", where), nil
}

func (s Service) remove(ctx context.Context, in *one) (*rest.None, error) {
	k, err := s.find(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if !k.Stored() {
		return nil, rest.Conflict("schedule %s is in a file of the server", k.Name)
	}
	return &rest.None{}, s.Schedules.Delete(ctx, in.Name)
}

// firingsRequest asks for the history of a schedule.
type firingsRequest struct {
	one
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"at most so many"`
}

func (s Service) firings(ctx context.Context, in *firingsRequest) (*api.List[api.ScheduleTime], error) {
	if _, err := s.find(ctx, in.Name); err != nil {
		return nil, err
	}
	outcomes, err := s.Schedules.History(ctx, in.Name, in.Limit)
	return api.NewList(summary.ScheduleTimes(outcomes), ""), err
}

// planRequest asks for times.
type planRequest struct {
	From string `query:"from" maxLength:"64" doc:"RFC 3339; absent: now"`
	To   string `query:"to" maxLength:"64" doc:"RFC 3339; absent: seven days later"`
}

func (s Service) plan(ctx context.Context, in *planRequest) (*api.SchedulePlan, error) {
	from := s.Schedules.Now()
	if in.From != "" {
		at, err := time.Parse(time.RFC3339, in.From)
		if err != nil {
			return nil, badTime("from", in.From)
		}
		from = at
	}
	to := from.Add(7 * 24 * time.Hour)
	if in.To != "" {
		at, err := time.Parse(time.RFC3339, in.To)
		if err != nil {
			return nil, badTime("to", in.To)
		}
		to = at
	}
	view := s.Access.View(rest.Subject(ctx))
	return summary.SchedulePlan(ctx, s.Schedules, from, to, func(k *schedule.Kept) bool { return view.Includes(k.Owner()) })
}

func badTime(name, text string) error {
	return rest.Invalid(name, "%s: %q is not a time such as 2026-12-24T07:00:00Z", name, text)
}
