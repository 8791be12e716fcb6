package openai

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/runs"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// service answers requests.
type service struct {
	app   *app.App
	seen  event.Emitter         // gets the events of all answers; nil for none
	talks *conversation.Service // with roles and agents
	plain *conversation.Service // with models, which have no tools of the program's
	runs  *manager.Manager
	lanes *rest.Lanes
}

// answer is the result of a request.
type answer struct {
	Text  string
	Calls []chat.ToolCall // that the client has to run
	Stop  chat.StopReason
	Usage chat.Usage
	Loki  said

	Messages []chat.Message // that were added to the conversation; none by a graph
}

// said is the member of answers that clients of OpenAI do not know.
type said struct {
	Model    string    `json:"model,omitempty" doc:"id of the model that answered"`
	RunID    string    `json:"run_id,omitempty" doc:"run of the agent"`
	Question *question `json:"question,omitempty" doc:"the agent waits for the answer to it: send it as the next user message, with run_id"`
	Warnings []string  `json:"warnings,omitempty"`
	CostUSD  *float64  `json:"cost_usd,omitempty" doc:"absent if it is not known"`
}

// question is what an agent asks a human.
type question struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
	Default *string  `json:"default,omitempty"`
}

// String returns the question as a message.
func (q question) String() string {
	if len(q.Options) == 0 {
		return q.Text
	}
	return q.Text + "\n\n- " + strings.Join(q.Options, "\n- ")
}

// listener gets an answer piece by piece. An error ends the work.
type listener interface {
	text(ctx context.Context, piece string) error
	reasoning(ctx context.Context, piece string) error
	// began reports that a run of the server has begun or resumed, before the rest.
	began(ctx context.Context, s said) error
}

// ask answers a request. What the model writes goes to out as it comes, unless the answer has a form: that is
// known only when it was checked.
func (s *service) ask(ctx context.Context, r *request, out listener) (a answer, err error) {
	t, err := s.target(r.Model)
	if err != nil {
		return answer{}, err
	}
	w := &watch{ctx: ctx, out: out, held: r.Form != nil}
	if ignored := rest.IgnoredMembers(ctx); len(ignored) > 0 {
		w.warn("not supported, and ignored: " + strings.Join(ignored, ", "))
	}
	for _, text := range r.unread {
		w.warn(text)
	}
	if t.kind == kindAgent {
		rest.Acts(ctx, audit.AgentActivate)
		rest.AboutAgent(ctx, t.name)
		defer func() { rest.AboutRun(ctx, cmp.Or(a.Loki.RunID, w.run)) }()
	}
	if r.Loki.RunID != "" {
		rest.Acts(ctx, audit.RunAnswer)
		rest.AboutRun(ctx, r.Loki.RunID)
		a, err = s.goOn(ctx, r, t, w)
	} else {
		a, err = s.begin(ctx, r, t, w)
	}
	if w.asked != nil && fault.CodeOf(err) == fault.Suspended {
		a.Text, a.Stop, a.Loki.Question, err = w.asked.String(), chat.StopEnd, w.asked, nil
	}
	if t.kind == kindModel {
		err = notFound(r.Model, err)
	}
	if err != nil {
		return a, err
	}
	if a.Loki.RunID == "" {
		a.Loki.RunID = w.run
	}
	if err := s.count(ctx, &a, w.before); err != nil {
		return a, err
	}
	if r.OneCall && len(a.Calls) > 1 {
		a.keepFirstCall()
	}
	a.Loki.Warnings = w.warnings
	if !a.Usage.CostUnknown && a.Usage.Cost > 0 {
		a.Loki.CostUSD = &a.Usage.Cost
	}
	return a, w.finish(ctx, a.Text)
}

// count leaves what a run had used before out of what an answer used. A run that waits has on record what it used.
func (s *service) count(ctx context.Context, a *answer, before chat.Usage) error {
	if a.Loki.Question != nil && a.Loki.RunID != "" {
		info, err := s.runs.Store().Info(ctx, a.Loki.RunID)
		if err != nil {
			return err
		}
		a.Usage = info.Usage
	}
	if a.Usage = a.Usage.Sub(before); a.Usage.Total() <= 0 {
		a.Usage = chat.Usage{} // without what rounding left of the cost
	}
	return nil
}

// scope returns the scope of the events of the work on an answer.
func (s *service) scope(w *watch) event.Scope {
	return s.app.Events(event.Tee(s.seen, event.Func(w.emit)))
}

// keepFirstCall leaves the client's other calls out of the answer, also out of what is kept of it.
func (a *answer) keepFirstCall() {
	others := a.Calls[1:]
	a.Calls = a.Calls[:1]
	a.Messages = slices.Clone(a.Messages)
	for i, m := range a.Messages {
		a.Messages[i].ToolCalls = slices.DeleteFunc(slices.Clone(m.ToolCalls), func(c chat.ToolCall) bool {
			return slices.ContainsFunc(others, func(o chat.ToolCall) bool { return o.ID == c.ID })
		})
	}
}

// begin has the target answer.
func (s *service) begin(ctx context.Context, r *request, t target, w *watch) (_ answer, err error) {
	settings, talks := chat.Settings{Sampling: r.Sampling}, s.talks
	if t.kind == kindModel {
		settings.Model, settings.AutoContinue, talks = t.name, new(false), s.plain
	}
	if err := r.mayDetach(t); err != nil {
		return answer{}, err
	}
	caller := conversation.Caller{Events: s.scope(w)}
	if r.Loki.Detach {
		caller.Events = s.runs.Events()
	}
	conv := talks.Begin(conversation.Options{
		Settings: settings, NoStream: !r.Stream, Unrecorded: t.kind != kindAgent, Caller: caller, Owner: s.access().Owner(rest.Subject(ctx)),
	})
	if !r.Loki.Detach { // else the work holds what it needs
		defer func() { err = errors.Join(err, conv.Close(context.WithoutCancel(ctx))) }()
	}
	switch t.kind {
	case kindRole:
		role, _, err := s.talks.Roles().Load(t.name)
		if err != nil {
			return answer{}, err
		}
		if err := conv.UseRole(ctx, role); err != nil {
			return answer{}, err
		}
	case kindAgent:
		agent, err := s.talks.Agent(ctx, t.name, r.Loki.Variables, caller)
		if err != nil {
			return answer{}, err
		}
		if agent.Job != nil {
			return s.graph(ctx, r, agent, caller, w)
		}
		if err := conv.UseAgent(ctx, agent); err != nil {
			return answer{}, err
		}
	}
	q := conversation.Question{
		Asked:   conversation.Asked{User: r.User, Text: r.User.Text()},
		History: r.History, Tools: r.Tools, Form: r.Form, MaxOutputTokens: r.MaxOutputTokens, Constraints: r.Constraints,
	}
	if r.Loki.Detach {
		job, err := conv.BackgroundJob(ctx, q)
		if err != nil {
			return answer{}, err
		}
		return s.runDetached(ctx, job, w)
	}
	got, err := conv.Ask(ctx, q)
	return answer{Text: got.Text, Calls: got.Calls, Stop: got.Stop, Usage: got.Usage, Loki: said{Model: got.Model}, Messages: got.Messages}, err
}

// mayDetach refuses what a run cannot do without its client.
func (r *request) mayDetach(t target) error {
	switch {
	case r.Loki.Detach && t.kind != kindAgent:
		return invalid("loki.detach", "loki.detach: only an agent has a run that continues without its client")
	case r.Loki.Detach && len(r.Tools) > 0:
		return invalid("loki.detach", "loki.detach: the run cannot wait for the client's own tools")
	}
	return nil
}

// graph runs a graph agent, whose prompt is the last message of the user.
func (s *service) graph(ctx context.Context, r *request, agent conversation.Agent, caller conversation.Caller, w *watch) (answer, error) {
	if err := r.fitsGraph(agent.Name, w); err != nil {
		return answer{}, err
	}
	variables, err := agent.Variables(ctx)
	if err != nil {
		return answer{}, err
	}
	job, err := agent.Job(ctx, conversation.GraphQuestion{Prompt: r.User.Text(), Variables: variables, NoStream: !r.Stream, Caller: caller})
	if err != nil {
		return answer{}, err
	}
	if r.Loki.Detach {
		return s.runDetached(ctx, job, w)
	}
	job.Info.Owner = s.access().Owner(rest.Subject(ctx))
	out, err := s.app.Runs().Start(ctx, job)
	return fromRun(out), err
}

// runDetached has the server do a job, and answers with what comes of it, as long as the client is there.
func (s *service) runDetached(ctx context.Context, job run.Job, w *watch) (answer, error) {
	job.Info.Owner = s.access().Owner(rest.Subject(ctx))
	if job.Durability == graph.DurabilityOff || job.Durability == "" {
		job.Durability = graph.DurabilityProcess // a resumed run must be found
	}
	id, err := s.runs.Start(ctx, job)
	if err != nil {
		return answer{}, err
	}
	return s.follow(ctx, id, 0, w)
}

// follow answers with what comes of a run of the server after an event.
func (s *service) follow(ctx context.Context, id string, after int, w *watch) (answer, error) {
	if w.out != nil {
		if err := w.out.began(ctx, said{RunID: id}); err != nil {
			return answer{}, err
		}
	}
	err := s.runs.Follow(ctx, id, after, event.Func(w.emit))
	end := w.end
	return answer{
		Text: end.Output, Stop: cmp.Or(end.Stop, chat.StopEnd), Usage: end.Usage, Loki: said{Model: w.model, RunID: id},
		Messages: []chat.Message{chat.Text(chat.Assistant, end.Output)},
	}, err
}

// fitsGraph refuses what a graph cannot do, and warns of what changes nothing.
func (r *request) fitsGraph(name string, w *watch) error {
	no := func(param string) error {
		return invalid(param, "agent %s is a graph, whose nodes have tools and forms of their own: %s cannot be had", name, param)
	}
	switch {
	case r.User.Role != chat.User:
		return invalid("messages", "agent %s is a graph, whose prompt is the last message: it must be the user's", name)
	case slices.ContainsFunc(r.User.Parts, func(p chat.Part) bool { return p.Type != chat.TextPart }):
		return invalid("messages", "agent %s is a graph, whose prompt is text: pictures cannot be had", name)
	case len(r.Tools) > 0:
		return no("tools")
	case r.Form != nil:
		return no("response_format")
	}
	if r.Sampling != (chat.Sampling{}) || r.MaxOutputTokens > 0 || len(r.Stop) > 0 || r.Seed != nil || r.Penalizes() {
		w.warn("agent " + name + " is a graph, whose nodes set the sampling and the length of answers themselves")
	}
	if len(r.History) > 0 {
		w.warn("agent " + name + " is a graph: it gets the last message of the user only")
	}
	return nil
}

// goOn answers the question for which a run of the target waits, with the last message of the user.
func (s *service) goOn(ctx context.Context, r *request, t target, w *watch) (answer, error) {
	text := r.User.Text()
	if text == "" {
		return answer{}, invalid(r.place, "the last message must be the user's answer to the question of run %s", r.Loki.RunID)
	}
	info, err := runs.ToAnswer(ctx, runs.Service{Manager: s.runs, Access: s.access()}, r.Loki.RunID)
	if err != nil {
		return answer{}, err
	}
	if !s.isOf(info, t) {
		return answer{}, invalid("model", "run %s is one of %s, and not of %s", info.ID, info.Agent, t).WithHint("name the agent whose question is answered as the model, or leave out loki.run_id")
	}
	w.before = info.Usage
	next := run.Resumption{Continuation: run.Continuation{ID: info.ID, NoStream: !r.Stream}, Answer: &text, Via: event.ViaOpenAI}
	taken := new(run.TakenError) // another process is at work on the run, and takes the answer
	if r.Loki.Detach {
		_, err := s.runs.Resume(ctx, next)
		if errors.As(err, &taken) {
			err = s.resumeLater(ctx, info.ID)
		}
		if err != nil {
			return answer{}, err
		}
		return s.follow(ctx, info.ID, info.Events, w)
	}
	next.Events = s.scope(w)
	out, err := s.app.Runs().Resume(ctx, next)
	if errors.As(err, &taken) {
		if err := s.resumeLater(ctx, info.ID); err != nil {
			return answer{}, err
		}
		return s.follow(ctx, info.ID, info.Events, w)
	}
	return fromRun(out), err
}

// resumeLater resumes a run whose answer came while it was at work, once it rests here: it may have asked before it saw the answer.
func (s *service) resumeLater(ctx context.Context, id string) error {
	info, err := s.runs.Wait(ctx, id)
	if err != nil || info.Active || info.Status != run.Suspended {
		return err
	}
	if _, err = s.runs.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: id}, Uncanceled: true}); err == nil {
		return nil
	}
	now, infoErr := s.runs.Store().Info(ctx, id)
	if infoErr == nil && (now.Active || now.Status != run.Suspended) { // another resumed it first
		return nil
	}
	return err
}

// isOf reports whether a run is one of a target. A turn without a role is one of any model.
func (s *service) isOf(info run.Info, t target) bool {
	switch t.kind {
	case kindAgent:
		ref, err := s.app.Agents.Find(t.name)
		return info.Kind != run.ChatRun && (info.Agent == t.name || err == nil && info.AgentDir == ref.Dir)
	case kindRole:
		return info.Kind == run.ChatRun && info.Agent == t.name
	}
	return info.Kind == run.ChatRun && info.Agent == string(run.ChatRun)
}

func fromRun(out run.Outcome) answer {
	return answer{Text: out.Output, Stop: cmp.Or(out.Stop, chat.StopEnd), Usage: out.Usage, Loki: said{RunID: out.Run}}
}
