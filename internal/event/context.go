package event

import (
	"context"
	"sync"
)

type scopeKey struct{}

// NewContext returns a context of work whose events go to s. What only a context reaches,
// such as the store of a session or a tool that prints, emits there: so nobody hears the
// events of others who work with the same things.
func NewContext(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// FromContext returns the scope of the work that ctx belongs to, which drops events if ctx
// has none.
func FromContext(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}

// Once returns an emitter that passes on to next what it gets, except for warnings to be
// shown once that it has passed on before. It may be used from several goroutines if next
// may; a nil next is nil.
func Once(next Emitter) Emitter {
	if next == nil {
		return nil
	}
	var shown sync.Map // of texts
	return Func(func(ctx context.Context, ev Event) error {
		if w, ok := ev.Body.(Warning); ok && w.Once {
			if _, again := shown.LoadOrStore(w.Text, true); again {
				return nil
			}
		}
		return next.Emit(ctx, ev)
	})
}
