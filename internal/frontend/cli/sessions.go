package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command/display"
)

// recent returns the conversation that --continue resumes, nil without that option. If it was
// with an agent that agent is entered.
func (c *command) recent() (*session.Recent, error) {
	if c.before != nil || !c.opts.goOn {
		return c.before, nil
	}
	var scope *session.Scope
	if c.opts.agent != "" {
		own, err := c.sessionScope()
		if err != nil {
			return nil, err
		}
		scope = &own
	}
	r, err := c.app.Conversations().Recent(scope)
	if err != nil {
		return nil, err
	}
	if r.Agent != "" && c.opts.agent == "" {
		if err := refuse(c.opts.flags, "continue", append([]string{"rag"}, ofAgent...), "the conversation is with agent "+r.Agent); err != nil {
			return nil, err
		}
		c.opts.agent = r.Agent
	}
	return &r, nil
}

// deleteSession deletes the session of --delete-session once the user has agreed.
func (c *command) deleteSession(ctx context.Context) error {
	if err := c.withoutText("delete-session"); err != nil {
		return err
	}
	scope, err := c.sessionScope()
	if err != nil {
		return err
	}
	name, talks := c.opts.value, c.app.Conversations()
	if _, err := talks.StoredID(ctx, scope, name); err != nil {
		return err
	}
	if agreed, err := c.agrees(ctx, fmt.Sprintf("Delete session %s with all its messages?", display.SessionLabel(ctx, c.app, scope, name))); err != nil || !agreed {
		return err
	}
	if err := c.app.DeleteSession(ctx, scope, name); err != nil {
		return err
	}
	return c.say("Session %s is deleted.", name)
}

// withoutText returns an error if there is text behind a flag that takes none, such as the rest of a name
// that lacks its quotes.
func (c *command) withoutText(flag string) error {
	if len(c.opts.text) == 0 {
		return nil
	}
	return fault.New(fault.Usage, "there is no text with --%s, but %q was given", flag, strings.Join(c.opts.text, " ")).
		WithHint("quote a name with spaces")
}

// agrees reports whether the user answers a question with yes, as --yes does.
func (c *command) agrees(ctx context.Context, question string) (bool, error) {
	if c.opts.yes {
		return true, nil
	}
	if !c.InTerminal {
		return false, fault.New(fault.Usage, "confirmation needed, but there is no terminal").WithHint("use --yes to confirm: loki --yes ...")
	}
	answer, err := c.terminal().Ask(ctx, ask.Question{Kind: ask.Select, Text: question, Options: []string{"no", "yes"}, Consent: true})
	if errors.Is(err, ask.ErrUnavailable) {
		err = fault.Wrap(fault.Usage, err, "").WithHint("use --yes to confirm: loki --yes ...")
	}
	return answer == "yes", err
}

// renameSession gives the session of --rename-session another name.
func (c *command) renameSession(ctx context.Context) error {
	if len(c.opts.renameSession) > 1 {
		return fault.New(fault.Usage, "flag --rename-session was given before")
	}
	if err := c.withoutText("rename-session"); err != nil {
		return err
	}
	scope, err := c.sessionScope()
	if err != nil {
		return err
	}
	from, to := c.opts.renameSession[0][0], c.opts.renameSession[0][1]
	if err := c.app.Conversations().RenameSession(ctx, scope, from, to); err != nil {
		return err
	}
	return c.say("Session %s is called %s now.", from, to)
}
