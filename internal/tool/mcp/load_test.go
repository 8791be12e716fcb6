package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/process"
	"loki/internal/base/text/sample"
	"loki/internal/tool/mcp"
)

// settled waits until a count has come down to limit.
func settled(count func() int, limit int) int {
	n := count()
	for deadline := time.Now().Add(5 * time.Second); n > limit && time.Now().Before(deadline); n = count() {
		time.Sleep(5 * time.Millisecond) // of goroutines that have nobody to wait for
	}
	return n
}

// guarded starts the guard of child processes, which stays as long as the program.
func guarded(t *testing.T) {
	t.Helper()
	_, err := process.Run(t.Context(), process.Command{Path: os.Args[0], Args: []string{"-test.run", "^$"}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
}

func TestThousandCyclesLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a thousand programs")
	}
	guarded(t)
	processes := len(children(t))
	goroutines := runtime.NumGoroutine()
	p := pool(t, nil)
	var wg sync.WaitGroup
	times := 250 / sample.Step(5)
	for i := range 4 { // of which each has a server of its own
		s := fakeAs(t, fmt.Sprint("server", i), "sound")
		wg.Go(func() {
			for range times {
				h, err := p.Acquire(t.Context(), s)
				if err != nil {
					t.Error(err)
					return
				}
				h.Release()
			}
		})
	}
	wg.Wait()
	if err := p.Shutdown(time.Second); err != nil {
		t.Error(err)
	}
	if n := len(children(t)); n > processes {
		t.Errorf("%d processes are left: %v", n-processes, children(t))
	}
	if n := settled(runtime.NumGoroutine, goroutines); n > goroutines {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, before %d\n%s", n, goroutines, buf[:runtime.Stack(buf, true)])
	}
	if m := p.Metrics(); m.Started != int64(4*times) {
		t.Errorf("%+v", m)
	}
}

// TestLoad is a service under load: 100 conversations at a time, each with two or three of
// ten servers.
func TestLoad(t *testing.T) {
	guarded(t)
	processes := len(children(t))
	p := pool(t, func(o *mcp.Options) { o.Pool = mcp.PoolConfig{IdleTimeout: 5 * time.Minute} })
	servers := make([]mcp.Server, 10)
	for i := range servers {
		servers[i] = fakeAs(t, fmt.Sprintf("server%d", i), "sound")
	}
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			mine := []mcp.Server{servers[i%10], servers[(i+3)%10], servers[(i*7+5)%10]}[:2+i%2]
			sc := p.Scope(mine, mcp.ScopeOptions{})
			defer sc.Close()
			for _, s := range mine {
				began := time.Now()
				out, err := call(t.Context(), sc, "invoke_"+s.ID, fmt.Sprintf(`{"tool":"echo","arguments":{"n":%d}}`, i))
				if err != nil || out != fmt.Sprintf(`{"n":%d}`, i) {
					t.Errorf("%s: %s, %v", s.ID, out, err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	m := p.Metrics()
	if m.HitRate() <= 0.9 || m.Started != 10 {
		t.Errorf("hit rate %.3f, %+v", m.HitRate(), m)
	}
	slices.Sort(took)
	t.Logf("hit rate %.3f, %+v; call p50 %v, p99 %v", m.HitRate(), m, took[len(took)/2], took[len(took)*99/100])
	if err := p.Shutdown(0); err != nil {
		t.Error(err)
	}
	if n := len(children(t)); n > processes {
		t.Errorf("%d processes are left", n-processes)
	}
}

// tokens hands out a new token after each refusal.
type tokens struct {
	mu       sync.Mutex
	n        int
	rejected []string
}

func (s *tokens) Token(context.Context, string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("token-%d", s.n), nil
}

func (s *tokens) Reject(_ context.Context, _, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.rejected = append(s.rejected, token)
}

// remote is a server of the SDK behind what handler does.
func remote(t *testing.T, around func(next http.Handler) http.Handler) mcp.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "remote", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		A int `json:"a"`
	},
	) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("a is ", in.A)}}}, nil, nil
	})
	ts := httptest.NewServer(around(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)))
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	return server(t, "remote", map[string]any{"url": ts.URL, "headers": map[string]string{"X-Key": "{{KEY}}"}})
}

func TestTokensAndHeaders(t *testing.T) {
	source := &tokens{}
	s := remote(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") != "k3y" || r.Header.Get("Authorization") != "Bearer token-1" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	p := pool(t, func(o *mcp.Options) {
		o.Tokens = source
		o.Secrets = func(string) (string, error) { return "k3y", nil }
	})
	sc := scope(t, p, mcp.ScopeOptions{}, s)
	if out, err := call(t.Context(), sc, "invoke", `{"tool":"echo","arguments":{"a":1}}`); err != nil || out != "a is 1" {
		t.Errorf("got %s, %v", out, err)
	}
	if !slices.Equal(source.rejected, []string{"token-0"}) {
		t.Errorf("rejected: %v", source.rejected)
	}
}

func TestRemoteFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"unauthorized", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "nauthorized"},
		{"silent", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection goes unnoticed
			<-r.Context().Done()
		}, "not ready within 300ms"},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "too large"},
		{"no_json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "<html>")
		}, "decode"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") == "" {
				fmt.Fprint(w, "no key here")
				return
			}
			http.Redirect(w, r, "http://localhost:"+r.Host[strings.LastIndex(r.Host, ":")+1:]+"/other", http.StatusTemporaryRedirect)
		}, "cannot connect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ts := httptest.NewServer(tt.handler)
			t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
			p := pool(t, func(o *mcp.Options) {
				o.MaxMessage = 1 << 20
				o.Secrets = func(string) (string, error) { return "k3y-of-mine", nil }
				if tt.name == "silent" {
					o.ConnectTimeout = 300 * time.Millisecond
				}
			})
			s := server(t, "remote", map[string]any{"url": ts.URL + "/?key={{KEY}}", "headers": map[string]string{"X-Key": "{{KEY}}"}})
			_, err := p.Acquire(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "k3y-of-mine") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A server that refuses the version of the protocol by a status is asked with one that it names.
func TestRefusedVersion(t *testing.T) {
	s := remote(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"initialize"`)) && !bytes.Contains(body, []byte("2025-06-18")) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unsupported protocol version","data":{"supported":["2025-03-26","2025-06-18"]}}}`)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		})
	})
	s.Headers = nil
	if out, err := call(t.Context(), scope(t, pool(t, nil), mcp.ScopeOptions{}, s), "invoke", `{"tool":"echo","arguments":{"a":1}}`); err != nil || out != "a is 1" {
		t.Errorf("got %s, %v", out, err)
	}
}

// A server that forgot the session has not run the call: it is made again.
func TestExpiredSession(t *testing.T) {
	for _, refusal := range []struct {
		status int
		body   string
	}{
		{404, "session not found"},
		{404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`},
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
		{400, "Bad Request: Server not initialized"},
	} {
		t.Run(refusal.body, func(t *testing.T) {
			t.Parallel()
			testExpiredSession(t, refusal.status, refusal.body)
		})
	}
}

func testExpiredSession(t *testing.T, status int, body string) {
	var mu sync.Mutex
	forgotten, sessions := "", map[string]bool{}
	s := remote(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("Mcp-Session-Id")
			mu.Lock()
			gone := id != "" && id == forgotten
			if id != "" {
				sessions[id] = true
			}
			mu.Unlock()
			if gone {
				http.Error(w, body, status)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	s.Headers = nil
	sc := scope(t, pool(t, nil), mcp.ScopeOptions{}, s)
	const echo = `{"tool":"echo","arguments":{"a":1}}`
	if _, err := call(t.Context(), sc, "invoke", echo); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	for id := range sessions {
		forgotten = id
	}
	mu.Unlock()
	if out, err := call(t.Context(), sc, "invoke", echo); err != nil || out != "a is 1" {
		t.Errorf("got %s, %v", out, err)
	}
	if len(sessions) != 2 {
		t.Errorf("sessions: %v", sessions)
	}
}
