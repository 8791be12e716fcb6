package display

import (
	"context"
	"strings"

	"loki/internal/app"
	"loki/internal/base/text"
	"loki/internal/conversation/session"
)

// SessionLabel returns the name of a stored session. An id is followed by the first words of the session.
func SessionLabel(ctx context.Context, a *app.App, scope session.Scope, name string) string {
	id, err := session.ParseID(name)
	if err != nil {
		return name
	}
	sum, err := a.Conversations().Glance(ctx, scope, session.Meta{ID: id})
	if err != nil || sum.First == "" {
		return name
	}
	return name + " (" + text.CutColumns(Line(strings.Join(strings.Fields(a.Hide(sum.First)), " ")), 40) + ")"
}
