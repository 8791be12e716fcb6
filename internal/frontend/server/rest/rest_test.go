package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/frontend/server/answers"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// serve returns a server of an API to which add adds endpoints.
func serve(t *testing.T, o rest.Options, add func(a *rest.API)) (*rest.API, *httptest.Server) {
	t.Helper()
	a := rest.New(o)
	add(a)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.ServeHTTP(w, rest.Begin(w, r)) }))
	t.Cleanup(s.Close)
	return a, s
}

// send sends a request and returns the status and the body of the answer.
func send(t *testing.T, method, url, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header[headers[i]] = []string{headers[i+1]}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, "", nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text), res.Header
}

type point struct {
	X     int      `json:"x" minimum:"1"`
	Label string   `json:"label,omitempty" maxLength:"3"`
	Tags  []string `json:"tags,omitempty"`
}

type input struct {
	ID   string    `path:"id"`
	N    int       `query:"n" default:"7" maximum:"9"`
	Yes  bool      `query:"yes"`
	Of   []string  `query:"of"`
	At   time.Time `query:"at"`
	Body point
}

type output struct {
	ID   string   `json:"id"`
	N    int      `json:"n"`
	Yes  bool     `json:"yes"`
	Of   []string `json:"of"`
	X    int      `json:"x"`
	Year int      `json:"year"`
}

func TestRequests(t *testing.T) {
	_, s := serve(t, rest.Options{}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "POST", Path: "/p/{id}", Summary: "Test"}, func(_ context.Context, in *input) (*output, error) {
			return &output{in.ID, in.N, in.Yes, in.Of, in.Body.X, in.At.Year()}, nil
		})
		rest.Register(a, rest.Operation{Method: "GET", Path: "/none", Summary: "Test"}, func(context.Context, *struct{}) (*rest.None, error) {
			return &rest.None{}, nil
		})
	})
	large := `{"x":1,"label":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string // in the answer
	}{
		{name: "all", method: "POST", path: "/p/a%2Fb?n=9&yes=true&of=a,b&of=c&at=2026-01-02T03:04:05Z", body: `{"x":2}`, status: 200, want: `{"id":"a/b","n":9,"yes":true,"of":["a","b","c"],"x":2,"year":2026}`},
		{name: "default", method: "POST", path: "/p/a", body: `{"x":2}`, status: 200, want: `"n":7`},
		{name: "unknown_member", method: "POST", path: "/p/a", body: `{"x":2,"y":3}`, status: 400, want: `"message":"y: is not a member that this endpoint knows"`},
		{name: "other_case", method: "POST", path: "/p/a", body: `{"x":2,"LABEL":"a"}`, status: 400, want: `LABEL: is not a member that this endpoint knows`},
		{name: "other_case_of_required", method: "POST", path: "/p/a", body: `{"X":2}`, status: 400, want: `x: is missing`},
		{name: "repeated_member", method: "POST", path: "/p/a", body: `{"x":2,"label":"a:\"","x":3}`, status: 400, want: `"message":"x: is there more than once"`},
		{name: "repeated_in_escapes", method: "POST", path: "/p/a", body: `{"x":2,"\u0078":3}`, status: 400, want: `"message":"x: is there more than once"`},
		{name: "repeated_below", method: "POST", path: "/p/a", body: `{"x":2,"tags":[1,{"y":{"a":1,"b":[],"a":2}}]}`, status: 400, want: `tags[1].y.a: is there more than once`},
		{name: "repeated_deep", method: "POST", path: "/p/a", body: strings.Repeat(`{"x":`, 9000) + `{"z":1,"z":1}` + strings.Repeat("}", 9000), status: 400, want: `"message":"z: is there more than once"`},
		{name: "colons_in_strings", method: "POST", path: "/p/a", body: `{"x":2,"label":"\":\\"}`, status: 200, want: `"x":2`},
		{name: "missing_member", method: "POST", path: "/p/a", body: `{}`, status: 400, want: `x: is missing`},
		{name: "wrong_type", method: "POST", path: "/p/a", body: `{"x":"2"}`, status: 400, want: `x: expected integer`},
		{name: "too_small", method: "POST", path: "/p/a", body: `{"x":0}`, status: 400, want: `x: expected number >= 1`},
		{name: "far_too_large", method: "POST", path: "/p/a", body: `{"x":1e300}`, status: 400, want: `x: `},
		{name: "nested", method: "POST", path: "/p/a", body: `{"x":1,"tags":["a",2]}`, status: 400, want: `tags[1]: expected string`},
		{name: "several", method: "POST", path: "/p/a?n=10", body: `{"x":0,"label":"long"}`, status: 400, want: `n: expected number <= 9; `},
		{name: "no_object", method: "POST", path: "/p/a", body: `[1]`, status: 400, want: `expected object`},
		{name: "null", method: "POST", path: "/p/a", body: `null`, status: 400, want: `expected object`},
		{name: "no_body", method: "POST", path: "/p/a", status: 400, want: `the body is missing`},
		{name: "broken", method: "POST", path: "/p/a", body: "{\n\"x\":", status: 400, want: `line 2, column`},
		{name: "two_values", method: "POST", path: "/p/a", body: `{"x":1}{}`, status: 400, want: `not JSON`},
		{name: "other_type", method: "POST", path: "/p/a", body: `x=1`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 400, want: `Content-Type: application/json`},
		{name: "type_of_curl", method: "POST", path: "/p/a", body: `{"surplus":1}`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 400, want: `surplus`},
		{name: "charset", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Type", "application/json; charset=utf-8"}, status: 200, want: `"x":1`},
		{name: "charset_in_letters", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Type", `Application/JSON; Charset="UTF-8"`}, status: 200, want: `"x":1`},
		{name: "other_charset", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Type", "application/json; charset=utf-16"}, status: 415, want: `charset \"utf-16\"`},
		{name: "no_JSON_of_curl", method: "POST", path: "/p/a", body: `{"surplus":1,}`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 400, want: `the body is not JSON: line 1, column`},
		{name: "cut_off_of_curl", method: "POST", path: "/p/a", body: ` [{"surplus":1`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 400, want: `the body is not JSON: line 1, column`},
		{name: "too_deep_of_curl", method: "POST", path: "/p/a", body: strings.Repeat("[", 20000), headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 400, want: `the body is not JSON`},
		{name: "no_JSON_without_type", method: "POST", path: "/p/a", body: `{"surplus"`, headers: []string{"Content-Type", ""}, status: 400, want: `the body is not JSON: line 1, column`},
		{name: "other_charset_of_curl", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Type", "application/x-www-form-urlencoded; charset=iso-8859-1"}, status: 415, want: `only UTF-8`},
		{name: "empty_charset", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Type", `application/json; charset=""`}, status: 415, want: `only UTF-8`},
		{name: "two_charsets", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8; charset=utf-16"}, status: 400, want: `Content-Type: application/json`},
		{name: "identity", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Encoding", "Identity"}, status: 200, want: `"x":1`},
		{name: "compressed", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Encoding", "gzip"}, status: 415, want: `encoding \"gzip\"`},
		{name: "compressed_after_identity", method: "POST", path: "/p/a", body: `{"x":1}`, headers: []string{"Content-Encoding", "identity, br"}, status: 415, want: `without the header Content-Encoding`},
		{name: "pair", method: "POST", path: "/p/a", body: `{"x":1,"tags":["\ud83d\uDE00 \\ud800 \u0041"]}`, status: 200, want: `"x":1`},
		{name: "first_half", method: "POST", path: "/p/a", body: `{"x":1,"tags":["\ud800"]}`, status: 400, want: `escape \\ud800 at byte 17 is half of a surrogate pair`},
		{name: "second_half", method: "POST", path: "/p/a", body: `{"x":1,"tags":["a\uDC00"]}`, status: 400, want: `\\uDC00 at byte 18`},
		{name: "halves_turned_round", method: "POST", path: "/p/a", body: `{"x":1,"tags":["\ude00\ud83d"]}`, status: 400, want: `\\ude00 at byte 17`},
		{name: "two_first_halves", method: "POST", path: "/p/a", body: `{"x":1,"tags":["\ud83d\ud83d\ude00"]}`, status: 400, want: `\\ud83d at byte 17`},
		{name: "half_in_name", method: "POST", path: "/p/a", body: `{"x":1,"\ud800":1}`, status: 400, want: `surrogate pair`},
		{name: "half_escape", method: "POST", path: "/p/a", body: `{"x":1,"tags":["\ud8`, status: 400, want: `not JSON`},
		{name: "too_large", method: "POST", path: "/p/a", body: large, status: 413, want: `body_too_large`},
		{name: "too_large_in_pieces", method: "POST", path: "/p/a", body: large, headers: []string{"Transfer-Encoding", "chunked"}, status: 413, want: `body_too_large`},
		{name: "unknown_parameter", method: "POST", path: "/p/a?m=1", body: `{"x":1}`, status: 400, want: `m: is not a parameter`},
		{name: "twice", method: "POST", path: "/p/a?n=1&n=2", body: `{"x":1}`, status: 400, want: `n: was given more than once`},
		{name: "no_number", method: "POST", path: "/p/a?n=x", body: `{"x":1}`, status: 400, want: `n: is not a whole number`},
		{name: "no_bool", method: "POST", path: "/p/a?yes=ja", body: `{"x":1}`, status: 400, want: `yes: is neither true nor false`},
		{name: "no_time", method: "POST", path: "/p/a?at=now", body: `{"x":1}`, status: 400, want: `at: is not a time`},
		{name: "bad_query", method: "POST", path: "/p/a?n=%zz", body: `{"x":1}`, status: 400, want: `the query cannot be read`},
		{name: "none", method: "GET", path: "/none", status: 204},
		{name: "needless_body", method: "GET", path: "/none", body: `{"a":1}`, status: 400, want: `takes no body`},
		{name: "needless_but_empty", method: "GET", path: "/none", body: `{}`, status: 204},
		{name: "other_method", method: "DELETE", path: "/none", status: 405, want: `methods: GET, HEAD`},
		{name: "no_endpoint", method: "GET", path: "/nothing", status: 404, want: `"code":"not_found"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body, header := send(t, tt.method, s.URL+tt.path, tt.body, tt.headers...)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want %d %s", status, body, tt.status, tt.want)
			}
			if header.Get("X-Request-Id") == "" {
				t.Error("the answer has no request id")
			}
			if status >= 400 && (header.Get("Content-Type") != "application/json" || !json.Valid([]byte(body))) {
				t.Errorf("the error is not JSON: %s", body)
			}
		})
	}
}

func TestRequestIDs(t *testing.T) {
	_, s := serve(t, rest.Options{}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "GET", Path: "/id", Summary: "Test"}, func(ctx context.Context, _ *struct{}) (*string, error) {
			id := rest.RequestID(ctx)
			return &id, nil
		})
	})
	for id, kept := range map[string]bool{"a.B_9-": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "a b": false, "ü": false, "": false} {
		_, body, header := send(t, "GET", s.URL+"/id", "", "X-Request-Id", id)
		got := header.Get("X-Request-Id")
		if (got == id) != kept || body != fmt.Sprintf("%q\n", got) || !kept && len(got) != 36 {
			t.Errorf("%q: header %q, body %q", id, got, body)
		}
	}
}

func TestErrors(t *testing.T) {
	var err error
	add := func(path string, openAI bool) func(*rest.API) {
		return func(a *rest.API) {
			rest.Register(a, rest.Operation{Method: "GET", Path: path, Summary: "Test", OpenAIErrors: openAI}, func(context.Context, *struct{}) (*rest.None, error) { return nil, err })
		}
	}
	_, s := serve(t, rest.Options{Hide: func(s string) string { return strings.ReplaceAll(s, "secret", "***") }}, func(a *rest.API) {
		add("/e", false)(a)
		add("/o", true)(a)
	})
	for _, tt := range []struct {
		name   string
		err    error
		status int
		code   string
		kind   string // OpenAI's
		retry  string
	}{
		{"plain", errors.New("x"), 500, "internal", "server_error", ""},
		{"own", fmt.Errorf("in: %w", rest.NotFound("session", "x")), 404, "session_not_found", "invalid_request_error", ""},
		{"conflict", rest.Conflict("x"), 409, "conflict", "invalid_request_error", ""},
		{"usage", fault.New(fault.Usage, "x"), 400, "invalid_request", "invalid_request_error", ""},
		{"not_found", fault.New(fault.NotFound, "x"), 404, "not_found", "invalid_request_error", ""},
		{"model_missing", fmt.Errorf("in: %w", fault.Wrap(fault.Failure, fault.New(fault.Config, "x").ThatMisses("model"), "y")), 404, "model_not_found", "invalid_request_error", ""},
		{"tool", fault.New(fault.Tool, "x"), 500, "tool_error", "server_error", ""},
		{"config", fault.New(fault.Config, "x"), 500, "internal", "server_error", ""},
		{"provider", &provider.Error{Status: 500, Msg: "x"}, 502, "provider_error", "server_error", ""},
		{"provider_key", &provider.Error{Status: 401, Msg: "x"}, 502, "provider_error", "server_error", ""},
		{"provider_busy", fault.Wrap(fault.Provider, &provider.Error{Status: 429, RetryAfter: 1500 * time.Millisecond}, "x"), 429, "rate_limited", "rate_limit_error", "2"},
		{"provider_later", &engine.LaterError{At: time.Now().Add(time.Hour), Err: &provider.Error{Status: 429}}, 429, "rate_limited", "rate_limit_error", "3600"},
		{"deadline", context.DeadlineExceeded, 504, "timeout", "server_error", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err = tt.err
			status, body, header := send(t, "GET", s.URL+"/e", "")
			var e struct {
				Error struct{ Code, Message string }
			}
			if json.Unmarshal([]byte(body), &e) != nil || status != tt.status || e.Error.Code != tt.code || header.Get("Retry-After") != tt.retry {
				t.Errorf("got %d %s, Retry-After %q", status, body, header.Get("Retry-After"))
			}
			_, body, _ = send(t, "GET", s.URL+"/o", "")
			var o struct{ Error struct{ Code, Type string } }
			if json.Unmarshal([]byte(body), &o) != nil || o.Error.Code != tt.code || o.Error.Type != tt.kind {
				t.Errorf("OpenAI: %s", body)
			}
		})
	}
	err = fault.New(fault.Tool, "the secret is out").WithHint("hide the secret")
	if _, body, _ := send(t, "GET", s.URL+"/e", ""); strings.Contains(body, "secret") {
		t.Errorf("a secret is shown: %s", body)
	}
}

func TestScopes(t *testing.T) {
	_, s := serve(t, rest.Options{Authenticate: func(r *http.Request) (auth.Identity, error) {
		if r.Header.Get("Authorization") == "" {
			return auth.Identity{}, rest.UnauthorizedError("who?")
		}
		return auth.Identity{Subject: "ann", Scopes: []auth.Scope{auth.Scope(r.Header.Get("Authorization"))}}, nil
	}}, func(a *rest.API) {
		do := func(context.Context, *struct{}) (*rest.None, error) { return nil, nil }
		rest.Register(a, rest.Operation{Method: "GET", Path: "/runs", Summary: "Test", Scope: auth.ReadRuns}, do)
		rest.Register(a, rest.Operation{Method: "GET", Path: "/any", Summary: "Test"}, do)
		rest.Register(a, rest.Operation{Method: "GET", Path: "/public", Summary: "Test", Public: true}, do)
	})
	for _, tt := range []struct {
		path, key string
		status    int
		want      string
	}{
		{"/runs", "", 401, "unauthorized"},
		{"/runs", "read:models", 403, "read:runs"},
		{"/runs", "read:runs", 204, ""},
		{"/runs", "read", 204, ""},
		{"/any", "read:models", 204, ""},
		{"/any", "", 401, ""},
		{"/public", "", 204, ""},
	} {
		var headers []string
		if tt.key != "" {
			headers = []string{"Authorization", tt.key}
		}
		status, body, _ := send(t, "GET", s.URL+tt.path, "", headers...)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s with %q: %d %s", tt.path, tt.key, status, body)
		}
	}
}

func TestSlots(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 10)
	a, s := serve(t, rest.Options{
		Wait:         20 * time.Millisecond,
		Authenticate: func(r *http.Request) (auth.Identity, error) { return auth.Identity{Subject: r.Header.Get("Who")}, nil },
	}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "GET", Path: "/work", Summary: "Test"}, func(context.Context, *struct{}) (*rest.None, error) {
			entered <- struct{}{}
			<-release
			return nil, nil
		})
		rest.Register(a, rest.Operation{Method: "GET", Path: "/alive", Summary: "Test", Public: true}, func(context.Context, *struct{}) (*rest.None, error) { return nil, nil })
	})
	a.SetLimits(rest.Limits{Requests: 3, PerSubject: 2})
	var wg sync.WaitGroup
	for _, who := range []string{"ann", "ann", "bob"} {
		wg.Go(func() {
			if status, body, _ := send(t, "GET", s.URL+"/work", "", "Who", who); status != 204 {
				t.Errorf("%s: %d %s", who, status, body)
			}
		})
		<-entered
	}
	if status, body, h := send(t, "GET", s.URL+"/work", "", "Who", "cid"); status != 503 || !strings.Contains(body, "overloaded") || h.Get("Retry-After") != "1" {
		t.Errorf("all slots taken: %d %s", status, body)
	}
	if status, _, _ := send(t, "GET", s.URL+"/alive", ""); status != 204 {
		t.Errorf("a public endpoint: %d", status)
	}
	a.SetLimits(rest.Limits{Requests: 10, PerSubject: 2})
	if status, body, _ := send(t, "GET", s.URL+"/work", "", "Who", "ann"); status != 503 || !strings.Contains(body, "ann") {
		t.Errorf("the slots of a subject taken: %d %s", status, body)
	}
	close(release)
	wg.Wait()
	if status, _, _ := send(t, "GET", s.URL+"/work", "", "Who", "ann"); status != 204 {
		t.Errorf("slots are not given back: %d", status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if !a.Idle(ctx) || a.Busy() != 0 {
		t.Errorf("busy: %d", a.Busy())
	}
}

// TestSilentBody: a body that does not come holds no slot, and does not hold its connection forever.
func TestSilentBody(t *testing.T) {
	a, s := serve(t, rest.Options{}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "POST", Path: "/p/{id}", Summary: "Test"}, func(context.Context, *input) (*rest.None, error) { return nil, nil })
		rest.Register(a, rest.Operation{Method: "GET", Path: "/alive", Summary: "Test", Public: true}, func(context.Context, *struct{}) (*rest.None, error) { return nil, nil })
	})
	a.SetLimits(rest.Limits{Requests: 1, PerSubject: 1, Timeout: 300 * time.Millisecond})
	var silent []net.Conn
	for _, line := range []string{"POST /p/a", "POST /p/a", "GET /alive"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", line)
		silent = append(silent, conn)
	}
	if status, body, _ := send(t, "POST", s.URL+"/p/a", `{"x":1}`); status != 204 {
		t.Errorf("beside silent ones: %d %s", status, body)
	}
	for _, conn := range silent {
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // until the server closes the connection
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("%v: %s", err, answer)
		}
	}
}

// TestWaitingTakesNoSlots: however many requests of one subject wait, others work, and those that wait are woken when
// the limits become higher.
func TestWaitingTakesNoSlots(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 10)
	a, s := serve(t, rest.Options{
		Wait:         time.Minute,
		Authenticate: func(r *http.Request) (auth.Identity, error) { return auth.Identity{Subject: r.Header.Get("Who")}, nil },
	}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "GET", Path: "/work", Summary: "Test"}, func(context.Context, *struct{}) (*rest.None, error) {
			entered <- struct{}{}
			<-release
			return nil, nil
		})
		rest.Register(a, rest.Operation{Method: "GET", Path: "/quick", Summary: "Test"}, func(context.Context, *struct{}) (*rest.None, error) { return nil, nil })
	})
	a.SetLimits(rest.Limits{Requests: 3, PerSubject: 1})
	refused := make(chan string, 6)
	var wg sync.WaitGroup
	for range 6 { // one works, four wait, and one is too many
		wg.Go(func() {
			if status, body, _ := send(t, "GET", s.URL+"/work", "", "Who", "ann"); status != 204 {
				refused <- body
			}
		})
	}
	<-entered
	if body := <-refused; !strings.Contains(body, "requests of ann wait") {
		t.Errorf("refused: %s", body)
	}
	if status, body, _ := send(t, "GET", s.URL+"/quick", "", "Who", "bob"); status != 204 {
		t.Errorf("bob, while others wait: %d %s", status, body)
	}
	a.SetLimits(rest.Limits{Requests: 3, PerSubject: 2})
	<-entered // without that one has ended
	close(release)
	wg.Wait()
	if len(refused) > 0 || a.Busy() != 0 {
		t.Errorf("%d more were refused, %d are at work", len(refused), a.Busy())
	}
}

func TestTimeOutAndProgress(t *testing.T) {
	steps := make(chan struct{})
	a, s := serve(t, rest.Options{}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "GET", Path: "/slow", Summary: "Test"}, func(ctx context.Context, _ *struct{}) (*rest.None, error) {
			for range 5 {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-steps:
					rest.Progress(ctx)
				}
			}
			return nil, nil
		})
	})
	a.SetLimits(rest.Limits{Timeout: 200 * time.Millisecond})
	if status, body, _ := send(t, "GET", s.URL+"/slow", ""); status != 504 || !strings.Contains(body, "no progress for 200ms") {
		t.Errorf("no progress: %d %s", status, body)
	}
	go func() {
		tick := time.NewTicker(90 * time.Millisecond) // five of them are more than the limit
		defer tick.Stop()
		for range 5 {
			<-tick.C
			steps <- struct{}{}
		}
	}()
	if status, body, _ := send(t, "GET", s.URL+"/slow", ""); status != 204 {
		t.Errorf("with progress: %d %s", status, body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	store := answers.New(filepath.Join(t.TempDir(), "requests.db"), nil)
	defer store.Close()
	var calls atomic.Int32
	entered, release := make(chan struct{}), make(chan struct{})
	a, s := serve(t, rest.Options{Kept: store}, func(a *rest.API) {
		op := rest.Operation{Method: "POST", Path: "/do", Summary: "Test", Idempotent: true, Status: 201}
		rest.Register(a, op, func(_ context.Context, in *struct{ Body point }) (*point, error) {
			n := calls.Add(1)
			switch in.Body.Label {
			case "bad":
				return nil, fmt.Errorf("failure %d", n)
			case "slo":
				close(entered)
				<-release
			}
			return &point{X: int(n)}, nil
		})
		op.Path = "/begin"
		rest.Register(a, op, func(ctx context.Context, _ *struct{ Body point }) (*rest.Reply, error) {
			calls.Add(1)
			rest.Commit(ctx, "/begun")
			return rest.JSON(201, &point{}).With("Location", "/begun"), nil
		})
		op.Path = "/leave"
		rest.Register(a, op, func(ctx context.Context, _ *struct{ Body point }) (*point, error) {
			calls.Add(1)
			rest.Commit(ctx, "/begun")
			return nil, context.Canceled
		})
		op.Path, op.Events = "/stream", []string{"a"}
		rest.Register(a, op, func(_ context.Context, in *struct{ Body point }) (*rest.Reply, error) {
			calls.Add(1)
			return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
				return w.Send(ctx, stream.Event{ID: "1", Name: "a", Data: []byte("{}")})
			}), nil
		})
	})
	_ = a
	post := func(path, body, key string) (int, string, http.Header) {
		return send(t, "POST", s.URL+path, body, "Idempotency-Key", key)
	}
	for i := range 2 {
		status, body, h := post("/do", `{"x":1}`, "k1")
		if status != 201 || body != "{\"x\":1}\n" || (h.Get("Idempotency-Replayed") == "true") != (i == 1) || h.Get("Content-Type") != "application/json" {
			t.Errorf("%d: %d %s %v", i, status, body, h)
		}
	}
	if status, body, _ := post("/do", `{"x":2}`, "k1"); status != 422 || !strings.Contains(body, "idempotency_mismatch") {
		t.Errorf("another body: %d %s", status, body)
	}
	for want := range 2 { // failures are tried again
		if status, body, _ := post("/do", `{"x":1,"label":"bad"}`, "k2"); status != 500 || !strings.Contains(body, fmt.Sprint("failure ", want+2)) {
			t.Errorf("failure: %d %s", status, body)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if status, _, _ := post("/do", `{"x":1,"label":"slo"}`, "k3"); status != 201 {
			t.Errorf("slow: %d", status)
		}
	})
	<-entered
	if status, body, h := post("/do", `{"x":1,"label":"slo"}`, "k3"); status != 409 || !strings.Contains(body, "still at work") || h.Get("Retry-After") != "1" {
		t.Errorf("at work: %d %s", status, body)
	}
	close(release)
	wg.Wait()
	for range 2 {
		if status, body, h := post("/stream", `{"x":1}`, "k4"); status != 200 || body != "id: 1\nevent: a\ndata: {}\n\n" || h.Get("Content-Type") != "text/event-stream" {
			t.Errorf("stream: %d %q", status, body)
		}
	}
	for range 2 {
		if status, _, h := post("/begin", `{"x":1}`, "k5"); status != 201 || h.Get("Location") != "/begun" {
			t.Errorf("begin: %d %v", status, h)
		}
	}
	post("/leave", `{"x":1}`, "k6") // as if the client had gone when the effect was there
	if status, body, h := post("/leave", `{"x":1}`, "k6"); status != 409 || h.Get("Location") != "/begun" || !strings.Contains(body, "GET /begun") {
		t.Errorf("after leaving: %d %s %v", status, body, h)
	}
	if n := calls.Load(); n != 7 {
		t.Errorf("%d calls, not 7", n)
	}
	if status, _, _ := post("/do", `{"x":1}`, strings.Repeat("k", 256)); status != 400 {
		t.Errorf("a key that is too long: %d", status)
	}
}

func TestStreamErrors(t *testing.T) {
	a, s := serve(t, rest.Options{}, func(a *rest.API) {
		rest.Register(a, rest.Operation{Method: "GET", Path: "/early", Summary: "Test"}, func(context.Context, *struct{}) (*rest.Reply, error) {
			return rest.Stream(func(context.Context, *stream.Writer) error { return rest.Conflict("early") }), nil
		})
		rest.Register(a, rest.Operation{Method: "GET", Path: "/late", Summary: "Test"}, func(context.Context, *struct{}) (*rest.Reply, error) {
			return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
				_ = w.Send(ctx, stream.Event{Data: []byte("1")})
				return rest.Conflict("late")
			}), nil
		})
		rest.Register(a, rest.Operation{Method: "GET", Path: "/watch", Summary: "Test", Watch: true}, func(context.Context, *struct{}) (*rest.Reply, error) {
			return rest.Stream(func(ctx context.Context, _ *stream.Writer) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}), nil
		})
	})
	if status, body, _ := send(t, "GET", s.URL+"/early", ""); status != 409 || !strings.Contains(body, `"early"`) {
		t.Errorf("early: %d %s", status, body)
	}
	if status, body, _ := send(t, "GET", s.URL+"/late", ""); status != 200 || !strings.HasPrefix(body, "data: 1\n\nevent: error\ndata: {\"error\":{\"code\":\"conflict\"") {
		t.Errorf("late: %d %s", status, body)
	}
	res, err := http.Get(s.URL + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	a.Drain()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "shutting down") {
		t.Errorf("watch: %v %s", err, body)
	}
	if status, body, _ := send(t, "GET", s.URL+"/early", ""); status != 503 || !strings.Contains(body, "shutting down") {
		t.Errorf("while it drains: %d %s", status, body)
	}
}

// TestPanicInTheBackground: what panics behind a request ends neither the server nor other work.
func TestPanicInTheBackground(t *testing.T) {
	a, _ := serve(t, rest.Options{}, func(*rest.API) {})
	done := make(chan struct{})
	a.Go(t.Context(), func(context.Context) { panic("a mistake") })
	a.Go(t.Context(), func(context.Context) { close(done) })
	<-done
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Protect(t.Context(), func() error { panic("a mistake") }); err == nil || strings.Contains(err.Error(), "mistake") {
		t.Errorf("a panic is %v", err)
	}
}

// TestPassingFailure answers a failure that is over soon so that clients try again.
func TestPassingFailure(t *testing.T) {
	err := fault.Wrap(fault.Failure, fmt.Errorf("the database restarts: %w", run.ErrPassing), "")
	if e := rest.FromError(t.Context(), err); e.Status != http.StatusServiceUnavailable || e.RetryAfter == 0 || strings.Contains(e.Message, "database") {
		t.Errorf("%+v", e)
	}
}
