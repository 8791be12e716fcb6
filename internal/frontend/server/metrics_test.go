package server_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"loki/internal/app"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/servertest"
	"loki/internal/llm/event/telemetry/metrics/metricstest"
)

// TestMetrics counts what a few requests do, and has Prometheus' parser read it.
func TestMetrics(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	monitor, monitorKey := servertest.Key("monitor", 2, `"admin:metrics"`)
	s := servertest.Start(t, servertest.Files{
		"config.yaml":            "model: builtin:echo\nclients:\n  - type: builtin\napi:\n  auth:\n    keys:\n" + aliceKey + monitorKey,
		"agents/echo/graph.yaml": "name: echo\nversion: \"1.0\"\nstart: done\nnodes:\n  done:\n    type: end\n    output: \"Said {{initial_prompt}}.\"\n",
	})
	s.Key = alice
	var session api.Session
	s.Post("/v1/sessions", `{}`).JSON(t, &session)
	s.Post("/v1/sessions/"+session.ID+"/completions", `{"prompt": "x"}`)
	s.Post("/v1/completions", `{"prompt": "x", "stream": true}`)
	s.Post("/v1/responses", `{"model": "builtin:echo", "input": "x"}`)
	s.Post("/v1/agents/echo/runs", `{"prompt": "x", "wait": 60}`)
	s.Get("/v1/runs/nothing")
	s.Get("/v1/nowhere")
	s.Do("BREW", "/v1/runs", "")
	s.Get("/v1/sessions", "Authorization", "")
	s.Get("/v1/sessions", "Authorization", "Bearer x")
	s.Get("/metrics")
	for range 3 {
		s.Get("/healthz/ready")
	}
	for i := range 500 {
		s.Get(fmt.Sprintf("/v1/runs/run%d", i))
		s.Get(fmt.Sprintf("/v1/run%d", i))
	}
	a := s.Get("/metrics", "Authorization", "Bearer "+monitor)
	if a.Status != http.StatusOK || a.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	metricstest.Check(t, metricstest.Parse(t, []byte(a.Body)), map[string]float64{
		"http_requests_total route=/v1/sessions method=POST status=201":                  1,
		"http_requests_total route=/v1/sessions/{id}/completions method=POST status=200": 1,
		"http_requests_total route=/v1/runs/{id} method=GET status=404":                  501,
		"http_requests_total route=other method=GET status=404":                          501,
		"http_requests_total route=other method=other status=405":                        1,
		"http_requests_total route=/v1/sessions method=GET status=401":                   2,
		"http_requests_total route=/metrics method=GET status=403":                       1,
		"http_request_duration_seconds route=/v1/runs/{id} method=GET":                   501,
		"http_requests_in_flight":                                                        1,
		"sessions_created_total":                                                         2,
		"sessions_active":                                                                0,
		"runs status=running":                                                            0,
		"runs status=queued":                                                             0,
		"run_duration_seconds agent=echo":                                                1,
		"model_calls_total model=builtin:echo outcome=ok":                                3,
		"time_to_first_token_seconds model=builtin:echo":                                 3,
		"auth_failures_total reason=malformed":                                           1,
		"auth_failures_total reason=unknown":                                             1,
		"auth_failures_total reason=scope":                                               1,
		"rate_limit_rejections_total":                                                    0,
		"mcp_pool_size state=idle":                                                       0,
		"mcp_spawns_total":                                                               0,
		"mcp_acquire_latency_seconds":                                                    0,
	})
	if lines := strings.Count(a.Body, "\n"); lines > 400 {
		t.Errorf("%d lines after requests to a thousand paths:\n%s", lines, a.Body)
	}
	if strings.Contains(a.Body, "healthz") {
		t.Error("probes are counted")
	}
}

// TestMetricsPortWithoutKeys: what needs no key is for this machine only if nothing needs one.
func TestMetricsPortWithoutKeys(t *testing.T) {
	dir := servertest.Directory(t, servertest.Files{"config.yaml": "clients: []\napi:\n  metrics_listen_addr: 0.0.0.0:0\n"})
	core, err := app.New(app.Options{Environ: []string{"HOME=" + dir, "LOKI_CONFIG_DIR=" + dir, "LOKI_STATE_DIR=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	if s, err := server.Start(t.Context(), server.Options{App: core, Address: "127.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), "metrics_listen_addr") {
		t.Errorf("%v, %v", s, err)
	}
}

// TestMetricsPort has the metrics at a port of their own, where they need no key.
func TestMetricsPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	_, key := servertest.Key("alice", 1, "read")
	s := servertest.Start(t, servertest.Files{"config.yaml": "clients: []\napi:\n  metrics_listen_addr: " + address + "\n  auth:\n    keys:\n" + key})
	if a := s.Get("/metrics"); a.Status != http.StatusNotFound {
		t.Errorf("at the port of the API: %d %s", a.Status, a.Body)
	}
	s.URL = "http://" + address
	a := s.Get("/metrics")
	if a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	metricstest.Check(t, metricstest.Parse(t, []byte(a.Body)), map[string]float64{"http_requests_total route=other method=GET status=404": 1})
	if a := s.Get("/metrics", "Host", "evil.example"); a.Status != http.StatusForbidden {
		t.Errorf("a page of another site: %d", a.Status)
	}
	if a := s.Get("/v1/sessions"); a.Status != http.StatusNotFound {
		t.Errorf("the API at the port of the metrics: %d", a.Status)
	}
}
