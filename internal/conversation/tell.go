package conversation

import (
	"context"
	"fmt"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// Tell is one line of a REPL: it asks a question and keeps it with the answer. Then a temporary
// session that is saved by itself gets its title, and a session that has become too long is
// compressed. The partial text of an answer that the user interrupts is kept, marked as interrupted, and
// returned with the error.
func (c *Conversation) Tell(ctx context.Context, q Question) (Answer, error) {
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	l := &last{question: q, role: c.role, agent: c.agentName(), continuous: true}
	if q.Role != nil {
		l.role = q.Role
	}
	c.last = l
	if err := c.remember(ctx, q); err != nil {
		return Answer{}, err
	}
	return c.finish(ctx, l, session.Ask)
}

// finish asks the question of l in one of the modes, keeps what comes of it, and does what is due
// after a turn.
func (c *Conversation) finish(ctx context.Context, l *last, mode session.Mode) (Answer, error) {
	a, err := c.put(ctx, l, mode)
	if err != nil {
		return a, err
	}
	if l.question.Role != nil || c.session == nil {
		return a, nil
	}
	return a, c.tidy(ctx, a)
}

// put asks the question of l in one of the modes, and keeps what comes of it.
func (c *Conversation) put(ctx context.Context, l *last, mode session.Mode) (Answer, error) {
	if c.agent != nil && c.agent.Job != nil && l.question.Role == nil {
		return c.runGraph(ctx, l)
	}
	if err := c.ready(ctx); err != nil {
		return Answer{}, err
	}
	t := c.turnOf(l, mode)
	a, used, err := c.ask(ctx, t)
	before := *l
	l.used, c.spent = used, c.spent.Add(used)
	l.take(a.Messages, mode)
	ctx = context.WithoutCancel(ctx) // what was answered is paid for
	if err != nil {
		interrupted := isInterrupted(err)
		if c.keepPart(ctx, t, interrupted, a) {
			l.session = c.session
		}
		if len(before.reply) > 0 && !(interrupted && textOf(a.Messages) != "") { // the reply that was there stays
			l.reply, l.new = before.reply, before.new
		}
		return a, err
	}
	if err := c.keepTurn(ctx, t, a); err != nil {
		return a, err
	}
	if !t.q.Aside && !c.values.dryRun {
		l.session = c.session
	}
	return a, nil
}

// turnOf returns the question of l as it is asked now: of its role with its settings of today, if that is
// in force, and else as it was.
func (c *Conversation) turnOf(l *last, mode session.Mode) *turn {
	now := c.role
	if c.session == nil && c.agent == nil && l.agent == "" && l.question.Role == nil && (now == nil || l.role == nil || now.Name != l.role.Name) {
		c.role = l.role
	}
	t := c.newTurn(l.question)
	c.role = now
	t.q.Mode, t.q.Todo.Count = mode, l.counted
	if mode == session.Continue {
		t.q.Partial = l.text()
	}
	return t
}

// tidy is done after a turn in a session: a title, if it needs one, and a compression if it has become
// too long, after which the model continues its todo list if that still has open items. What
// fails is a warning.
func (c *Conversation) tidy(ctx context.Context, a Answer) error {
	c.title(ctx)
	if c.values.dryRun || ctx.Err() != nil || !c.session.NeedsCompression(c.threshold()) {
		return ctx.Err()
	}
	_, used, err := c.compact(ctx, c.options.Events, steps.Steps{}, c.todoRecap(c.todo()))
	c.last.used, c.spent = c.last.used.Add(used), c.spent.Add(used)
	if err != nil || ctx.Err() != nil {
		return err
	}
	c.last.end()
	return c.goOnAfterRecap(ctx, a)
}

// goOnAfterRecap lets the model continue its todo list, whose open items are in the recap, as far
// as it may continue for one question.
func (c *Conversation) goOnAfterRecap(ctx context.Context, a Answer) error {
	s, count := c.todo(), continuations(a.Messages)
	if !s.Enabled || c.values.switches.NoTools || c.list.Open() == 0 || count >= s.Max {
		return nil
	}
	body := event.AutoContinue{Count: count + 1, Max: s.Max, Open: c.list.Open(), Compressed: true}
	if err := c.options.Events.Emit(ctx, body); err != nil {
		return err
	}
	used := c.last.used
	c.last = &last{question: Question{Asked: Asked{User: s.Ask(c.list)}}, role: c.role, agent: c.agentName(), continuous: true, counted: count + 1}
	_, err := c.put(ctx, c.last, session.Ask)
	c.last.used = c.last.used.Add(used)
	return err
}

// title gives the session a title if it needs one. What fails is a warning.
func (c *Conversation) title(ctx context.Context) {
	if err := c.name(ctx); err != nil {
		c.warn(ctx, fmt.Errorf("the session has no title yet: %w", err))
	}
}

// titleRole is the role that makes a title of a question and its answer.
const titleRole = "create-title"

// name gives the session a title if it needs one, see [session.Session.NeedsName].
func (c *Conversation) name(ctx context.Context) error {
	if c.session == nil || !c.session.NeedsName() || c.values.dryRun {
		return nil
	}
	r, _, err := c.service.Roles().Load(titleRole)
	if err != nil {
		return err
	}
	s := withRole(chat.Settings{Model: c.Settings().Model}, r)
	var used chat.Usage
	err = c.session.AutoName(ctx, func(ctx context.Context, text string) (string, chat.Usage, error) {
		rc := engine.RequestContext{Model: s.Model, Sampling: s.Sampling, NoStream: true, Events: event.NewScope(event.Discard, event.Source{}, nil), Hooks: c.hooks()}
		reply, err := c.engine().Run(ctx, &rc, engine.Request{Messages: r.Messages(chat.Text(chat.User, text)), Whole: true})
		used = reply.Usage
		return reply.Text, reply.Usage, err
	})
	c.spent = c.spent.Add(used)
	if c.last != nil {
		c.last.used = c.last.used.Add(used)
	}
	if err != nil || c.session.Title() == "" {
		return err
	}
	return c.options.Events.Emit(ctx, event.SessionNamed{Title: c.session.Title(), Usage: used})
}

// Continue lets the model continue its last answer, which stopped early. The new text becomes
// part of the answer in the session; without one it is kept by itself.
func (c *Conversation) Continue(ctx context.Context) (Answer, error) {
	l := c.last
	switch {
	case l == nil || !l.continuous || l.text() == "" || l.agent != c.agentName():
		return Answer{}, fault.New(fault.Usage, "there is no answer to continue")
	case c.agent != nil && c.agent.Job != nil:
		return Answer{}, fault.New(fault.Usage, "agent %s is a graph, whose runs cannot be continued with a text", c.agent.Name).
			WithHint("run it again: .regenerate")
	case l.question.Role == nil && l.session != c.session:
		return Answer{}, fault.New(fault.Usage, "the last answer is not part of session %s", c.session.Name())
	}
	return c.again(ctx, l, session.Continue)
}

// Regenerate has the model answer the last question again. The answer replaces the one that the
// session has, if it has one.
func (c *Conversation) Regenerate(ctx context.Context) (Answer, error) {
	l := c.last
	if l == nil || !l.continuous {
		return Answer{}, fault.New(fault.Usage, "there is no question to answer again")
	}
	mode := session.Regenerate
	if l.session == nil || l.session != c.session {
		mode = session.Ask // the session does not have it
	}
	return c.again(ctx, l, mode)
}

// again asks the last question again, in one of the modes.
func (c *Conversation) again(ctx context.Context, l *last, mode session.Mode) (Answer, error) {
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	if c.values.dryRun && l.session != nil { // the session has the turn as it was
		dry := *l
		l = &dry
	}
	return c.finish(ctx, l, mode)
}

// Undo takes the last turn out of the session and returns what was asked. The turn before is the last question then.
func (c *Conversation) Undo(ctx context.Context) (Asked, error) {
	if c.withGraph() {
		return Asked{}, c.NoSession()
	}
	if c.session == nil {
		return Asked{}, fault.New(fault.Usage, "there is no question to take back")
	}
	if err := c.canChange(); err != nil {
		return Asked{}, err
	}
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return Asked{}, err
	}
	defer release()
	turn, err := c.session.Undo(ctx)
	if len(turn) > 0 && err != nil && c.unnamed {
		c.notKept(ctx, err)
		err = nil
	}
	if err != nil {
		return Asked{}, err
	}
	asked := c.lastQuestion(turn)
	if l := c.last; l != nil && l.session == c.session {
		l.session = nil
	}
	c.last.end()
	c.recall()
	return asked, nil
}

// lastQuestion returns the question of the last turn of the session, as the user put it if that is known.
func (c *Conversation) lastQuestion(turn []chat.Message) Asked {
	if l := c.last; l != nil && l.session == c.session && l.counted == 0 {
		return l.question.Asked
	}
	return Asked{User: turn[0], Text: turn[0].Text()}
}

// Rewrite asks text in place of the last question, with what was attached to that. In a session
// the old turn stays unless the new question is answered, or interrupted when some text of the answer has
// come. Outside of sessions, and if the session does not have the last question, the new one is one more.
func (c *Conversation) Rewrite(ctx context.Context, text string) (Answer, error) {
	var q Question
	if c.last != nil {
		q = c.last.question
	}
	if c.session == nil || c.last != nil && c.last.session != c.session {
		q.Asked = q.rewritten(text)
		return c.Tell(ctx, q)
	}
	turn, err := c.session.LastTurn()
	if err != nil {
		return Answer{}, err
	}
	old := c.last
	q.Asked = c.lastQuestion(turn)
	q.Asked, q.inPlaceOf = q.rewritten(text), &turn[0]
	a, err := c.Tell(ctx, q)
	c.last.question.inPlaceOf = nil
	if err != nil && c.last.session == nil && old != nil {
		c.last = old
	}
	return a, err
}

// rewritten returns the question with another text, and what was attached to it.
func (a Asked) rewritten(text string) Asked {
	user := chat.Text(chat.User, text)
	for _, p := range a.User.Parts {
		if p.Type != chat.TextPart {
			user.Parts = append(user.Parts, p)
		}
	}
	a.User, a.Text = user, text
	return a
}

// ClearTodo empties the todo list of the model. It reports false if the list is empty already. Where models
// have no todo list it is an error with code Usage.
func (c *Conversation) ClearTodo() (bool, error) {
	if !c.todo().Enabled || c.values.switches.NoTools {
		return false, fault.New(fault.Usage, "there is no todo list: auto_continue is off").WithHint("turn it on: .set auto_continue true")
	}
	if len(c.list.Items()) == 0 {
		return false, nil
	}
	c.list.Clear()
	if c.session != nil {
		c.keepTodo()
	}
	return true, nil
}

// Compress replaces all turns of the session but the last two by a recap.
func (c *Conversation) Compress(ctx context.Context) (session.Compressed, error) {
	if err := c.canChange(); err != nil {
		return session.Compressed{}, err
	}
	if c.session.UserMessages() == 0 {
		return session.Compressed{}, fault.New(fault.Usage, "session %s has no messages to compress", c.session.Name())
	}
	ctx = c.context(ctx)
	release, err := c.acquire(ctx)
	if err != nil {
		return session.Compressed{}, err
	}
	defer release()
	done, used, err := c.recap(ctx, steps.Steps{}, c.todoRecap(c.todo()))
	c.spent = c.spent.Add(used)
	if err == nil {
		c.last.end()
	}
	return done, err
}
