package ask

import "context"

// Func is an [Asker] made of a function, which must be safe for several goroutines.
type Func func(ctx context.Context, q Question) (string, error)

// Ask implements [Asker].
func (f Func) Ask(ctx context.Context, q Question) (string, error) { return f(ctx, q) }

// Unavailable is an [Asker] for places where no user can be asked.
type Unavailable struct{}

// Ask implements [Asker]. It always returns [ErrUnavailable].
func (Unavailable) Ask(ctx context.Context, q Question) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", q.wrap(err)
	}
	return "", q.wrap(ErrUnavailable)
}
