//go:build unix

package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/postgres/postgrestest"
)

// TestSpendingRaised: when too little of a limit is left for an agent, its new work is refused; when SIGHUP or a restart raises the limit, its
// suspended runs resume.
func TestSpendingRaised(t *testing.T) {
	for _, tt := range []struct {
		store   string
		restart bool
	}{{"files", false}, {"files", true}, {"PostgreSQL", false}, {"PostgreSQL", true}} {
		t.Run(fmt.Sprintf("%s,restart=%t", tt.store, tt.restart), func(t *testing.T) {
			store := ""
			if tt.store == "PostgreSQL" {
				store = "store: " + postgrestest.Database(t) + "\n"
			}
			config := func(tokens string) string {
				return store + `model: offline:script
clients:
  - {type: builtin, name: offline, script: replies.yaml}
api:
  spending: {total_day: {tokens: ` + tokens + `}}
triggers:
  big: {agent: big, webhook: {verify: github, secret: s3cret}}
`
			}
			agent := func(name, prompt string) string {
				return "name: " + name + "\nstart: a\nnodes:\n  a: {type: llm, prompt: \"" + prompt + "\", next: b}\n  b: {type: end, output: done}\n"
			}
			s := servertest.Program(t, servertest.Files{
				"config.yaml": config("200"), "replies.yaml": spendingReplies,
				"agents/big/graph.yaml": agent("big", strings.Repeat("many words ", 100)), "agents/small/graph.yaml": agent("small", "few"),
			})
			begin := func(name, status string) (r api.RunDetail) {
				t.Helper()
				expect(t, s.Post("/v1/agents/"+name+"/runs", `{"prompt": "x", "wait": 60}`), http.StatusCreated).JSON(t, &r)
				if r.Status != status {
					t.Errorf("%s: %+v", name, r.Run)
				}
				return r
			}
			begin("small", "done")
			parked := begin("big", "suspended")
			if a := s.Post("/v1/agents/big/runs", `{"prompt": "x"}`); a.Status != http.StatusTooManyRequests || a.Code() != "limit_reached" || a.Header.Get("Retry-After") == "" {
				t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
			}
			if a := deliver(s, "big", "d1", `{}`); a.Status != http.StatusUnprocessableEntity || a.Code() != "dead_letter" {
				t.Errorf("a delivery: %d %s", a.Status, a.Body)
			}
			begin("small", "done")

			limit := func(tokens string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(config(tokens)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			raise := func(tokens string) {
				t.Helper()
				limit(tokens)
				before := strings.Count(s.Stderr(), "read again")
				s.Signal(syscall.SIGHUP)
				until(t, "SIGHUP", func() bool { return strings.Count(s.Stderr(), "read again") > before })
			}
			raise("210")
			expect(t, s.Post("/v1/agents/big/runs", `{"prompt": "x"}`), http.StatusTooManyRequests)
			status := func(id string) string {
				t.Helper()
				var r api.RunDetail
				expect(t, s.Get("/v1/runs/"+id), http.StatusOK).JSON(t, &r)
				return r.Status
			}
			if tt.restart {
				s.Kill()
				s.Begin()
				expect(t, s.Post("/v1/agents/big/runs", `{"prompt": "x"}`), http.StatusTooManyRequests)
				if got := status(parked.ID); got != "suspended" {
					t.Errorf("after a restart with the same limit: %s", got)
				}
				s.Kill()
				limit("100000")
				s.Begin()
			} else {
				raise("100000")
			}
			until(t, "the run that was suspended", func() bool { return status(parked.ID) == "done" })
			begin("big", "done")
		})
	}
}
