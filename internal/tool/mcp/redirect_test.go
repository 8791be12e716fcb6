package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp"
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

// TestRemoteRefusals: the words of a server, a hint, and redirects that a message can follow.
func TestRemoteRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		status   int
		location string
		body     string
		want     string // in the error
		hint     string
		then     string // addresses and keys of further requests
	}{
		{name: "unauthorized", status: 401, body: `{"error":"no key"}`, want: "HTTP 401 Unauthorized: no key", hint: "loki --authenticate mcp:remote"},
		{name: "server_error", status: 500, body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"quota of team blue"}}`, want: "quota of team blue"},
		{name: "page", status: 200, body: `<html><title>Sign in</title></html>`, want: "Sign in"},
		{name: "moved", status: 301, location: "/mcp/", then: "POST https://mcp.example.com/mcp/ key"},
		{name: "found", status: 302, location: "/mcp/", then: "POST https://mcp.example.com/mcp/ key"},
		{name: "kept", status: 308, location: "/mcp/", then: "POST https://mcp.example.com/mcp/ key"},
		{name: "elsewhere", status: 308, location: "https://other.example.com/mcp", then: "POST https://other.example.com/mcp "},
		{name: "other_port", status: 308, location: "https://mcp.example.com:8443/mcp", then: "POST https://mcp.example.com:8443/mcp "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var then atomic.Value
			then.Store("")
			p := pool(t, func(o *mcp.Options) {
				o.HTTP = carrier(func(r *http.Request) *http.Response {
					reply := &http.Response{StatusCode: tt.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(tt.body)), Request: r}
					if strings.HasPrefix(tt.body, "<") {
						reply.Header.Set("Content-Type", "text/html")
					}
					if r.URL.String() == "https://mcp.example.com/mcp" {
						if tt.location != "" {
							reply.Header.Set("Location", tt.location)
						}
						return reply
					}
					then.CompareAndSwap("", r.Method+" "+r.URL.String()+" "+r.Header.Get("X-Key"))
					reply.StatusCode, reply.Body = 418, io.NopCloser(strings.NewReader("enough"))
					return reply
				})
			})
			_, err := p.Acquire(t.Context(), server(t, "remote", map[string]any{"url": "https://mcp.example.com/mcp", "headers": map[string]string{"X-Key": "key"}}))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.HintOf(err), tt.hint) || then.Load() != tt.then {
				t.Errorf("%v, hint %q, then %q", err, fault.HintOf(err), then.Load())
			}
		})
	}
}
