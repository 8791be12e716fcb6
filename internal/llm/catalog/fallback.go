package catalog

import (
	"errors"
	"fmt"
	"slices"
)

// fallbacks returns the ids that m, a model of c, falls back to: its own, or else
// those of c but for its own id.
func (c Client) fallbacks(m Model) []string {
	if m.Fallbacks != nil {
		return m.Fallbacks
	}
	return slices.DeleteFunc(slices.Clone(c.Fallbacks), func(id string) bool { return id == m.ID() })
}

// Fallbacks returns the models to try, in order, when m fails: the models of m's type
// that its [Model.Fallbacks] mean, each once, and never m itself. A client's name
// means its first model. Ids that mean nothing are left out, and the error, which
// joins those of [Catalog.Resolve], says so; the models can be used all the same.
func (c *Catalog) Fallbacks(m Model) ([]Model, error) {
	var models []Model
	var errs []error
	tried := []string{m.ID()}
	for _, id := range m.Fallbacks {
		next, err := c.Resolve(id, m.Type)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("fallback of %s: %w", m.ID(), err))
		case !slices.Contains(tried, next.ID()):
			tried = append(tried, next.ID())
			models = append(models, next)
		}
	}
	return models, errors.Join(errs...)
}
