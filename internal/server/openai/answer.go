package openai

import (
	"context"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/chat"
	"loki/internal/conversation"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/run"
	"loki/internal/server/rest"
)

// service answers requests.
type service struct {
	app   *app.App
	talks *conversation.Service // with roles and agents
	plain *conversation.Service // with models, which have no tools of the program's
}

// answer is what came of a request.
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
}

// ask answers a request. What the model writes goes to out as it comes, unless the answer has a form: that is
// known only when it was checked.
func (s *service) ask(ctx context.Context, r *request, out listener) (answer, error) {
	t, err := s.target(r.Model)
	if err != nil {
		return answer{}, err
	}
	w := &watch{ctx: ctx, out: out, held: r.Form != nil}
	var a answer
	if r.Loki.RunID != "" {
		a, err = s.goOn(ctx, r, w)
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
	if r.OneCall && len(a.Calls) > 1 {
		a.keepFirstCall()
	}
	if a.Loki.Warnings = w.warnings; a.Loki.RunID == "" {
		a.Loki.RunID = w.run
	}
	if !a.Usage.CostUnknown && a.Usage.Cost > 0 {
		a.Loki.CostUSD = &a.Usage.Cost
	}
	return a, w.finish(ctx, a.Text)
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
func (s *service) begin(ctx context.Context, r *request, t target, w *watch) (answer, error) {
	settings, talks := chat.Settings{Sampling: r.Sampling}, s.talks
	if t.kind == kindModel {
		settings.Model, settings.AutoContinue, talks = t.name, new(false), s.plain
	}
	o := conversation.Options{
		Settings: settings, NoStream: !r.Stream, Unrecorded: t.kind != kindAgent,
		Caller: conversation.Caller{Events: s.app.Events(event.Func(w.emit))}, Owner: s.access().Owner(rest.Subject(ctx)),
	}
	conv := talks.Begin(o)
	switch t.kind {
	case kindRole:
		role, _, err := s.app.Roles().Load(t.name)
		if err != nil {
			return answer{}, err
		}
		if err := conv.UseRole(ctx, role); err != nil {
			return answer{}, err
		}
	case kindAgent:
		agent, err := s.talks.Agent(ctx, t.name, r.Loki.Variables, o.Caller)
		if err != nil {
			return answer{}, err
		}
		if agent.Job != nil {
			return s.graph(ctx, r, agent, o.Caller, w)
		}
		if err := conv.UseAgent(ctx, agent); err != nil {
			return answer{}, err
		}
	}
	got, err := conv.Ask(ctx, conversation.Question{
		Asked:   conversation.Asked{User: r.User, Text: r.User.Text()},
		History: r.History, Tools: r.Tools, Form: r.Form, MaxOutputTokens: r.MaxOutputTokens, Constraints: r.Constraints,
	})
	return answer{Text: got.Text, Calls: got.Calls, Stop: got.Stop, Usage: got.Usage, Loki: said{Model: got.Model}, Messages: got.Messages}, err
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
	job.Info.Owner = s.access().Owner(rest.Subject(ctx))
	out, err := s.app.Runs().Start(ctx, job)
	return fromRun(out), err
}

// fitsGraph refuses what a graph cannot do, and warns of what changes nothing.
func (r *request) fitsGraph(name string, w *watch) error {
	no := func(param string) error {
		return invalid(param, "agent %s is a graph, whose nodes have tools and forms of their own: %s cannot be had", name, param)
	}
	switch {
	case r.User.Role != chat.User:
		return invalid("messages", "agent %s is a graph, whose prompt is the last message: it has to be the user's", name)
	case slices.ContainsFunc(r.User.Parts, func(p chat.Part) bool { return p.Type != chat.TextPart }):
		return invalid("messages", "agent %s is a graph, whose prompt is text: pictures cannot be attached", name)
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

// goOn answers the question for which a run waits, with the last message of the user.
func (s *service) goOn(ctx context.Context, r *request, w *watch) (answer, error) {
	text := r.User.Text()
	if text == "" {
		return answer{}, invalid("messages", "the last message has to be the user's answer to the question of run %s", r.Loki.RunID)
	}
	if err := s.mayAnswer(ctx, r.Loki.RunID); err != nil {
		return answer{}, err
	}
	out, err := s.app.Runs().Resume(ctx, run.Resumption{
		Continuation: run.Continuation{ID: r.Loki.RunID, NoStream: !r.Stream, Events: s.app.Events(event.Func(w.emit))},
		Answer:       &text,
	})
	return fromRun(out), err
}

// mayAnswer returns the error of a run that does not exist or that the caller does not see, or whose question
// is for others to answer.
func (s *service) mayAnswer(ctx context.Context, id string) error {
	store, err := s.app.OpenRuns()
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := store.History(ctx, id)
	who := rest.Subject(ctx)
	view := s.access().View(who)
	switch {
	case fault.CodeOf(err) == fault.NotFound || err == nil && !view.Includes(h.Info.Owner):
		return rest.NotFound("run", id)
	case err != nil || view == nil:
		return err
	}
	for _, p := range h.Pending {
		if len(p.Assignees) > 0 && !slices.Contains(p.Assignees, who.Subject) {
			return rest.Forbidden("question %s of run %s is for %s to answer", p.ID, h.Info.ID, strings.Join(p.Assignees, ", "))
		}
	}
	return nil
}

func fromRun(out run.Outcome) answer {
	a := answer{Text: out.Output, Stop: out.Stop, Usage: out.Usage, Loki: said{RunID: out.Run}}
	if a.Stop == "" {
		a.Stop = chat.StopEnd
	}
	return a
}
