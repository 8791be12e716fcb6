// Package jobs serves the commands of models that continue after their call, of runs and of sessions that are at work at this server.
package jobs

import (
	"context"
	"net/http"

	"loki/internal/agent/team/job"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
)

// Options say whose jobs are served.
type Options struct {
	Jobs        *job.Registry
	Path        string // of the run or the session, with {id}
	Tag         string
	Read, Write auth.Scope
	Action      string // of the audit, for a kill
	// Find returns the ids of the run and the session that an id means, of which one is "", if the caller may see it, or with change set
	// change it.
	Find func(ctx context.Context, id string, change bool) (run, session string, err error)
}

type (
	all struct {
		ID string `path:"id" maxLength:"64" doc:"of the run or the session"`
	}
	one struct {
		all
		Job string `path:"job" maxLength:"64" doc:"id of the job"`
	}
	output struct {
		one
		Since int64 `query:"since" minimum:"0" doc:"position of the first byte"`
	}
)

// Register adds the endpoints.
func Register(a *rest.API, o Options) {
	path := o.Path + "/jobs"
	rest.Register(a, rest.Operation{Method: http.MethodGet, Path: path, Summary: "List the commands that models run as jobs", Tag: o.Tag, Scope: o.Read}, o.list)
	rest.Register(a, rest.Operation{Method: http.MethodGet, Path: path + "/{job}/output", Summary: "What a job printed, at most 64 KiB", Tag: o.Tag, Scope: o.Read}, o.output)
	rest.Register(a, rest.Operation{Method: http.MethodDelete, Path: path + "/{job}", Summary: "End a job", Tag: o.Tag, Scope: o.Write, Action: o.Action}, o.kill)
}

func (o Options) list(ctx context.Context, in *all) (*api.List[api.CommandJob], error) {
	run, session, err := o.Find(ctx, in.ID, false)
	if err != nil {
		return nil, err
	}
	var list []api.CommandJob
	for _, i := range o.Jobs.All(run, session) {
		list = append(list, api.CommandJob{ID: i.ID, Command: i.Command, Status: i.Status, Exit: i.Exit, Level: i.Level, Ports: i.Ports, Bytes: i.Bytes})
	}
	return api.NewList(list, ""), nil
}

func (o Options) output(ctx context.Context, in *output) (*api.JobOutput, error) {
	run, session, err := o.Find(ctx, in.ID, false)
	if err != nil {
		return nil, err
	}
	i, p, err := o.Jobs.Output(run, session, in.Job, in.Since)
	if err != nil {
		return nil, notFoundAs(err, in.Job)
	}
	return &api.JobOutput{Status: i.Status, Exit: i.Exit, From: p.From, To: p.To, Dropped: p.Dropped, Output: p.Text}, nil
}

func (o Options) kill(ctx context.Context, in *one) (*rest.None, error) {
	run, session, err := o.Find(ctx, in.ID, true)
	if err == nil {
		err = notFoundAs(o.Jobs.Kill(run, session, in.Job), in.Job)
	}
	return &rest.None{}, err
}

func notFoundAs(err error, id string) error {
	if fault.CodeOf(err) == fault.NotFound {
		return rest.NotFound("job", id)
	}
	return err
}
