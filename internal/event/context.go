package event

import "context"

type scopeKey struct{}

// NewContext returns a context of work whose events go to s. What only a context reaches,
// such as the store of a session or a tool that prints, emits there. So no request sees the
// events of another one that uses the same things.
func NewContext(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// FromContext returns the scope of the work that ctx belongs to, which drops events if ctx
// has none.
func FromContext(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}
