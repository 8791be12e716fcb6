package conversation

import (
	"cmp"
	"context"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/session"
	"loki/internal/workflow/run"
)

// Summary is what is known of a stored session at a glance.
type Summary struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Turns    int       `json:"turns"`
	First    string    `json:"first,omitempty"` // text of the first question, cut as texts of runs are in a list
	Error    string    `json:"error,omitempty"` // why the session cannot be read
}

// Summaries lists the sessions of a scope by name: of an agent, or "" for those of none. Of those without a name
// it lists the latest only, at most unnamed; more is how many there are besides.
func (s *Service) Summaries(ctx context.Context, scope session.Scope, unnamed int) (summaries []Summary, more int, err error) {
	store, err := s.Sessions()
	if err != nil {
		return nil, 0, err
	}
	list, err := store.List(ctx, scope)
	if err != nil {
		return nil, 0, err
	}
	list, more = session.Latest(list, unnamed)
	summaries = make([]Summary, 0, len(list))
	for _, m := range list {
		summaries = append(summaries, glance(ctx, store, scope, m))
	}
	return summaries, more, ctx.Err()
}

// Glance returns what is known of a session of a list at a glance.
func (s *Service) Glance(ctx context.Context, scope session.Scope, m session.Meta) (Summary, error) {
	store, err := s.Sessions()
	if err != nil {
		return Summary{}, err
	}
	return glance(ctx, store, scope, m), nil
}

func glance(ctx context.Context, store session.Store, scope session.Scope, m session.Meta) Summary {
	sum := Summary{Name: cmp.Or(string(m.Alias), string(m.ID)), ID: string(m.ID), Modified: m.Modified.UTC()}
	files, ok := store.(interface {
		Glance(ctx context.Context, scope session.Scope, id session.ID) (first string, turns int, err error)
	})
	if !ok {
		return sum
	}
	var err error
	sum.First, sum.Turns, err = files.Glance(ctx, scope, m.ID)
	sum.First = run.Head(sum.First)
	if err != nil {
		sum.Error = err.Error()
	}
	return sum
}

// Export returns the session as a YAML document, see [session.Session.Export], and its value. The error has
// code NotFound if it is not stored.
func (c *Conversation) Export() (text string, v value.Value, err error) {
	s := c.session
	if !s.Stored() {
		return "", v, session.NotFound(session.Alias(s.Name()))
	}
	store, err := c.service.Sessions()
	if err != nil {
		return "", v, err
	}
	text = s.Export(c.facts(store))
	doc, err := yamldoc.Parse("session "+s.Name(), []byte(text))
	if err != nil {
		return "", v, fault.Wrap(fault.Failure, err, "")
	}
	v, _ = doc.Root().Value()
	return text, v, nil
}

// SessionInfo returns the session as a person reads it, see [session.Session.Info]. Without one it is an
// error with code Usage.
func (c *Conversation) SessionInfo() (string, error) {
	if c.session == nil {
		return "", c.NoSession()
	}
	store, err := c.service.Sessions()
	if err != nil {
		return "", err
	}
	return c.session.Info(session.Look{Facts: c.facts(store)}), nil
}

// SessionFile returns the file with the settings of the session; "" if it is not stored in one.
func (c *Conversation) SessionFile() string {
	if c.session == nil {
		return ""
	}
	store, err := c.service.Sessions()
	if err != nil {
		return ""
	}
	return c.facts(store).Path
}

// facts returns what is known of the session besides what is in it.
func (c *Conversation) facts(store session.Store) session.Facts {
	facts := session.Facts{MaxInputTokens: c.inputLimit(c.Settings().Model)}
	if files, ok := store.(interface {
		StateFile(s *session.Session) string
	}); ok && c.session.Stored() {
		facts.Path = files.StateFile(c.session)
	}
	return facts
}
