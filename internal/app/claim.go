package app

import (
	"context"
	"errors"

	"loki/internal/conversation/session"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// ClaimUnowned gives all sessions and runs that have no owner to a subject, and returns how many of each
// these were.
func (a *App) ClaimUnowned(ctx context.Context, subject string) (sessions, runs int, err error) {
	if sessions, err = a.claimSessions(ctx, auth.Owner{Subject: subject}); err != nil {
		return sessions, 0, err
	}
	runs, err = a.claimRuns(ctx, auth.Owner{Subject: subject})
	return sessions, runs, err
}

func (a *App) claimSessions(ctx context.Context, owner auth.Owner) (n int, err error) {
	store, err := a.Sessions()
	if err != nil {
		return 0, err
	}
	scopes, err := a.SessionScopes()
	if err != nil {
		return 0, err
	}
	for _, scope := range scopes {
		list, err := store.List(ctx, scope)
		if err != nil {
			return n, err
		}
		for _, m := range list {
			if m.Owner != nil {
				continue
			}
			has, err := store.Claim(ctx, scope, m.ID, owner)
			if errors.Is(err, session.ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return n, err
			}
			if *has == owner {
				n++
			}
		}
	}
	return n, nil
}

func (a *App) claimRuns(ctx context.Context, owner auth.Owner) (n int, err error) {
	store, err := a.OpenRuns()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	infos, err := store.Runs(ctx, run.Query{})
	if err != nil {
		return 0, err
	}
	for _, i := range infos {
		if i.Owner != nil {
			continue
		}
		has, err := store.Claim(ctx, i.ID, owner)
		if err != nil {
			return n, err
		}
		if *has == owner {
			n++
		}
	}
	return n, nil
}
