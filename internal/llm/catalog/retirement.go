package catalog

import (
	"fmt"
	"time"
)

// On returns c as it is on a day: models whose [Model.Retired] has come are hidden, and
// [Catalog.Retirement] describes them. In a catalog without a day no model is retired.
func (c *Catalog) On(day time.Time) *Catalog {
	dated := *c
	dated.today = day.Format(time.DateOnly)
	return &dated
}

// isRetired reports whether the provider of m has switched it off.
func (c *Catalog) isRetired(m Model) bool {
	return m.Retired != "" && c.today != "" && m.Retired <= c.today // days in this form are in the order of time
}

// isHidden reports whether lists leave m out.
func (c *Catalog) isHidden(m Model) bool { return m.Hidden || c.isRetired(m) }

// Retirement returns what a user of m has to know if its provider has switched it off:
// since when, and what to use instead if that is known. It is empty for other models.
func (c *Catalog) Retirement(m Model) string {
	if !c.isRetired(m) {
		return ""
	}
	note := fmt.Sprintf("model %s was retired by its provider on %s", m.ID(), m.Retired)
	if m.ReplacedBy != "" {
		note += fmt.Sprintf("; use %s:%s instead", m.Client, m.ReplacedBy)
	}
	return note
}

// Near returns up to three listed models that the name of an unlisted m may be a
// misspelling of, best first. It is empty for listed models.
func (c *Catalog) Near(m Model) []string {
	if m.Listed || m.ClientType == Builtin {
		return nil
	}
	cl := c.client(m.Client)
	if cl == nil {
		return nil
	}
	var names []string
	for known := range c.visible(*cl, m.Type) {
		names = append(names, known.Name)
	}
	var ids []string
	for _, name := range mostLike(m.Name, names) {
		ids = append(ids, m.Client+":"+name)
	}
	return ids
}
