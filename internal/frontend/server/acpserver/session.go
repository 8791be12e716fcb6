package acpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"loki/internal/agent/harness/acp"
	"loki/internal/agent/role/macro"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/tool/mcp"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/live"
)

// maxQueue is how many prompts of a session are at work or wait.
const maxQueue = 8

// sess is a session that the client has open. Its conversation belongs to the prompt at work, or else to the request that holds its turn.
type sess struct {
	id     string
	server *server
	app    *app.App
	talks  *conversation.Service
	conv   *conversation.Conversation
	record *session.Session // of a graph, which has no sessions; nil for all others
	place  place
	view   *view
	done   func(context.Context) []string // ends the log

	effort chat.Effort // of the next prompts, "" for what is in force

	mu       sync.Mutex
	settings []acp.ConfigOption // as they were when they were last looked at
	live     bool               // the client knows the session
	mode     string
	tail     chan struct{} // closed when the last prompt has ended; nil for none
	work     map[chan struct{}]context.CancelCauseFunc
	changes  []func(context.Context) error // of settings, for the next prompt
	chosen   map[string]string             // values of settings that are not in force yet
	waits    *waiting
}

// waiting is a question of a run that the next prompt answers.
type waiting struct{ run, question string }

// open begins a session, or opens the one with an id.
func (s *server) open(ctx context.Context, at place, id string) (_ *sess, err error) {
	of := &sess{server: s, place: at, mode: modeAsk, work: make(map[chan struct{}]context.CancelCauseFunc), chosen: make(map[string]string)}
	if of.app, err = s.newApp(); err != nil {
		return nil, err
	}
	observer, done := of.app.Observe(ctx)
	of.done = done
	defer func() {
		if err != nil {
			err = errors.Join(err, of.close())
		}
	}()
	of.view = newView(of)
	of.app.Receive(app.Guest{Judge: of.judge, Servers: serversOf(at.servers), Dirs: at.dirs, Client: of.client(), Looks: func() bool { return of.modeNow() == modeRead }})
	of.talks = of.app.ServerConversations()
	of.talks.Durability = durabilityOnRecord(of.talks.Durability)
	find := of.talks.Agent
	of.talks.Agent = func(ctx context.Context, name string, given map[string]string, from conversation.Caller) (conversation.Agent, error) {
		who, err := find(ctx, name, given, from)
		return of.withRecord(who), err
	}
	of.conv = of.talks.Begin(conversation.Options{
		Caller: conversation.Caller{Events: of.app.Events(event.Tee(observer, of.view)), Asker: of}, Interactive: true,
	})
	if id == "" {
		err = of.begin(ctx)
	} else {
		err = of.enter(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	set := func(s *session.Settings) { s.Directory = at.cwd }
	of.storedSession().ForceSave()
	of.storedSession().Set(set)
	if err := of.storedSession().Save(ctx); err != nil {
		return nil, err
	}
	of.id = string(of.storedSession().ID())
	of.refresh()
	return of, nil
}

// durabilityOnRecord returns the durability of runs that have to be on record: the configured one, unless that is off.
func durabilityOnRecord(d graph.Durability) graph.Durability {
	if d == graph.DurabilityOff || d == "" {
		return graph.DurabilityProcess
	}
	return d
}

// withRecord returns an agent whose runs are on record, and whose runs of a graph name the session.
func (s *sess) withRecord(who conversation.Agent) conversation.Agent {
	if who.InForce != nil {
		force := *who.InForce
		force.Durability = durabilityOnRecord(force.Durability)
		who.InForce = &force
	}
	if jobOf := who.Job; jobOf != nil {
		who.Job = func(ctx context.Context, q conversation.GraphQuestion) (run.Job, error) {
			job, err := jobOf(ctx, q)
			job.Durability = durabilityOnRecord(job.Durability)
			job.Info.Question, _ = json.Marshal(map[string]any{"session": map[string]string{"id": s.id}}) // see [conversation.SessionOf]
			return job, err
		}
	}
	return who
}

// begin begins a session with what the command says.
func (s *sess) begin(ctx context.Context) error {
	with := s.server.with
	if with.Agent != "" {
		who, err := s.talks.Agent(ctx, with.Agent, nil, conversation.Caller{Asker: s})
		if err != nil {
			return err
		}
		if err := s.conv.UseAgent(ctx, who); err != nil {
			return err
		}
		if who.Job != nil {
			store, err := s.app.Sessions()
			if err == nil {
				s.record, err = store.Create(ctx, who.Scope, "", session.Settings{})
			}
			return err
		}
	}
	if with.Role != "" {
		if err := s.useRole(ctx, with.Role); err != nil {
			return err
		}
	}
	if with.Knowledge != "" {
		if err := s.conv.UseKnowledge(with.Knowledge); err != nil {
			return err
		}
	}
	if with.Model != "" {
		if err := s.conv.SetModel(ctx, with.Model); err != nil {
			return noModel(err)
		}
	}
	if _, err := s.model(); err != nil {
		return noModel(err)
	}
	return s.conv.CreateSession(ctx, "")
}

func (s *sess) useRole(ctx context.Context, name string) error {
	r, _, err := s.talks.Roles().Load(name)
	if err != nil {
		return err
	}
	return s.conv.UseRole(ctx, r)
}

// enter opens a session that there is.
func (s *sess) enter(ctx context.Context, text string) error {
	id, err := session.ParseID(text)
	if err != nil {
		return unknownSession(text)
	}
	found, err := s.app.FindSession(ctx, id)
	name := ""
	if err == nil {
		name = string(found.Scope())
	} else if name = s.server.with.Agent; errors.Is(err, session.ErrNotFound) && name == "" {
		return unknownSession(text)
	}
	if name != "" {
		who, err := s.talks.Agent(ctx, name, nil, conversation.Caller{Asker: s})
		if err == nil {
			err = s.conv.UseAgent(ctx, who)
		}
		if err == nil && (found == nil || who.Job != nil) {
			var store session.Store
			if store, err = s.app.Sessions(); err == nil {
				s.record, err = store.Open(ctx, who.Scope, id)
			}
			if err == nil {
				err = s.record.Refresh(ctx) // a process that was killed may have left a turn
			}
		}
		if errors.Is(err, session.ErrNotFound) {
			return unknownSession(text)
		}
		if err != nil || who.Job != nil {
			return err
		}
		s.record = nil
	}
	if err := s.conv.UseSession(ctx, text); err != nil {
		return err
	}
	_, err = s.model()
	return noModel(err)
}

// storedSession returns the session as it is stored.
func (s *sess) storedSession() *session.Session {
	if s.record != nil {
		return s.record
	}
	return s.conv.Session()
}

// serversOf returns the MCP servers of a client.
func serversOf(list []acp.MCPServer) (servers []mcp.Server) {
	table := func(list []acp.EnvVariable) map[string]string {
		m := make(map[string]string, len(list))
		for _, v := range list {
			m[v.Name] = v.Value
		}
		return m
	}
	for _, s := range list {
		one := mcp.Server{ID: s.Name, Type: mcp.Stdio, Expose: mcp.Direct, Command: s.Command, Args: s.Args, Env: table(s.Env)}
		if s.Type == string(mcp.HTTP) || s.Type == string(mcp.SSE) {
			one = mcp.Server{ID: s.Name, Type: mcp.Type(s.Type), Expose: mcp.Direct, URL: s.URL, Headers: table(s.Headers)}
		}
		servers = append(servers, one)
	}
	return servers
}

// close ends the session for the client, after the work in it, which is canceled.
func (s *sess) close() error {
	s.cancel()
	s.mu.Lock()
	last := s.tail
	s.mu.Unlock()
	if last != nil {
		<-last
	}
	ctx := context.WithoutCancel(s.server.ending)
	var err error
	if s.conv != nil {
		err = s.conv.Close(ctx)
	}
	s.done(ctx)
	return errors.Join(err, s.app.Close())
}

// cancel cancels all prompts.
func (s *sess) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.work { // what is interrupted already stays so
		cancel(context.Canceled)
	}
}

// enqueue has do run after the prompts before it. Its context ends when the prompt is canceled.
func (s *sess) enqueue(ctx context.Context, do func(context.Context) (any, error)) acp.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.work) >= maxQueue {
		return failure(&acp.Error{Code: acp.InternalError, Message: fmt.Sprintf("%d prompts of the session wait already", maxQueue)})
	}
	before, mine := s.tail, make(chan struct{})
	work, cancel := context.WithCancelCause(s.server.ending)
	s.tail, s.work[mine] = mine, cancel
	stop := context.AfterFunc(ctx, func() { cancel(context.Canceled) })
	return func() (any, error) {
		defer func() {
			stop()
			cancel(nil)
			s.mu.Lock()
			delete(s.work, mine)
			s.mu.Unlock()
			close(mine)
		}()
		if before != nil {
			<-before
		}
		return do(work)
	}
}

// prompt answers what the user says.
func (s *sess) prompt(ctx context.Context, blocks []acp.ContentBlock) (any, error) {
	if ctx.Err() != nil {
		return acp.PromptResponse{StopReason: acp.Cancelled}, nil
	}
	defer s.refresh()
	s.change(ctx)
	text, attached, sources, err := s.content(ctx, blocks)
	if err != nil {
		return nil, clientError(err)
	}
	s.view.begin(s.turns())
	if name, rest, ok := s.command(text); ok && attached.Empty() {
		return s.run(ctx, name, rest)
	}
	s.mu.Lock()
	waits := s.waits
	s.waits = nil
	s.mu.Unlock()
	if waits != nil && attached.Empty() {
		return s.resume(ctx, waits.run, map[string]string{waits.question: text})
	}
	if attached, err = s.app.Knowledge().Narrow(ctx, s.app.Events(s.view), s.conv.Settings().Model, attached, text); err != nil {
		return nil, clientError(err)
	}
	return s.tell(ctx, conversation.NewAsked(attached, text, sources))
}

// tell puts a question to the model or the agent.
func (s *sess) tell(ctx context.Context, q conversation.Asked) (any, error) {
	if q.Blank() {
		return nil, acp.Invalid("prompt", "it is empty")
	}
	end, err := s.keep(ctx, q.User)
	if err != nil {
		return nil, clientError(err)
	}
	a, err := s.conv.Tell(ctx, conversation.Question{Asked: q, Settings: chat.Settings{Sampling: chat.Sampling{Effort: s.effort}}})
	return s.outcome(ctx, a.Text, a.Stop, errors.Join(err, end(a.Text, err)))
}

// keep keeps a turn of a graph, which has begun, until end is called with its output and error. A turn that may continue stays.
func (s *sess) keep(ctx context.Context, user chat.Message) (end func(output string, failure error) error, err error) {
	if s.record == nil {
		return func(string, error) error { return nil }, nil
	}
	ctx = context.WithoutCancel(ctx)
	draft, err := s.record.Begin(ctx, session.Turn{User: user})
	return func(output string, failure error) error {
		switch code := fault.CodeOf(failure); {
		case failure == nil:
			return draft.Finish(ctx, replyOf(output), chat.Usage{})
		case code == fault.Canceled, code == fault.Suspended, code == fault.Limit, output != "":
			return draft.Interrupt(ctx, output, chat.Usage{})
		}
		return draft.Discard(ctx)
	}, err
}

// replyOf returns the reply of a graph with an output.
func replyOf(output string) []chat.Message {
	if output == "" {
		return nil
	}
	return []chat.Message{chat.Text(chat.Assistant, output)}
}

// outcome ends a turn.
func (s *sess) outcome(ctx context.Context, output string, stop chat.StopReason, err error) (any, error) {
	s.view.end(output)
	reason := acp.EndTurn
	_, rounds := errors.AsType[*engine.MaxTurnsError](err)
	switch code := fault.CodeOf(err); {
	case err == nil && stop == chat.StopLength:
		reason = acp.MaxTokens
	case err == nil && stop == chat.StopFiltered, code == fault.Refused:
		reason = acp.Refusal
	case err == nil:
	case ctx.Err() != nil:
		reason = acp.Cancelled
	case code == fault.Suspended:
		s.wait(err)
	case code == fault.Limit, rounds:
		reason = acp.MaxTurnRequests
		s.view.say("\n\n" + withHint(err))
	default:
		return nil, clientError(err)
	}
	if _, all := s.conv.Spending(); reason != acp.Cancelled {
		s.view.sendCost(all)
	}
	return acp.PromptResponse{StopReason: reason}, nil
}

func withHint(err error) string {
	if hint := fault.HintOf(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}

// wait says what a run waits for. The next prompt answers a question that the client cannot ask.
func (s *sess) wait(err error) {
	run, q := s.view.openQuestion()
	if q == nil || q.Kind == "secret" {
		s.view.say("\n\n" + withHint(err))
		return
	}
	s.mu.Lock()
	s.waits = &waiting{run, q.ID}
	s.mu.Unlock()
	said := q.Text
	for i, option := range q.Options {
		said += fmt.Sprintf("\n%d. %s", i+1, option)
	}
	s.view.say("\n\n" + said + "\n\nYour next message is the answer.")
}

// resume resumes a run of the session.
func (s *sess) resume(ctx context.Context, id string, answers map[string]string) (any, error) {
	out, err := s.app.Resume(ctx, run.Resumption{
		Continuation: run.Continuation{ID: id, Events: s.events(), Asker: s}, Answers: answers, Via: event.ViaACP,
	})
	if s.record != nil && err == nil {
		err = s.keepRun(ctx, id, out.Output)
	}
	return s.outcome(ctx, out.Output, out.Stop, err)
}

// attach shows a run that may be at work in another process, asks the user what it asks, and resumes it with the answers.
func (s *sess) attach(ctx context.Context, id string) (any, error) {
	store, err := s.app.OpenRuns()
	if err != nil {
		return nil, clientError(err)
	}
	defer store.Close()
	info, err := store.Info(ctx, id)
	if err != nil {
		return nil, clientError(err)
	}
	here := live.User{Asker: s, Via: event.ViaACP, Events: s.view, Warn: func(text string) { s.view.say("\n\n" + text) }}
	answers, err := here.Attach(ctx, store, s.app.LiveDir(), info.ID)
	if err == nil {
		info, err = store.Info(ctx, info.ID)
	}
	out := run.Outcome{Output: info.Output}
	if err == nil && info.Status.Resumable() && !info.Active {
		out, err = s.app.Resume(ctx, run.Resumption{
			Continuation: run.Continuation{ID: info.ID, Events: s.events(), Asker: s}, Answers: answers, Via: event.ViaACP, Uncanceled: true,
		})
	} else if err == nil && info.Error != "" {
		err = fault.New(info.Code, "%s", info.Error)
	}
	return s.outcome(ctx, out.Output, out.Stop, err)
}

// keepRun keeps a run of a graph that was resumed.
func (s *sess) keepRun(ctx context.Context, id, output string) error {
	store, err := s.app.OpenRuns()
	if err != nil {
		return err
	}
	info, err := store.Info(ctx, id)
	if err == nil {
		turn := session.Turn{User: chat.Text(chat.User, info.Prompt), Reply: replyOf(output)}
		for _, m := range s.record.Messages() {
			if m.Question() && m.Text() == info.Prompt { // its answer was interrupted
				turn.Mode, turn.User = session.Regenerate, m
			}
		}
		err = s.record.Append(context.WithoutCancel(ctx), turn)
	}
	return errors.Join(err, store.Close())
}

func (s *sess) events() event.Scope { return s.app.Events(s.view) }

// unfinishedRun returns the run of the last turn, if that was cut off, "" for none.
func (s *sess) unfinishedRun(ctx context.Context) (string, error) {
	store, err := s.app.OpenRuns()
	if err != nil {
		return "", err
	}
	runs, err := conversation.Unfinished(ctx, store)
	last := ""
	if list := runs[session.ID(s.id)]; len(list) > 0 {
		last = list[len(list)-1]
	}
	return last, errors.Join(err, store.Close())
}

// The commands that are no macros.
var own = []acp.Command{
	{Name: "compress", Description: "Replace older turns with a summary"},
	{Name: "resume", Description: "Resume the last turn, which was interrupted, or show a run and answer it", Input: &acp.CommandInput{Hint: "[run id]"}},
	{Name: "usage", Description: "Show what the session has used"},
}

// commands returns the commands: own, and macros that are prompts only.
func (s *sess) commands() []acp.Command {
	list := slices.Clone(own)
	library := s.app.Macros()
	names, _ := library.Names() // without them there are no macros
	for _, name := range names {
		m, _, err := library.Load(name)
		if err != nil || strings.ContainsAny(name, " \t") || !m.OnlyPrompts() || slices.ContainsFunc(own, func(c acp.Command) bool { return c.Name == name }) {
			continue
		}
		c := acp.Command{Name: name, Description: "Macro: " + text.OneLine(m.Steps[0].Text, 80)}
		if len(m.Variables) > 0 {
			c.Input = &acp.CommandInput{Hint: strings.TrimSpace(strings.TrimPrefix(m.Usage(), name))}
		}
		list = append(list, c)
	}
	return list
}

// command returns the command that a text is.
func (s *sess) command(text string) (name, rest string, ok bool) {
	line, ok := strings.CutPrefix(text, "/")
	name, rest, _ = strings.Cut(line, " ")
	ok = ok && slices.ContainsFunc(s.commands(), func(c acp.Command) bool { return c.Name == strings.TrimSpace(name) })
	return strings.TrimSpace(name), strings.TrimSpace(rest), ok
}

// run runs a command.
func (s *sess) run(ctx context.Context, name, rest string) (any, error) {
	switch name {
	case "compress":
		done, err := s.conv.Compress(ctx)
		return s.endCommand(ctx, fmt.Sprintf("%d messages are a recap now: %d tokens, before %d.", done.Messages, done.After, done.Before), err)
	case "usage":
		_, all := s.conv.Spending()
		cost := fmt.Sprintf("$%.4f", all.Cost)
		if all.CostUnknown {
			cost = "unknown"
		}
		return s.endCommand(ctx, fmt.Sprintf("Input: %d tokens. Output: %d tokens. Cost: %s.", all.InputTokens, all.OutputTokens, cost), nil)
	case "resume":
		if rest != "" {
			return s.attach(ctx, rest)
		}
		id, err := s.unfinishedRun(ctx)
		if err != nil || id == "" {
			return s.endCommand(ctx, "No turn of this session was interrupted.", err)
		}
		s.mu.Lock()
		s.waits = nil
		s.mu.Unlock()
		return s.resume(ctx, id, nil)
	}
	m, _, err := s.app.Macros().Load(name)
	var steps []macro.Step
	if err == nil {
		steps, err = m.Fill(strings.Fields(rest))
	}
	if err != nil {
		return nil, clientError(err)
	}
	var last any
	for _, step := range steps {
		s.view.begin(s.turns())
		user := chat.Text(chat.User, step.Text)
		last, err = s.tell(ctx, conversation.Asked{User: user, Text: step.Text})
		if r, ok := last.(acp.PromptResponse); err != nil || !ok || r.StopReason != acp.EndTurn {
			return last, err
		}
	}
	return last, nil
}

// endCommand ends a command with a text.
func (s *sess) endCommand(ctx context.Context, text string, err error) (any, error) {
	if err == nil {
		s.view.say(text)
	}
	return s.outcome(ctx, "", chat.StopEnd, err)
}

// turns returns how many turns the session has.
func (s *sess) turns() (n int) {
	for _, m := range s.history() {
		if m.Question() {
			n++
		}
	}
	return n
}

// history returns all messages of the session, also the ones that are a recap now.
func (s *sess) history() []chat.Message {
	return slices.Concat(s.storedSession().CompactedMessages(), s.storedSession().Messages())
}

// announce tells the client about the session that it knows now.
func (s *sess) announce() {
	s.mu.Lock()
	s.live = true
	s.mu.Unlock()
	s.send(acp.Commands{Kind: acp.CommandsUpdate, AvailableCommands: s.commands()})
}

// send sends an update, once the client knows the session.
func (s *sess) send(update any) {
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	if live {
		_ = s.server.conn.Notify(acp.SessionUpdate, acp.SessionNotification{SessionID: s.id, Update: update}) // or the client has gone
	}
}

// model returns the model in force.
func (s *sess) model() (catalog.Model, error) {
	return s.app.Catalog.Resolve(cmp.Or(s.conv.Settings().Model, s.app.Config.Model), catalog.Chat)
}
