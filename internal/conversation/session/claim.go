package session

import (
	"context"
	"errors"

	"loki/internal/service/auth"
)

// ClaimUnowned gives all sessions of scopes that have no owner to one, and returns how many these were.
func ClaimUnowned(ctx context.Context, store Store, scopes []Scope, owner auth.Owner) (n int, err error) {
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
			if errors.Is(err, ErrNotFound) {
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
