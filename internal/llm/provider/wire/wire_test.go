package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// post sends a small request to base and returns the reply.
func post(t testing.TB, o wire.Options, base string) (string, error) {
	t.Helper()
	return postAs(t.Context(), t, o, base, wire.Call{API: wire.ChatCompletions, Model: "m"})
}

func postAs(ctx context.Context, t testing.TB, o wire.Options, base string, c wire.Call) (string, error) {
	t.Helper()
	o.Client = "test"
	client, err := wire.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx = wire.WithCall(ctx, c)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", strings.NewReader(`{"model":"real","temperature":0.5}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		return "", wire.Failure(ctx, "asking test", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), wire.Failure(ctx, "reading the reply of test", err)
}

const key = "sk-1234567890abcdef"

// rejected returns the error for a reply with another status than 2xx.
func rejected(t *testing.T, re wiretest.Reply) *provider.Error {
	t.Helper()
	server := openaitest.New(t)
	server.Script(re)
	_, err := post(t, wire.Options{}, server.URL())
	e, ok := errors.AsType[*provider.Error](err)
	if !ok {
		t.Fatalf("error = %v", err)
	}
	return e
}

func TestNewClientRejects(t *testing.T) {
	socks, nonsense, none := "socks5://127.0.0.1:1080", "nonsense", "-"
	for proxy, ok := range map[*string]bool{nil: true, &socks: true, &none: true, &nonsense: false} {
		_, err := wire.NewClient(wire.Options{Client: "x", Proxy: proxy})
		if (err == nil) != ok || !ok && (fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), `proxy of client "x"`)) {
			t.Errorf("error = %v", err)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for _, tt := range []struct{ base, want, wantErr string }{
		{" https://host/v1// ", "https://host/v1", ""},
		{"", "", `client "x" has no api_base`},
		{"https://host/{ACCOUNT}/v1", "", "placeholder {ACCOUNT}"},
		{"localhost:8080/v1", "", "not an http or https URL"},
		{"ftp://host/v1", "", "not an http or https URL"},
	} {
		got, err := wire.BaseURL("x", tt.base, "https://example.com")
		if got != tt.want || (err == nil) != (tt.wantErr == "") {
			t.Errorf("%q: %q, %v", tt.base, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Config) {
			t.Errorf("%q: error = %v", tt.base, err)
		}
	}
}

// TestConnectionFailures are transient unless they will happen again.
func TestConnectionFailures(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/v1"
	closed.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // the client hangs up, as it should
	tls.StartTLS()
	defer tls.Close()
	plain := openaitest.New(t)
	for _, tt := range []struct {
		name, base string
		kind       provider.ErrorKind
	}{
		{"nobody_listens", nobody, provider.Transient},
		{"unknown_certificate", tls.URL, provider.Invalid},
		{"no_tls", strings.Replace(plain.URL(), "http:", "https:", 1), provider.Invalid},
		{"with_password", strings.Replace(nobody, "http://", "http://user:pa55word@", 1), provider.Transient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := post(t, wire.Options{}, tt.base)
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Kind != tt.kind || e.Status != 0 {
				t.Errorf("error = %+v", err)
			}
			if text := err.Error(); !strings.Contains(text, "127.0.0.1") || strings.Contains(text, "pa55word") {
				t.Errorf("error = %s", text)
			}
		})
	}
}

// timeout is what the net package fails with when a connection takes too long.
type timeout struct{}

func (timeout) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
}

// TestConnectTimeoutIsNotTheCallersDeadline: callers tell the two apart by the
// chain of the error.
func TestConnectTimeoutIsNotTheCallersDeadline(t *testing.T) {
	_, err := post(t, wire.Options{Transport: timeout{}}, "http://server.test")
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Kind != provider.Transient || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(e.Msg, "no connection within 10s") {
		t.Errorf("error = %+v", err)
	}
}

func TestProxy(t *testing.T) {
	var got []string // of one request at a time
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.String())
		fmt.Fprint(w, "through the proxy")
	}))
	defer proxy.Close()
	if text, err := post(t, wire.Options{Proxy: &proxy.URL}, "http://model.invalid/v1"); text != "through the proxy" {
		t.Errorf("text %q, error %v", text, err)
	}
	if len(got) != 1 || got[0] != "http://model.invalid/v1/chat/completions" {
		t.Errorf("the proxy got %v", got)
	}
	none := "-"
	server := openaitest.New(t)
	server.Script(openaitest.Text("direct"))
	if text, err := post(t, wire.Options{Proxy: &none}, server.URL()); !strings.Contains(text, "direct") || len(server.Requests()) != 1 {
		t.Errorf("text %q, error %v", text, err)
	}
}

func TestRedirections(t *testing.T) {
	elsewhere := openaitest.New(t)
	elsewhere.Always(openaitest.Text("leaked"))
	for _, tt := range []struct {
		name string
		code int
		to   string
		ok   bool
	}{
		{"same_host", http.StatusTemporaryRedirect, "/v1/chat/completions/", true},
		{"other_host", http.StatusTemporaryRedirect, elsewhere.URL() + "/chat/completions?key=secret", false},
		{"turned_into_get", http.StatusMovedPermanently, "/v1/chat/completions/", false},
		{"nowhere", http.StatusTemporaryRedirect, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := openaitest.New(t)
			server.Script(wiretest.Status(tt.code, "moved", "Location", tt.to), wiretest.Body("text/plain", "ok"))
			// A patched URL must not be put in place of the one redirected to.
			patch := wire.Patch{URL: server.URL() + "/patched"}
			text, err := postAs(t.Context(), t, wire.Options{}, server.URL(), wire.Call{Patch: patch})
			if tt.ok {
				r := server.Requests()
				if text != "ok" || len(r) != 2 || r[0].Path != "/patched" || r[1].Path != "/chat/completions/" || string(r[1].Body) != string(r[0].Body) {
					t.Errorf("text %q, error %v, requests %+v", text, err, r)
				}
				return
			}
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Kind != provider.Invalid || !strings.Contains(e.Msg, "redirects to") || strings.Contains(e.Msg, "secret") {
				t.Errorf("error = %v", err)
			}
		})
	}
	t.Run("endless", func(t *testing.T) {
		server := openaitest.New(t)
		server.Always(wiretest.Status(http.StatusTemporaryRedirect, "", "Location", "/v1/again"))
		if _, err := post(t, wire.Options{}, server.URL()); err == nil || len(server.Requests()) != 4 {
			t.Errorf("error %v after %d requests", err, len(server.Requests()))
		}
	})
	if n := len(elsewhere.Requests()); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
}

// silent answers after a wait, with a piece of text and then nothing.
type silent struct{ wait time.Duration }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(s.wait):
	}
	body, w := io.Pipe()
	go func() { // ends with the request
		_, _ = io.WriteString(w, "hello")
		<-r.Context().Done()
		w.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
}

// TestSilence: a server may be silent for so long, before and in the reply, and the
// user's own cancellation is told from that.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name     string
		wait     time.Duration
		deadline time.Duration // the caller's; 0 means none
		text     string
		took     time.Duration
	}{
		{"before_the_reply", time.Hour, 0, "", time.Minute},
		{"in_the_reply", 0, 0, "hello", time.Minute},
		{"callers_deadline", time.Hour, time.Second, "", time.Second},
		{"callers_deadline_in_the_reply", 0, time.Second, "hello", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				start := time.Now()
				o := wire.Options{Transport: silent{tt.wait}, ReadTimeout: time.Minute}
				text, err := postAs(ctx, t, o, "http://server.test", wire.Call{})
				if text != tt.text || time.Since(start) != tt.took {
					t.Errorf("text %q after %v", text, time.Since(start))
				}
				e, ok := errors.AsType[*provider.Error](err)
				if tt.deadline > 0 {
					if ok || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error = %+v", err)
					}
				} else if !ok || e.Kind != provider.Transient || !strings.Contains(e.Msg, "no data for 1m0s") {
					t.Errorf("error = %+v", err)
				}
			})
		})
	}
}

// TestMaxReply allows exactly so much.
func TestMaxReply(t *testing.T) {
	server := openaitest.New(t)
	server.Always(wiretest.Body("text/plain", "12345"))
	if text, err := post(t, wire.Options{MaxReply: 5}, server.URL()); text != "12345" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	_, err := post(t, wire.Options{MaxReply: 4}, server.URL())
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != provider.BadReply || !strings.Contains(e.Error(), "too long") {
		t.Errorf("error = %v", err)
	}
}

// TestSecretsStayOut has a server repeat what it was sent.
func TestSecretsStayOut(t *testing.T) {
	const token, password, query = "tok-abcdef", "pa55word", "AIzaSecret"
	server := openaitest.New(t)
	all := key + " " + token + " " + query
	base := strings.Replace(server.URL(), "http://", "http://user:"+password+"@", 1)
	call := wire.Call{Patch: wire.Patch{Headers: []wire.Header{{Name: "X-Auth", Value: new("Custom " + token)}}}}
	check := func(err error) {
		t.Helper()
		if err == nil {
			t.Error("no error")
			return
		}
		for _, secret := range []string{key, token, password, query} {
			if text := fmt.Sprintf("%+v %v", err, errors.Unwrap(err)); strings.Contains(text, secret) {
				t.Errorf("%q in %s", secret, text)
			}
		}
	}
	for name, re := range map[string]wiretest.Reply{
		"status":      wiretest.Status(401, `{"error":{"message":"`+all+`","type":"`+key+`"}}`),
		"plain_text":  wiretest.Status(500, "header was: Bearer "+all),
		"redirection": wiretest.Status(302, "", "Location", "http://x.invalid/"+key),
	} {
		t.Run(name, func(t *testing.T) {
			server.Script(re)
			call := call
			call.Patch.URL = base + "/chat/completions?key=" + query
			_, err := postAs(t.Context(), t, wire.Options{}, base, call)
			check(err)
		})
	}
	t.Run("inside_a_reply", func(t *testing.T) {
		server.Script(wiretest.Body("application/json", `{"error":{"message":"`+all+`"}}`))
		ctx := wire.WithCall(t.Context(), call)
		client, err := wire.NewClient(wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"?key="+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		check(wire.Failure(ctx, "asking", wire.ReplyError(data)))
	})
}

// TestRejection: the words of a rejection are kept for who adapts to them.
func TestRejection(t *testing.T) {
	server := openaitest.New(t)
	server.Script(wiretest.Status(422, `{"error":{"message":"no","param":"stream_options"}}`))
	client, err := wire.NewClient(wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Get(server.URL())
	r, ok := errors.AsType[*wire.Rejection](err)
	if !ok || r.Err.Status != 422 || !strings.Contains(string(r.Body), "stream_options") || r.Error() != r.Err.Error() {
		t.Errorf("error = %#v", err)
	}
}

// TestFailure sorts what SDKs and readers end with.
func TestFailure(t *testing.T) {
	ctx := t.Context()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	known := &provider.Error{Kind: provider.Refused, Msg: "no"}
	_, badURL := http.Get("http://%zz")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		kind provider.ErrorKind // empty for no *provider.Error
		want string
	}{
		{"known", ctx, fmt.Errorf("sdk: %w", known), provider.Refused, "no"},
		{"known_although_cancelled", canceled, fmt.Errorf("sdk: %w", known), provider.Refused, "no"},
		{"cancelled", canceled, errors.New("whatever the sdk makes of it"), "", "asking x: context canceled"},
		{"cut_off", ctx, fmt.Errorf("sdk: %w", context.Canceled), provider.Transient, "asking x: the request was cut off"},
		{"end", ctx, fmt.Errorf("sdk: %w", io.ErrUnexpectedEOF), provider.Transient, "asking x: connection closed before the reply was complete"},
		{"no_json", ctx, jsonError(), provider.BadReply, "asking x: invalid character 'n' looking for beginning of object key string"},
		{"url", ctx, badURL, provider.Transient, `asking x: invalid URL escape "%zz"`},
		{"other", ctx, errors.New("boom"), provider.Transient, "asking x: boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := wire.Failure(tt.ctx, "asking x", tt.err)
			e, ok := errors.AsType[*provider.Error](err)
			if ok != (tt.kind != "") || err.Error() != tt.want || ok && e.Kind != tt.kind {
				t.Errorf("error = %+v, want %s %q", err, tt.kind, tt.want)
			}
		})
	}
	if err := wire.Failure(ctx, "asking", nil); err != nil {
		t.Errorf("Failure(nil) = %v", err)
	}
}

func jsonError() error {
	var v any
	return json.Unmarshal([]byte("{no"), &v)
}
