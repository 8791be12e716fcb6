// Package rest holds what the endpoints of the server share: how a request becomes a call of a
// function, who calls, how answers, errors and lists look, and what is said about all of it in the
// OpenAPI document.
//
// An endpoint is an [Operation] and a function from a struct to a struct, see [Register]. The same two
// types decode requests, check them and describe them.
package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// API is the endpoints of one server. They are registered before it serves. From then on it may be used
// from several goroutines.
type API struct {
	mux      *http.ServeMux
	doc      *huma.OpenAPI
	schemas  huma.Registry
	errors   *huma.Schema // of the body of an error
	openai   *huma.Schema // likewise, on OpenAI-compatible endpoints
	o        Options
	limits   atomic.Pointer[Limits]
	slots    slots
	rates    auth.Rates[string] // by subject
	watchers watchers
	theirs   []string      // the first two segments of the paths of OpenAI's endpoints, such as /v1/chat
	drain    chan struct{} // closed by Drain
	work     work
}

// Options configure New. All are optional.
type Options struct {
	Version string
	// Authenticate returns who made a request, or an error, usually an [*Error]. Nil means that the
	// server asks for no key: everyone is anonymous and may do everything.
	Authenticate func(r *http.Request) (auth.Identity, error)
	// Resource returns the address of metadata about where tokens for a request come from (RFC 9728), empty for none. It may be nil.
	Resource func(r *http.Request) string
	// Hide returns a text without secrets. Nil hides none.
	Hide func(text string) string
	Log  *slog.Logger // nil for none
	Now  func() time.Time
	// Kept keeps the answers of requests with an Idempotency-Key. Nil keeps none.
	Kept Answers
	// Wait is how long a request waits for one of its subject's slots; 0 means a second.
	Wait time.Duration
}

// Limits bound what requests may use. They may change while the server runs.
type Limits struct {
	Body       int64         // bytes of a request with messages or attachments; 0 means 16 MiB. Others have at most 1 MiB of it
	Requests   int           // requests that are worked on at once; 0 means 64
	PerSubject int           // likewise, of one subject; 0 means 8
	PerMinute  int           // requests of one subject; 0 means as many as come
	Burst      int           // requests beyond PerMinute after a quiet minute
	Timeout    time.Duration // without progress; 0 means 5 minutes

	RefuseUnknown bool // also endpoints that ignore members of bodies refuse unknown ones
}

// New returns an API without endpoints.
func New(o Options) *API {
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == 0 {
		o.Wait = time.Second
	}
	withCase()
	a := &API{mux: http.NewServeMux(), o: o, drain: make(chan struct{}), rates: auth.Rates[string]{Of: "requests"}}
	a.describe()
	a.SetLimits(Limits{})
	return a
}

// SetLimits replaces the limits. Requests at work keep theirs.
func (a *API) SetLimits(l Limits) {
	l.Body = cmp.Or(l.Body, 16<<20)
	l.Requests = cmp.Or(l.Requests, 64)
	l.PerSubject = cmp.Or(l.PerSubject, 8)
	l.Timeout = cmp.Or(l.Timeout, 5*time.Minute)
	a.limits.Store(&l)
	a.slots.resize(l.Requests, l.PerSubject)
	a.rates.Set(l.PerMinute, l.Burst)
}

// Limits returns the limits in force.
func (a *API) Limits() Limits { return *a.limits.Load() }

// Operation is an endpoint. Method, Path and Summary are required.
type Operation struct {
	Method  string
	Path    string // a pattern of [http.ServeMux] without method
	Summary string // of the OpenAPI document
	Tag     string // group in the OpenAPI document

	Scope      auth.Scope // what the caller needs; empty if any key will do
	Public     bool       // needs no key and takes no slot
	Watch      bool       // takes no slot, as it only waits for news. It ends when the server begins to shut down
	Idempotent bool       // takes an Idempotency-Key
	Again      bool       // what it does is kept by [Began] before it is done: a request that its server left before that may be done again
	Keyed      bool       // what it does is on record with [RepeatKey]: a request that its server left is done again, and has its effect once
	Status     int        // of success; 0 means 200

	OpenAIErrors bool     // errors have OpenAI's shape, unknown query parameters are ignored, and so are members that are null
	Ignores      bool     // it does not refuse members of the body that it does not know, and names them in its answer, see [IgnoredMembers]
	Events       []string // names of the server-sent events of an answer that is a stream
	Answer       any      // a value of the type of the JSON answer, where the function returns a [Reply]
	Large        bool     // its body may have messages and attachments, see [Limits]
	Action       string   // what it does, for the record of who did what, such as session_create; empty if it changes nothing
	Hidden       bool     // not in the OpenAPI document
}

// Register adds an endpoint. do is called with what the request says:
//
//   - fields of I with a tag path, query or header are parameters. They are strings, booleans, numbers,
//     times, or, in a query, lists of strings. A parameter is required if its tag says required:"true".
//   - the field Body is the JSON body. It is optional if it is a pointer.
//   - embedded structs, such as [Page], add their fields.
//
// What the tags of huma forbid is refused, and so are unknown members of the body and unknown query
// parameters. The answer is O as JSON; O = [Reply] decides by itself, and O = [None] is an answer
// without a body. The error of do is answered as [FromError] says.
//
// ctx ends when the client has gone, when the server stops, or when nothing was reported by [Progress]
// for the time that the limits say.
func Register[I, O any](a *API, op Operation, do func(ctx context.Context, in *I) (*O, error)) {
	plan := newPlan(a, reflect.TypeFor[I](), op)
	a.document(op, plan, reflect.TypeFor[O]())
	a.route(op, func(w http.ResponseWriter, r *http.Request) error {
		in := new(I)
		key, err := plan.decode(w, r, reflect.ValueOf(in).Elem())
		if err != nil {
			return err
		}
		return a.once(w, r, op, key, func(w http.ResponseWriter) error {
			out, err := do(r.Context(), in)
			if err != nil {
				return err
			}
			return a.answer(r.Context(), w, op, any(out))
		})
	})
}

// About returns the function of an endpoint about one thing: find returns the thing that the id of a request means to the caller, and do
// answers with it.
func About[I, O, T any, P interface {
	*I
	Of() string
}](find func(ctx context.Context, id string) (T, error), do func(ctx context.Context, in *I, of T) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		of, err := find(ctx, P(in).Of())
		if err != nil {
			return nil, err
		}
		return do(ctx, in, of)
	}
}

// Handle adds an endpoint that reads and answers requests by itself. An error that serve returns before
// it has written anything is answered.
func (a *API) Handle(op Operation, serve func(w http.ResponseWriter, r *http.Request) error) {
	a.document(op, &plan{}, reflect.TypeFor[None]())
	a.route(op, serve)
}

// Drain ends the requests that only watch, see [Operation.Watch], and refuses new ones except public
// ones. It is called once.
func (a *API) Drain() {
	close(a.drain)
	a.watchers.end()
}

// Draining reports whether Drain was called.
func (a *API) Draining() bool {
	select {
	case <-a.drain:
		return true
	default:
		return false
	}
}

// Idle waits until no request is at work, or ctx ends. It reports whether none is.
func (a *API) Idle(ctx context.Context) bool { return a.slots.idle(ctx) }

// Busy returns how many requests are at work.
func (a *API) Busy() int { return a.slots.busy() }

// ServeHTTP serves a request whose context has been made by [Begin].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mux.ServeHTTP(&unrouted{ResponseWriter: w, a: a, r: r}, r)
}

// Mount has a handler of its own serve the paths of a pattern. Nothing of this package is done for its
// requests.
func (a *API) Mount(pattern string, h http.Handler) { a.mount(pattern, pattern, h) }

// mount has a handler serve a pattern under the name of a route.
func (a *API) mount(pattern, route string, h http.Handler) {
	a.mux.Handle(pattern, markRouted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		callOf(r.Context()).route = route
		h.ServeHTTP(w, r)
	})))
}

// MountAs is Mount for an operation that has the parameters of I in the OpenAPI document.
func MountAs[I any](a *API, op Operation, h http.Handler) {
	a.document(op, newPlan(a, reflect.TypeFor[I](), op), reflect.TypeFor[Reply]())
	a.mount(op.Method+" "+op.Path, op.Path, h)
}

// markRouted marks the answers of a handler as such, see unrouted.
func markRouted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, ok := w.(*unrouted); ok {
			w = u.ResponseWriter
		}
		h.ServeHTTP(w, r)
	})
}

// unrouted is the writer of a request for which no endpoint has been found yet. What the mux says in that
// case becomes an error as all others.
type unrouted struct {
	http.ResponseWriter
	a    *API
	r    *http.Request
	done bool
}

// WriteHeader answers that there is no such endpoint, or not with that method.
func (u *unrouted) WriteHeader(status int) {
	if u.done {
		return
	}
	if u.a.isTheirs(u.r.URL.Path) {
		callOf(u.r.Context()).openAI = true
	}
	switch status {
	case http.StatusNotFound:
		u.done = true
		u.Header().Del("Content-Type")
		u.a.Fail(u.ResponseWriter, u.r, NotFound("endpoint", u.r.Method+" "+u.r.URL.Path).WithHint("GET /openapi.json lists the endpoints"))
	case http.StatusMethodNotAllowed:
		u.done = true
		u.Header().Del("Content-Type")
		u.a.Fail(u.ResponseWriter, u.r, &Error{
			Status: http.StatusMethodNotAllowed, Code: "invalid_request", Message: u.r.Method + " is not a method of " + u.r.URL.Path, Hint: "methods: " + u.Header().Get("Allow"),
		})
	default: // a redirect to the clean path
		u.ResponseWriter.WriteHeader(status)
	}
}

// Write drops the text of the mux.
func (u *unrouted) Write(p []byte) (int, error) {
	if u.done {
		return len(p), nil
	}
	return u.ResponseWriter.Write(p)
}

// isTheirs reports whether clients of OpenAI expect an endpoint at a path.
func (a *API) isTheirs(path string) bool {
	return slices.ContainsFunc(a.theirs, func(begin string) bool { return path == begin || strings.HasPrefix(path, begin+"/") })
}

// route has the mux call serve for the requests of op that may be made.
func (a *API) route(op Operation, serve func(w http.ResponseWriter, r *http.Request) error) {
	if op.OpenAIErrors {
		a.theirs = append(a.theirs, strings.Join(strings.SplitN(op.Path, "/", 4)[:3], "/"))
	}
	a.mux.Handle(op.Method+" "+op.Path, markRouted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		c.openAI = op.OpenAIErrors
		c.begin(op, r)
		err := a.admit(w, r, op, c, serve)
		if c.end(r.Context(), err, a.Draining()); err != nil {
			if _, begun := errors.AsType[writtenError](err); !begun {
				a.Fail(w, r, err)
			}
		}
	})))
}

// admit checks who calls and what they may, waits for a slot, and serves.
func (a *API) admit(w http.ResponseWriter, r *http.Request, op Operation, c *call, serve func(w http.ResponseWriter, r *http.Request) error) error {
	limits := a.limits.Load()
	if !op.Public {
		if err := a.identify(r, op, c); err != nil {
			return err
		}
		if a.Draining() {
			return refuseStopping(w)
		}
	}
	if err := a.limitBody(w, r, op, limits); err != nil {
		return err
	}
	within := limits.Timeout
	if op.Public {
		within = min(within, strangersBody)
	}
	if err := readWhole(w, r, c, within); err != nil {
		return err
	}
	if op.Watch {
		return a.watch(w, r, c, limits, serve)
	}
	ctx, end := deadline(auth.WithOwner(r.Context(), auth.Access{}.Owner(c.identity)), c, limits.Timeout)
	defer end()
	if !op.Public {
		release, err := a.slots.take(ctx, c.identity.Subject, a.o.Wait)
		if err != nil {
			return err
		}
		defer release()
	}
	c.admitted = true
	return failure(ctx, serve(w, r.WithContext(ctx)))
}

// failure returns the error of an endpoint as an answer, as long as it is known why ctx has ended.
func failure(ctx context.Context, err error) error {
	if _, begun := errors.AsType[writtenError](err); err == nil || begun {
		return err
	}
	return FromError(ctx, err)
}

// identify finds out who calls, counts the request, and checks the scope.
func (a *API) identify(r *http.Request, op Operation, c *call) error {
	c.identity = auth.Nobody()
	if a.o.Authenticate != nil {
		var err error
		if c.identity, err = a.o.Authenticate(r); err != nil {
			return err
		}
	}
	if err := a.rates.Take(c.identity.Subject); err != nil {
		return RefusalError(err)
	}
	if !c.identity.Allows(op.Scope) {
		return &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "the key lacks the scope " + string(op.Scope)}
	}
	return nil
}

// smallBody is the most that a body without messages and attachments has.
const smallBody = 1 << 20

// limitBody refuses a body that is too large.
func (a *API) limitBody(w http.ResponseWriter, r *http.Request, op Operation, limits *Limits) error {
	most := limits.Body
	if !op.Large {
		most = min(most, smallBody)
	}
	if op.Public {
		most = min(most, 4<<10) // which no endpoint without a key needs
	}
	if r.ContentLength > most {
		w.Header().Set("Connection", "close")
		return tooLarge(most)
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = http.MaxBytesReader(w, r.Body, most)
	}
	return nil
}

// strangersBody is how long a body may take before it is known who sends it.
const strangersBody = 10 * time.Second

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// readWhole reads the body of a request, which limitBody has bounded, into c. One that does not come in time is an
// error, and the connection ends after the answer.
func readWhole(w http.ResponseWriter, r *http.Request, c *call, within time.Duration) error {
	if !hasBody(r) {
		return nil
	}
	conn := http.NewResponseController(w)
	begun := time.Now()
	_ = conn.SetReadDeadline(begun.Add(within)) // only a writer of a test has none
	stop := context.AfterFunc(r.Context(), func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var err error
	c.body, err = io.ReadAll(r.Body)
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(begun) >= within {
		w.Header().Set("Connection", "close")
		return &Error{
			Status: http.StatusRequestTimeout, Code: "timeout", Message: fmt.Sprintf("the body of the request did not arrive within %v", within),
			Hint: "send it whole, or leave out Content-Length if there is none",
		}
	}
	if err != nil {
		return Invalid("", "the body cannot be read: %v", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return nil
}

// deadline returns the context of a request, see [Register]. However it ends, no user has canceled the runs that work in it: its cause is a
// [*run.StopError].
func deadline(outer context.Context, c *call, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(outer))
	unlink := context.AfterFunc(outer, func() { cancel(&run.StopError{Err: context.Cause(outer)}) })
	c.timeout = timeout
	c.timer = time.AfterFunc(timeout, func() { cancel(&run.StopError{Err: errTimeout{timeout}}) })
	return ctx, func() {
		unlink()
		c.timer.Stop()
		cancel(nil)
	}
}

// OpenAPI returns the document that describes the endpoints, as JSON.
func (a *API) OpenAPI() ([]byte, error) { return json.Marshal(a.doc) }

// operationID returns a name for an endpoint, such as get-v1-runs-id.
func (op Operation) operationID() string {
	words := strings.FieldsFunc(op.Path, func(r rune) bool { return strings.ContainsRune("/{}.$", r) })
	return strings.ToLower(op.Method) + "-" + strings.Join(words, "-")
}
