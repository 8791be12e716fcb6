package conversations

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/launch"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/graph"
)

type completionInput struct {
	Body api.CompletionRequest
}

// complete answers a question outside of sessions.
func (s *service) complete(ctx context.Context, in *completionInput) (*rest.Reply, error) {
	req := &in.Body
	if err := s.check(req); err != nil {
		return nil, err
	}
	if req.Agent != "" {
		rest.Acts(ctx, audit.AgentActivate)
		rest.AboutAgent(ctx, req.Agent)
	}
	return s.reply(ctx, req, nil, func(ctx context.Context, a *answer) error {
		if req.Agent == "" {
			return s.ask(ctx, req, a)
		}
		return s.askAgent(ctx, req, a)
	})
}

// check refuses what no completion can be.
func (s *service) check(req *api.CompletionRequest) error {
	switch {
	case req.Agent != "" && req.Role != "":
		return rest.Invalid("role", "role: an agent has its own instructions, so it cannot have a role")
	case req.Agent != "" && req.RAG != "":
		return rest.Invalid("rag", "rag: an agent answers from its own documents, so it cannot use another knowledge base")
	case req.Agent == "" && len(req.Variables) > 0:
		return rest.Invalid("variables", "variables: only an agent has variables, and the request does not name one")
	}
	return s.checkModel(req.Model)
}

// checkModel refuses a model that does not exist.
func (s *service) checkModel(id string) error {
	if id == "" {
		return nil
	}
	_, err := s.App.Models.ServedModel(id, catalog.Chat)
	return err
}

// notFoundAs returns err with a code that says what there is not, if it says that.
func notFoundAs(kind string, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return &rest.Error{Status: http.StatusNotFound, Code: kind + "_not_found", Message: err.Error(), Hint: "GET /v1/" + kind + "s lists them", Err: err}
}

// conflictOf returns err as a conflict, if it is what a conversation refuses.
func conflictOf(err error) error {
	if code := fault.CodeOf(err); code != fault.Usage && code != fault.Config {
		return err
	}
	return &rest.Error{Status: http.StatusConflict, Code: "conflict", Message: err.Error(), Err: err}
}

// scope returns the scope of the events of e, such as those of an answer, which others see, too.
func (s *service) scope(e event.Emitter) event.Scope {
	return s.App.Events(event.Tee(s.Seen, e))
}

// ask puts a question to a model or a role.
func (s *service) ask(ctx context.Context, req *api.CompletionRequest, a *answer) (err error) {
	talks := s.App.ServerConversations()
	conv := talks.Begin(conversation.Options{Caller: conversation.Caller{Events: s.scope(a)}})
	defer func() { err = errors.Join(err, conv.Close(context.WithoutCancel(ctx))) }()
	if err := useRole(ctx, talks, conv, req.Role); err != nil {
		return err
	}
	if err := s.useRAG(conv, req.RAG); err != nil {
		return err
	}
	_, _, err = s.put(ctx, conv, req, s.scope(a))
	return err
}

// useRole gives a conversation a role, unless the name is empty.
func useRole(ctx context.Context, talks *conversation.Service, conv *conversation.Conversation, name string) error {
	if name == "" {
		return nil
	}
	r, _, err := talks.Roles().Load(name)
	if err != nil {
		return notFoundAs("role", err)
	}
	return conflictOf(conv.UseRole(ctx, r))
}

// useRAG has a conversation answer from a knowledge base; "" leaves it as it is.
func (s *service) useRAG(conv *conversation.Conversation, name string) error {
	if name == "" {
		return nil
	}
	if err := s.checkRAG(name); err != nil {
		return err
	}
	return conflictOf(conv.UseKnowledge(name))
}

// checkRAG refuses a knowledge base that does not exist.
func (s *service) checkRAG(name string) error {
	library := s.App.Knowledge().Library()
	names, err := library.Names()
	for _, known := range names {
		if known == name {
			return nil
		}
	}
	if err == nil {
		err = library.NotBuiltError(name)
	}
	return notFoundAs("rag", err)
}

// put asks the question of a request in a conversation.
func (s *service) put(ctx context.Context, conv *conversation.Conversation, req *api.CompletionRequest, events event.Scope) (conversation.Answer, conversation.Question, error) {
	q := conversation.Question{
		Settings: chat.Settings{
			Model: req.Model, Sampling: chat.Sampling{Temperature: req.Temperature, TopP: req.TopP, Effort: chat.Effort(req.Effort)}, Mode: chat.Mode(req.Mode),
		},
		MaxOutputTokens: req.MaxOutputTokens, AutoContinue: req.AutoContinue,
	}
	if req.Schema != nil {
		source, err := json.Marshal(req.Schema)
		if err != nil {
			return conversation.Answer{}, q, rest.Invalid("schema", "schema: %v", err)
		}
		if q.Form, err = conversation.NewForm("of the request", source); err != nil {
			return conversation.Answer{}, q, rest.Invalid("schema", "%v", err)
		}
	}
	attached, text, sources, err := s.attachments(ctx, req)
	if err != nil {
		return conversation.Answer{}, q, err
	}
	model := q.Settings.Over(conv.Settings()).Model
	if attached, err = s.App.Knowledge().Narrow(ctx, events, model, attached, text); err != nil {
		return conversation.Answer{}, q, err
	}
	if q.Asked = conversation.NewAsked(attached, text, sources); q.Blank() {
		return conversation.Answer{}, q, rest.Invalid("prompt", "prompt: the text is empty")
	}
	a, err := conv.Ask(ctx, q)
	return a, q, err
}

// findAgent returns the agent called name. A client names installed agents, not directories.
func (s *service) findAgent(ctx context.Context, talks *conversation.Service, name string, given map[string]string, from conversation.Caller) (conversation.Agent, error) {
	if strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~") {
		return conversation.Agent{}, rest.NotFound("agent", name).WithHint("GET /v1/agents lists them")
	}
	who, err := talks.Agent(ctx, name, given, from)
	if fault.CodeOf(err) == fault.NotFound { // whose message names directories
		return who, rest.NotFound("agent", name).WithHint("GET /v1/agents lists them")
	}
	return who, err
}

// askAgent puts a question to an agent, outside of sessions.
func (s *service) askAgent(ctx context.Context, req *api.CompletionRequest, a *answer) (err error) {
	talks := s.App.ServerConversations()
	caller := conversation.Caller{Events: s.scope(a)}
	who, err := s.findAgent(ctx, talks, req.Agent, req.Variables, caller)
	if err != nil {
		return err
	}
	a.unrecorded = who.InForce.Durability == graph.DurabilityOff
	values, err := who.Variables(ctx)
	if err != nil {
		return rest.Invalid("variables", "variables: %v", err)
	}
	if who.Job != nil {
		return s.runGraph(ctx, req, who.Agent, values, a)
	}
	conv := talks.Begin(conversation.Options{Caller: caller, Owner: s.owner(ctx)})
	defer func() { err = errors.Join(err, conv.Close(context.WithoutCancel(ctx))) }()
	if err := conv.UseAgent(ctx, who); err != nil {
		return conflictOf(err)
	}
	_, _, err = s.put(ctx, conv, req, caller.Events)
	return err
}

// runGraph has a graph agent work on a prompt. The run belongs to the server: it is canceled when the client leaves,
// unless that asked to detach it. What it did is not undone then.
func (s *service) runGraph(ctx context.Context, req *api.CompletionRequest, of agent.Agent, values map[string]string, a *answer) error {
	switch {
	case req.Schema != nil:
		return rest.Invalid("schema", "schema: the graph of agent %s defines its own answer", of.Name)
	case req.Temperature != nil || req.TopP != nil || req.Effort != "" || req.Mode != "" || req.MaxOutputTokens > 0 || req.AutoContinue != nil:
		return rest.Invalid("agent", "agent %s is a graph, and its nodes set the sampling, the mode and the continuations", of.Name)
	}
	attached, text, _, err := s.attachments(ctx, req)
	if err != nil {
		return err
	}
	if len(attached.Images) > 0 {
		return rest.Invalid("files", "agent %s is a graph, and its prompt is text only: pictures cannot be attached", of.Name)
	}
	job, err := s.App.AgentJob(ctx, launch.Run{
		Agent: of, Prompt: attached.Text(text), Variables: values, Model: req.Model, Events: s.Manager.Events(),
	})
	if err != nil {
		return err
	}
	job.Info.Owner = s.owner(ctx)
	id, err := s.Manager.Start(ctx, job)
	if err != nil {
		return err
	}
	if req.Detach {
		rest.Commit(ctx, "/v1/runs/"+id)
	}
	err = s.Manager.Follow(ctx, id, 0, a)
	if gone := ctx.Err() != nil || errors.Is(err, stream.ErrGone); gone && !req.Detach {
		return errors.Join(err, s.Manager.Stop(context.WithoutCancel(ctx), id))
	}
	return err
}
