package conversation

import (
	"context"
	"errors"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
)

// AttachAgent makes the session of the conversation, which has no messages yet, one of the agent called name. Given
// are values of its variables. A session that has messages cannot become that of another agent, as little as
// one that is an agent's already: it is an error with code Usage.
func (c *Conversation) AttachAgent(ctx context.Context, name string, given map[string]string) error {
	switch {
	case c.session == nil:
		return c.NoSession()
	case c.agent != nil:
		return errWithAgent(c.agent)
	case !c.session.Empty():
		return errInSession(c.session)
	}
	ctx = c.context(ctx)
	a, err := c.findAgent(ctx, name, given, true)
	if err != nil {
		return err
	}
	return c.move(ctx, a.Scope, func(ctx context.Context) error {
		if err := c.UseAgent(ctx, a); err != nil {
			return err
		}
		return c.ready(ctx)
	})
}

// DetachAgent makes the session of the conversation, which has no messages yet, one without an agent. Without an
// agent it does nothing. If the session has messages it is an error with code Usage.
func (c *Conversation) DetachAgent(ctx context.Context) error {
	switch {
	case c.agent == nil:
		return nil
	case c.session == nil:
		return c.NoSession()
	case !c.session.Empty():
		return fault.New(fault.Usage, "session %s has messages, so it keeps the agent it began with", c.session.Name()).
			WithHint("begin another session, or empty this one first")
	}
	return c.move(c.context(ctx), "", func(context.Context) error {
		c.leaveAgent()
		return nil
	})
}

// move makes the session one of another scope, with the settings that are in force there after enter.
func (c *Conversation) move(ctx context.Context, to session.Scope, enter func(context.Context) error) error {
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	id, from, save := c.session.ID(), c.session.Scope(), c.session.Settings().SaveSession
	c.leaveSession()
	if err := enter(ctx); err != nil {
		return err
	}
	if err := store.Move(ctx, from, id, to); err != nil {
		return err
	}
	s, err := store.Open(ctx, to, id)
	if err != nil {
		return errors.Join(err, store.Move(context.WithoutCancel(ctx), to, id, from))
	}
	initial := session.Settings{Settings: c.Settings(), SaveSession: save}
	s.Set(func(old *session.Settings) { *old = initial })
	if err := c.goOnIn(ctx, store, s); err != nil {
		return err
	}
	return c.session.Save(ctx)
}
