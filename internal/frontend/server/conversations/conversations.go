// Package conversations serves completions and sessions, and the work in the background that belongs to them.
//
// An endpoint translates: a request becomes a conversation of package conversation, one for each request, and what
// happens in that becomes the answer. Requests to one session are served one after the other, see [rest.Lanes].
package conversations

import (
	"context"
	"net/http"
	"sync"

	commandjob "loki/internal/agent/team/job"
	"loki/internal/app"
	"loki/internal/frontend/api"
	commands "loki/internal/frontend/server/jobs"
	"loki/internal/frontend/server/messages"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/service/postgres"
	"loki/internal/workflow/run/manager"
)

// Options say what the endpoints work with.
type Options struct {
	App     *app.App
	Manager *manager.Manager // of the app's runs
	Access  func() auth.Access
	Roots   func() []string // directories below which requests may name files
	DB      *postgres.DB    // that several servers share; nil for none
	Lanes   *rest.Lanes     // of the requests to sessions
	Jobs    *commandjob.Registry
	Seen    event.Emitter // gets all events, too, from several goroutines; nil for none
}

// service has the endpoints of one server.
type service struct {
	Options
	api     *rest.API
	places  sync.Map // where sessions were found: session.Scope by session.ID
	waiting waiting
	jobs    jobs
}

// events are the server-sent events of a completion.
var events = []string{
	"started", "assistant_delta", "reasoning_delta", "tool_call", "tool_result", "node_started", "node_finished", "question", "usage", "warning", "retry", "steered", "finished", "error",
}

// The groups of the endpoints in the OpenAPI document.
const (
	completions = "Completions"
	sessions    = "Sessions"
	jobsTag     = "Jobs"
)

// Register adds the endpoints.
func Register(a *rest.API, o Options) {
	s := &service{Options: o, api: a}
	if o.DB != nil {
		s.jobs.board = newBoard(o.DB, o.App.Config.RAGStore == nil)
	}
	post, get, remove := http.MethodPost, http.MethodGet, http.MethodDelete

	rest.Register(a, rest.Operation{
		Method: post, Path: "/v1/completions", Summary: "Ask a model, a role or an agent", Tag: completions, Scope: auth.RunAgents, Idempotent: true, Large: true, Action: audit.Completion,
		Answer: api.Completion{}, Events: events,
	}, s.complete)
	rest.Register(a, rest.Operation{
		Method: post, Path: "/v1/sessions/{id}/completions", Summary: "Ask in a session", Tag: completions, Scope: auth.WriteSessions, Idempotent: true, Again: true, Large: true, Action: audit.SessionUpdate,
		Answer: api.Completion{}, Events: events,
	}, s.completeIn)

	rest.Register(a, rest.Operation{
		Method: post, Path: "/v1/sessions", Summary: "Begin a session", Tag: sessions, Scope: auth.WriteSessions, Idempotent: true, Status: http.StatusCreated, Action: audit.SessionCreate,
	}, s.create)
	rest.Register(a, rest.Operation{Method: get, Path: "/v1/sessions", Summary: "List the sessions", Tag: sessions, Scope: auth.ReadSessions}, s.list)
	rest.Register(a, rest.Operation{Method: get, Path: "/v1/sessions/{id}", Summary: "A session with its messages", Tag: sessions, Scope: auth.ReadSessions, Action: audit.SessionRead}, rest.About(s.find, s.show))
	rest.Register(a, rest.Operation{Method: get, Path: "/v1/sessions/{id}/export", Summary: "A session as a document", Tag: sessions, Scope: auth.ReadSessions, Action: audit.SessionRead}, rest.About(s.find, s.export))
	commands.Register(a, commands.Options{
		Jobs: o.Jobs, Path: "/v1/sessions/{id}", Tag: sessions, Read: auth.ReadSessions, Write: auth.WriteSessions, Action: audit.SessionUpdate,
		Find: func(ctx context.Context, id string, _ bool) (string, string, error) {
			found, err := s.find(ctx, id)
			if err != nil {
				return "", "", err
			}
			return "", string(found.ID()), nil
		},
	})
	messages.Register(a, messages.Options{
		Manager: o.Manager, Path: "/v1/sessions/{id}", Tag: sessions, Write: auth.WriteSessions, Action: audit.SessionUpdate,
		Find: func(ctx context.Context, id string) (string, error) {
			found, err := s.find(ctx, id)
			if err != nil {
				return "", err
			}
			return s.atWork(ctx, found.ID())
		},
	})
	rest.Register(a, rest.Operation{Method: remove, Path: "/v1/sessions/{id}", Summary: "Delete a session", Tag: sessions, Scope: auth.WriteSessions, Action: audit.SessionDelete}, s.remove)
	rest.Register(a, rest.Operation{
		Method: post, Path: "/v1/sessions/{id}/regenerate", Summary: "Answer the last question again", Tag: sessions, Scope: auth.WriteSessions, Idempotent: true, Again: true,
		Action: audit.SessionUpdate, Answer: api.Completion{}, Events: events,
	}, s.regenerate)
	rest.Register(a, rest.Operation{
		Method: post, Path: "/v1/sessions/{id}/fork", Summary: "Begin a session with the turns of another one", Tag: sessions, Scope: auth.WriteSessions, Idempotent: true, Status: http.StatusCreated,
		Action: audit.SessionCreate,
	}, s.fork)
	change := func(method, what, summary string) rest.Operation {
		return rest.Operation{
			Method: method, Path: "/v1/sessions/{id}/" + what, Summary: summary, Tag: sessions, Scope: auth.WriteSessions, Idempotent: method == post, Action: audit.SessionUpdate,
		}
	}
	rest.Register(a, change(post, "compress", "Replace older turns with a summary"), s.compress)
	rest.Register(a, change(post, "empty", "Take all messages out"), s.empty)
	rest.Register(a, change(post, "role", "Give a session without messages a role"), s.setRole)
	rest.Register(a, change(remove, "role", "Take the role away"), s.unsetRole)
	agent := change(post, "agent", "Make a session without messages one of an agent")
	agent.Action = audit.AgentActivate
	rest.Register(a, agent, s.setAgent)
	rest.Register(a, change(remove, "agent", "Make a session without messages one without an agent"), s.unsetAgent)
	rest.Register(a, change(post, "rag", "Answer from a knowledge base"), s.setRAG)
	rest.Register(a, change(remove, "rag", "Answer without the knowledge base"), s.unsetRAG)

	rest.Register(a, rest.Operation{
		Method: post, Path: "/v1/rags/{name}/rebuild", Summary: "Read the documents of a knowledge base anew", Tag: jobsTag, Scope: auth.AdminRAGs, Status: http.StatusAccepted,
		Action: audit.RAGRebuild,
	}, s.rebuild)
	rest.Register(a, rest.Operation{
		Method: get, Path: "/v1/jobs/{id}", Summary: "How far a job has come", Tag: jobsTag, Scope: auth.AdminRAGs, Watch: true, Answer: api.Job{}, Events: jobEvents,
	}, s.job)
	rest.Register(a, rest.Operation{Method: post, Path: "/v1/mcp/reload", Summary: "Read mcp.json again", Tag: jobsTag, Scope: auth.AdminMCP, Action: audit.MCPReload}, s.reload)
}
