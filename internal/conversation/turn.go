package conversation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/harness"
	"loki/internal/agent/role"
	"loki/internal/agent/team/todo"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/plan"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Question is what is asked in a conversation.
type Question struct {
	Asked
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
	// Form is the form that the answer must have, in JSON; nil for any text. An answer with calls is not looked at.
	Form *Form

	// History is what was said before the question, where that is not in a session. Its system messages
	// follow those of the role or the agent, and the role puts the first question of the history.
	// User may then be the zero value. In a session it can only be the results of the calls that the last turn
	// left to the caller, see Answer.Calls; calls without a result were not run.
	History []chat.Message
	// Tools are the ones that the caller runs. The answer ends at a reply that calls one of them.
	Tools []chat.Tool
	// Settings are over those in force, MaxOutputTokens bounds each reply, and AutoContinue says whether the
	// model continues by itself. Zero values leave it to the conversation. They are of this question only.
	Settings        chat.Settings
	MaxOutputTokens int
	AutoContinue    *bool
	// Constraints bound the replies in other ways.
	chat.Constraints

	inPlaceOf *chat.Message // the question of the session's last turn, which this one replaces; nil for none
}

// Answer is the answer to a [Question].
type Answer struct {
	Text     string         // what was asked for: the reply, its code, or compact JSON
	Messages []chat.Message // what was added to the conversation
	Model    string         // id
	Stop     chat.StopReason
	Usage    chat.Usage // without that of a compression in front of it

	// Calls are those of Question.Tools that the caller has to run; nil for none. They are part of the last
	// message of the model.
	Calls []chat.ToolCall
}

// Ask sends a question and returns the answer. It keeps neither in the session, see
// [Conversation.Record], but if the session has become too long it is compressed first. An answer
// that does not have the requested form, even after a second request, is an error with code
// Provider.
func (c *Conversation) Ask(ctx context.Context, q Question) (Answer, error) {
	ctx = c.context(ctx)
	if err := c.ready(ctx); err != nil {
		return Answer{}, err
	}
	t := c.newTurn(q)
	answer, _, err := c.ask(ctx, t)
	if err != nil {
		c.giveUp(context.WithoutCancel(ctx), isInterrupted(err), answer)
	}
	return answer, err
}

// ask runs a turn and returns the answer, as far as it came also on error, and what all of
// the turn used.
func (c *Conversation) ask(ctx context.Context, t *turn) (Answer, chat.Usage, error) {
	c.passing = t.q.Command || t.q.Aside
	if err := t.settle(ctx); err != nil {
		return Answer{}, chat.Usage{}, err
	}
	done, err := t.equip(ctx)
	defer done()
	if err != nil {
		return Answer{}, chat.Usage{}, err
	}
	job, err := t.job()
	if err != nil {
		return Answer{}, chat.Usage{}, err
	}
	out, err := c.runs().Start(ctx, job)
	c.cause = err
	return t.answer(), out.Usage, err
}

// turn is a question while it is answered. It is the work of a run.
type turn struct {
	c     *Conversation
	q     question
	form  *Form  // nil for any text
	model string // id
	calls bool   // the model calls tools
	kit   Kit
	rc    engine.RequestContext
	req   engine.Request
	reply engine.Reply
	spent chat.Usage // of a compression and of children, not part of that of the reply
	found chat.Usage // of the search in the knowledge base

	loader  *skill.Loader // loads skills; nil for none
	keeping keeping

	planning planning
	foreign  harness.Asked // of a program of others, what answers it

	// Of the prompt of a child.
	child bool
	past  []chat.Message // that the agent has in its session

	// Of a question that resumes after an interruption.
	resumed    *run.Continuation // nil for a new one
	unanswered int               // messages at the end of the session that came of it before
	asked      time.Time         // when the run was begun
	kept       session.Trace     // of an answer that the session has
}

// id returns the id of the turn in its session, "" for none.
func (t *turn) id() string {
	if t.q.Session == nil {
		return ""
	}
	return t.q.Session.Turn
}

// newTurn returns a question with all that it takes to ask it.
func (c *Conversation) newTurn(q Question) *turn {
	s, r := c.Settings(), c.role
	put := c.split
	if q.Role != nil {
		s, r = withRole(s, *q.Role), q.Role
		put = func(first chat.Message) ([]chat.Message, chat.Message) {
			messages := r.Messages(first)
			return messages[:len(messages)-1], messages[len(messages)-1]
		}
	}
	s = q.Settings.Over(s)
	lead, history, user := leadIn(q, put)
	t := &turn{c: c, form: q.Form, q: question{
		Settings: s, NoStream: c.values.noStream, MaxOutputTokens: cmp.Or(q.MaxOutputTokens, c.outputLimit(s.Model)), Switches: c.values.switches,
		Usual: r != nil && r.Bundled() && equal(s.EnabledTools, r.Settings.EnabledTools),
		Lead:  lead, History: history, User: user, Images: hashURLs(q.Images), Tools: q.Tools, Constraints: q.Constraints,
		Code: q.Code, Command: q.Command, Whole: q.Whole || q.Code || q.Command || q.Form != nil,
		InPlaceOf: q.inPlaceOf, Aside: q.Role != nil, Text: q.Text, Sources: q.Sources, Foreign: q.Foreign, Loaded: q.Loaded, Knowledge: c.Knowledge(),
	}}
	if r != nil {
		t.q.Role = r.Name
	}
	t.planning.now = c.modeUnder(s)
	if q.Role == nil {
		t.q.Todo = c.todo()
		if q.AutoContinue != nil {
			t.q.Todo.Enabled, t.q.Todo.Max = *q.AutoContinue, cmp.Or(t.q.Todo.Max, todo.DefaultMax)
		}
		t.q.Query = q.User.Text()
	}
	return t
}

// equip finds the model and the tools of a question. done releases what they hold; it must also be
// called after an error.
func (t *turn) equip(ctx context.Context) (done func(), err error) {
	c, q := t.c, t.q
	t.rc = engine.RequestContext{
		Model: q.Settings.Model, Sampling: q.Settings.Sampling, MaxOutputTokens: q.MaxOutputTokens, NoStream: q.NoStream, Events: c.options.Events, Hooks: c.hooks(),
	}
	t.req.Whole, t.req.Client, t.req.Constraints = q.Whole, q.Tools, q.Constraints
	if c.agent != nil && !q.Aside {
		t.req.MaxTurns = agentTurns
	}
	if t.form != nil {
		t.req.Form = t.form.schema
	}
	done = func() {}
	if !q.Aside {
		if err := c.takePlace(ctx); err != nil {
			return done, err
		}
	}
	if c.service.Tools != nil {
		w := Wanted{Settings: q.Settings, Usual: q.Usual, Caller: c.options.Caller, Switches: q.Switches, Recorded: t.resumed != nil, Mode: t.mode}
		if !q.Aside {
			w.Agent, w.Variables, w.Knowledge = c.agent, c.variables, q.Knowledge
		}
		if t.kit, done, err = c.service.Tools(ctx, w); err == nil {
			t.kit.Tools, err = c.jobs.Equip(t.kit.Tools, c.sessionID())
		}
	}
	if err != nil {
		return done, err
	}
	if t.kit.Foreign == nil {
		var m engine.Model
		m, err = c.engine().Model(ctx, &t.rc, "")
		t.model, t.calls = m.ID, m.SupportsTools
	}
	t.q.Todo.Enabled = t.q.Todo.Enabled && t.kit.Calling && (t.calls || c.agent != nil && t.kit.Foreign == nil)
	if err == nil {
		err = t.findInstructions(ctx)
	}
	if err == nil {
		t.recall(ctx)
	}
	if err != nil || c.agent == nil || q.Aside || t.resumed != nil {
		return done, err
	}
	member, err := t.member(ctx, event.Scope{}, nil) // for what it declares
	if err != nil {
		return done, err
	}
	if c.options.Member == nil {
		defer member.Close()
	}
	all, err := t.kit.Tools.With(t.own(ctx, nil, member)...)
	t.q.Lead = t.instructions(all.Declarations())
	return done, err
}

// equal reports whether two texts that may be absent are the same.
func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Started implements [run.Work].
func (t *turn) Started() event.Started {
	s := event.Started{Model: t.model}
	if t.kit.Foreign != nil {
		s.Harness = t.kit.Foreign.Name
	}
	return s
}

// Do implements [run.Work].
func (t *turn) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	t.rc.Events, t.rc.Steps = f.Events, f.Steps()
	if f.Budget != nil {
		t.rc.Budget = f.Budget
	}
	ctx = event.NewContext(ctx, f.Events)
	ctx, cancel := f.Budget.Within(ctx, 0)
	defer cancel()
	member, err := t.join(ctx, f)
	if err == nil {
		err = t.c.tellPlace(ctx, f.Events)
	}
	if err == nil {
		err = t.tellLoaded(ctx)
	}
	if err == nil {
		err = t.write(ctx)
	}
	if err == nil {
		err = t.prepare(ctx)
	}
	if err == nil {
		t.reply, err = t.send(ctx)
	}
	t.countProposals(ctx)
	if fault.CodeOf(err) == fault.Suspended {
		t.c.endJobs(ctx, "the run was suspended")
	}
	t.reply.Usage = t.reply.Usage.Add(t.found)
	if member != nil {
		t.spent = t.spent.Add(member.Close())
	}
	if err != nil && t.c.agent != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // why the turn stops says more than what a part of it made of that
	}
	proposed, err := t.endPlanning(ctx, err)
	if t.rc.Steps.Recording() {
		err = t.conclude(ctx, err)
	}
	t.c.cause = err
	output := cmp.Or(proposed, t.reply.Text)
	if t.child {
		output = withoutThinking(t.reply.Messages)
	}
	return run.Outcome{Output: output, Usage: t.reply.Usage.Add(t.spent), Stop: t.reply.Stop}, err
}

// withoutThinking returns the texts of a reply's messages without what the model thought.
func withoutThinking(reply []chat.Message) string {
	var texts []string
	for _, m := range reply {
		if text := strings.TrimSpace(chat.WithoutThinking(m.Text())); m.Role == chat.Assistant && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// prepare puts the messages into the request, for which the session is compressed if it has
// become too long.
func (t *turn) prepare(ctx context.Context) error {
	c, q := t.c, t.q
	live := t.past
	if len(q.History) > 0 {
		live = withHistory(q.Lead, q.History)
	}
	if c.session != nil && !q.Aside {
		if err := t.compress(ctx); err != nil {
			return err
		}
		if live = c.session.Messages(); q.InPlaceOf != nil && t.resumed == nil {
			live = c.session.Earlier()
		}
	}
	user, err := t.retrieve(ctx)
	if err != nil {
		return err
	}
	t.req.Messages = session.Request(live[:len(live)-t.unanswered], session.Input{Mode: q.Mode, Role: q.Lead, User: user, Partial: q.Partial})
	if q.Mode != session.Ask && t.kit.Knowledge != nil {
		replaceUser(t.req.Messages, user)
	}
	if q.Workspace != nil {
		t.req.Messages = instruct(t.req.Messages, q.Workspace.Text)
	}
	if q.Skills != nil && q.Skills.Text != "" {
		t.req.Messages = instruct(t.req.Messages, q.Skills.Text)
	}
	if t.proposes() {
		t.req.Messages = instruct(t.req.Messages, plan.Instructions)
	}
	if t.loader != nil {
		t.loader.Has(t.req.Messages)
	}
	if q.Todo.Enabled && q.Todo.Inject && c.agent == nil { // whose own instructions have it
		t.req.Messages = instruct(t.req.Messages, todo.Instructions)
	}
	if !q.Aside && t.resumed == nil && q.Mode == session.Ask {
		t.begin(ctx)
	}
	if err := t.remind(ctx); err != nil {
		return err
	}
	if t.form != nil {
		last := len(t.req.Messages) - 1
		t.req.Messages = append(t.req.Messages[:last:last], t.form.hint(t.req.Messages[last]))
	}
	return nil
}

// replaceUser makes user, with what was found for it, the last question.
func replaceUser(messages []chat.Message, user chat.Message) {
	for i, m := range slices.Backward(messages) {
		if m.Question() {
			messages[i] = user
			return
		}
	}
}

// send asks the model, and takes what is wanted out of the reply.
func (t *turn) send(ctx context.Context) (engine.Reply, error) {
	reply, err := t.run(ctx)
	switch {
	case err != nil || t.c.values.dryRun || len(reply.Calls) > 0:
		return reply, err
	case t.form != nil:
		return t.form.fit(ctx, t.c.engine(), &t.rc, t.req, reply)
	case t.q.Code || t.q.Command:
		return takeCode(ctx, t.rc.Events, reply, t.q.Command)
	}
	return reply, nil
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
	return Answer{Text: r.Text, Messages: r.Messages, Model: r.Model, Stop: r.Stop, Usage: r.Usage, Calls: r.Calls}
}
