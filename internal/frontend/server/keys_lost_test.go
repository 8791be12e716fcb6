package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// TestKeyOutlivesServer kills a server while it works on requests with an Idempotency-Key. The run that one of them began goes on and
// is named when that comes again; the turn of a session that had not begun is done then.
func TestKeyOutlivesServer(t *testing.T) {
	release := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, `{"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}`)
	}))
	defer upstream.Close()
	s := servertest.Program(t, servertest.Files{
		"config.yaml": "model: up:m\nstream: false\nclients:\n- {type: openai-compatible, name: up, api_base: '" + upstream.URL + "', api_key: x, models: [{name: m}]}\n" +
			"api: {resume_on_start: false}\n",
		"agents/slow/graph.yaml":      strings.ReplaceAll(slowAgent, "script: scripts/step.sh", "script: scripts/wait.sh"),
		"agents/slow/scripts/wait.sh": "#!/bin/sh\nsleep 60\n",
	})
	var session struct{ ID string }
	s.Post("/v1/sessions", `{}`).JSON(t, &session)
	turns := "/v1/sessions/" + session.ID + "/completions"
	requests := []struct{ path, body, key string }{
		{"/v1/agents/slow/runs", `{"prompt": "x", "wait": 60}`, "run"},
		{turns, `{"prompt": "first"}`, "first"},
		{turns, `{"prompt": "second"}`, "second"}, // which waits for the first
	}
	send := func(i int) servertest.Answer {
		r := requests[i]
		return s.Post(r.path, r.body, "Idempotency-Key", r.key)
	}
	answered := make(chan int, 2*len(requests)) // statuses, 0 for those that lost the server
	places := make([]string, len(requests))
	for i, r := range requests {
		for range 2 { // one of which is done
			request := s.Request(http.MethodPost, r.path, r.body, "Idempotency-Key", r.key)
			go func() { // ends with the server
				resp, err := http.DefaultClient.Do(request)
				if err != nil {
					answered <- 0
					return
				}
				resp.Body.Close()
				answered <- resp.StatusCode
			}()
		}
		if status := <-answered; status != http.StatusConflict {
			t.Fatalf("%s at the same time: %d", r.path, status)
		}
		until(t, "the request has begun", func() bool {
			a := send(i)
			if places[i] = a.Header.Get("Location"); a.Status != http.StatusConflict || a.Header.Get("Retry-After") == "" {
				t.Fatalf("%s at the same time: %d %s %v", r.path, a.Status, a.Body, a.Header)
			}
			return r.key == "second" || places[i] != ""
		})
	}
	s.Kill()
	for range requests {
		if status := <-answered; status != 0 {
			t.Errorf("answered with %d before the server was killed", status)
		}
	}
	close(release)
	s.Begin()
	for i, key := range []string{"run", "first"} {
		a := send(i)
		if a.Status != http.StatusConflict || a.Header.Get("Location") != places[i] || !strings.Contains(a.Body, "had begun") {
			t.Errorf("%s after the restart: %d %s %v, begun as %s", key, a.Status, a.Body, a.Header, places[i])
		}
		if run := s.Get(places[i]); run.Status != http.StatusOK {
			t.Errorf("%s: %d %s", places[i], run.Status, run.Body)
		}
	}
	for i := range 2 {
		a := send(2)
		if replayed := a.Header.Get("Idempotency-Replayed") == "true"; a.Status != http.StatusOK || replayed != (i == 1) || !strings.Contains(a.Body, "hello") {
			t.Errorf("the turn that had not begun, sent again: %d %s %v", a.Status, a.Body, a.Header)
		}
	}
	var runs struct{ Data []struct{ ID, Agent string } }
	s.Get("/v1/runs?agent=slow").JSON(t, &runs)
	if len(runs.Data) != 1 {
		t.Errorf("%d runs of the agent", len(runs.Data))
	}
}
