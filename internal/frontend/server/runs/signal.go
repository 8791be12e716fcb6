package runs

import (
	"context"

	"loki/internal/base/value"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/server/rest"
	"loki/internal/workflow/run"
)

// signalRequest gives a run a signal.
type signalRequest struct {
	one
	Name string `path:"name" maxLength:"256" doc:"of the signal"`
	Body *api.SignalRequest
}

func (e *endpoints) signal(ctx context.Context, in *signalRequest, info run.Info) (*api.Signal, error) {
	var v value.Value
	var err error
	if in.Body != nil && len(in.Body.Value) > 0 {
		if v, err = value.ParseJSON(in.Body.Value); err != nil {
			return nil, rest.Invalid("value", "value: %v", err)
		}
	}
	s, err := e.Manager.Signal(ctx, info.ID, in.Name, v, rest.RepeatKey(ctx))
	if err != nil {
		return nil, err
	}
	rest.Commit(ctx, "/v1/runs/"+info.ID)
	return new(summary.Signal(info.ID, s)), nil
}
