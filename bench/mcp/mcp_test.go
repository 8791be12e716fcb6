// Package mcp_test measures what an MCP server costs: to get the connection with one that
// runs, to call a tool of it, and to start one.
//
//	go test -bench . ./bench/mcp
package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// The test binary is also the server.
func TestMain(m *testing.M) {
	if os.Getenv("LOKI_BENCH_SERVER") == "" {
		os.Exit(m.Run())
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

func setUp(b *testing.B, c mcp.PoolConfig) (*mcp.Pool, mcp.Server) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := mcp.NewPool(mcp.Options{Pool: c})
	b.Cleanup(func() {
		if err := p.Shutdown(0); err != nil {
			b.Error(err)
		}
	})
	return p, mcp.Server{ID: "bench", Type: mcp.Stdio, Command: self, Env: map[string]string{"LOKI_BENCH_SERVER": "1"}}
}

func cycle(b *testing.B, p *mcp.Pool, s mcp.Server) {
	h, err := p.Acquire(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	h.Release()
}

// BenchmarkWarmAcquire gets and gives back an idle connection. The promise is 50 us.
func BenchmarkWarmAcquire(b *testing.B) {
	p, s := setUp(b, mcp.PoolConfig{IdleTimeout: time.Minute})
	cycle(b, p, s)
	for b.Loop() {
		cycle(b, p, s)
	}
}

// BenchmarkColdAcquire starts the server, initializes the session, and ends both.
func BenchmarkColdAcquire(b *testing.B) {
	p, s := setUp(b, mcp.PoolConfig{})
	for b.Loop() {
		cycle(b, p, s)
		p.Flush()
	}
}

// BenchmarkInvoke calls a tool.
func BenchmarkInvoke(b *testing.B) {
	p, s := setUp(b, mcp.PoolConfig{})
	scope := p.Scope([]mcp.Server{s}, mcp.ScopeOptions{})
	b.Cleanup(scope.Close)
	tools, err := scope.Tools(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	call := tool.Call{Arguments: json.RawMessage(`{"tool":"echo","arguments":{"text":"hello"}}`)}
	for b.Loop() {
		r, err := tools[0].Call(b.Context(), call)
		if err != nil || !strings.Contains(r.Output, "hello") {
			b.Fatal(r, err)
		}
	}
}
