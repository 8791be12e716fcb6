package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"loki/internal/app"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/servertest"
)

func TestHostsAndOrigins(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": "clients: []\napi: {cors: {allowed_origins: [\"https://ok.example\"]}, force_https: true}\n"})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	for _, tt := range []struct {
		name    string
		headers []string
		status  int
		allowed string // Access-Control-Allow-Origin
	}{
		{"itself", nil, 200, ""},
		{"localhost", []string{"Host", "localhost:" + port}, 200, ""},
		{"ipv6", []string{"Host", "[::1]"}, 200, ""},
		{"rebound", []string{"Host", "evil.example:" + port}, 403, ""},
		{"rebound_prefix", []string{"Host", "127.0.0.1.evil.example"}, 403, ""},
		{"rebound_suffix", []string{"Host", "evil-localhost"}, 403, ""},
		{"same_origin", []string{"Origin", s.URL}, 200, ""},
		{"other_site", []string{"Origin", "https://evil.example"}, 403, ""},
		{"other_site_by_browser", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"no_origin", []string{"Origin", "null"}, 403, ""},
		{"listed", []string{"Origin", "https://ok.example"}, 200, "https://ok.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.Post("/v1/auth/check", "", tt.headers...)
			if a.Status != tt.status || a.Header.Get("Access-Control-Allow-Origin") != tt.allowed {
				t.Errorf("%d %q %s", a.Status, a.Header.Get("Access-Control-Allow-Origin"), a.Body)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "strict-origin-when-cross-origin",
				"Strict-Transport-Security": "max-age=31536000; includeSubDomains", "Server": "",
			} {
				if got := a.Header.Get(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
	for origin, want := range map[string]int{"https://ok.example": http.StatusNoContent, "https://evil.example": http.StatusForbidden} {
		a := s.Do(http.MethodOptions, "/v1/completions", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,x-stainless-lang")
		if a.Status != want || (a.Header.Get("Access-Control-Allow-Methods") != "") != (want == http.StatusNoContent) ||
			(a.Header.Get("Access-Control-Allow-Headers") == "authorization,x-stainless-lang") != (want == http.StatusNoContent) {
			t.Errorf("preflight of %s: %d %v", origin, a.Status, a.Header)
		}
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct{ name, config, address, want string }{
		{"everywhere", "", "0.0.0.0:0", "without keys"},
		{"everywhere_v6", "", "[::]:0", "without keys"},
		{"no_host", "", ":0", "without keys"},
		{"taken", "", taken.Addr().String(), "another program listens there"},
		{"no_port", "", "127.0.0.1", "is not an address"},
		{"port_too_large", "", "127.0.0.1:70000", "is not an address"},
		{"disabled", "api: {enabled: false}\n", "127.0.0.1:0", "api.enabled is false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := servertest.Directory(t, servertest.Files{"config.yaml": "clients: []\n" + tt.config})
			a, err := app.New(app.Options{Environ: []string{"HOME=" + dir, "LOKI_CONFIG_DIR=" + dir, "LOKI_STATE_DIR=" + dir}})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			_, err = server.Start(t.Context(), server.Options{App: a, Address: tt.address})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestOptionsOfAll: a request that names no path goes through what all others go through.
func TestOptionsOfAll(t *testing.T) {
	s := servertest.Start(t, nil)
	for host, status := range map[string]int{"evil.example": http.StatusForbidden, "localhost": http.StatusBadRequest} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != status || a.Header.Get("X-Request-Id") == "" || a.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("for %s: %s %v", host, a.Status, a.Header)
		}
	}
}

// TestAnswersOfTheLibrary: what net/http refuses before the server sees it has no id, as docs/rest-api.md says. What the server
// itself refuses has one.
func TestAnswersOfTheLibrary(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, tt := range []struct {
		name, lines string
		status      int
		id          bool
	}{
		{"no_host", "GET /v1/info HTTP/1.1\r\n", http.StatusBadRequest, false},
		{"expectation", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: more\r\nContent-Length: 0\r\n", http.StatusExpectationFailed, false},
		{"large_header", "GET /v1/info HTTP/1.1\r\nHost: localhost\r\nX-Large: " + strings.Repeat("x", 1<<17) + "\r\n", http.StatusRequestHeaderFieldsTooLarge, false},
		{"transfer_encoding", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n", http.StatusNotImplemented, false},
		{"no_endpoint", "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n", http.StatusNotFound, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, tt.lines+"Connection: close\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			a, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != tt.status || (a.Header.Get("X-Request-Id") != "") != tt.id {
				t.Errorf("%s %v", a.Status, a.Header)
			}
		})
	}
}
