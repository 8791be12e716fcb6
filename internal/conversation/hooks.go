package conversation

import (
	"context"

	"loki/internal/llm/event"
	"loki/internal/llm/hook"
)

// hooks returns the hooks of what is in force, nil for none.
func (c *Conversation) hooks() *hook.Runner {
	if c.service.Hooks == nil || c.values.dryRun {
		return nil
	}
	name := ""
	if in := c.enteredSession(); in != nil {
		name = in.Name()
	}
	return c.service.Hooks(c.agent).In(name)
}

// sessionStarts runs the hooks of the beginning of a session, unless they have run for the one that is in force. The
// error of a hook that refuses has code Refused.
func (c *Conversation) sessionStarts(ctx context.Context, name string) error {
	if c.stay != nil {
		return nil
	}
	if err := c.startHooks(ctx, name); err != nil {
		return err
	}
	c.stay = &name
	return nil
}

// sessionEnded runs the hooks of the end of a session that has been left.
func (c *Conversation) sessionEnded(ctx context.Context) error {
	if c.stay == nil {
		return nil
	}
	name := *c.stay
	c.stay = nil
	_, err := c.runSessionHooks(context.WithoutCancel(ctx), hook.SessionEnd, name)
	return err
}

// startHooks runs the hooks of the beginning of a session, which is "" for a REPL outside of one.
func (c *Conversation) startHooks(ctx context.Context, name string) error {
	d, err := c.runSessionHooks(ctx, hook.SessionStart, name)
	if err == nil && d.Refused() {
		return &hook.RefusedError{What: "the session is not entered", Refusal: d.Refusal()}
	}
	return err
}

// runSessionHooks runs the hooks of a session. Their notes are warnings: no model reads them.
func (c *Conversation) runSessionHooks(ctx context.Context, kind hook.Kind, name string) (hook.Decision, error) {
	d, err := c.hooks().In(name).Run(c.context(ctx), hook.Event{Kind: kind, ID: name}, nil)
	for _, n := range d.Notes {
		if err == nil {
			err = c.options.Events.Emit(ctx, event.Warning{Text: n.String()})
		}
	}
	return d, err
}
