package conversation

import (
	"context"
	"fmt"

	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/session"
)

// Asked is a question as the user put it, for the record.
type Asked struct {
	User    chat.Message
	Text    string            // what was typed
	Sources []string          // what was attached
	Images  map[string]string // where the pictures in User came from, by their data: URLs
}

// Record keeps a question and its answer: in the session if there is one, else in the file
// of messages if the configuration says so. In a dry run nothing is kept. A question whose
// run was recorded has been kept with it.
func (c *Conversation) Record(ctx context.Context, q Asked, a Answer) error {
	if c.kept {
		c.kept = false
		return nil
	}
	ctx = c.context(ctx)
	lead, put := c.split(q.User)
	name := ""
	if c.role != nil {
		name = c.role.Name
	}
	return c.keep(ctx, session.Turn{Role: lead, User: put, Reply: a.Messages, Usage: a.Usage, DataURLs: hashURLs(q.Images)},
		session.MessagesEntry{Input: q.Text, Sources: q.Sources, Reply: a.Messages, Role: name})
}

// keep keeps what was asked and answered, in one of two forms, and remembers it as what was said
// last in the directory.
func (c *Conversation) keep(ctx context.Context, t session.Turn, e session.MessagesEntry) error {
	err := c.write(ctx, t, e)
	if err == nil {
		c.note(ctx, &t)
	}
	return err
}

func (c *Conversation) write(ctx context.Context, t session.Turn, e session.MessagesEntry) error {
	switch {
	case c.service.DryRun:
		return nil
	case c.session != nil && c.draft != nil:
		d := c.draft
		c.draft = nil
		return d.Finish(ctx, t.Reply, t.Usage)
	case c.session != nil:
		return c.session.Append(ctx, t)
	}
	file := c.messagesFile()
	if file == nil || c.service.Unkept {
		return nil
	}
	return file.Append(ctx, e)
}

// messagesFile returns what keeps turns outside of sessions, nil if they are not kept.
func (c *Conversation) messagesFile() *session.MessagesFile {
	if c.agent != nil {
		return c.agent.MessagesFile
	}
	return c.service.MessagesFile
}

// begin has the session keep a question and the rounds of tool calls while it is answered.
// Where that cannot be done the question is asked nevertheless.
func (t *turn) begin(ctx context.Context) {
	c := t.c
	if c.session == nil || c.service.DryRun {
		return
	}
	warn := func(err error) {
		if err != nil {
			c.warn(ctx, fmt.Errorf("session %s keeps nothing of the question until it is answered: %w", c.session.Name(), err))
		}
	}
	var err error
	c.draft, err = c.session.Begin(ctx, session.Turn{Role: t.q.Lead, User: t.q.User, DataURLs: t.q.Images})
	warn(err)
	t.req.OnRound = func(round []chat.Message) { warn(c.draft.Add(round)) }
}

// giveUp ends the draft of a question that was not answered. What the user interrupted
// stays in the session with what came of the answer, and so does what tools have done; a
// question that merely failed is going to be asked again.
func (c *Conversation) giveUp(ctx context.Context, interrupted bool, came Answer) {
	d := c.draft
	c.draft = nil
	if d == nil {
		return
	}
	end := d.Discard
	if interrupted || d.Rounds() {
		text := ""
		if n := len(came.Messages); n > 0 && came.Messages[n-1].Role == chat.Assistant {
			text = came.Messages[n-1].Text()
		}
		end = func(ctx context.Context) error { return d.Interrupt(ctx, text, came.Usage) }
	}
	if err := end(ctx); err != nil {
		c.warn(ctx, fmt.Errorf("session %s: %w", c.session.Name(), err))
	}
	c.note(ctx, nil)
}

// warn emits a warning of what does not stop the work. It is shown once in a conversation.
func (c *Conversation) warn(ctx context.Context, err error) {
	_ = c.options.Events.Emit(ctx, event.Warning{Text: err.Error(), Once: true}) // the work goes on if it cannot be shown
}

// hashURLs returns where pictures came from by the hashes of their data: URLs, as
// sessions keep it.
func hashURLs(images map[string]string) map[string]string {
	hashed := make(map[string]string, len(images))
	for url, source := range images {
		hashed[session.DataURLHash(url)] = source
	}
	return hashed
}
