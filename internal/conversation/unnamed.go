package conversation

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/conversation/session"
	"loki/internal/llm/event"
)

// What is said in an interactive conversation outside of the sessions that the user enters is kept in a session
// without a name. The first question begins it. Its settings follow those of the conversation, it is left without
// a question when something else is entered, and --continue and --search find it.

// enteredSession returns the session that the user has entered; nil for none.
func (c *Conversation) enteredSession() *session.Session {
	if c.unnamed {
		return nil
	}
	return c.session
}

// remember has the conversation remember the question that is asked next, and its answer: in a session without a
// name, unless the user has entered one.
func (c *Conversation) remember(ctx context.Context, q Question) error {
	switch {
	case !c.options.Interactive, c.options.isolated, q.Role != nil, q.Command, c.agent != nil && c.agent.Job != nil:
		return nil
	case c.session == nil && c.service.Remember && !c.values.dryRun:
		store, err := c.service.Sessions()
		if err != nil {
			return err
		}
		s := store.Temp(c.Scope(), session.Settings{})
		s.KeepUnnamed()
		if c.service.Unkept || c.values.saveSession != nil && !*c.values.saveSession {
			s.KeepNothing()
		} else {
			_ = c.prune(ctx, store) // the next conversation tries again
		}
		c.session, c.unnamed = s, true
	case !c.unnamed:
		return nil
	}
	if !c.values.promptLog {
		c.session.KeepNothing()
	} else {
		c.keepAgain()
	}
	c.session.Sync(func(s *session.Settings) {
		s.Settings, s.RoleName, s.Knowledge = c.Settings(), c.Role(), c.knowledge
		if c.agent != nil {
			c.agentSettings(s)
		}
	})
	return nil
}

// keepAgain has the session written again after prompt_log was off, unless something else says that it is not.
func (c *Conversation) keepAgain() {
	if save := c.values.saveSession; !c.service.Unkept && (save == nil || *save) {
		c.session.KeepAgain()
	}
}

// prune deletes sessions without a name that are too old or too many.
func (c *Conversation) prune(ctx context.Context, store session.Store) error {
	files, ok := store.(interface {
		RemoveUnnamed(ctx context.Context, scope session.Scope, limits session.Limits) error
	})
	if !ok {
		return nil
	}
	return files.RemoveUnnamed(ctx, c.Scope(), unnamedLimits())
}

// replace continues in a copy of the session, which was deleted elsewhere.
func (c *Conversation) replace(ctx context.Context) error {
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	copied, err := store.Fork(ctx, c.session, "")
	if err != nil {
		return err
	}
	if l := c.last; l != nil && l.session == c.session {
		l.session = copied
	}
	c.session = copied
	return nil
}

// Renew begins a new conversation with what is in force: it leaves the session, as [Conversation.ExitSession]
// does, and what was said before is no part of what is asked next.
func (c *Conversation) Renew(ctx context.Context) error {
	if c.session != nil {
		return c.ExitSession(ctx)
	}
	c.endJobs(ctx, "a new conversation began")
	c.forgetWork()
	c.last.end()
	return nil
}

// setAside leaves a session without a name, so that something else can be entered. Another session stays.
func (c *Conversation) setAside(ctx context.Context) error {
	if !c.passes() {
		return nil
	}
	return c.ExitSession(ctx)
}

// passes reports whether a session is in force that is left without a question.
func (c *Conversation) passes() bool {
	return c.session != nil && c.options.Interactive && (c.unnamed || c.session.Unnamed())
}

// stays reports whether a session is in force that only the user leaves.
func (c *Conversation) stays() bool { return c.session != nil && !c.passes() }

// CanName reports whether what was said can become the session called name: it is in a session without a name,
// and no session is called so.
func (c *Conversation) CanName(ctx context.Context, name string) bool {
	if !c.unnamed || c.session.Empty() {
		return false
	}
	alias, err := c.service.newName(name)
	if err != nil {
		return false
	}
	store, err := c.service.Sessions()
	if err != nil {
		return false
	}
	_, err = store.Resolve(ctx, c.Scope(), alias)
	return errors.Is(err, session.ErrNotFound)
}

// markEntered makes a session without a name, which has just got one, that which the user has entered.
func (c *Conversation) markEntered() {
	if c.unnamed && c.session.Alias() != "" {
		c.unnamed, c.outside = false, c.role
		c.keepAgain()
		c.session.Attend(c.attended())
	}
}

// notKept warns that a question and its answer are remembered, but not kept.
func (c *Conversation) notKept(ctx context.Context, err error) {
	_ = c.options.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("this conversation is not kept on disk: %v", err), Once: true}) // the work continues if it cannot be shown
}
