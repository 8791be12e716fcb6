package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/llm/event"
)

// TestObserver: the log and the traces get the events of whatever is asked, each once.
func TestObserver(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	observer := event.Func(func(_ context.Context, ev event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if name := ev.Body.Type(); name == "started" || name == "finished" {
			seen = append(seen, name)
		}
		return nil
	})
	s := servertest.Start(t, servertest.Files{
		"config.yaml":            "model: builtin:echo\nclients:\n  - type: builtin\n",
		"agents/echo/graph.yaml": "name: echo\nversion: \"1.0\"\nstart: done\nnodes:\n  done:\n    type: end\n    output: \"Said {{initial_prompt}}.\"\n",
	}, observer)
	var session api.Session
	s.Post("/v1/sessions", `{}`).JSON(t, &session)
	for _, tt := range []struct{ path, body string }{
		{"/v1/completions", `{"prompt": "x"%s}`},
		{"/v1/completions", `{"prompt": "x", "agent": "echo"%s}`},
		{"/v1/sessions/" + session.ID + "/completions", `{"prompt": "x"%s}`},
		{"/v1/chat/completions", `{"model": "builtin:echo", "messages": [{"role": "user", "content": "x"}]%s}`},
		{"/v1/chat/completions", `{"model": "agent:echo", "messages": [{"role": "user", "content": "x"}]%s}`},
		{"/v1/responses", `{"model": "builtin:echo", "input": "x"%s}`},
		{"/v1/agents/echo/runs", `{"prompt": "x"%s}`},
	} {
		for _, more := range []string{"", `, "stream": true`} {
			if tt.path == "/v1/agents/echo/runs" && more == "" {
				more = `, "wait": 60`
			}
			mu.Lock()
			seen = nil
			mu.Unlock()
			if a := s.Post(tt.path, fmt.Sprintf(tt.body, more)); a.Status >= 300 {
				t.Errorf("%s: %d %s", tt.path, a.Status, a.Body)
			}
			mu.Lock()
			if want := []string{"started", "finished"}; !slices.Equal(seen, want) {
				t.Errorf("%s of %s: got %q, want %q", tt.path, tt.body+more, seen, want)
			}
			mu.Unlock()
		}
	}
}
