package conversation

import (
	"context"

	"loki/internal/conversation/session"
)

// An interactive conversation keeps the MCP servers running that what is in force asks for. The
// servers of a question are the same ones then. Other conversations start them with a question.

// rescope starts the MCP servers that what is in force asks for, and then stops the others. A
// server that does not work is a warning. An error, such as the end of ctx, changes nothing.
func (c *Conversation) rescope(ctx context.Context) error {
	if !c.options.Interactive || c.service.Servers == nil {
		return nil
	}
	stop, err := c.service.Servers(c.context(ctx), c.WantedTools())
	if err != nil {
		return err
	}
	c.stopServers()
	c.servers = stop
	return nil
}

// rescopeOut is rescope after something was left, which is not taken back. What it had running stops.
func (c *Conversation) rescopeOut(ctx context.Context) error {
	if ctx.Err() != nil { // the user interrupted a question, which means no
		c.stopServers()
		return nil
	}
	err := c.rescope(ctx)
	if err != nil {
		c.stopServers()
	}
	return err
}

// stopServers stops the servers that no other conversation uses.
func (c *Conversation) stopServers() {
	if c.servers != nil {
		c.servers()
	}
	c.servers = nil
}

// WantedTools says which tools the next question is asked with.
func (c *Conversation) WantedTools() Wanted {
	return Wanted{
		Settings: c.Settings(), Usual: c.role != nil && c.role.Bundled(), Caller: c.options.Caller,
		Agent: c.agent, Variables: c.variables, Knowledge: c.Knowledge(), Switches: c.values.switches,
	}
}

// change makes a change of what is in force, and has the servers follow it. If that fails the
// change is taken back.
func (c *Conversation) change(ctx context.Context, do func()) error {
	role, values, tuned, options := c.role, c.values, c.tuned, c.options
	var of session.Settings
	s := c.session
	if s != nil {
		of = s.Settings()
	}
	do()
	err := c.rescope(ctx)
	if err == nil {
		return nil
	}
	c.role, c.values, c.tuned, c.options = role, values, tuned, options
	if s != nil {
		s.Sync(func(now *session.Settings) { *now = of })
	}
	return err
}

// Prepare begins the interactive part of a conversation: what was asked for with the command
// becomes a setting like the ones that [Conversation.Set] changes, and the MCP servers that the
// configuration asks for are started.
func (c *Conversation) Prepare(ctx context.Context) error {
	c.fold()
	c.options.EmptySession = false // it was for the session of the command
	if err := c.rescope(ctx); err != nil || c.session != nil {
		return err
	}
	err := c.startHooks(ctx, "")
	c.talking = err == nil
	return err
}
