package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// Asked is a question to a program, and what answers what the program asks meanwhile.
type Asked struct {
	Lead    string         // instructions of the agent; empty for none
	Earlier []chat.Message // what was said before, for a session of the program that begins now
	User    chat.Message
	Session Session // of the program, in which the conversation continues; the zero value for none

	// Form is what the last message must be of, nil for any text. The program is asked once to correct it.
	Form *schema.Schema

	// Judge judges calls that the program makes itself, see [Program.JudgedTools]. Work has the tools that serve it, which are asked about as calls of models are,
	// and Allowed the same ones for calls to which the user has consented.
	Judge, Work, Allowed *tool.Box
	// Tools has the tools that the agent brings, which the program gets as an MCP server; nil for none.
	Tools *tool.Box

	// Said returns what the user has said since the program was asked, as that of an [engine.Request] does; nil for a user who says nothing.
	Said func(ctx context.Context, st steps.Steps, turn int, last bool) ([]chat.Message, error)

	Asker     ask.Asker
	From      ask.Question // origin of the questions
	Uncertain tool.Policy  // about work that was cut off in a session that is gone; "" leaves it to the setting

	Dry bool // the answer is what would be asked
}

// Answer is the answer of a program.
type Answer struct {
	engine.Reply
	Session Session
}

// Session is a session that a program keeps.
type Session struct {
	ID   string  `json:"id"`
	Cost float64 `json:"cost,omitempty"` // what it has cost so far, in US dollars
	Mode string  `json:"mode,omitempty"` // to which it returns after plan mode; empty if it is not in it
}

// outcome is an answer on record.
type outcome struct {
	Texts   []string        `json:"texts"`          // of its messages, and of what the user said meanwhile
	Said    []int           `json:"said,omitempty"` // which of them the user said
	Stop    chat.StopReason `json:"stop"`
	Session Session         `json:"session,omitzero"`
	Total   chat.Usage      `json:"total"` // of all attempts
	Files   []File          `json:"files,omitempty"`
}

// Steps of a turn: the one of the turn itself, and the beginning of the keys of all others.
const (
	turnKey = "foreign"
	// Within begins the keys of steps that are a part of a turn.
	Within = turnKey + "/"
)

// Answer asks the program. The answer is a step of the record in rc, and the messages, the calls of tools and the cost are events there.
func (p *Program) Answer(ctx context.Context, rc *engine.RequestContext, a Asked) (Answer, error) {
	if a.Dry {
		return p.dry(ctx, rc, a)
	}
	step := steps.Step{Kind: steps.Model, Key: turnKey, Name: p.Name, Effect: true, Request: func() any { return a.record(p) }}
	made := false
	out, err := steps.Do(ctx, rc.Steps, step, func(ctx context.Context) (outcome, error) {
		made = true
		return p.work(ctx, rc, a)
	})
	if err == nil && !made {
		if rc.Budget != nil {
			rc.Budget.Spend(out.Total)
		}
		err = restore(p.Dir, out.Files)
	}
	reply := engine.Reply{Model: p.Name, Stop: out.Stop, Usage: out.Total}
	var texts []string
	for i, t := range out.Texts {
		m := chat.Text(chat.Assistant, t)
		if m.Steer = slices.Contains(out.Said, i); m.Steer {
			m.Role = chat.User
		} else {
			texts = append(texts, t)
		}
		reply.Messages = append(reply.Messages, m)
	}
	reply.Text = strings.Join(texts, "\n")
	return Answer{Reply: reply, Session: out.Session}, err
}

// record is the question as records have it.
func (a *Asked) record(p *Program) any {
	return struct {
		Program string       `json:"program"`
		Lead    string       `json:"lead,omitempty"`
		User    chat.Message `json:"user"`
	}{p.Name, a.Lead, a.User}
}

// dry answers with the prompt.
func (p *Program) dry(ctx context.Context, rc *engine.RequestContext, a Asked) (Answer, error) {
	shown := fmt.Sprintf("%s would get:\n\n%s", quoteWords(p.Command), strings.TrimSpace(a.Lead+"\n\n"+a.User.Text()))
	err := rc.Events.Emit(ctx, event.Delta{Text: shown})
	if err == nil {
		err = rc.Events.Emit(ctx, event.Reply{Model: p.Name, Text: shown, Stop: chat.StopEnd})
	}
	return Answer{Reply: engine.Reply{Text: shown, Messages: []chat.Message{chat.Text(chat.Assistant, shown)}, Model: p.Name, Stop: chat.StopEnd}}, err
}

// attempts returns how many attempts there were, the last one, and whether it had sent its prompt.
func attempts(ctx context.Context, st steps.Steps) (n int, last Session, sent bool, err error) {
	for {
		a, found, err := steps.ReadNote[Session](ctx, st.At(fmt.Sprint(n+1)), "begun")
		if err != nil || !found {
			return n, last, sent, err
		}
		n, last = n+1, a
		if _, sent, err = steps.ReadNote[bool](ctx, st.At(fmt.Sprint(n)), "sent"); err != nil {
			return n, last, sent, err
		}
	}
}

// work asks the program, from its start to its end.
func (p *Program) work(ctx context.Context, rc *engine.RequestContext, a Asked) (out outcome, err error) {
	if err := p.CheckInstalled(); err != nil {
		return out, err
	}
	st := rc.Steps.At(turnKey)
	n, last, sent, err := attempts(ctx, st)
	if err != nil {
		return out, err
	}
	t := newTalk(p, rc, &a, st, n+1)
	if err := t.bill.begin(ctx, n); err != nil {
		return out, err
	}
	defer t.bill.end()
	if err := p.admit(ctx, t); err != nil {
		return out, err
	}
	var before snapshot
	if p.Snapshot {
		before = look(p.Dir)
	}
	err = t.run(ctx, func(ctx context.Context) error { return t.ask(ctx, n, last, sent) })
	if age := p.Age(t.version()); age != "" && fault.CodeOf(err) == fault.Tool {
		err = fault.Wrap(fault.Tool, err, "").WithHint("%s; update it: %s", age, p.Update())
	}
	if err != nil {
		return out, err
	}
	t.bill.end()
	out = outcome{Stop: t.stop, Session: t.sessionNow(), Total: t.bill.total}
	out.Texts, out.Said = t.messages()
	if p.Snapshot {
		out.Files = before.changedFiles(p.Dir)
	}
	return out, t.finish(ctx)
}

// admit asks the user to consent to a program that nothing confines.
func (p *Program) admit(ctx context.Context, t *talk) error {
	if p.Confined() || p.Sandbox.Support().Missing == "" {
		return nil
	}
	if err := t.judge(ctx, "start", judgment{"execute_command", p.command(quoteWords(p.Command))}); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "agent %s: its program is not started without a sandbox", p.Agent)
	}
	return nil
}

// Limits of time for what a program answers at once.
const (
	initLimit    = 60 * time.Second
	sessionLimit = 30 * time.Second
	cancelLimit  = 5 * time.Second
)

// run starts the program, calls f, and stops the program. An error of f that follows from another one is that one.
func (t *talk) run(ctx context.Context, f func(context.Context) error) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t.fail = func(err error) {
		t.mu.Lock()
		t.closed = true // what it says from now on is not a part of the turn
		t.mu.Unlock()
		fail(err)
	}
	bridge, err := t.serveTools(ctx)
	if err != nil {
		return err
	}
	defer bridge.close()
	c, err := t.p.start(bridge.reach())
	if err != nil {
		return err
	}
	in := newLines(c.Stdout())
	t.conn = acp.New(in, c.Stdin(), t)
	served := make(chan struct{})
	go func() { // ends with the output of the program, which ends with it
		defer close(served)
		_ = t.conn.Serve(context.WithoutCancel(ctx)) // its failure is that of the calls
	}()
	defer func() {
		t.closeTerminals()
		if stopped := c.end(); stopped != "" {
			err = cmp.Or(err, t.rc.Events.Emit(context.WithoutCancel(ctx), event.Warning{Text: fmt.Sprintf("the sandbox stopped the program of agent %s: it %s", t.p.Agent, stopped)}))
		}
		<-served
	}()
	err = f(ctx)
	switch {
	case err == nil || ctx.Err() == nil && !errors.Is(err, acp.ErrClosed):
		return t.agentError(err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return t.endError(c, in)
}

// endError returns the error of a program that has ended, or that nothing more is read from.
func (t *talk) endError(c *child, in *lines) error {
	if mistake := in.mistake(); mistake != nil {
		return fault.New(fault.Tool, "agent %s: %v", t.p.Agent, mistake)
	}
	how := "it ended"
	select {
	case <-c.Done():
		if err := c.Outcome(); err != nil {
			how = err.Error()
		}
	case <-time.After(stopGrace):
	}
	if last := c.last(); last != "" {
		how += "; its last line: " + last
	}
	return fault.New(fault.Tool, "agent %s: the program %s stopped in the middle of its work: %s", t.p.Agent, t.p.Command[0], how)
}

// agentError returns an error that the program reported as one of the agent.
func (t *talk) agentError(err error) error {
	if e, wrong := errors.AsType[*acp.AnswerError](err); wrong {
		return fault.New(fault.Tool, "agent %s: %s: %v", t.p.Agent, t.p.Name, e)
	}
	e, ok := errors.AsType[*acp.Error](err)
	if !ok {
		return err
	}
	if e.Code == acp.AuthRequired {
		f := fault.New(fault.Config, "agent %s: %s asks for a login", t.p.Agent, t.p.Name)
		var names []string
		for _, v := range t.p.Setting.Env {
			if !strings.Contains(v, "=") {
				names = append(names, v)
			}
		}
		if len(names) > 0 {
			return f.WithHint("log in with the program itself, or set %s", strings.Join(names, " or "))
		}
		return f.WithHint("log in with the program itself")
	}
	reported := e.Message
	if of, ok := e.Data.(map[string]any); ok {
		for _, key := range []string{"details", "message"} { // programs say only there what is wrong
			if more, ok := of[key].(string); ok && more != reported {
				reported += ": " + more
			}
		}
	}
	return fault.New(fault.Tool, "agent %s: %s reported: %s", t.p.Agent, t.p.Name, text.OneLine(text.Printable(reported), 400))
}

// initialize says what this program can do, and learns what the program can.
func (t *talk) initialize(ctx context.Context) error {
	err := within(ctx, initLimit, "the start of "+t.p.Name, func(ctx context.Context) error {
		req := acp.InitializeRequest{ProtocolVersion: acp.Version, ClientInfo: &acp.Implementation{Name: "loki", Version: t.p.Version}}
		can := &req.ClientCapabilities
		can.FS.ReadTextFile, can.FS.WriteTextFile, can.Terminal = true, true, true
		can.Session.Notices, can.Session.Compaction, can.Elicitation.Form = new(acp.Supported), new(acp.Supported), new(acp.Supported)
		return t.conn.Call(ctx, acp.Initialize, req, &t.can)
	})
	if err == nil && t.can.ProtocolVersion != acp.Version {
		err = fault.New(fault.Tool, "agent %s: %s speaks version %d of the protocol, and not %d", t.p.Agent, t.p.Name, t.can.ProtocolVersion, acp.Version)
	}
	return err
}

// Check starts the program without asking it anything, and returns its version, empty if it does not say it, also with an error.
func (p *Program) Check(ctx context.Context) (version string, err error) {
	t := newTalk(p, new(engine.RequestContext), new(Asked), steps.Steps{}, 1)
	err = t.run(ctx, t.initialize)
	return t.version(), err
}

// version returns the version of the program, empty if it has not said it.
func (t *talk) version() string {
	if t.can.AgentInfo == nil {
		return ""
	}
	return text.Printable(t.can.AgentInfo.Version)
}

// ask opens a session and puts the question in it.
func (t *talk) ask(ctx context.Context, n int, last Session, sent bool) error {
	if err := t.initialize(ctx); err != nil {
		return err
	}
	if err := t.offer(ctx); err != nil {
		return err
	}
	for {
		said, err := t.listen(ctx, false) // also what was said to attempts before
		if err != nil {
			return err
		}
		if len(said) == 0 {
			break
		}
		for _, m := range said {
			t.a.User.Parts = append(slices.Clip(t.a.User.Parts), chat.Part{Type: chat.TextPart, Text: "\n\n" + m.Text()})
		}
	}
	prompt, begins, err := t.open(ctx, n, last, sent)
	if err != nil {
		return err
	}
	if t.p.Looks {
		const lead = "Plan mode is on: change nothing, also not with commands. Look around, and answer with a plan of what you would do."
		prompt = append([]acp.ContentBlock{acp.Text(lead)}, prompt...)
	}
	mode := t.chooseMode(begins)
	if err := steps.WriteNote(ctx, t.st, "begun", t.sessionNow()); err != nil {
		return err
	}
	if err := t.configure(ctx, mode, begins); err != nil {
		return err
	}
	if err := steps.WriteNote(ctx, t.st, "sent", true); err != nil {
		return err
	}
	for len(prompt) > 0 {
		if err := t.prompt(ctx, prompt); err != nil {
			return err
		}
		if prompt, err = t.next(ctx); err != nil {
			return err
		}
	}
	if t.a.Form == nil {
		return nil
	}
	_, violations, err := t.a.Form.Read(t.lastText())
	if err == nil && violations == nil {
		return nil
	}
	system, user := schema.RepairPrompt(t.a.Form.Value(), t.a.User.Text(), t.lastText(), violations)
	t.forget()
	return t.prompt(ctx, []acp.ContentBlock{acp.Text(system + "\n\n" + user)})
}

// prompt sends a prompt and waits for the end of the turn. When ctx ends the program is asked to stop.
func (t *talk) prompt(ctx context.Context, blocks []acp.ContentBlock) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.bill.noteTurn()
	var answer acp.PromptResponse
	answered := make(chan error, 1)
	go func() { // ends with the answer, or with the connection
		answered <- t.conn.Call(context.WithoutCancel(ctx), acp.SessionPrompt, acp.PromptRequest{SessionID: t.session, Prompt: blocks}, &answer)
	}()
	select {
	case err := <-answered:
		if err == nil {
			err = t.stopError(ctx, answer.StopReason)
		}
		return err
	case <-ctx.Done():
	}
	close(t.quit)
	_ = t.conn.Notify(acp.SessionCancel, acp.SessionRequest{SessionID: t.session}) // or the program has ended
	select {
	case <-answered:
	case <-time.After(cancelLimit):
	}
	return context.Cause(ctx)
}

// stopError says how a turn ended.
func (t *talk) stopError(ctx context.Context, reason string) error {
	t.telling.Lock()
	steered := len(t.said) > 0
	t.telling.Unlock()
	switch {
	case reason == acp.EndTurn, reason == acp.Cancelled && steered:
		t.stop = chat.StopEnd
	case reason == acp.MaxTokens, reason == acp.MaxTurnRequests:
		t.stop = chat.StopLength
		return t.rc.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("agent %s stopped at a limit of %s: %s", t.p.Agent, t.p.Name, reason)})
	case reason == acp.Refusal:
		return fault.New(fault.Refused, "agent %s: %s refused to answer", t.p.Agent, t.p.Name)
	default:
		return fault.New(fault.Tool, "agent %s: %s ended its turn: %s", t.p.Agent, t.p.Name, text.OneLine(text.Printable(cmp.Or(reason, "without a reason")), 80))
	}
	return nil
}
