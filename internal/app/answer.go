package app

import (
	"context"

	"loki/internal/engine"
	"loki/internal/fault"
)

// Answer answers one request that stands for itself. The error is a [*fault.Error].
func (a *App) Answer(ctx context.Context, rc *engine.RequestContext, req engine.Request) (engine.Reply, error) {
	e, err := a.Engine()
	if err != nil {
		return engine.Reply{}, err
	}
	reply, err := e.Answer(ctx, rc, req)
	if err != nil {
		return reply, fault.Wrap(fault.CodeOf(err), err, "")
	}
	return reply, nil
}
