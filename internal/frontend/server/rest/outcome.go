package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"loki/internal/base/text"
	"loki/internal/service/auth"
)

// Outcome is the outcome of a request, for logs, metrics and the audit record. A stream that continues after its
// request has succeeded.
type Outcome struct {
	Route    string // path of the endpoint with placeholders; "" if none serves the request
	Action   string // see [Operation.Action]
	Refusal  Refusal
	Err      *Error // why it failed, also after a part of the answer was sent; nil on success
	Reason   string // of a refusal, as [auth.Reason] has it; scope if the key may not do it
	Replayed bool   // the answer is that of an earlier request with the same Idempotency-Key

	// What the request was about, as far as it is known: the client's words if nothing of that name exists.
	Session, Run, Agent string
	NewSession          bool   // the request has made the session
	Base                string // of knowledge
	Schedule            string
}

// Refusal says what kept a request from its endpoint.
type Refusal int

// The refusals.
const (
	Admitted     Refusal = iota // nothing did
	RefusedKey                  // it has no valid key, or one that may not do it
	RefusedLimit                // too many requests
	RefusedElse                 // such as a body that is too large
)

// longestName is the length of the longest name in an outcome, in bytes.
const longestName = 256

// OutcomeOf returns what became of the request that was served with ctx.
func OutcomeOf(ctx context.Context) Outcome {
	c := callOf(ctx)
	o := c.outcome
	o.Route = c.route
	if run, ok := strings.CutPrefix(c.committed, "/v1/runs/"); ok && run != "" {
		o.Run = run
	}
	if name, ok := strings.CutPrefix(c.committed, "/v1/schedules/"); ok {
		o.Schedule = name
	}
	return o
}

// LogAttrs returns who made the request that ctx belongs to, for its lines in the log; nil if ctx belongs to none.
func LogAttrs(ctx context.Context) []slog.Attr {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return nil
	}
	return []slog.Attr{slog.String("request_id", c.id), slog.String("subject", c.identity.Subject)}
}

// AboutSession says in which session the request that is served with ctx is, where its path does not. Only the goroutine
// of the request calls it. An empty name says nothing.
func AboutSession(ctx context.Context, id string) { about(&callOf(ctx).outcome.Session, id) }

// AboutNewSession is [AboutSession] for a session that the request makes.
func AboutNewSession(ctx context.Context, id string) {
	AboutSession(ctx, id)
	callOf(ctx).outcome.NewSession = true
}

// AboutRun is like [AboutSession], for a run.
func AboutRun(ctx context.Context, id string) { about(&callOf(ctx).outcome.Run, id) }

// AboutAgent is like [AboutSession], for an agent.
func AboutAgent(ctx context.Context, name string) { about(&callOf(ctx).outcome.Agent, name) }

func about(dst *string, name string) {
	if name != "" {
		*dst = text.Cut(name, longestName)
	}
}

// Acts says that the request that is served with ctx does something else than its [Operation.Action]. Only the goroutine
// of the request calls it.
func Acts(ctx context.Context, action string) { callOf(ctx).outcome.Action = action }

// begin notes which endpoint serves a request, and what its path is about.
func (c *call) begin(op Operation, r *http.Request) {
	c.route, c.outcome.Action = op.Path, op.Action
	switch {
	case strings.HasPrefix(op.Path, "/v1/sessions/{id}"):
		about(&c.outcome.Session, r.PathValue("id"))
	case strings.HasPrefix(op.Path, "/v1/runs/{id}"):
		about(&c.outcome.Run, r.PathValue("id"))
	case strings.HasPrefix(op.Path, "/v1/agents/{name}"):
		about(&c.outcome.Agent, r.PathValue("name"))
	case strings.HasPrefix(op.Path, "/v1/rags/{name}"):
		about(&c.outcome.Base, r.PathValue("name"))
	case strings.HasPrefix(op.Path, "/v1/schedules/{name}"):
		about(&c.outcome.Schedule, r.PathValue("name"))
	}
}

// end notes the error with which a request has ended.
func (c *call) end(ctx context.Context, err error, draining bool) {
	if err == nil {
		return
	}
	if w, ok := errors.AsType[writtenError](err); ok {
		err = w.error
	}
	e := FromError(ctx, err)
	c.outcome.Err = e
	if c.admitted {
		return
	}
	c.outcome.Reason = auth.Reason(e.Err)
	switch {
	case e.Status == http.StatusForbidden:
		c.outcome.Refusal, c.outcome.Reason = RefusedKey, "scope"
	case e.Status == http.StatusUnauthorized || c.outcome.Reason == auth.ReasonUnavailable:
		c.outcome.Refusal = RefusedKey
	case e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable && !draining:
		c.outcome.Refusal = RefusedLimit
	default:
		c.outcome.Refusal = RefusedElse
	}
}
