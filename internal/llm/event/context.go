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

// Warn emits a problem that does not stop the work to the scope of ctx, which shows it once.
func Warn(ctx context.Context, err error) { WarnText(ctx, err.Error()) }

// WarnText is [Warn] for a text.
func WarnText(ctx context.Context, text string) {
	_ = FromContext(ctx).Emit(ctx, Warning{Text: text, Once: true}) // the work continues without it
}
