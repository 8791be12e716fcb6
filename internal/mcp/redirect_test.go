package mcp_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"loki/internal/mcp"
)

// carrier sends requests nowhere.
type carrier func(*http.Request) *http.Response

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r), nil }

// TestRedirectHome: a server elsewhere cannot have messages sent to this machine.
func TestRedirectHome(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"http://127.0.0.1:9/x", "http://localhost:9/x", "http://[::1]/x"} {
		var home atomic.Int32
		p := pool(t, func(o *mcp.Options) {
			o.HTTP = carrier(func(r *http.Request) *http.Response {
				if r.URL.Hostname() != "mcp.example.com" {
					home.Add(1)
				}
				return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {to}}, Body: http.NoBody, Request: r}
			})
		})
		_, err := p.Acquire(t.Context(), server(t, "remote", map[string]any{"url": "https://mcp.example.com/mcp"}))
		if err == nil || !strings.Contains(err.Error(), "this machine") || home.Load() != 0 {
			t.Errorf("%s: %v, and %d requests came here", to, err, home.Load())
		}
	}
}
