// Package schedules serves the schedules that start runs by themselves.
package schedules

import (
	"context"
	"errors"
	"net/http"
	"slices"
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
	rest.Register(a, read("/v1/schedules/{name}", "A schedule as it was written, with its state"), rest.About(s.find, s.show))
	rest.Register(a, read("/v1/schedules/{name}/firings", "The due times of a schedule with their outcomes, newest first"), rest.About(s.find, s.firings))
	rest.Register(a, read("/v1/schedule-plan", "When schedules are due"), s.plan)
	create := write("/v1/schedules", "Have an agent run at times")
	create.Status = http.StatusCreated
	rest.Register(a, create, s.create)
	rest.Register(a, write("/v1/schedules/{name}/pause", "Have a schedule skip its times"), rest.About(s.find, s.setPaused(true)))
	rest.Register(a, write("/v1/schedules/{name}/continue", "End the pause of a schedule"), rest.About(s.find, s.setPaused(false)))
	run := write("/v1/schedules/{name}/run", "Start a run of a schedule now")
	run.Status, run.Action = http.StatusCreated, audit.RunStart
	rest.Register(a, run, rest.About(s.find, s.run))
	remove := write("/v1/schedules/{name}", "Delete a schedule that is not in a file")
	remove.Method, remove.Idempotent = http.MethodDelete, false
	rest.Register(a, remove, rest.About(s.find, s.remove))
}

// one is a request about one schedule.
type one struct {
	Name string `path:"name" maxLength:"64" doc:"of the schedule"`
}

// Of returns the name.
func (o *one) Of() string { return o.Name }

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
	all = slices.DeleteFunc(all, func(k *schedule.Kept) bool { return !s.Access.View(rest.Subject(ctx)).Includes(k.Owner()) })
	return rest.PageOf(all, in.Page, func(k *schedule.Kept) string { return k.Name }, func(k *schedule.Kept) (api.Schedule, error) {
		return summary.Schedule(ctx, s.Schedules, k)
	})
}

func (s Service) show(ctx context.Context, _ *one, k *schedule.Kept) (*api.ScheduleDetail, error) {
	d, err := summary.Schedule(ctx, s.Schedules, k)
	return &api.ScheduleDetail{Schedule: d, Definition: k.Doc}, err
}

// createRequest makes a schedule.
type createRequest struct{ Body api.ScheduleRequest }

func (s Service) create(ctx context.Context, in *createRequest) (*rest.Reply, error) {
	if in.Body.Yes && !rest.Subject(ctx).Allows(auth.WriteRuns) {
		return nil, rest.Forbidden("the key lacks the scope %s, which the member yes needs", auth.WriteRuns)
	}
	c, err := s.App.Background.CheckSchedule(in.Body.Name, in.Body.Doc)
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
	d, err := s.now(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	return rest.JSON(http.StatusCreated, d).With("Location", where), nil
}

// now describes a schedule as it is now.
func (s Service) now(ctx context.Context, name string) (*api.ScheduleDetail, error) {
	return rest.About(s.find, s.show)(ctx, &one{name})
}

// setPaused returns the endpoint that begins or ends a pause.
func (s Service) setPaused(paused bool) func(context.Context, *one, *schedule.Kept) (*api.ScheduleDetail, error) {
	return func(ctx context.Context, in *one, _ *schedule.Kept) (*api.ScheduleDetail, error) {
		if err := s.Schedules.Pause(ctx, in.Name, paused); err != nil {
			return nil, err
		}
		return s.now(ctx, in.Name)
	}
}

func (s Service) run(ctx context.Context, in *one, k *schedule.Kept) (*rest.Reply, error) {
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

func (s Service) remove(ctx context.Context, in *one, k *schedule.Kept) (*rest.None, error) {
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

func (s Service) firings(ctx context.Context, in *firingsRequest, _ *schedule.Kept) (*api.List[api.ScheduleTime], error) {
	outcomes, err := s.Schedules.History(ctx, in.Name, in.Limit)
	return api.NewList(summary.ScheduleTimes(outcomes), ""), err
}

// planRequest asks for times.
type planRequest struct {
	From string `query:"from" maxLength:"64" doc:"RFC 3339; absent: now"`
	To   string `query:"to" maxLength:"64" doc:"RFC 3339; absent: seven days later"`
}

func (s Service) plan(ctx context.Context, in *planRequest) (*api.SchedulePlan, error) {
	from, err := timeOf("from", in.From, s.Schedules.Now())
	if err != nil {
		return nil, err
	}
	to, err := timeOf("to", in.To, from.Add(7*24*time.Hour))
	if err != nil {
		return nil, err
	}
	view := s.Access.View(rest.Subject(ctx))
	return summary.SchedulePlan(ctx, s.Schedules, from, to, func(k *schedule.Kept) bool { return view.Includes(k.Owner()) })
}

// timeOf returns the time of a parameter, otherwise if that is absent.
func timeOf(name, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, rest.Invalid(name, "%s: %q is not a time such as 2026-12-24T07:00:00Z", name, text)
	}
	return at, nil
}
