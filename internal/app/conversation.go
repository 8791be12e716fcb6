package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/ask"
	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/role"
	"loki/internal/session"
)

// Conversation is a talk with a model, and what is in force for it: a model, a role, a
// session. It belongs to one goroutine.
type Conversation struct {
	app      *App
	asked    chat.Settings // with the command
	noStream bool
	yes      bool
	asker    ask.Asker
	events   event.Scope
	role     *role.Role
	session  *session.Session
	release  func()         // lets others into the session
	empty    bool           // a session that is entered forgets its messages
	draft    *session.Draft // the question that was asked last, until it is recorded
}

// ConversationOptions configure Converse. The zero value of a field is its default.
type ConversationOptions struct {
	Settings chat.Settings // over those of the session, the role and the configuration
	NoStream bool
	Emitter  event.Emitter // gets the events
	// EmptySession has a session that is entered forget its messages, in a dry run only
	// for the time being.
	EmptySession bool
	Asker        ask.Asker // asks whether tools may be used; nil if nobody can be asked
	Yes          bool      // whatever tools would ask is answered with yes
}

// Converse begins a conversation without role and session.
func (a *App) Converse(o ConversationOptions) *Conversation {
	return &Conversation{
		app: a, asked: o.Settings, noStream: o.NoStream || !a.Config.Stream,
		yes: o.Yes, asker: o.Asker, events: event.NewScope(a.used.Emitter(o.Emitter), event.Source{}, nil), empty: o.EmptySession,
	}
}

// UseRole puts r in force. In a session that has messages already it is an error of
// code Usage, as their instructions are part of them.
func (c *Conversation) UseRole(r role.Role) error {
	if c.session != nil {
		if !c.session.Empty() {
			return fault.New(fault.Usage, "session %s has messages, so it keeps the role it began with", c.session.Name()).
				WithHint("begin another session, or empty this one first: loki -s %s --empty-session ...", c.session.Name())
		}
		c.session.Set(func(s *session.Settings) { takeRole(s, r) })
	}
	c.role = &r
	return nil
}

// takeRole makes the settings of a session those of a role.
func takeRole(s *session.Settings, r role.Role) {
	s.RoleName = r.Name
	s.Settings = r.Settings.Over(chat.Settings{Model: s.Model, Sampling: s.Sampling})
}

// UseSession goes on with the session called name, or begins it; "" and "temp" mean a
// temporary one. Nobody else in this process takes part in it until Close.
func (c *Conversation) UseSession(ctx context.Context, name string) error {
	store, err := c.app.Sessions()
	if err != nil {
		return err
	}
	if name == "" || name == session.TempName {
		c.session = store.Temp("", c.sessionSettings())
	} else {
		alias, err := c.app.sessionAlias(store, name)
		if err != nil {
			return err
		}
		c.session, err = store.OpenOrCreate(ctx, "", alias, func() (session.Settings, error) { return c.sessionSettings(), nil })
		if err != nil {
			return err
		}
	}
	if c.release, err = c.session.Acquire(ctx); err != nil {
		return err
	}
	if c.empty {
		if err := c.forget(ctx); err != nil {
			return err
		}
	}
	if c.role != nil && !c.beganWith(*c.role) {
		err = c.UseRole(*c.role)
	} else {
		err = c.recallRole()
	}
	// What was asked for becomes the session's own along with the next turn.
	c.session.Sync(func(s *session.Settings) { s.Settings = c.asked.Over(s.Settings) })
	return err
}

// forget takes the messages out of the session. In a dry run it goes on in a copy, which
// is not kept.
func (c *Conversation) forget(ctx context.Context) error {
	if !c.app.dryRun {
		return c.session.Clear(ctx)
	}
	store, err := c.app.Sessions()
	if err != nil {
		return err
	}
	c.release()
	c.session = store.Temp(c.session.Scope(), c.session.Settings())
	c.release, err = c.session.Acquire(ctx)
	return err
}

// beganWith reports whether r is the role of the session already. All roles of the moment
// have the same name, so they are told by their instructions.
func (c *Conversation) beganWith(r role.Role) bool {
	if c.session.Settings().RoleName != r.Name {
		return false
	}
	if r.Name != role.Temporary {
		return true
	}
	own, there := r.Messages(chat.Message{Role: chat.User}), c.session.Messages()
	if len(there) == 0 || own[0].Role != chat.System || there[0].Role != chat.System {
		return false
	}
	rest, ok := strings.CutPrefix(there[0].Text(), own[0].Text())
	return ok && (rest == "" || strings.HasPrefix(rest, "\n\n")) // a recap stands behind them
}

// recallRole takes the role that the session began with as it is now. If it is gone the
// session goes on without.
func (c *Conversation) recallRole() error {
	name := c.session.Settings().RoleName
	if c.role != nil || name == "" || name == role.Temporary {
		return nil
	}
	r, _, err := c.app.Roles().Load(name)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	c.role = &r
	return nil
}

// sessionSettings are what a new session begins with.
func (c *Conversation) sessionSettings() session.Settings {
	s := session.Settings{Settings: c.Settings(), SaveSession: c.app.Config.SaveSession}
	if c.role != nil {
		s.RoleName = c.role.Name
	}
	return s
}

// Session returns the session, nil if there is none.
func (c *Conversation) Session() *session.Session { return c.session }

// Role returns the role, nil if there is none.
func (c *Conversation) Role() *role.Role { return c.role }

// Settings returns what is in force: what was asked for with the command, else what the
// session says, else the role, else the configuration. Of what is below it, a session takes
// the model and the effort only: it began with the rest.
func (c *Conversation) Settings() chat.Settings {
	cfg := c.app.Config
	s := chat.Settings{Model: cfg.Model, Sampling: cfg.Sampling, EnabledTools: cfg.EnabledTools, EnabledMCPServers: cfg.EnabledMCPServers}
	if c.role != nil {
		s = withRole(s, *c.role)
	}
	if c.session != nil {
		s = c.session.Settings().Over(chat.Settings{Model: s.Model, Sampling: chat.Sampling{Effort: s.Effort}})
	}
	return c.asked.Over(s)
}

// withRole returns the settings of r over s. A role says which tools there are, also when it
// names none, and one with a model of its own does not take the temperature of another.
func withRole(s chat.Settings, r role.Role) chat.Settings {
	s.EnabledTools, s.EnabledMCPServers = nil, nil
	if r.Settings.Model != "" {
		s.Temperature, s.TopP = nil, nil
	}
	return r.Settings.Over(s)
}

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
// has become too long it is compressed first. An answer that is not
// of the form that was asked for, not even after it was asked for once more, is an error
// of code Provider.
func (c *Conversation) Ask(ctx context.Context, q Question) (Answer, error) {
	e, err := c.app.Engine()
	if err != nil {
		return Answer{}, err
	}
	rc, req, done, err := c.request(ctx, q)
	defer done()
	if err != nil {
		return Answer{}, err
	}
	var own chat.Usage // without that of a compression
	reply, err := e.Frame(ctx, rc, "", func(ctx context.Context) (engine.Reply, error) {
		spent, err := c.prepare(ctx, q, &req)
		if err != nil {
			return engine.Reply{Usage: spent}, err
		}
		reply, err := c.send(ctx, e, rc, req, q)
		own = reply.Usage
		reply.Usage = own.Add(spent)
		return reply, err
	})
	answer := Answer{Text: reply.Text, Messages: reply.Messages, Model: reply.Model, Stop: reply.Stop, Usage: own}
	if err != nil {
		err = fault.Wrap(fault.CodeOf(err), err, "")
		c.giveUp(context.WithoutCancel(ctx), fault.CodeOf(err) == fault.Canceled, answer)
	}
	return answer, err
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
		c.app.warn(fmt.Errorf("session %s: %w", c.session.Name(), err))
	}
}

// send asks the model of rc.
func (c *Conversation) send(ctx context.Context, e *engine.Engine, rc *engine.RequestContext, req engine.Request, q Question) (engine.Reply, error) {
	if q.Form != nil && !c.app.dryRun {
		return q.Form.ask(ctx, e, rc, req)
	}
	reply, err := e.Run(ctx, rc, req)
	if err == nil && (q.Code || q.Command) && !c.app.dryRun {
		return takeCode(ctx, rc.Events, reply, q.Command)
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

// With returns the conversation with its events going to emitter.
func (c *Conversation) With(emitter event.Emitter) *Conversation {
	other := *c
	other.events = event.NewScope(c.app.used.Emitter(emitter), event.Source{}, nil)
	return &other
}

// begin has the session keep a question and the rounds of tool calls while it is answered.
// Where that cannot be done the question is asked nevertheless.
func (c *Conversation) begin(ctx context.Context, t session.Turn, req *engine.Request) {
	if c.session == nil || c.app.dryRun {
		return
	}
	warn := func(err error) {
		if err != nil {
			c.app.warn(fmt.Errorf("session %s keeps nothing of the question until it is answered: %w", c.session.Name(), err))
		}
	}
	var err error
	c.draft, err = c.session.Begin(ctx, t)
	warn(err)
	req.OnRound = func(round []chat.Message) { warn(c.draft.Add(round)) }
}

// request returns what a question is asked with: its model, its tools and how they are
// used. [Conversation.prepare] adds the messages.
func (c *Conversation) request(ctx context.Context, q Question) (rc *engine.RequestContext, req engine.Request, done func(), err error) {
	s := c.Settings()
	if q.Role != nil {
		s = withRole(s, *q.Role)
	}
	rc = &engine.RequestContext{Model: s.Model, Sampling: s.Sampling, NoStream: c.noStream, Events: c.events}
	tools, done, err := c.tools(ctx, s, cmp.Or(q.Role, c.role))
	whole := q.Whole || q.Code || q.Command || q.Form != nil
	req = engine.Request{Tools: tools, Whole: whole}
	if q.Form != nil {
		req.Form = q.Form.schema
	}
	return rc, req, done, err
}

// prepare puts the messages into a request, for which the session is compressed if it has
// become too long. It returns what that used.
func (c *Conversation) prepare(ctx context.Context, q Question, req *engine.Request) (used chat.Usage, err error) {
	if q.Role != nil {
		req.Messages = q.Role.Messages(q.User)
	} else {
		if used, err = c.compress(ctx, q.User); err != nil {
			return used, err
		}
		roleMessages, user := c.split(q.User)
		req.Messages = c.inSession(session.Input{Role: roleMessages, User: user})
		c.begin(ctx, session.Turn{Role: roleMessages, User: user, DataURLs: hashURLs(q.Images)}, req)
	}
	if q.Form != nil {
		last := len(req.Messages) - 1
		req.Messages = append(req.Messages[:last:last], q.Form.hint(req.Messages[last]))
	}
	return used, nil
}

func (c *Conversation) inSession(in session.Input) []chat.Message {
	if c.session == nil {
		return session.Request(nil, in)
	}
	return c.session.Request(in)
}

// split returns what the role puts in front of the first question, and the question as
// the role puts it. Later questions are put as they are.
func (c *Conversation) split(user chat.Message) (roleMessages []chat.Message, put chat.Message) {
	if c.role == nil || c.session != nil && !c.session.Empty() {
		return nil, user
	}
	messages := c.role.Messages(user)
	return messages[:len(messages)-1], messages[len(messages)-1]
}

// Asked is a question as the user put it, for the record.
type Asked struct {
	User    chat.Message
	Text    string            // what was typed
	Sources []string          // what was attached
	Images  map[string]string // where the pictures in User came from, by their data: URLs
}

// Record keeps a question and its answer: in the session if there is one, else in the
// journal of messages if the configuration says so. In a dry run nothing is kept.
func (c *Conversation) Record(ctx context.Context, q Asked, a Answer) error {
	switch {
	case c.app.dryRun:
		return nil
	case c.session != nil && c.draft != nil:
		d := c.draft
		c.draft = nil
		return d.Finish(ctx, a.Messages, a.Usage)
	case c.session != nil:
		roleMessages, put := c.split(q.User)
		return c.session.Append(ctx, session.Turn{Role: roleMessages, User: put, Reply: a.Messages, Usage: a.Usage, DataURLs: hashURLs(q.Images)})
	case c.app.Config.Save:
		e := session.MessagesEntry{Input: q.Text, Sources: q.Sources, Reply: a.Messages}
		if c.role != nil {
			e.Role = c.role.Name
		}
		return session.MessagesFile{Path: c.app.Paths.MessagesFile, Hide: c.app.Hide}.Append(ctx, e)
	}
	return nil
}

// Close leaves the session, which is saved if it is to be.
func (c *Conversation) Close(ctx context.Context) error {
	if c.session == nil {
		return nil
	}
	defer c.release()
	if c.app.dryRun || c.session.Verdict() != session.Write {
		return nil
	}
	if err := c.session.Save(ctx); err != nil {
		return fmt.Errorf("session %s: %w", c.session.Name(), err)
	}
	return nil
}
