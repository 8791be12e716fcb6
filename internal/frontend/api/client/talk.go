package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"loki/internal/frontend/api"
)

// Frame is one server-sent event of a completion.
type Frame struct {
	Name string
	Data []byte // JSON
}

// completionPath returns where completions are asked for: in a session, or outside of all if that is "".
func completionPath(session string) string {
	if session == "" {
		return "/v1/completions"
	}
	return pathOf("v1", "sessions", session, "completions")
}

// Complete returns the answer to a prompt, in a session if that is not "".
func (c *Client) Complete(ctx context.Context, session string, r api.CompletionRequest) (api.Completion, error) {
	r.Stream = false
	return post[api.Completion](ctx, c, completionPath(session), r)
}

// Stream returns the answer to a prompt as it comes. It is not asked again if the connection is lost.
func (c *Client) Stream(ctx context.Context, session string, r api.CompletionRequest) iter.Seq2[Frame, error] {
	r.Stream = true
	return func(yield func(Frame, error) bool) {
		for f, err := range c.frames(ctx, request{method: http.MethodPost, path: completionPath(session), body: r, once: true}) {
			if !yield(Frame{f.Type, []byte(f.Data)}, err) || err != nil {
				return
			}
		}
	}
}

// Sessions lists the sessions, of an agent if that is not "".
func (c *Client) Sessions(ctx context.Context, agent string) ([]api.SessionEntry, error) {
	query := url.Values{}
	if agent != "" {
		query.Set("agent", agent)
	}
	return all[api.SessionEntry](ctx, c, "/v1/sessions", query, 0)
}

// SessionNamed returns the id of the session with a name, "" if there is none.
func (c *Client) SessionNamed(ctx context.Context, agent, alias string) (string, error) {
	query := url.Values{"alias": {alias}}
	if agent != "" {
		query.Set("agent", agent)
	}
	list, err := all[api.SessionEntry](ctx, c, "/v1/sessions", query, 0)
	for _, s := range list {
		if s.Agent == agent {
			return s.ID, err
		}
	}
	return "", err
}

// NewSession begins a session.
func (c *Client) NewSession(ctx context.Context, r api.SessionRequest) (api.Session, error) {
	return post[api.Session](ctx, c, "/v1/sessions", r)
}

// EmptySession forgets the messages of a session.
func (c *Client) EmptySession(ctx context.Context, id string) error {
	return c.do(ctx, request{method: http.MethodPost, path: pathOf("v1", "sessions", id, "empty")}, nil)
}

// Agents lists the agents of the server.
func (c *Client) Agents(ctx context.Context) ([]api.Agent, error) {
	return all[api.Agent](ctx, c, "/v1/agents", nil, 0)
}

// Models lists the models, roles and agents of the server that completions may name.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	return all[api.Model](ctx, c, "/v1/models", nil, 0)
}

// Roles lists the roles of the server.
func (c *Client) Roles(ctx context.Context) ([]api.Role, error) {
	return all[api.Role](ctx, c, "/v1/roles", nil, 0)
}

// RAGs lists the knowledge bases of the server.
func (c *Client) RAGs(ctx context.Context) ([]api.RAG, error) {
	return all[api.RAG](ctx, c, "/v1/rags", nil, 0)
}
