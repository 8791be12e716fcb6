package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// TestCommandJobs looks at a job of a run and of a session while these are at work, and ends it.
func TestCommandJobs(t *testing.T) {
	if held := sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support(); !held.Files {
		t.Skip("no sandbox: " + held.Missing)
	}
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	bob, bobKey := servertest.Key("bob", 2, "read, write")
	s := servertest.Start(t, servertest.Files{
		"config.yaml": "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\nenabled_tools: execute_command\napi:\n  auth:\n    keys:\n" + aliceKey + bobKey,
		"rules.yaml": `rules:
  - match: {turn: 1}
    tool_calls: [{name: execute_command, arguments: {command: "echo up; sleep 600", background: true, ready: up}}]
  - match: {turn: 2}
    tool_calls: [{name: job__list, arguments: {}}]
    delay: 30s
default: {reply: done}
`,
		"agents/works/config.yaml": "name: works\nversion: \"1.0\"\ninstructions: Work.\nglobal_tools: [execute_command]\n",
	})
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	var run, session struct{ ID string }
	s.Post("/v1/agents/works/runs", `{"prompt":"work"}`, as(alice)...).JSON(t, &run)
	s.Post("/v1/sessions", `{}`, as(alice)...).JSON(t, &session)
	answered := make(chan struct{})
	go func() { // ends when the session is left
		defer close(answered)
		s.Post("/v1/sessions/"+session.ID+"/completions", `{"prompt":"work"}`, as(alice)...)
	}()
	for _, path := range []string{"/v1/runs/" + run.ID, "/v1/sessions/" + session.ID} {
		job := awaitJob(t, s, path, as(alice))
		if job.Status != "running" || job.Command != "echo up; sleep 600" || job.Bytes != 3 {
			t.Errorf("%s: %+v", path, job)
		}
		var out api.JobOutput
		if s.Get(path+"/jobs/"+job.ID+"/output?since=1", as(alice)...).JSON(t, &out); out.Output != "p\n" || out.From != 1 || out.To != 3 {
			t.Errorf("%s: %+v", path, out)
		}
		for _, a := range []servertest.Answer{
			s.Get(path+"/jobs", as(bob)...), s.Get(path+"/jobs/"+job.ID+"/output", as(bob)...), s.Do(http.MethodDelete, path+"/jobs/"+job.ID, "", as(bob)...),
			s.Get(path+"/jobs/job-00000000/output", as(alice)...),
		} {
			if a.Status != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		if a := s.Do(http.MethodDelete, path+"/jobs/"+job.ID, "", as(alice)...); a.Status >= 300 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
		if job = awaitJob(t, s, path, as(alice)); job.Status != "killed" {
			t.Errorf("%s: %+v", path, job)
		}
	}
	if a := s.Post("/v1/runs/"+run.ID+"/cancel", "", as(alice)...); a.Status >= 300 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	var runs struct{ Data []struct{ ID, Status string } }
	s.Get("/v1/runs", as(alice)...).JSON(t, &runs)
	for _, r := range runs.Data {
		if r.Status == "running" {
			s.Post("/v1/runs/"+r.ID+"/cancel", "", as(alice)...)
		}
	}
	<-answered
	if a := s.Get("/v1/runs/"+run.ID+"/jobs", as(alice)...); !strings.Contains(a.Body, `"data":[]`) {
		t.Errorf("after its end: %s", a.Body)
	}
}

// awaitJob returns the only job of a run or a session, when it is there.
func awaitJob(t *testing.T, s *servertest.Server, path string, header []string) api.CommandJob {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		var list struct{ Data []api.CommandJob }
		if s.Get(path+"/jobs", header...).JSON(t, &list); len(list.Data) == 1 && list.Data[0].Bytes > 0 {
			return list.Data[0]
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %+v", path, list)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
