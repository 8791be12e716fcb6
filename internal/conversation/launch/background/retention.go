package background

import (
	"context"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/workflow/run"
)

// How often runs are forgotten, by all processes of a store, and how often a server looks whether it is time.
const (
	forgetEvery = time.Hour
	forgetLook  = 5 * time.Minute
)

// Retain forgets outdated runs of a server's store as the configuration says, until ctx ends.
func (s *Service) Retain(ctx context.Context, store run.Store) {
	for s.Forget(ctx, store); retry.Sleep(ctx, forgetLook) == nil; {
		s.Forget(ctx, store)
	}
}

// Forget forgets outdated runs once, and the plans that belong to no run then.
func (s *Service) Forget(ctx context.Context, store run.Store) {
	if s.Config.Retention == nil {
		return
	}
	ids, err := s.Config.Retention.Apply(ctx, store, time.Now(), forgetEvery)
	if len(ids) > 0 {
		s.Log().InfoContext(ctx, "outdated runs were forgotten", "runs", len(ids))
		var left []run.Info
		if left, err = store.Runs(ctx, run.Query{}); err == nil {
			err = s.Prune(left)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log().WarnContext(ctx, "outdated runs cannot be forgotten", "error", err)
	}
}
