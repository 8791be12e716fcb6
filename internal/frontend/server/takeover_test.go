package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
)

// deadlyAgent has a script that leaves a line and never ends.
const deadlyAgent = `
name: deadly
start: a
sandbox: write
settings: {timeout: 600}
nodes:
  a: {type: script, script: scripts/hang.sh, timeout: 500, next: end}
  end: {type: end, output: "{{initial_prompt}}"}
`

// TestDeadlyRun kills a server whenever it works on one run, which then fails instead of being taken over without end. A run that only
// waits for its turn meanwhile does not.
func TestDeadlyRun(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			files := servertest.Files{
				"config.yaml":                   "api: {limits: {max_concurrent_runs: 1}}\n",
				"agents/deadly/graph.yaml":      deadlyAgent,
				"agents/deadly/scripts/hang.sh": "#!/bin/sh\necho begun >> begun.log\nexec sleep 600\n",
				"agents/echo/graph.yaml":        "name: echo\nstart: done\nnodes:\n  done: {type: end, output: \"Said {{initial_prompt}}.\"}\n",
			}
			if store == "postgres" {
				address := postgrestest.Database(t)
				c, err := pgx.Connect(t.Context(), address)
				if err == nil {
					_, err = c.Exec(t.Context(), "ALTER DATABASE "+c.Config().Database+" SET loki.dead_after = '1s'")
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				files["config.yaml"] += "store: " + address + "\n"
			}
			s := servertest.Program(t, files)
			begun := func() int {
				text, _ := os.ReadFile(filepath.Join(s.Dir, "begun.log"))
				return strings.Count(string(text), "begun")
			}
			begin := func(agent string) (r api.Run) {
				t.Helper()
				expect(t, s.Post("/v1/agents/"+agent+"/runs", `{"prompt": "x"}`), http.StatusCreated).JSON(t, &r)
				return r
			}
			deadly := begin("deadly")
			until(t, "it works", func() bool { return begun() == 1 })
			harmless := begin("echo")
			for n := range run.MaxTakeovers {
				s.Kill()
				s.Begin()
				until(t, "it goes on", func() bool { return begun() == n+2 })
			}
			s.Kill()
			s.Begin()
			var d api.RunDetail
			until(t, "it fails", func() bool {
				s.Get("/v1/runs/"+deadly.ID).JSON(t, &d)
				return d.Status == "failed"
			})
			if want := "6 processes in a row died at work on the run"; !strings.Contains(d.Error, want) || begun() != run.MaxTakeovers+1 {
				t.Errorf("begun %d times, error %q", begun(), d.Error)
			}
			if events := s.Get("/v1/runs/" + deadly.ID + "/events").Body; !strings.Contains(events, "event: finished") || !strings.Contains(events, d.Error) {
				t.Errorf("the last event does not say why: %s", events)
			}
			if is, output := restsAt(t, s, harmless.ID, "running", "interrupted"); is != "done" || output != "Said x." {
				t.Errorf("the run that waited is %s: %q", is, output)
			}

			// It does not go on by itself again, but where a user wants it, and then is counted anew.
			s.Kill()
			s.Begin()
			if is, _ := status(t, s, deadly.ID); is != "failed" {
				t.Errorf("after another restart the run is %s", is)
			}
			expect(t, s.Post("/v1/runs/"+deadly.ID+"/resume", "{}"), http.StatusOK)
			until(t, "it goes on", func() bool { return begun() == run.MaxTakeovers+2 })
			s.Kill()
			s.Begin()
			until(t, "it goes on by itself", func() bool { return begun() == run.MaxTakeovers+3 })
		})
	}
}
