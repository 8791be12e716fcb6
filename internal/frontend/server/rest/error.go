package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/frontend/api"
	"loki/internal/llm/engine"
	"loki/internal/llm/hook"
	"loki/internal/llm/provider"
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// Error is an answer that is an error.
type Error struct {
	Status     int    // of HTTP
	Code       string // stable, for programs
	Message    string
	Hint       string        // what to do next; may be empty
	Param      string        // the member of the request that is wrong; may be empty
	RetryAfter time.Duration // when the same request may work; 0 if that is not known
	Err        error         // the cause, for the log; may be nil
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Invalid returns the error of a request that makes no sense. param names the member that is wrong, or is
// empty.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "invalid_request", Param: param, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns the error of a thing that does not exist or that the caller must not know of. kind is
// what it is, such as session: the code is session_not_found then.
func NotFound(kind, id string) *Error {
	code := kind + "_not_found"
	if kind == "endpoint" {
		code = "not_found"
	}
	return &Error{Status: http.StatusNotFound, Code: code, Message: fmt.Sprintf("there is no %s %s", kind, id)}
}

// unsupportedError returns the error of a body in a form that is not accepted.
func unsupportedError(format string, args ...any) *Error {
	e := Invalid("", format, args...)
	e.Status = http.StatusUnsupportedMediaType
	return e
}

// Conflict returns the error of a request that does not go with the state of what it is about.
func Conflict(format string, args ...any) *Error {
	return &Error{Status: http.StatusConflict, Code: "conflict", Message: fmt.Sprintf(format, args...)}
}

// Forbidden returns the error of a request that the caller may not make.
func Forbidden(format string, args ...any) *Error {
	return &Error{Status: http.StatusForbidden, Code: "forbidden", Message: fmt.Sprintf(format, args...)}
}

// UnauthorizedError returns the error of a request without a valid key. The format may have %w for its cause.
func UnauthorizedError(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Status: http.StatusUnauthorized, Code: "unauthorized", Message: err.Error(), Err: errors.Unwrap(err)}
}

// RefusalError returns the answer to a request that was refused with an error for which [auth.Reason] has a word, nil for another one.
// What is wrong with a token is only said in the log: err is the cause.
func RefusalError(err error) *Error {
	switch reason := auth.Reason(err); reason {
	case "":
		return nil
	case auth.ReasonRateLimited:
		tooMany, _ := errors.AsType[*auth.TooManyError](err)
		return &Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Message: tooMany.Error(), RetryAfter: tooMany.After, Err: err}
	case auth.ReasonUnavailable:
		return overloadBy(err, "the server cannot check tokens now: it waits for the keys of their issuer")
	case auth.ReasonMissing, auth.ReasonMalformed:
		if _, isToken := errors.AsType[*auth.TokenError](err); !isToken {
			return UnauthorizedError("%w", err).WithHint("send the header Authorization: Bearer KEY")
		}
	case auth.ReasonUnknown:
		return UnauthorizedError("%w", err)
	}
	e := UnauthorizedError("the token is not valid").WithHint("the log of the server has the reason, under the id of this request")
	e.Err = err
	return e
}

// Internal returns the error of a defect, such as a panic, of which the log says more.
func Internal() *Error {
	return &Error{Status: http.StatusInternalServerError, Code: "internal", Message: "internal error; the log of the server has the details"}
}

// overloadError returns the error of a server that has no room for a request.
func overloadError(message string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: message, RetryAfter: time.Second}
}

// overloadBy is overloadError with a cause.
func overloadBy(cause error, message string) *Error {
	e := overloadError(message)
	e.Err = cause
	return e
}

// refuseStopping refuses a request of a server that shuts down.
func refuseStopping(w http.ResponseWriter) *Error {
	w.Header().Set("Connection", "close")
	return overloadError("the server is shutting down")
}

func tooLarge(most int64) *Error {
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Message: fmt.Sprintf("the body has more than %d bytes", most),
		Hint: fmt.Sprintf("api.limits.max_body_bytes in the server's configuration sets the limit for messages and attachments; other requests have at most %d bytes", smallBody),
	}
}

// errStopping is the cause of a context that ends because the server does.
var errStopping = errors.New("the server is shutting down")

// ErrStopping is the cause of the contexts of requests that a server which shuts down ends.
func ErrStopping() error { return errStopping }

// errTimeout is the cause of a context that ends for lack of progress.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string {
	return fmt.Sprintf("no progress for %v", e.after)
}

// statusCanceled is nginx's status for a client that has gone. Only logs see it.
const statusCanceled = 499

// FromError returns err as an answer, with a hint in the words of the client. ctx is that of the request: if it has ended, that is the reason.
func FromError(ctx context.Context, err error) *Error {
	e := fromError(ctx, err)
	if hint := terminalHint(e.Hint); callOf(ctx).commandLine && hint != e.Hint {
		other := *e
		other.Hint = hint
		return &other
	}
	return e
}

func fromError(ctx context.Context, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch { // the last two are those of a database that restarts, for example
	case errors.Is(err, errStopping), errors.Is(err, manager.ErrClosed):
		return overloadBy(err, errStopping.Error())
	case ctx.Err() == nil && errors.Is(err, run.ErrPassing):
		return overloadBy(err, "the record of runs cannot be reached now")
	case ctx.Err() == nil && errors.Is(err, postgres.ErrAway):
		return overloadBy(err, "the database cannot be reached now")
	}
	if e := fromContext(ctx, err); e != nil {
		return e
	}
	e := &Error{Status: http.StatusInternalServerError, Code: "internal", Message: err.Error(), Hint: fault.HintOf(err), Err: err}
	if !callOf(ctx).commandLine {
		e.Hint = hintFor(e.Hint)
	}
	if later, ok := errors.AsType[*engine.LaterError](err); ok {
		e.RetryAfter = time.Until(later.At)
	}
	if spent, ok := errors.AsType[*run.SpentError](err); ok {
		e.RetryAfter = time.Until(spent.At)
	}
	if p, ok := errors.AsType[*provider.Error](err); ok {
		e.Status, e.Code = http.StatusBadGateway, "provider_error"
		if p.Status == http.StatusTooManyRequests {
			e.Status, e.Code = http.StatusTooManyRequests, "rate_limited"
			e.RetryAfter = max(e.RetryAfter, provider.RetryAfter(err), time.Second)
		}
		return e
	}
	if held, ok := errors.AsType[*run.LeaseError](err); ok { // which process holds it is in the log
		e.Status, e.Code = http.StatusConflict, "conflict"
		e.Message, e.Hint = "run "+held.ID+" is at work in another process", "see how far it has come: GET /v1/runs/"+held.ID
		return e
	}
	if busy, ok := errors.AsType[*run.BusyError](err); ok { // whose runs these are is not for clients
		e.Status, e.Code, e.Message = http.StatusConflict, "conflict", "the run is not started, because a run "+busy.Gate.String()+" is at work"
		return e
	}
	switch kind := fault.MissingOf(err); {
	case is[*hook.RefusedError](err): // by the rules of this server, so that the same is refused again
		e.Status, e.Code = http.StatusForbidden, "refused"
	case is[*run.NotAssignedError](err):
		e.Status, e.Code = http.StatusForbidden, "forbidden"
	case is[*run.ConsentError](err):
		e.Status, e.Code, e.Param = http.StatusForbidden, "forbidden", "variables"
	case is[*run.RefusedError](err), is[*run.EndedError](err):
		e.Status, e.Code = http.StatusConflict, "conflict"
	case kind != "":
		e.Status, e.Code = http.StatusNotFound, kind+"_not_found"
	default:
		if known, ok := codes[fault.CodeOf(err)]; ok {
			e.Status, e.Code = known.status, known.code
		}
	}
	return e
}

// is reports whether an error of a type is in the tree of err.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// codes are the answers to failures by their code.
var codes = map[fault.Code]struct {
	status int
	code   string
}{
	fault.Usage:     {http.StatusBadRequest, "invalid_request"},
	fault.NotFound:  {http.StatusNotFound, "not_found"},
	fault.Provider:  {http.StatusBadGateway, "provider_error"},
	fault.Refused:   {http.StatusBadGateway, "refused"},
	fault.Tool:      {http.StatusInternalServerError, "tool_error"},
	fault.Limit:     {http.StatusTooManyRequests, "limit_reached"},
	fault.Suspended: {http.StatusConflict, "conflict"},
	fault.Canceled:  {statusCanceled, "canceled"},
}

// fromContext returns the error of a request whose context has ended, or nil.
func fromContext(ctx context.Context, err error) *Error {
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errStopping):
		return overloadBy(err, errStopping.Error())
	case cause == nil && errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Code: "timeout", Message: err.Error(), Err: err}
	}
	if t, ok := errors.AsType[errTimeout](cause); ok {
		return &Error{
			Status: http.StatusGatewayTimeout, Code: "timeout", Message: "the request timed out: " + t.Error(), Err: err,
			Hint: "the server's configuration sets the limit: api.request_timeout_seconds",
		}
	}
	if e, ok := errors.AsType[*Error](cause); ok {
		return e
	}
	return &Error{Status: statusCanceled, Code: "canceled", Message: "the request was canceled", Err: err}
}

// Fail answers with an error. Nothing must have been written.
func (a *API) Fail(w http.ResponseWriter, r *http.Request, err error) {
	e := FromError(r.Context(), err)
	if e.Status >= http.StatusInternalServerError && e.Status != http.StatusServiceUnavailable {
		a.o.Log.Error("request failed", "request_id", RequestID(r.Context()), "method", r.Method, "path", r.URL.Path, "status", e.Status, "error", a.o.Hide(err.Error()))
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Status == http.StatusUnauthorized {
		var params []string // RFC 6750, section 3
		if reason := auth.Reason(err); reason != "" && reason != auth.ReasonMissing {
			params = append(params, `error="invalid_token"`)
		}
		if a.o.Resource != nil {
			if at := a.o.Resource(r); at != "" {
				params = append(params, `resource_metadata="`+at+`"`)
			}
		}
		w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(params, ", ")))
	}
	body, _ := value.Marshal(a.ErrorBody(r.Context(), e)) // of strings only
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(append(body, '\n'))
}

// ErrorBody returns the body of an error, in the shape of the endpoint that is served with ctx.
func (a *API) ErrorBody(ctx context.Context, err error) any {
	e, c := FromError(ctx, err), callOf(ctx)
	message, hint := a.o.Hide(e.Message), a.o.Hide(e.Hint)
	if !c.openAI {
		return api.Error{Error: api.ErrorBody{Code: e.Code, Message: message, Hint: hint, RequestID: c.id}}
	}
	body := api.OpenAIErrorBody{Message: message, Type: openAIType(e.Status), Code: e.Code}
	if hint != "" {
		body.Message += " (" + hint + ")"
	}
	if e.Param != "" {
		body.Param = &e.Param
	}
	return api.OpenAIError{Error: body}
}

// openAIType returns OpenAI's kind of an error.
func openAIType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	if status >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}
