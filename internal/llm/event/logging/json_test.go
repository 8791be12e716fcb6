package logging_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
)

type userKey struct{}

func TestJSON(t *testing.T) {
	logger, lines := open(t, logging.Options{
		JSON: true, Level: "debug", Hide: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***PASSWORD***") },
		Context: func(ctx context.Context) []slog.Attr {
			if user, ok := ctx.Value(userKey{}).(string); ok {
				return []slog.Attr{slog.String("request_id", "r1"), slog.String("subject", user)}
			}
			return nil
		},
	})
	ctx := context.WithValue(t.Context(), userKey{}, "alice")
	logger.With("package", "mcp", "a", 1).WithGroup("g").With("b", true).ErrorContext(t.Context(), "two\nlines \x1b[31m \"hunter2\"", "error", errors.New("the hunter2 failed"), "wait", 1500*time.Millisecond,
		"api_key", "plain", "infinite", math.Inf(1), slog.Group("in", "n", uint64(2)), "url", "https://x/?token=abcdefgh")
	logger.With("package", "server").InfoContext(ctx, "request", "status", 200, "subject", "bob", "session_id", "s1")
	if err := logging.Emitter(logger).Emit(ctx, event.Event{Source: event.Source{Run: "0198c2a4"}, Body: event.Started{Graph: "research", Node: "plan"}}); err != nil {
		t.Fatal(err)
	}
	got := lines()
	const stamp = `{"timestamp":"2026-11-21T12:00:00.007999Z",`
	want := []string{
		stamp + `"level":"error","target":"mcp","msg":"two\nlines \u001b[31m \"***PASSWORD***\"","a":1,"g.b":true,"g.error":"the ***PASSWORD*** failed","g.wait":1.5,"g.api_key":"[redacted]","g.infinite":null,"g.in.n":2,"g.url":"https://x/?token=[redacted]"}`,
		stamp + `"level":"info","target":"server","request_id":"r1","subject":"bob","session_id":"s1","msg":"request","status":200}`,
		stamp + `"level":"info","target":"graph","request_id":"r1","subject":"alice","run_id":"0198c2a4","msg":"[graph:research] run started at plan","run":"0198c2a4"}`,
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
		if !json.Valid([]byte(got[i])) {
			t.Errorf("not JSON: %s", got[i])
		}
	}
}

func TestSetLevel(t *testing.T) {
	logger, file, err := logging.Open(logging.Options{Path: t.TempDir() + "/log", Level: "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	child := logger.With("package", "graph")
	for _, tt := range []struct {
		level, filter string
		debug, info   bool
	}{{"off", "", false, false}, {"off", "graph=debug", false, false}, {"debug", "", true, true}, {"warn", "graph=info", false, true}, {"info", "graph=what", false, true}} {
		if err := file.SetLevel(tt.level, tt.filter); (err != nil) != strings.Contains(tt.filter, "what") {
			t.Error(err)
		}
		if d, i := child.Enabled(t.Context(), slog.LevelDebug), child.Enabled(t.Context(), slog.LevelInfo); d != tt.debug || i != tt.info {
			t.Errorf("%s %s: debug %v, info %v", tt.level, tt.filter, d, i)
		}
	}
}

// BenchmarkLine is the line of a request.
func BenchmarkLine(b *testing.B) {
	for name, json := range map[string]bool{"json": true, "text": false} {
		b.Run(name, func(b *testing.B) {
			logger, file, err := logging.Open(logging.Options{Path: b.TempDir() + "/log", JSON: json})
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			for b.Loop() {
				logger.Info("request", "request_id", "0a7c4a3e-6d5b-4c1e-9f57-0f2b8f0b3a11", "subject", "alice", "method", "POST", "path", "/v1/sessions/550e8400-e29b-41d4-a716-446655440000/completions",
					"route", "/v1/sessions/{id}/completions", "status", 200, "seconds", 0.0123, "session_id", "550e8400-e29b-41d4-a716-446655440000")
			}
		})
	}
}
