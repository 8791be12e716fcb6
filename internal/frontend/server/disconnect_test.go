package server_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// tripAgent books something that can be undone, and then waits for a file.
const tripAgent = `
name: trip
settings: {on_failure: fail}
start: book
nodes:
  book: {type: script, script: book.sh, compensate: unbook, next: pay}
  unbook: {type: script, script: unbook.sh}
  pay: {type: script, script: pay.sh, next: done}
  done: {type: end, output: paid}
`

// TestDisconnectUndoesNothing has clients leave while the run of a graph works that has something to undo: it is canceled, and can be
// resumed. What undoes it is that a user cancels it.
func TestDisconnectUndoesNothing(t *testing.T) {
	dir := t.TempDir()
	s := servertest.Start(t, servertest.Files{
		"config.yaml":            "model: builtin:echo\nsandbox: {enabled: false}\n",
		"agents/trip/graph.yaml": tripAgent,
		"agents/trip/book.sh":    "#!/bin/sh\necho '{}'\n",
		"agents/trip/unbook.sh":  "#!/bin/sh\necho unbooked >>" + dir + "/log\necho '{}'\n",
		"agents/trip/pay.sh":     "#!/bin/sh\n: >" + dir + "/begun\nuntil [ -e " + dir + "/go ]; do sleep 0.05; done\necho '{}'\n",
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	there := func(name string) bool {
		_, err := os.Stat(file(name))
		return err == nil
	}
	// begin sends a request and returns the id of its run, whose second node is at work, and what leaves the request.
	seen := map[string]bool{}
	begin := func(t *testing.T, path, body string) (id string, leave func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ends with the request
			defer close(done)
			if res, err := http.DefaultClient.Do(s.Request(http.MethodPost, path, body).WithContext(ctx)); err == nil {
				res.Body.Close()
			}
		}()
		until(t, "the second node works", func() bool { return there("begun") })
		var list api.List[api.Run]
		s.Get("/v1/runs").JSON(t, &list)
		for _, r := range list.Data {
			if !seen[r.ID] {
				id = r.ID
			}
		}
		seen[id] = true
		return id, func() { cancel(); <-done }
	}
	run := func(t *testing.T, id string) (r api.RunDetail) {
		t.Helper()
		s.Get("/v1/runs/"+id).JSON(t, &r)
		return r
	}
	for _, tt := range []struct{ name, path, body string }{
		{"completion", "/v1/completions", `{"agent": "trip", "prompt": "x"}`},
		{"chat", "/v1/chat/completions", `{"model": "agent:trip", "messages": [{"role": "user", "content": "x"}]}`},
		{"chat_stream", "/v1/chat/completions", `{"model": "agent:trip", "stream": true, "messages": [{"role": "user", "content": "x"}]}`},
		{"response", "/v1/responses", `{"model": "agent:trip", "input": "x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, leave := begin(t, tt.path, tt.body)
			leave()
			until(t, "the run is canceled", func() bool { return run(t, id).Status == "canceled" })
			if r := run(t, id); r.Undone != nil || there("log") {
				t.Fatalf("it was undone: %+v", r.Undone)
			}
			if err := os.WriteFile(file("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if a := s.Post("/v1/runs/"+id+"/resume", ""); a.Status != http.StatusOK {
				t.Errorf("resumed: %d %s", a.Status, a.Body)
			}
			until(t, "the run is done", func() bool { return run(t, id).Status == "done" })
			for _, name := range []string{"go", "begun"} {
				if err := os.Remove(file(name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	id, leave := begin(t, "/v1/completions", `{"agent": "trip", "prompt": "x", "detach": true}`)
	if a := s.Post("/v1/runs/"+id+"/cancel", ""); a.Status != http.StatusOK {
		t.Errorf("canceled: %d %s", a.Status, a.Body)
	}
	leave()
	if r := run(t, id); r.Status != "canceled" || r.Undone == nil || r.Undone.Nodes != 1 || !there("log") {
		t.Errorf("a user cancels it: %+v", r.Run)
	}
}
