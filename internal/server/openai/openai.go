// Package openai serves the endpoints that clients of OpenAI know: chat completions, responses, embeddings, and
// the reranking of Jina and Cohere. Models, roles and agents all answer there under a model's name.
//
// A request is read into the program's own words, a [request]; whatever cannot be had is an error that names
// the member. The answer comes from a conversation of package conversation or from the run of a graph, and is
// put back into the words of the endpoint.
package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/app"
	"loki/internal/auth"
	"loki/internal/event"
	"loki/internal/run/manager"
	"loki/internal/server/rest"
	"loki/internal/server/stream"
)

const tag = "OpenAI-compatible"

// Register adds the endpoints. core is what they work with, and runs has its runs. seen gets all
// events, too, from several goroutines; nil for none.
func Register(a *rest.API, core *app.App, runs *manager.Manager, seen event.Emitter) {
	s := &service{app: core, seen: seen, talks: core.Served(), plain: core.Served(), runs: runs}
	s.plain.Switches.NoTools, s.plain.Switches.NoServers = true, true
	op := func(path, summary string, answer any, events ...string) rest.Operation {
		return rest.Operation{
			Method: http.MethodPost, Path: path, Summary: summary, Tag: tag, Scope: auth.RunAgents, Idempotent: true, OpenAIErrors: true,
			Answer: answer, Events: events,
		}
	}
	rest.Register(a, op("/v1/embeddings", "Turn texts into vectors", nil), s.embed)
	rest.Register(a, op("/v1/rerank", "Order documents by their relevance to a query", nil), s.rerank)
	rest.Register(a, op("/v1/responses", "Answer, with or after what was said before", response{}, "response.created", "response.output_text.delta", "response.completed"), s.respond)
	rest.Register(a, op("/v1/chat/completions", "Complete a chat", completion{}, "chat.completion.chunk"), s.complete)
}

// completionInput is a request for a chat completion.
type completionInput struct {
	RunID string         `header:"X-Loki-Run-Id" doc:"run of an agent whose question the last user message answers, as loki.run_id"`
	Body  completionBody `required:"true"`
}

// completionBody is the body of a request for a chat completion.
type completionBody struct{ request *request }

// UnmarshalJSON implements [json.Unmarshaler].
func (b *completionBody) UnmarshalJSON(data []byte) (err error) {
	b.request, err = parseCompletion(data)
	return err
}

// Schema implements [huma.SchemaProvider].
func (completionBody) Schema(r huma.Registry) *huma.Schema {
	return loose[completionRequest](r, "model", "messages")
}

// loose returns the schema of a body that decode checks: each member may be null.
func loose[T any](r huma.Registry, required ...string) *huma.Schema {
	s := *huma.SchemaFromType(r, reflect.TypeFor[T]())
	for _, p := range s.Properties {
		p.Nullable = p.Type != ""
	}
	s.Required = required
	s.AdditionalProperties = true // decode names those that are not known
	s.PrecomputeMessages()
	return &s
}

var _ json.Unmarshaler = (*completionBody)(nil)

// complete answers POST /v1/chat/completions.
func (s *service) complete(ctx context.Context, in *completionInput) (*rest.Reply, error) {
	r := in.Body.request
	if in.RunID != "" {
		r.Loki.RunID = in.RunID
	}
	if err := s.load(ctx, r); err != nil {
		return nil, err
	}
	if !r.Stream {
		a, err := s.ask(ctx, r, nil)
		if err != nil {
			return nil, err
		}
		return rest.JSON(0, newCompletion(r, a)), nil
	}
	return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
		out := newChunks(w, r)
		a, err := s.ask(ctx, r, out)
		if err != nil {
			return err
		}
		return out.finish(ctx, a, r.IncludeUsage)
	}), nil
}
