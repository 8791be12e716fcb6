package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/todo"
	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/rag"
	"loki/internal/role"
	"loki/internal/session"
)

// Conversation is a talk with a model, and what is in force for it. It belongs to one
// goroutine.
type Conversation struct {
	options Options
	service *Service
	role    *role.Role
	session *session.Session
	release func()         // lets others into the session
	draft   *session.Draft // the question that was asked last, until it is recorded
	kept    bool           // it was recorded with its run
	passing bool           // the last question is not one that a conversation goes on from
	list    *todo.List     // of the model

	knowledge string    // name of the knowledge base that the user named; "" for none
	found     rag.Found // for the last question

	agent     *Agent            // nil for none
	variables map[string]string // of the agent; nil until they are known
	base      string            // its instructions as they are written, once the variables are known
	unwritten bool              // a script has yet to write them
}

// Session returns the session, nil if there is none.
func (c *Conversation) Session() *session.Session { return c.session }

// With returns the conversation with its events going to another scope.
func (c *Conversation) With(events event.Scope) *Conversation {
	other := *c
	other.options.Events = events
	return &other
}

// context returns ctx for work of the conversation: what only a context reaches, such as the
// store of sessions, emits its warnings to the conversation's scope.
func (c *Conversation) context(ctx context.Context) context.Context {
	return event.NewContext(ctx, c.options.Events)
}

// UseRole puts r in force. In a session that has messages already it is an error with code
// Usage, as their instructions are part of them.
func (c *Conversation) UseRole(r role.Role) error {
	if c.agent != nil {
		return fault.New(fault.Usage, "agent %s has instructions of its own, so it takes no role", c.agent.Name)
	}
	if c.session != nil {
		if !c.session.Empty() {
			return fault.New(fault.Usage, "session %s has messages, so it keeps the role it began with", c.session.Name()).
				WithHint("begin another session, or empty this one first: loki -s %s --empty-session ...", c.session.Name())
		}
		c.session.Set(func(s *session.Settings) {
			s.RoleName = r.Name
			s.Settings = r.Settings.Over(chat.Settings{Model: s.Model, Sampling: s.Sampling})
		})
	}
	c.role = &r
	return nil
}

// UseSession goes on with the session called name, or begins it; "" and "temp" mean a
// temporary one. Others in this process wait for it until Close.
func (c *Conversation) UseSession(ctx context.Context, name string) error {
	ctx = c.context(ctx)
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	s, err := c.open(ctx, store, name)
	if err != nil {
		return err
	}
	return c.enterSession(ctx, store, s)
}

// enterSession has the conversation go on in s.
func (c *Conversation) enterSession(ctx context.Context, store session.Store, s *session.Session) (err error) {
	c.session = s
	if c.service.Unkept {
		c.session.KeepNothing()
	}
	if c.release, err = c.session.Acquire(ctx); err != nil {
		return err
	}
	if c.options.EmptySession {
		if err := c.forget(ctx, store); err != nil {
			return err
		}
	}
	switch {
	case c.agent != nil:
		err = c.ready(ctx)
	case c.role != nil && !c.beganWith(*c.role):
		err = c.UseRole(*c.role)
	default:
		err = c.recallRole()
	}
	// What was asked for becomes the session's own along with the next turn.
	c.session.Sync(func(s *session.Settings) { s.Settings = c.options.Settings.Over(s.Settings) })
	return err
}

// open returns the session called name, which may be a new one.
func (c *Conversation) open(ctx context.Context, store session.Store, name string) (*session.Session, error) {
	initial := session.Settings{Settings: c.Settings(), SaveSession: c.service.SaveSession}
	if c.role != nil {
		initial.RoleName = c.role.Name
	}
	if name == "" || name == session.TempName {
		return store.Temp(c.scope(), initial), nil
	}
	if id, err := session.ParseID(name); err == nil {
		return store.Open(ctx, c.scope(), id)
	}
	alias, err := session.ParseAlias(name)
	if err != nil {
		// A session of an older version may have had a name that is not allowed any more.
		if old := oldAlias(ctx, store, c.scope(), name); old != "" {
			alias, err = old, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return store.OpenOrCreate(ctx, c.scope(), alias, func() (session.Settings, error) { return initial, nil })
}

// oldAlias returns the alias that the session of an older version called name has now, ""
// if there is no such session.
func oldAlias(ctx context.Context, store session.Store, scope session.Scope, name string) session.Alias {
	old, ok := store.(interface {
		OldAlias(ctx context.Context, scope session.Scope, name string) (session.Alias, error)
	})
	if !ok {
		return ""
	}
	alias, _ := old.OldAlias(ctx, scope, name)
	return alias
}

// forget takes the messages out of the session. In a dry run it goes on in a copy, which
// is not kept.
func (c *Conversation) forget(ctx context.Context, store session.Store) (err error) {
	if !c.service.DryRun {
		return c.session.Clear(ctx)
	}
	c.release()
	c.session = store.Temp(c.session.Scope(), c.session.Settings())
	c.release, err = c.session.Acquire(ctx)
	return err
}

// beganWith reports whether r is the role of the session already. All roles made of a text
// have the same name, so they are compared by their instructions.
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
	r, _, err := c.service.Roles().Load(name)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	c.role = &r
	return nil
}

// Prelude does what the setting called key says about how conversations begin: role:NAME,
// session:NAME, or SESSION:ROLE for a session and the role that it begins with.
func (c *Conversation) Prelude(ctx context.Context, key, text string) error {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		return fault.New(fault.Config, "%s: %q is neither role:NAME, session:NAME nor SESSION:ROLE", key, text)
	}
	var err error
	switch kind {
	case "role":
		err = c.useRole(ctx, name)
	case "session":
		err = c.UseSession(ctx, name)
	default:
		if err = c.UseSession(ctx, kind); err == nil && c.session.Empty() {
			err = c.useRole(ctx, name)
		}
	}
	if err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "%s %q", key, text)
	}
	return nil
}

// useRole puts the role called name in force, and warns of what is wrong with its file.
func (c *Conversation) useRole(ctx context.Context, name string) error {
	r, problems, err := c.service.Roles().Load(name)
	for _, p := range problems {
		if err := c.options.Events.Emit(ctx, event.Warning{Text: p.Text()}); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return c.UseRole(r)
}

// Settings returns what is in force: what was asked for with the command, else what the
// session says, else the agent or the role, else the configuration. Of what is below it, a session takes
// the model and the effort only: it began with the rest.
func (c *Conversation) Settings() chat.Settings {
	s := c.service.Settings
	switch {
	case c.agent != nil:
		s = withAgent(s, c.agent)
	case c.role != nil:
		s = withRole(s, *c.role)
	}
	if c.session != nil {
		s = c.session.Settings().Over(chat.Settings{Model: s.Model, Sampling: chat.Sampling{Effort: s.Effort}})
	}
	return c.options.Settings.Over(s)
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

// split returns what the role puts in front of the first question, and the question as
// the role puts it. Later questions are put as they are.
func (c *Conversation) split(user chat.Message) (roleMessages []chat.Message, put chat.Message) {
	if c.role == nil || c.session != nil && !c.session.Empty() {
		return nil, user
	}
	messages := c.role.Messages(user)
	return messages[:len(messages)-1], messages[len(messages)-1]
}

// LastReply returns the text of the last reply in the session, nil if there is none.
func (c *Conversation) LastReply() *string {
	for _, m := range slices.Backward(c.session.Messages()) {
		if text := m.Text(); m.Role == chat.Assistant && text != "" {
			return &text
		}
	}
	return nil
}

// Close leaves the session, which is saved if it is to be.
func (c *Conversation) Close(ctx context.Context) error {
	if c.session == nil {
		return nil
	}
	defer c.release()
	ctx = c.context(ctx)
	if c.service.DryRun || c.session.Verdict() != session.Write {
		return nil
	}
	if err := c.session.Save(ctx); err != nil {
		return fmt.Errorf("session %s: %w", c.session.Name(), err)
	}
	c.note(ctx, nil)
	return nil
}
