// Package hooks serves the webhooks of triggers, whose requests prove by a signature who sends them, and their dead letters.
package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule/trigger"
)

// Options configure Register.
type Options struct {
	Triggers *trigger.Service
	Entries  run.Entries
	// Local reports whether a request comes from a program of this machine, and Strange counts one without a valid signature, which
	// is an error if there were too many from its address.
	Local   func(r *http.Request) bool
	Strange func(r *http.Request) error
	Log     *slog.Logger
}

// bodies is how many bodies are read at once, before it is known who sends them.
const bodies = 32

// hooks serves the requests of webhooks.
type hooks struct {
	Options
	api   *rest.API
	slots chan struct{} // holds a token for each body that is being read
}

// Register adds the endpoints.
func Register(a *rest.API, o Options) {
	h := &hooks{o, a, make(chan struct{}, bodies)}
	rest.MountAs[struct {
		Name string `path:"name" doc:"of the trigger"`
	}](a, rest.Operation{Method: http.MethodPost, Path: "/v1/hooks/{name}", Summary: "Start a run by a signed delivery", Tag: "Triggers", Public: true, Answer: api.Delivered{}}, h)
	dead := rest.Operation{Method: http.MethodGet, Path: "/v1/hooks/{name}/dead", Summary: "List the deliveries that started no run", Tag: "Triggers", Scope: auth.AdminSessions}
	rest.Register(a, dead, h.dead)
	dead.Method, dead.Path, dead.Summary, dead.Action = http.MethodPost, "/v1/hooks/{name}/dead/{id}/retry", "Start the run of a dead letter", audit.RunStart
	rest.Register(a, dead, h.retry)
}

// ServeHTTP implements [http.Handler].
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest.Acts(r.Context(), audit.RunStart)
	result, err := h.accept(w, r)
	if err != nil {
		h.api.Fail(w, r, err)
		return
	}
	answer := api.Delivered{RunID: result.RunID, Duplicate: result.Duplicate, Ignored: result.RunID == ""}
	status := http.StatusOK
	if result.RunID != "" {
		rest.AboutRun(r.Context(), result.RunID)
		if !result.Duplicate {
			status = http.StatusAccepted
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the run is on record
}

// accept reads a request and starts its run.
func (h *hooks) accept(w http.ResponseWriter, r *http.Request) (trigger.Result, error) {
	if h.api.Draining() {
		w.Header().Set("Connection", "close")
		return trigger.Result{}, &rest.Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: "the server is shutting down", RetryAfter: time.Second}
	}
	name := r.PathValue("name")
	hook := h.Triggers.Webhook(name)
	if hook == nil {
		return trigger.Result{}, h.signatureError(r, name)
	}
	body, err := h.read(w, r, int64(hook.MaxBody))
	if err != nil {
		return trigger.Result{}, err
	}
	result, err := h.Triggers.Accept(r.Context(), name, trigger.Request{Header: r.Header, Query: r.URL.Query(), Body: body}, h.Local(r))
	if errors.Is(err, trigger.ErrSignature) {
		return result, h.signatureError(r, name)
	}
	if tooOften, ok := errors.AsType[*trigger.TooOftenError](err); ok {
		return result, &rest.Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Message: "the trigger gets too many requests", RetryAfter: max(tooOften.After, time.Second)}
	}
	if bad, ok := errors.AsType[*trigger.BodyError](err); ok {
		return result, rest.Invalid("", "%s", bad)
	}
	if dead, ok := errors.AsType[*trigger.DeadError](err); ok {
		h.Log.Warn("a delivery started no run", "request_id", rest.RequestID(r.Context()), "trigger", name, "dead_letter", dead.ID, "error", dead.Err.Error())
		if dead.Full {
			return result, &rest.Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: "too many runs of the trigger wait; the delivery is kept as the dead letter " + dead.ID, RetryAfter: time.Minute}
		}
		return result, &rest.Error{Status: http.StatusUnprocessableEntity, Code: "dead_letter", Message: "the delivery started no run; it is kept as the dead letter " + dead.ID}
	}
	return result, err
}

// signatureError is the answer to a request without a valid signature, also where there is no such trigger.
func (h *hooks) signatureError(r *http.Request, name string) error {
	if tooMany := h.Strange(r); tooMany != nil {
		return tooMany
	}
	if !utf8.ValidString(name) || len(name) > 64 {
		name = "?"
	}
	h.Log.Warn("request refused", "request_id", rest.RequestID(r.Context()), "trigger", name, "error", trigger.ErrSignature.Error())
	return rest.UnauthorizedError("%w", trigger.ErrSignature)
}

// read reads the body of a request of at most so many bytes.
func (h *hooks) read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	tooLarge := &rest.Error{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Message: "the body is too large for this trigger"}
	if r.ContentLength > most {
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		return nil, &rest.Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: "too many requests are in progress", RetryAfter: time.Second}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most)) // until the deadline that strangers have
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLarge
	}
	if err != nil {
		w.Header().Set("Connection", "close")
		return nil, &rest.Error{Status: http.StatusRequestTimeout, Code: "timeout", Message: "the body of the request did not arrive in time", Err: err}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // only a writer of a test has none
	return body, nil
}

type (
	of struct {
		Name string `path:"name" maxLength:"64" doc:"of the trigger"`
	}
	one struct {
		of
		ID string `path:"id" maxLength:"64" doc:"of the dead letter"`
	}
)

func (h *hooks) dead(ctx context.Context, in *of) (*api.List[api.DeadLetter], error) {
	letters, err := trigger.DeadLetters(ctx, h.Entries, in.Name)
	if err != nil {
		return nil, err
	}
	list := make([]api.DeadLetter, len(letters))
	for i, d := range letters {
		list[i] = api.DeadLetter{ID: d.ID, Trigger: d.Trigger, Delivery: d.Delivery, At: d.At, Reason: d.Reason}
	}
	return api.NewList(list, ""), nil
}

func (h *hooks) retry(ctx context.Context, in *one) (*api.Delivered, error) {
	result, err := h.Triggers.Retry(ctx, in.Name, in.ID)
	if err != nil {
		return nil, err
	}
	rest.AboutRun(ctx, result.RunID)
	return &api.Delivered{RunID: result.RunID, Duplicate: result.Duplicate, Ignored: result.RunID == ""}, nil
}
