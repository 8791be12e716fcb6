package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"loki/internal/frontend/api"
)

// get reads the JSON at a path.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	err := c.do(ctx, request{method: http.MethodGet, path: path, query: query}, &out)
	return out, err
}

// post sends JSON to a path and reads the answer.
func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	err := c.do(ctx, request{method: http.MethodPost, path: path, body: body}, &out)
	return out, err
}

// all reads all pages of a list, or as many as have limit entries; 0 means no limit.
func all[T any](ctx context.Context, c *Client, path string, query url.Values, limit int) ([]T, error) {
	list := []T{}
	q := url.Values{"limit": {"200"}}
	for name, values := range query {
		q[name] = values
	}
	for {
		page, err := get[api.List[T]](ctx, c, path, q)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Data...)
		if limit > 0 && len(list) >= limit {
			return list[:limit], nil
		}
		if page.NextCursor == "" {
			return list, nil
		}
		q.Set("cursor", page.NextCursor)
	}
}

// Agent describes an agent.
func (c *Client) Agent(ctx context.Context, name string) (api.AgentDetail, error) {
	return get[api.AgentDetail](ctx, c, pathOf("v1", "agents", name), nil)
}

// AgentGraph returns a drawing of the graph of an agent; formats are svg, mermaid, dot, text and json.
func (c *Client) AgentGraph(ctx context.Context, name, format string) ([]byte, error) {
	return get[[]byte](ctx, c, pathOf("v1", "agents", name, "graph"), url.Values{"format": {format}})
}

// StartRun begins a run of an agent.
func (c *Client) StartRun(ctx context.Context, agent string, r api.RunRequest) (api.Run, error) {
	return post[api.Run](ctx, c, pathOf("v1", "agents", agent, "runs"), r)
}

// RunQuery selects runs. The zero RunQuery selects all that the caller may see.
type RunQuery struct {
	Agent  string
	Status string
	Since  time.Time
	Limit  int // the most; 0 means all
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, q RunQuery) ([]api.Run, error) {
	query := url.Values{}
	if q.Agent != "" {
		query.Set("agent", q.Agent)
	}
	if q.Status != "" {
		query.Set("status", q.Status)
	}
	if !q.Since.IsZero() {
		query.Set("since", q.Since.UTC().Format(time.RFC3339))
	}
	return all[api.Run](ctx, c, "/v1/runs", query, q.Limit)
}

// Run describes a run with its path. An id may be shortened to a beginning that means one run, here and
// below.
func (c *Client) Run(ctx context.Context, id string) (api.RunDetail, error) {
	return get[api.RunDetail](ctx, c, pathOf("v1", "runs", id), nil)
}

// State returns the state of a run after a super-step, -1 for the last one.
func (c *Client) State(ctx context.Context, id string, step int) (api.RunState, error) {
	query := url.Values{}
	if step >= 0 {
		query.Set("step", strconv.Itoa(step))
	}
	return get[api.RunState](ctx, c, pathOf("v1", "runs", id, "state"), query)
}

// Diff returns how the states of two steps differ. Both are as ID@STEP; a alone decides whose path the
// request has.
func (c *Client) Diff(ctx context.Context, id, a, b string) ([]api.Change, error) {
	list, err := get[api.List[api.Change]](ctx, c, pathOf("v1", "runs", id, "diff"), url.Values{"a": {a}, "b": {b}})
	return list.Data, err
}

// Questions returns the questions of a run that wait.
func (c *Client) Questions(ctx context.Context, id string) ([]api.Question, error) {
	list, err := get[api.List[api.Question]](ctx, c, pathOf("v1", "runs", id, "questions"), nil)
	return list.Data, err
}

// Answer answers questions that wait, by their ids. The run resumes.
func (c *Client) Answer(ctx context.Context, id string, answers map[string]string) (api.Run, error) {
	return post[api.Run](ctx, c, pathOf("v1", "runs", id, "answers"), answers)
}

// Signal gives a run a signal.
func (c *Client) Signal(ctx context.Context, id, name string, s api.SignalRequest) (api.Signal, error) {
	return post[api.Signal](ctx, c, pathOf("v1", "runs", id, "signals", name), s)
}

// Resume resumes a run.
func (c *Client) Resume(ctx context.Context, id string, r api.Resumption) (api.Run, error) {
	return post[api.Run](ctx, c, pathOf("v1", "runs", id, "resume"), r)
}

// Cancel ends a run.
func (c *Client) Cancel(ctx context.Context, id string) (api.Run, error) {
	return post[api.Run](ctx, c, pathOf("v1", "runs", id, "cancel"), nil)
}

// Fork begins a new run from a step of a run.
func (c *Client) Fork(ctx context.Context, id string, f api.Fork) (api.Run, error) {
	return post[api.Run](ctx, c, pathOf("v1", "runs", id, "fork"), f)
}
