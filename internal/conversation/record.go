package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Asked is a question as the user put it, for the record.
type Asked struct {
	User    chat.Message
	Text    string            // what was typed
	Sources []string          // what was attached
	Foreign []string          // what else has text that the user need not have written, such as standard input or a prompt of an MCP server
	Images  map[string]string // where the pictures in User came from, by their data: URLs

	Loaded []event.SkillLoaded // skills whose texts are in User, see [Conversation.LoadSkills]
}

// NewAsked returns what the user asked with a text and what is attached to it. Sources are where that came from.
func NewAsked(attached input.Attachments, text string, sources []string) Asked {
	q := Asked{User: attached.Message(text), Text: text, Sources: sources, Images: make(map[string]string, len(attached.Images))}
	for _, image := range attached.Images {
		q.Images[image.URL] = image.Name
	}
	for _, d := range attached.Documents {
		if d.Kind != input.File {
			q.Foreign = append(q.Foreign, d.Name)
		}
	}
	return q
}

// Blank reports whether there is nothing to send.
func (q Asked) Blank() bool {
	return len(q.User.Parts) == 0 || len(q.Images) == 0 && strings.TrimSpace(q.User.Text()) == ""
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
	return c.keep(ctx, session.Turn{Role: lead, User: put, Reply: a.Messages, Usage: a.Usage, DataURLs: hashURLs(q.Images)}, c.entry(q, a, c.role))
}

// entry returns a question with its answer for the file of messages.
func (c *Conversation) entry(q Asked, a Answer, r *role.Role) session.MessagesEntry {
	e := session.MessagesEntry{Input: q.Text, Sources: q.Sources, Reply: a.Messages}
	if c.agent == nil {
		e.RAG = c.Knowledge()
		if r != nil {
			e.Role = r.Name
		}
	}
	return e
}

// keepTurn keeps the answer of a turn.
func (c *Conversation) keepTurn(ctx context.Context, t *turn, a Answer) error {
	if c.kept {
		c.kept = false
		return nil
	}
	e := c.entry(Asked{Text: t.q.Text, Sources: t.q.Sources}, a, nil)
	if c.agent == nil {
		e.Role = t.q.Role
	}
	if t.q.Aside {
		if err := c.journal(ctx, e); err != nil || !c.logs() {
			return err
		}
		c.log(ctx, session.Settings{Settings: t.q.Settings, RoleName: t.q.Role}, session.Turn{Role: t.q.Lead, User: t.q.User, Reply: a.Messages, Usage: a.Usage, DataURLs: t.q.Images})
		return nil
	}
	return c.keep(ctx, session.Turn{
		ID: t.id(), Mode: t.q.Mode, Role: t.q.Lead, User: t.q.User, InPlaceOf: t.inPlaceOf(), Reply: a.Messages, Usage: a.Usage, DataURLs: t.q.Images,
	}, e)
}

// keepPart keeps the partial answer before an error. It reports whether the session has the
// question.
func (c *Conversation) keepPart(ctx context.Context, t *turn, interrupted bool, came Answer) bool {
	if c.session == nil || t.q.Aside || c.values.dryRun {
		return false
	}
	if t.q.Mode == session.Ask {
		if t.q.InPlaceOf != nil && textOf(came.Messages) == "" {
			interrupted = false // else nothing would take the place of an answer
		}
		return c.giveUp(ctx, interrupted, came)
	}
	if interrupted && textOf(came.Messages) != "" {
		err := c.session.Append(ctx, session.Turn{Mode: t.q.Mode, User: t.q.User, Reply: session.CutOff(came.Messages), Usage: came.Usage})
		if err != nil {
			c.warn(ctx, fmt.Errorf("session %s: %w", c.session.Name(), err))
		}
	}
	return true
}

// keep keeps what was asked and answered, in one of two forms, and remembers it as what was said
// last in the directory.
func (c *Conversation) keep(ctx context.Context, t session.Turn, e session.MessagesEntry) error {
	if err := c.write(ctx, t, e); err != nil {
		if !c.unnamed {
			return c.unkept(err)
		}
		c.notKept(ctx, err)
	}
	var logged session.ID
	if c.session == nil && c.agent == nil && c.logs() {
		var ok bool
		if logged, ok = c.log(ctx, c.inForce(), t); !ok {
			return nil
		}
	}
	c.note(ctx, &t, logged)
	return nil
}

// unkept returns the error that a question and its answer, which the user has seen, cannot be kept.
func (c *Conversation) unkept(err error) error {
	where := "the file of messages"
	if c.session != nil {
		where = "session " + c.session.Name()
	}
	wrapped := fault.Wrap(fault.CodeOf(err), err, "the question and its answer are not kept in %s", where)
	if fault.HintOf(err) != "" {
		return wrapped
	}
	return wrapped.WithHint("copy what you need of the answer, then make room or give access; until then --continue continues an earlier conversation")
}

func (c *Conversation) write(ctx context.Context, t session.Turn, e session.MessagesEntry) error {
	if c.values.dryRun {
		return nil
	}
	var err error
	switch d := c.draft; {
	case c.session != nil && d != nil:
		c.draft = nil
		err = d.Finish(ctx, t.Reply, t.Usage)
	case c.session != nil:
		err = c.session.Append(ctx, t)
	}
	if c.enteredSession() == nil {
		err = errors.Join(err, c.journal(ctx, e))
	}
	return err
}

// journal adds a turn to the file of messages.
func (c *Conversation) journal(ctx context.Context, e session.MessagesEntry) error {
	file := c.messagesFile()
	if file == nil || c.service.Unkept || c.values.dryRun {
		return nil
	}
	return file.Append(ctx, e)
}

// messagesFile returns what keeps turns outside of sessions, nil if they are not kept.
func (c *Conversation) messagesFile() *session.MessagesFile {
	switch {
	case !c.values.save:
		return nil
	case c.agent != nil:
		return c.agent.MessagesFile
	}
	return c.service.MessagesFile
}

// inPlaceOf returns the question that the turn's replaces, the zero value for none.
func (t *turn) inPlaceOf() chat.Message {
	if t.q.InPlaceOf == nil {
		return chat.Message{}
	}
	return *t.q.InPlaceOf
}

// begin has the session keep a question and the rounds of tool calls while it is answered.
// Where that cannot be done the question is asked nevertheless.
func (t *turn) begin(ctx context.Context) {
	c := t.c
	if c.session == nil || c.values.dryRun {
		return
	}
	warn := func(err error) {
		switch {
		case err != nil && c.unnamed:
			c.notKept(ctx, err)
		case err != nil:
			c.warn(ctx, fmt.Errorf("session %s keeps nothing of the question until it is answered: %w", c.session.Name(), err))
		}
	}
	var err error
	c.draft, err = c.session.Begin(ctx, session.Turn{ID: t.id(), Role: t.q.Lead, User: t.q.User, InPlaceOf: t.inPlaceOf(), DataURLs: t.q.Images})
	warn(err)
	t.req.OnRound = func(round []chat.Message) { warn(c.draft.Add(round)) }
}

// isInterrupted reports whether err says that the user stopped a question, or sees no more of its answer: who closes a terminal does both, and
// the failure to write to it may come before the signal.
func isInterrupted(err error) bool {
	_, unshown := errors.AsType[*event.UnshownError](err)
	return unshown || fault.CodeOf(err) == fault.Canceled
}

// giveUp ends the draft of a question that was not answered. What the user interrupted
// stays in the session with the partial answer, and so does what tools have done; a
// question that merely failed is going to be asked again. It reports whether the session has the
// question.
func (c *Conversation) giveUp(ctx context.Context, interrupted bool, came Answer) (kept bool) {
	d := c.draft
	c.draft = nil
	if d == nil {
		return false
	}
	end := d.Discard
	if kept = interrupted || d.Rounds(); kept {
		text := ""
		if n := len(came.Messages); n > 0 && came.Messages[n-1].Role == chat.Assistant {
			text = came.Messages[n-1].Text()
		}
		end = func(ctx context.Context) error { return d.Interrupt(ctx, text, came.Usage) }
	}
	if err := end(ctx); err != nil {
		c.warn(ctx, fmt.Errorf("session %s: %w", c.session.Name(), err))
	}
	c.note(ctx, nil, "")
	return kept
}

// warn emits a warning of what does not stop the work. It is shown once in a conversation.
func (c *Conversation) warn(ctx context.Context, err error) {
	_ = c.options.Events.Emit(ctx, event.Warning{Text: err.Error(), Once: true}) // the work continues if it cannot be shown
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
