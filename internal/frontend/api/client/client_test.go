package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/client"
)

// start returns a client of a server that answers with handle, and the waits between its attempts.
func start(t *testing.T, handle http.HandlerFunc) (*client.Client, *[]time.Duration) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	waits := new([]time.Duration)
	c, err := client.New(client.Options{URL: server.URL, Key: "k1", Sleep: func(ctx context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c, waits
}

// drop ends the connection in the middle of an answer.
func drop(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"http://127.0.0.1:3400", "http://127.0.0.1:3400"},
		{"localhost:3400", "http://localhost:3400"},
		{"[::1]:3400", "http://[::1]:3400"},
		{"loki.example.com", "https://loki.example.com"},
		{"loki.example.com:8443", "https://loki.example.com:8443"},
		{"https://example.com/loki/", "https://example.com/loki"},
		{"ftp://x", ""},
		{"http://", ""},
		{"http://me:pw@x", ""},
		{"http://x?a=b", ""},
		{"http://x y", ""},
		{"", ""},
	} {
		t.Run(tt.in, func(t *testing.T) {
			c, err := client.New(client.Options{URL: tt.in})
			switch {
			case tt.want == "" && fault.CodeOf(err) == fault.Usage && !strings.Contains(err.Error(), "pw"):
			case tt.want != "" && err == nil && c.URL() == tt.want:
			default:
				t.Errorf("%v, %v", c, err)
			}
		})
	}
}

func TestExposed(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{"http://10.0.0.7:1": true, "https://10.0.0.7:1": false, "http://127.0.0.1:1": false, "http://localhost": false} {
		c, err := client.New(client.Options{URL: url, Key: "k"})
		if err != nil || c.Exposed() != want {
			t.Errorf("%s: %v, %v", url, c.Exposed(), err)
		}
	}
}

// TestErrors: an error of the server is what the same failure is on the command line.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		code       string
		want       fault.Code
		wantTries  int
		wantPhrase string
	}{
		{404, "run_not_found", fault.NotFound, 1, "it failed"},
		{404, "question_not_found", fault.Usage, 1, "it failed"},
		{400, "invalid_request", fault.Usage, 1, "it failed"},
		{401, "unauthorized", fault.Config, 1, "it failed"},
		{403, "forbidden", fault.Failure, 1, "it failed"},
		{409, "conflict", fault.Failure, 1, "it failed"},
		{429, "rate_limited", fault.Limit, 5, "it failed"},
		{429, "limit_reached", fault.Limit, 1, "it failed"},
		{502, "provider_error", fault.Provider, 1, "it failed"},
		{502, "refused", fault.Refused, 1, "it failed"},
		{503, "overloaded", fault.Failure, 5, "it failed"},
		{500, "tool_error", fault.Tool, 1, "it failed"},
		{502, "", fault.Failure, 1, "not as a server of Loki does"},
	} {
		t.Run(fmt.Sprint(tt.status, tt.code), func(t *testing.T) {
			tries := 0
			c, _ := start(t, func(w http.ResponseWriter, _ *http.Request) {
				tries++
				w.WriteHeader(tt.status)
				if tt.code == "" {
					_, _ = io.WriteString(w, "<html>bad gateway")
					return
				}
				_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":"it failed","hint":"mend it","request_id":"r1"}}`, tt.code)
			})
			_, err := c.Run(t.Context(), "k3v9abcd")
			if fault.CodeOf(err) != tt.want || !strings.Contains(err.Error(), tt.wantPhrase) || tries != tt.wantTries || fault.HintOf(err) == "" {
				t.Errorf("%v (%s, %q) after %d tries", err, fault.CodeOf(err), fault.HintOf(err), tries)
			}
		})
	}
}

// TestRepeats: work is begun once although the connection is lost, because each attempt has the same key.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var keys []string
	c, waits := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k1" {
			t.Error("no key")
		}
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
			return
		}
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		switch len(keys) {
		case 1:
			drop(w)
		case 2:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"k3v9abcd"}`)
		}
	})
	if _, err := c.Runs(t.Context(), client.RunQuery{}); err != nil {
		t.Fatal(err)
	}
	r, err := c.StartRun(t.Context(), "a", api.RunRequest{Prompt: "x"})
	if err != nil || r.ID != "k3v9abcd" {
		t.Fatalf("%v, %v", r, err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("keys %q", keys)
	}
	if len(*waits) != 2 || (*waits)[1] < 2*time.Second {
		t.Errorf("waits %v", *waits)
	}
}

// TestUnreachable: a wrong address is reported at once.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := client.New(client.Options{URL: server.URL, Key: "secret", Sleep: func(context.Context, time.Duration) error {
		t.Error("it was tried again")
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Run(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestWatchGoesOn: a stream that breaks is read on behind the last event, and none comes twice or is left out.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	var asked []string
	c, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		frame := func(id int) { _, _ = fmt.Fprintf(w, "id: %d\nevent: reply\ndata: {\"n\":%d}\n\n", id, id) }
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(asked) {
		case 1:
			frame(1)
			_, _ = io.WriteString(w, "event: delta\ndata: {}\n\n")
			frame(2)
			_, _ = io.WriteString(w, "id: 3\nevent: reply\ndata: {")
			drop(w)
		case 2:
			_, _ = io.WriteString(w, "event: error\ndata: {\"error\":{\"code\":\"overloaded\",\"message\":\"the server is shutting down\"}}\n\n")
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 4: // a proxy that ends the stream as if it were over
			frame(3)
		default:
			frame(4)
			_, _ = io.WriteString(w, "event: end\ndata: {\"id\":\"k3v9abcd\"}\n\n")
		}
	})
	var numbers, types []string
	lost := 0
	for ev, err := range c.Watch(t.Context(), "k3v9abcd", 0, func(error) { lost++ }) {
		if err != nil {
			t.Fatal(err)
		}
		numbers, types = append(numbers, fmt.Sprint(ev.Number)), append(types, ev.Type)
	}
	if got := strings.Join(numbers, " "); got != "1 0 2 3 4" || types[1] != "delta" {
		t.Errorf("events %s, %v", got, types)
	}
	if !slices.Equal(asked[:2], []string{"", "2"}) || asked[len(asked)-1] != "3" || lost < 2 {
		t.Errorf("asked after %q, lost %d times", asked, lost)
	}
}

// TestWatchEndsForGood: an answer that no other attempt would mend ends the stream.
func TestWatchEndsForGood(t *testing.T) {
	t.Parallel()
	c, waits := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"run_not_found","message":"there is no run x"}}`)
	})
	var errs []error
	for _, err := range c.Watch(t.Context(), "x", 0, nil) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || fault.CodeOf(errs[0]) != fault.NotFound || len(*waits) > 0 {
		t.Errorf("%v after %v", errs, *waits)
	}
}

// TestCompletionsAreNotRepeated: half an answer is not asked for again.
func TestCompletionsAreNotRepeated(t *testing.T) {
	t.Parallel()
	tries := 0
	c, _ := start(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: assistant_delta\ndata: {\"text\":\"a\"}\n\n")
		drop(w)
	})
	got := 0
	var last error
	for f, err := range c.Stream(t.Context(), "", api.CompletionRequest{Prompt: api.Prompt{Text: "x"}}) {
		if err == nil && f.Name == "assistant_delta" {
			got++
		}
		last = err
	}
	if got != 1 || tries != 1 || last == nil || !strings.Contains(last.Error(), "was lost") {
		t.Errorf("%d, %d, %v", got, tries, last)
	}
}
