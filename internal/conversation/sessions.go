package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"loki/internal/agent/role"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// UseSession continues the session called name, or begins it; "" and "temp" mean a
// temporary one. Others in this process wait for it until Close or, if the conversation is
// interactive, during turns. Where a session or a graph agent is in force it is an error with code
// Usage.
func (c *Conversation) UseSession(ctx context.Context, name string) error {
	if c.stays() {
		return fault.New(fault.Usage, "the conversation is already in session %s", c.session.Name()).WithHint("leave it first: .exit session")
	}
	if c.withGraph() {
		return c.NoSession()
	}
	ctx = c.context(ctx)
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	s, err := c.open(ctx, store, name)
	if err == nil {
		err = c.admit(ctx, s, name)
	}
	if err == nil {
		err = c.setAside(ctx)
	}
	if err != nil {
		return err
	}
	return c.goOnIn(ctx, store, s)
}

// CreateSession begins a session with what is in force, and continues in it. It is stored at once, under a name
// unless that is "". A name that is taken is a [session.ErrAliasInUse].
func (c *Conversation) CreateSession(ctx context.Context, name string) (err error) {
	if c.session != nil {
		return fault.New(fault.Usage, "the conversation is already in session %s", c.session.Name()).WithHint("leave it first: .exit session")
	}
	ctx = c.context(ctx)
	var alias session.Alias
	if name != "" {
		if alias, err = c.service.newName(name); err != nil {
			return err
		}
	}
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	initial := session.Settings{Settings: c.Settings(), Knowledge: c.knowledge}
	if c.role != nil {
		initial.RoleName = c.role.Name
	}
	if c.agent != nil {
		if err := c.ready(ctx); err != nil {
			return err
		}
	}
	s, err := store.Create(ctx, c.Scope(), alias, initial)
	if err != nil {
		return err
	}
	if owner := c.options.Owner; owner != nil {
		_, err = store.Claim(ctx, s.Scope(), s.ID(), *owner)
	}
	if err == nil {
		err = c.goOnIn(ctx, store, s)
	}
	if err == nil {
		err = c.session.Save(ctx)
	}
	if err != nil {
		err = errors.Join(err, store.Delete(context.WithoutCancel(ctx), s.Scope(), s.ID()))
	}
	return err
}

// goOnIn puts s in force, with the MCP servers that it asks for.
func (c *Conversation) goOnIn(ctx context.Context, store session.Store, s *session.Session) (err error) {
	c.outside = c.role
	if err = c.enterSession(ctx, store, s); err == nil {
		err = c.rescope(ctx)
	}
	if err == nil {
		err = c.sessionStarts(ctx, s.Name())
	}
	if err != nil {
		c.leaveSession()
	}
	return err
}

// enterSession puts s in force.
func (c *Conversation) enterSession(ctx context.Context, store session.Store, s *session.Session) (err error) {
	c.session = s
	if c.service.Unkept {
		s.KeepNothing()
	}
	if c.options.isolated {
		s.Hold()
	}
	if err = c.hold(ctx); err != nil {
		return err
	}
	s.Attend(c.attended())
	if c.options.EmptySession {
		if err := c.forget(ctx, store); err != nil {
			return err
		}
	}
	switch {
	case c.agent != nil:
		c.variables, c.base = nil, ""
		err = c.ready(ctx)
	case c.role != nil && c.beganWith(*c.role):
	case c.role != nil && !c.options.Interactive:
		err = c.UseRole(ctx, *c.role)
	default:
		c.role = nil
		err = c.recallRole()
	}
	// What was asked for becomes the session's own along with the next turn.
	c.session.Sync(func(s *session.Settings) { s.Settings = c.options.Settings.Over(s.Settings) })
	c.recall()
	c.recallTodo()
	if c.options.Interactive && c.release != nil {
		c.release()
		c.release = nil
	}
	return err
}

// attended reports whether the user is asked whether to save a session.
func (c *Conversation) attended() bool { return c.options.Interactive && c.options.Asker != nil }

// acquire has the conversation alone in its session until release is called, with what other
// processes have added to it.
func (c *Conversation) acquire(ctx context.Context) (release func(), err error) {
	if c.session == nil || c.release != nil {
		return func() {}, nil
	}
	release, err = c.session.Acquire(c.context(ctx))
	if errors.Is(err, session.ErrNotFound) && c.unnamed {
		if err = c.replace(ctx); err == nil {
			release, err = c.session.Acquire(c.context(ctx))
		}
	}
	return release, err
}

// hold has the conversation alone in its session until it leaves it. What is changed there is changed for
// the owner.
func (c *Conversation) hold(ctx context.Context) (err error) {
	s := c.session
	release, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	s.ActFor(c.options.Owner)
	c.release = sync.OnceFunc(func() {
		s.ActFor(nil)
		release()
	})
	return nil
}

// admit returns the error of entering a session that the conversation may not see. It is that of one that
// does not exist, or, if a name was given, of one that cannot be begun.
func (c *Conversation) admit(ctx context.Context, s *session.Session, name string) error {
	s.OwnNew(c.options.Owner)
	owner, err := s.Owner(ctx)
	if err != nil || c.options.View.Includes(owner) {
		return err
	}
	if s.Alias() != "" && session.Alias(name) == s.Alias() {
		return session.AliasInUse(s.Alias())
	}
	return session.NotFound(session.Alias(name))
}

// leaveSession lets go of the session, without saving it.
func (c *Conversation) leaveSession() {
	c.leave()
	if c.options.Interactive && !c.unnamed {
		c.role = c.outside
	}
	c.session, c.unnamed, c.release, c.draft = nil, false, nil, nil
	c.forgetWork()
	if c.agent != nil {
		c.variables, c.base, c.unwritten = nil, "", false
	}
}

// open returns the session called name, which may be a new one.
func (c *Conversation) open(ctx context.Context, store session.Store, name string) (*session.Session, error) {
	initial := session.Settings{Settings: c.Settings(), SaveSession: c.values.saveSession}
	if c.role != nil {
		initial.RoleName = c.role.Name
	}
	if name == "" || name == session.TempName {
		s := store.Temp(c.Scope(), initial)
		if c.logs() && c.agent == nil && c.values.saveSession == nil && !c.options.Interactive && !c.options.isolated {
			s.KeepUnnamed()
		}
		return s, nil
	}
	if id, err := session.ParseID(name); err == nil {
		return store.Open(ctx, c.Scope(), id)
	}
	alias, err := c.service.newName(name)
	if err != nil {
		// A session of an older version may have had a name that is not allowed any more.
		if old := oldAlias(ctx, store, c.Scope(), name); old != "" {
			alias, err = old, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return store.OpenOrCreate(ctx, c.Scope(), alias, func() (session.Settings, error) { return initial, nil })
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

// forget takes the messages out of the session. In a dry run it continues in a copy, which is not
// kept.
func (c *Conversation) forget(ctx context.Context, store session.Store) (err error) {
	if !c.values.dryRun {
		return c.session.Clear(ctx)
	}
	c.leave()
	c.session = store.Temp(c.session.Scope(), c.session.Settings())
	return c.hold(ctx)
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
	return ok && (rest == "" || strings.HasPrefix(rest, "\n\n")) // a recap follows them
}

// recallRole takes the role that the session began with as it is now. If it is gone the
// session continues without.
func (c *Conversation) recallRole() error {
	name := c.session.Settings().RoleName
	if name == "" || name == role.Temporary {
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

// ExitSession leaves the session, which is saved if its settings say so or the user does, who is
// asked if a session of an interactive conversation has changed. If the user interrupts the question
// the session continues, and the error has code Canceled. Without a session it does nothing.
func (c *Conversation) ExitSession(ctx context.Context) error {
	if c.session == nil {
		return nil
	}
	if err := c.saveOnExit(ctx); err != nil {
		return err
	}
	c.leaveSession()
	c.endJobs(ctx, "the session ended")
	if err := c.sessionEnded(ctx); err != nil {
		return err
	}
	c.last.end()
	if c.agent != nil {
		if err := c.ready(ctx); err != nil {
			return err
		}
	}
	return c.rescopeOut(ctx)
}

// saveOnExit saves the session as its settings, or the user, say, or takes back what the user does not want
// to keep.
func (c *Conversation) saveOnExit(ctx context.Context) error {
	ctx = c.context(ctx)
	if c.values.dryRun {
		return nil
	}
	s := c.session
	keep := s.Verdict() != session.Discard
	if s.Verdict() == session.Query {
		var err error
		if keep, err = c.askToSave(ctx); err != nil {
			return err
		}
	}
	switch {
	case !keep && c.options.isolated: // nothing was written
		return nil
	case !keep:
		return s.TakeBack(ctx)
	case c.unnamed:
		if err := s.Save(ctx); err != nil {
			c.notKept(ctx, err)
		}
		return nil
	}
	return c.keepSession(ctx)
}

// keepSession saves the session, with a title if it needs one.
func (c *Conversation) keepSession(ctx context.Context) error {
	c.title(ctx)
	if err := c.session.Save(ctx); err != nil {
		return fmt.Errorf("session %s: %w", c.session.Name(), err)
	}
	c.note(ctx, nil, "")
	return nil
}

// askToSave asks the user whether the session is saved, and gives a temporary one the name that the
// user wants. Where the user cannot be asked, what is written stays.
func (c *Conversation) askToSave(ctx context.Context) (bool, error) {
	const yes, no = "yes", "no"
	s := c.session
	answer, err := c.options.Asker.Ask(ctx, ask.Question{
		Kind: ask.Select, Text: fmt.Sprintf("Save session %s?", s.Name()), Options: []string{yes, no}, Default: no, HasDefault: true,
	})
	if err != nil || answer != yes {
		return keptUnasked(err)
	}
	if !s.Temporary() {
		return true, nil
	}
	for {
		name, err := c.options.Asker.Ask(ctx, ask.Question{Kind: ask.Line, Text: "Name of the session", Default: s.Title(), HasDefault: s.Title() != "", Validate: c.nameFault})
		if err != nil {
			return keptUnasked(err)
		}
		err = c.rename(ctx, name)
		if !errors.Is(err, session.ErrAliasInUse) {
			return err == nil, err
		}
		c.warn(ctx, err)
	}
}

// keptUnasked returns that a session is kept if the user could not be asked, and else no, with the error.
func keptUnasked(err error) (bool, error) {
	if errors.Is(err, ask.ErrUnavailable) {
		return true, nil
	}
	return false, err
}

// nameFault returns what is wrong with the name of a session.
func (c *Conversation) nameFault(name string) error {
	_, err := c.service.newName(strings.TrimSpace(name))
	return err
}

// rename gives the session a name, which no other session may have.
func (c *Conversation) rename(ctx context.Context, name string) error {
	alias, err := c.service.newName(strings.TrimSpace(name))
	if err != nil || alias == c.session.Alias() {
		return err
	}
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	switch _, err := store.Resolve(ctx, c.Scope(), alias); {
	case err == nil:
		return session.AliasInUse(alias)
	case !errors.Is(err, session.ErrNotFound):
		return err
	}
	return c.session.Rename(ctx, alias)
}

// SaveSession saves the session, under name unless that is "". A temporary session without a name is
// called by the time, and by its title if it has one. It returns the name under which it is saved.
func (c *Conversation) SaveSession(ctx context.Context, name string) (string, error) {
	switch {
	case c.session == nil:
		return "", c.NoSession()
	case c.unnamed && name == "":
		return "", fault.New(fault.Usage, "this conversation has no name yet").WithHint("give it one: .save session NAME")
	}
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if name != "" {
		if err := c.rename(ctx, name); err != nil {
			return "", err
		}
	}
	c.title(ctx)
	if err := c.session.Save(ctx); err != nil {
		return "", fmt.Errorf("session %s: %w", c.session.Name(), err)
	}
	c.markEntered()
	return string(c.session.Alias()), nil
}

// EmptySession takes all messages out of the session. Its settings stay; the instructions and
// the variables of an agent are those of today.
func (c *Conversation) EmptySession(ctx context.Context) error {
	if err := c.canChange(); err != nil {
		return err
	}
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := c.session.Clear(ctx); err != nil {
		return err
	}
	c.forgetWork()
	c.last.end()
	if c.agent != nil {
		c.variables, c.base = nil, ""
		return c.ready(ctx)
	}
	return nil
}

// Fork continues in a copy of the session called name; "" makes a temporary one. The session
// itself is saved, unless its settings say that it is not.
func (c *Conversation) Fork(ctx context.Context, name string) error {
	if c.session == nil {
		return c.NoSession()
	}
	ctx = c.context(ctx)
	var alias session.Alias
	var err error
	if name != "" && name != session.TempName {
		if alias, err = c.service.newName(name); err != nil {
			return err
		}
	}
	store, err := c.service.Sessions()
	if err != nil {
		return err
	}
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	copied, err := store.Fork(ctx, c.session, alias)
	if err == nil && c.session.Verdict() != session.Discard && !c.values.dryRun {
		if err = c.keepSession(ctx); err != nil && c.unnamed {
			c.notKept(ctx, err)
			err = nil
		}
	}
	release()
	if err != nil {
		return err
	}
	held := c.release != nil
	c.leave()
	c.session = copied
	c.markEntered()
	if c.last != nil && c.last.session != nil {
		c.last.session = copied
	}
	if held {
		err = c.hold(ctx)
	}
	return err
}

// ReloadSession reads the settings of the session again, after they were edited in its file.
func (c *Conversation) ReloadSession(ctx context.Context) error {
	if c.session == nil {
		return c.NoSession()
	}
	name := c.session.Alias()
	err := c.session.Reload(c.context(ctx))
	if err == nil && c.session.Alias() == "" && name != "" {
		err = c.session.Rename(ctx, name) // which the user has deleted from the file
	}
	if err != nil {
		return err
	}
	c.last.end()
	return c.rescope(ctx)
}

// CanCarry reports whether the last question and its answer can become the first turn of the
// session: it has none, and they are of the same agent, or of none. In a dry run they cannot.
func (c *Conversation) CanCarry() bool {
	l := c.last
	return !c.values.dryRun && c.session != nil && c.session.Empty() && l != nil && l.continuous && l.session == nil && l.text() != "" && l.agent == c.agentName()
}

// Carry makes the last question and its answer the first turn of the session, which may get a title
// from them.
func (c *Conversation) Carry(ctx context.Context) error {
	if !c.CanCarry() {
		return fault.New(fault.Usage, "there is no question with an answer that the session could begin with")
	}
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	l := c.last
	lead, put := c.split(l.question.User)
	turn := session.Turn{Role: lead, User: put, Reply: l.reply, DataURLs: hashURLs(l.question.Images)}
	if err := c.session.Append(ctx, turn); err != nil {
		return err
	}
	l.session = c.session
	return c.name(ctx)
}

// canChange returns the error of a verb that takes turns out of the session, if there is none or if nothing
// is kept: in a dry run.
func (c *Conversation) canChange() error {
	switch {
	case c.session == nil:
		return c.NoSession()
	case c.values.dryRun:
		return fault.New(fault.Usage, "session %s is not changed in a dry run", c.session.Name()).WithHint(".set dry_run false")
	}
	return nil
}

// withGraph reports whether a graph agent is in force.
func (c *Conversation) withGraph() bool { return c.agent != nil && c.agent.Job != nil }

// NoSession returns the error of a verb that needs a session.
func (c *Conversation) NoSession() error {
	if c.withGraph() {
		return fault.New(fault.Usage, "agent %s is a graph, which has no sessions", c.agent.Name).
			WithHint("its runs are on record: loki --runs -a %s; .exit agent leaves it", c.agent.Name)
	}
	return fault.New(fault.Usage, "there is no session").WithHint("begin one: .session NAME")
}
