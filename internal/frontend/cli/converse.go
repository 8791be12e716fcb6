package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"loki/internal/agent/role"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
)

// talks reports whether the command is to talk with the user: at a terminal, and without a text.
func (c *command) talks() bool {
	o := &c.opts
	if c.faces.REPL == nil || !c.InTerminal || !c.OutTerminal || len(o.text) > 0 || o.onlyBuilds() {
		return false
	}
	for _, name := range []string{"file", "skill", "code", "schema", "record", "replay", "output", "answers"} {
		if o.flags.Changed(name) {
			return false
		}
	}
	return slices.Contains([]string{"", "agent", "rag"}, o.action.flag)
}

// begin begins the conversation that the options ask for, to talk with the user.
func (c *command) begin(ctx context.Context, caller conversation.Caller) (*conversation.Conversation, error) {
	caller.Yes = c.opts.yes
	conv, err := c.converseFor(ctx, conversation.Options{Caller: caller, Interactive: true}, "repl_prelude", c.app.Config.REPLPrelude)
	if err != nil {
		return nil, err
	}
	c.talked = conv
	return conv, conv.Prepare(ctx)
}

// continueTalk has the next talk with the user continue the last one.
func (c *command) continueTalk() {
	if c.talked == nil || c.talked.Recent() == nil {
		return // nothing was said, or it is not stored
	}
	c.before = c.talked.Recent()
	c.opts.agent, c.opts.session, c.opts.hasSession, c.opts.role, c.opts.prompt = c.before.Agent, "", false, "", ""
}

// converse begins the conversation that the options ask for, for one question.
func (c *command) converse(ctx context.Context, face *face) (*conversation.Conversation, error) {
	asker, err := c.withAnswers(ctx, c.asker(face, false))
	if err != nil {
		return nil, err
	}
	prelude := c.app.Config.CmdPrelude
	if c.opts.execute {
		prelude = nil
	}
	caller := conversation.Caller{Events: c.app.Events(face.emitter), Asker: asker, Yes: c.opts.yes}
	return c.converseFor(ctx, conversation.Options{Caller: caller}, "cmd_prelude", prelude)
}

// converseFor begins a conversation, with the prelude that the setting called key says if the
// options of the command do not say how it begins.
func (c *command) converseFor(ctx context.Context, o conversation.Options, key string, prelude *string) (*conversation.Conversation, error) {
	o.Settings, o.MaxOutputTokens, o.NoStream, o.EmptySession = c.opts.settings(), c.opts.sampling.maxOutput, c.opts.noStream, c.opts.emptySession
	o.Rules = c.opts.doc.Rules
	if c.opts.sampling.uninstructed || c.opts.execute || c.opts.code {
		o.Workspace = new(false)
	}
	if c.opts.execute || c.opts.code {
		o.Skills = new(skill.None)
	}
	if c.opts.sampling.unremembered || c.opts.execute || c.opts.code {
		o.Memory = chat.MemoryOff
	}
	o.Writes, o.AcceptPlan = c.opts.sampling.mode == chat.ModeWrite, c.opts.sampling.acceptPlan
	conv := c.app.Conversations().Begin(o)
	recent, err := c.recent()
	if err != nil {
		return conv, err
	}
	var r *role.Role
	switch {
	case c.opts.agent != "" && o.Interactive && recent == nil:
		if err := conv.EnterAgent(ctx, c.opts.agent, c.opts.session, c.agentVariables()); err != nil {
			return conv, err
		}
		return conv, c.prepareSession(ctx, conv)
	case c.opts.agent != "":
		err = c.useAgent(ctx, conv, o.Asker)
	default:
		if r, err = c.role(); err == nil && r != nil {
			err = conv.UseRole(ctx, *r)
		}
	}
	if err == nil && recent != nil {
		err = conv.GoOn(ctx, *recent)
	}
	if err == nil && c.opts.hasSession {
		err = conv.UseSession(ctx, c.opts.session)
	}
	if err == nil && c.opts.knowledge.base != "" && c.opts.agent == "" {
		err = conv.UseKnowledge(c.opts.knowledge.base)
	}
	named := c.opts.agent != "" || r != nil || c.opts.hasSession || recent != nil || c.opts.knowledge.base != ""
	if err == nil && !named && prelude != nil && *prelude != "" {
		err = conv.Prelude(ctx, key, *prelude)
	}
	if err == nil {
		err = c.prepareSession(ctx, conv)
	}
	return conv, err
}

// settings are those of a chat that the options set.
func (o *options) settings() chat.Settings {
	s := chat.Settings{Model: o.model, Sampling: o.sampling.Sampling, Mode: o.sampling.mode}
	if s.Mode == chat.ModeWrite { // which is no setting, but consent
		s.Mode = chat.ModeAsk
	}
	return s
}

// role returns the role that the options name, nil for none.
func (c *command) role() (*role.Role, error) {
	r, warnings, err := c.roleIn(c.app.Roles())
	c.warnProblems(warnings)
	return r, err
}

// roleIn returns the role that the options name, as it is in a library.
func (c *command) roleIn(roles role.Library) (*role.Role, []*yamldoc.Problem, error) {
	if c.opts.prompt != "" {
		r, warnings, err := roles.FromText(c.opts.prompt)
		return &r, warnings, err
	}
	name := c.opts.role
	switch {
	case name != "":
	case c.opts.execute:
		name = "shell"
	case c.opts.code:
		name = "code"
	default:
		return nil, nil, nil
	}
	r, warnings, err := roles.Load(name)
	return &r, warnings, err
}

// prepareSession does what --save-session says. It and --empty-session need a session.
func (c *command) prepareSession(ctx context.Context, conv *conversation.Conversation) error {
	s := conv.Session()
	if near := conv.LikelyName(ctx); near != "" {
		c.note(fmt.Sprintf("session %s is new; did you mean %s?", s.Name(), near))
	}
	switch {
	case s == nil && c.opts.emptySession:
		return noSession("empty-session")
	case s == nil && c.opts.saveSession:
		return noSession("save-session")
	case c.opts.saveSession:
		s.ForceSave()
	}
	return nil
}

func noSession(flag string) error {
	return fault.New(fault.Usage, "there is no session for --%s", flag).WithHint("name one with -s NAME")
}

// answer sends the text to the model and prints the reply.
func (c *command) answer(ctx context.Context, face *face) error {
	form, err := c.form(ctx)
	if err != nil {
		return err
	}
	return c.talkAbout(ctx, face, func(conv *conversation.Conversation, asked conversation.Asked) error {
		if err := conv.LoadSkills(ctx, c.opts.sampling.skills, &asked); err != nil {
			return err
		}
		a, err := conv.Ask(ctx, conversation.Question{Asked: asked, Code: c.opts.extracts(c.OutTerminal), Form: form, Whole: c.opts.code})
		if err != nil {
			return err
		}
		return conv.Record(context.WithoutCancel(ctx), asked, a)
	})
}

// form returns what --schema asks for, nil without it.
func (c *command) form(ctx context.Context) (*conversation.Form, error) {
	if c.opts.schema == "" {
		return nil, nil
	}
	return conversation.LoadForm(ctx, c.opts.schema)
}

// talkAbout begins the conversation that the options ask for, and has talk do the rest with what the user asks.
func (c *command) talkAbout(ctx context.Context, face *face, talk func(*conversation.Conversation, conversation.Asked) error) (err error) {
	asked, attached, err := c.question(ctx, face, c.In)
	if err != nil {
		return err
	}
	conv, err := c.converse(ctx, face)
	if err != nil {
		return err
	}
	defer closeTalk(ctx, conv.Close, &err)
	if attached, err = c.narrow(ctx, face, conv, attached, asked.Text); err != nil {
		return err
	}
	asked.User = attached.Message(asked.Text)
	return talk(conv, asked)
}

// closeTalk ends a conversation. What was answered is kept, also if the user does not wait any longer. Its error counts unless there is one.
func closeTalk(ctx context.Context, end func(context.Context) error, err *error) {
	if closeErr := end(context.WithoutCancel(ctx)); *err == nil {
		*err = closeErr
	}
}

// question returns what the user asks, and what is attached to it.
func (c *command) question(ctx context.Context, face *face, stdin io.Reader) (q conversation.Asked, attached input.Attachments, err error) {
	if len(c.opts.text) == 0 && len(c.opts.files) == 0 && len(c.opts.sampling.skills) == 0 && c.InTerminal {
		return q, attached, c.noInput()
	}
	attached, text, err := c.attachments(ctx, face, stdin)
	if err != nil {
		return q, attached, err
	}
	var sources []string
	for _, source := range c.opts.files {
		if source != dash {
			source = c.app.Loader().Absolute(source)
		}
		sources = append(sources, source)
	}
	if q = conversation.NewAsked(attached, text, sources); q.Blank() && len(c.opts.sampling.skills) == 0 {
		return q, attached, c.noInput()
	}
	if text != input.Text(c.opts.text, "") || slices.Contains(c.opts.files, dash) {
		q.Foreign = append(q.Foreign, "standard input")
	}
	return q, attached, nil
}

// narrow returns what is attached as the model can take it.
func (c *command) narrow(ctx context.Context, face *face, conv *conversation.Conversation, attached input.Attachments, text string) (input.Attachments, error) {
	if len(attached.Documents) > 0 && !c.opts.quiet {
		defer face.screen.Spin("Loading files")()
	}
	return c.app.Knowledge().Narrow(ctx, c.app.Events(face.emitter), conv.Settings().Model, attached, text)
}

// extracts reports whether only the code in the answer is wanted: for a program that
// reads it.
func (o *options) extracts(outTerminal bool) bool {
	return o.code && !outTerminal && o.output == outputText
}

// anyTerminal asks at the terminal if there is one.
func (c *command) anyTerminal() ask.Asker {
	if c.InTerminal || c.ErrTerminal {
		return c.terminal()
	}
	return ask.Unavailable{}
}

// terminal asks at the terminal, which no screen uses.
func (c *command) terminal() *ask.Terminal {
	if c.tty == nil {
		c.tty = ask.NewTerminal(ask.TerminalOptions{Getenv: c.getenv})
	}
	return c.tty
}
