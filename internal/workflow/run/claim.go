package run

import (
	"context"

	"loki/internal/service/auth"
)

// ClaimUnowned gives all runs of a store that have no owner to one, and returns how many these were.
func ClaimUnowned(ctx context.Context, store Store, owner auth.Owner) (n int, err error) {
	infos, err := store.Runs(ctx, Query{})
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
