// Package openai serves the endpoints that clients of OpenAI know: chat completions, responses, embeddings, and
// the reranking of Jina and Cohere. Models, roles and agents all answer there under a model's name.
//
// A request is read into the program's own words, a [request]; whatever cannot be had is an error that names
// the member. The answer comes from a conversation of package conversation or from the run of a graph, and is
// put back into the words of the endpoint.
package openai

import (
	"net/http"

	"loki/internal/app"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/run/manager"
)

const tag = "OpenAI-compatible"

// Options are what the endpoints work with. All but Seen are required.
type Options struct {
	App     *app.App
	Manager *manager.Manager // of the app's runs
	Lanes   *rest.Lanes      // of the requests to sessions
	Seen    event.Emitter    // gets all events, too, from several goroutines; nil for none
}

// Register adds the endpoints.
func Register(a *rest.API, o Options) {
	s := &service{app: o.App, seen: o.Seen, talks: o.App.ServerConversations(), plain: o.App.ServerConversations(), runs: o.Manager, lanes: o.Lanes}
	s.plain.Switches.NoTools, s.plain.Switches.NoServers = true, true
	op := func(path, summary string, answer any, events ...string) rest.Operation {
		return rest.Operation{
			Method: http.MethodPost, Path: path, Summary: summary, Tag: tag, Scope: auth.RunAgents, Idempotent: true, OpenAIErrors: true, Large: true, Action: audit.Completion,
			Ignores: answer != nil, Answer: answer, Events: events,
		}
	}
	rest.Register(a, op("/v1/embeddings", "Turn texts into vectors", nil), s.embed)
	rest.Register(a, op("/v1/rerank", "Order documents by their relevance to a query", nil), s.rerank)
	rest.Register(a, op("/v1/responses", "Answer, with or after what was said before", response{}, "response.created", "response.output_text.delta", "response.completed"), s.respond)
	rest.Register(a, op("/v1/chat/completions", "Complete a chat", completion{}, "chat.completion.chunk"), s.complete)
}
