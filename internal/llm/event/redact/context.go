package redact

import "context"

type textKey struct{}

// In returns a context of work whose log does not show the secrets, nor those of ctx. [InContext] is what hides them.
func (s *Secrets) In(ctx context.Context) context.Context {
	hide := s.Text
	if outer := InContext(ctx); outer != nil {
		hide = func(text string) string { return outer(s.Text(text)) }
	}
	return context.WithValue(ctx, textKey{}, hide)
}

// InContext returns what hides the secrets of the work that ctx belongs to; nil if there are none.
func InContext(ctx context.Context) func(text string) string {
	hide, _ := ctx.Value(textKey{}).(func(text string) string)
	return hide
}
