package conversation

import (
	"context"
	"slices"

	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/role"
	"loki/internal/run"
	"loki/internal/session"
)

// Question is what is asked in a conversation.
type Question struct {
	User   chat.Message
	Images map[string]string // where the pictures in User came from, by their data: URLs
	// Role answers this question instead of the conversation's; the session then has
	// nothing to do with it.
	Role *role.Role
	// Code takes only the code of the answer: its first fenced block, or all of an answer
	// without any.
	Code bool
	// Command is Code for the user's shell. An answer in prose is an error.
	Command bool
	// Whole makes an answer that was cut off at the output limit an error. It goes without
	// saying for Code, Command and Form.
	Whole bool
	// Form is what the answer has to be, in JSON; nil for any text.
	Form *Form
}

// Answer is what came of a [Question].
type Answer struct {
	Text     string         // what was asked for: the reply, its code, or compact JSON
	Messages []chat.Message // what was added to the conversation
	Model    string         // id
	Stop     chat.StopReason
	Usage    chat.Usage // without that of a compression in front of it
}

// Ask sends a question and returns the answer. It records nothing, but if the session
// has become too long it is compressed first. An answer that is not of the form that was
// asked for, not even after it was asked for once more, is an error with code Provider.
func (c *Conversation) Ask(ctx context.Context, q Question) (Answer, error) {
	t, done, err := c.newTurn(ctx, q)
	defer done()
	if err != nil {
		return Answer{}, err
	}
	_, err = run.Run(ctx, run.Options{Work: t, Events: c.options.Events})
	answer := t.answer()
	if err != nil {
		err = fault.Wrap(fault.CodeOf(err), err, "")
		c.giveUp(context.WithoutCancel(ctx), fault.CodeOf(err) == fault.Canceled, answer)
	}
	return answer, err
}

// turn is a question while it is answered. It is the work of a run.
type turn struct {
	c     *Conversation
	q     Question
	model string // id
	rc    engine.RequestContext
	req   engine.Request
	reply engine.Reply
	spent chat.Usage // of a compression, not part of that of the reply
}

// newTurn returns a question with its model, its tools and how they are used. Do adds the
// messages.
func (c *Conversation) newTurn(ctx context.Context, q Question) (t *turn, done func(), err error) {
	s, r := c.Settings(), c.role
	if q.Role != nil {
		s, r = withRole(s, *q.Role), q.Role
	}
	t = &turn{c: c, q: q, rc: engine.RequestContext{Model: s.Model, Sampling: s.Sampling, NoStream: c.options.NoStream, Events: c.options.Events}}
	t.req.Whole = q.Whole || q.Code || q.Command || q.Form != nil
	if q.Form != nil {
		t.req.Form = q.Form.schema
	}
	done = func() {}
	if c.service.Tools != nil {
		t.req.Tools, done, err = c.service.Tools(ctx, Wanted{
			Settings: s, Caller: c.options.Caller,
			Usual: r != nil && r.Bundled() && equal(s.EnabledTools, r.Settings.EnabledTools),
		})
		if err != nil {
			return t, done, err
		}
	}
	m, err := c.service.Engine.Model(&t.rc, "")
	t.model = m.ID
	return t, done, err
}

// equal reports whether two texts that may be absent are the same.
func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Started implements [run.Work].
func (t *turn) Started() event.Started { return event.Started{Model: t.model} }

// Do implements [run.Work].
func (t *turn) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	t.rc.Events, t.rc.Steps = f.Events, f.Steps()
	err := t.prepare(ctx)
	if err == nil {
		t.reply, err = t.send(ctx)
	}
	return run.Outcome{Output: t.reply.Text, Usage: t.reply.Usage.Add(t.spent), Stop: t.reply.Stop}, err
}

// prepare puts the messages into the request, for which the session is compressed if it has
// become too long.
func (t *turn) prepare(ctx context.Context) error {
	c, q := t.c, t.q
	if q.Role != nil {
		t.req.Messages = q.Role.Messages(q.User)
	} else {
		if err := t.compress(ctx); err != nil {
			return err
		}
		roleMessages, user := c.split(q.User)
		in := session.Input{Role: roleMessages, User: user}
		if c.session == nil {
			t.req.Messages = session.Request(nil, in)
		} else {
			t.req.Messages = c.session.Request(in)
		}
		t.begin(ctx, session.Turn{Role: roleMessages, User: user, DataURLs: hashURLs(q.Images)})
	}
	if q.Form != nil {
		last := len(t.req.Messages) - 1
		t.req.Messages = append(t.req.Messages[:last:last], q.Form.hint(t.req.Messages[last]))
	}
	return nil
}

// send asks the model, and takes what is wanted out of the reply.
func (t *turn) send(ctx context.Context) (engine.Reply, error) {
	e, dry := t.c.service.Engine, t.c.service.DryRun
	if t.q.Form != nil && !dry {
		return t.q.Form.ask(ctx, e, &t.rc, t.req)
	}
	reply, err := e.Run(ctx, &t.rc, t.req)
	if err == nil && (t.q.Code || t.q.Command) && !dry {
		return takeCode(ctx, t.rc.Events, reply, t.q.Command)
	}
	return reply, err
}

// replaceText makes text the reply, and its last message.
func replaceText(r engine.Reply, text string) engine.Reply {
	r.Text = text
	if n := len(r.Messages); n > 0 {
		r.Messages = append(slices.Clone(r.Messages[:n-1]), chat.Text(chat.Assistant, text))
	}
	return r
}

func (t *turn) answer() Answer {
	r := t.reply
	return Answer{Text: r.Text, Messages: r.Messages, Model: r.Model, Stop: r.Stop, Usage: r.Usage}
}
