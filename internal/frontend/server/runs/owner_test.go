package runs_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/launch"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/llm/event"
)

// TestClaim has subjects use a run that was begun without a server.
func TestClaim(t *testing.T) {
	for _, tt := range []struct{ name, method, path, body string }{
		{"answer", "POST", "/answers", `{"QUESTION": "Ada"}`},
		{"cancel", "POST", "/cancel", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines, as := people("alice", "bob")
			s := start(t, "api:\n  adopt_unowned: true\n"+lines)
			id := unowned(t, s)
			for _, name := range []string{"alice", "bob"} {
				if r := get(t, s, id, as[name]...); r.Owner != "" {
					t.Errorf("it is %+v", r)
				}
			}
			// A fork leaves the old run as it is.
			var forked api.Run
			want(t, s.Post("/v1/runs/"+id+"/fork", `{"step": 0}`, as["bob"]...), http.StatusCreated).JSON(t, &forked)
			rest(t, s, forked.ID, as["bob"]...)
			refused(t, s.Get("/v1/runs/"+forked.ID, as["alice"]...), 404, "run_not_found")
			if r := get(t, s, id, as["alice"]...); r.Owner != "" {
				t.Errorf("it is %+v", r)
			}
			question := get(t, s, id, as["alice"]...).Pending[0].ID
			want(t, s.Do(tt.method, "/v1/runs/"+id+tt.path, strings.Replace(tt.body, "QUESTION", question, 1), as["alice"]...), 200)
			if r := rest(t, s, id, as["alice"]...); r.Owner != "alice" {
				t.Errorf("it is %+v", r)
			}
			refused(t, s.Get("/v1/runs/"+id, as["bob"]...), 404, "run_not_found")
			refused(t, s.Do(tt.method, "/v1/runs/"+id+tt.path, tt.body, as["bob"]...), 404, "run_not_found")
		})
	}
	// Unless the configuration says so, it is nobody's.
	lines, as := people("alice")
	s := start(t, "api:\n"+lines)
	id := unowned(t, s)
	refused(t, s.Get("/v1/runs/"+id, as["alice"]...), 404, "run_not_found")
	refused(t, s.Post("/v1/runs/"+id+"/cancel", "", as["alice"]...), 404, "run_not_found")
}

// unowned returns the id of a run of the agent asker that waits, and is nobody's.
func unowned(t *testing.T, s *servertest.Server) string {
	t.Helper()
	ref, err := s.App.Agents.Find("asker")
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := s.App.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	job, err := s.App.AgentJob(t.Context(), launch.Run{Agent: of, Asker: ask.Unavailable{}, Events: s.App.Events(event.Func(func(context.Context, event.Event) error { return nil }))})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.App.Runs().Start(t.Context(), job)
	if fault.CodeOf(err) != fault.Suspended {
		t.Fatal(err)
	}
	return out.Run
}

// TestAssignees has subjects answer questions that are for them, or are not.
func TestAssignees(t *testing.T) {
	lines, as := people("alice", "bob", "carol")
	s := start(t, "api:\n"+lines)
	r := begin(t, s, "review", `{"prompt": "the secret", "wait": 60}`, as["alice"]...)
	path := "/v1/runs/" + r.ID
	ids := make(map[string]string)
	for _, q := range get(t, s, r.ID, as["alice"]...).Pending {
		ids[q.Node] = q.ID
		if q.Node == "first" && strings.Join(q.Assignees, " ") != "carol" {
			t.Errorf("the question is %+v", q)
		}
	}
	give := func(node, who string) servertest.Answer {
		return s.Post(path+"/answers", fmt.Sprintf(`{%q: "yes"}`, ids[node]), as[who]...)
	}
	listed := func(path, who string) (nodes []string) {
		var list api.List[api.Question]
		want(t, s.Get(path, as[who]...), 200).JSON(t, &list)
		for _, q := range list.Data {
			nodes = append(nodes, q.Node)
		}
		return nodes
	}
	// The owner sees all, and answers what is not for others.
	refused(t, give("first", "alice"), 403, "forbidden", "carol")
	if got := listed("/v1/questions", "alice"); len(got) != 1 {
		t.Errorf("alice sees %v", got)
	}
	// A stranger sees nothing.
	refused(t, give("first", "bob"), 404, "run_not_found")
	refused(t, s.Get(path+"/questions", as["bob"]...), 404, "run_not_found")
	if got := listed("/v1/questions", "bob"); len(got) != 0 {
		t.Errorf("bob sees %v", got)
	}
	// Who is to answer sees that question, and nothing else.
	for _, at := range []string{"/v1/questions", path + "/questions"} {
		if got := listed(at, "carol"); strings.Join(got, " ") != "first" {
			t.Errorf("%s shows carol %v", at, got)
		}
	}
	for _, at := range []string{"", "/events", "/state", "/graph", "/steps", "/steps/1", "/diff?a=0&b=0"} {
		refused(t, s.Get(path+at, as["carol"]...), 404, "run_not_found")
	}
	for _, at := range []string{"/cancel", "/resume", "/fork"} {
		refused(t, s.Post(path+at, "", as["carol"]...), 404, "run_not_found")
	}
	refused(t, s.Do("DELETE", path, "", as["carol"]...), 404, "run_not_found")
	var list api.List[api.Run]
	if want(t, s.Get("/v1/runs", as["carol"]...), 200).JSON(t, &list); len(list.Data) != 0 {
		t.Errorf("carol sees %+v", list)
	}
	a := want(t, give("first", "carol"), 200)
	if strings.Contains(a.Body, "secret") || strings.Contains(a.Body, "alice") || !strings.Contains(a.Body, r.ID) {
		t.Errorf("carol is shown %s", a.Body)
	}
	rest(t, s, r.ID, as["alice"]...)
	refused(t, give("first", "alice"), 409, "conflict", "was answered by rest")
	refused(t, give("first", "carol"), 409, "conflict", "was answered by rest")
	for node, who := range map[string]string{"second": "carol", "first": "bob"} {
		refused(t, give(node, who), 404, "run_not_found")
	}
	refused(t, s.Get(path+"/questions", as["carol"]...), 404, "run_not_found")
	if got := listed("/v1/questions", "carol"); len(got) != 0 {
		t.Errorf("carol sees %v", got)
	}
	answer(t, s, r.ID, "second", "so", as["alice"]...)
	if done := get(t, s, r.ID, as["alice"]...); done.Output != "yes, so" || done.Owner != "alice" {
		t.Errorf("it is %+v", done)
	}
	refused(t, s.Get(path+"/questions", as["carol"]...), 404, "run_not_found")
	refused(t, give("first", "carol"), 409, "conflict", "was answered by rest")
}

// TestMaxPerSubject: a subject has so many runs at work and not more, and others have their own.
func TestMaxPerSubject(t *testing.T) {
	lines, as := people("alice", "bob")
	s := start(t, "api:\n  limits: {max_runs_per_subject: 1, per_subject_concurrency: 64}\n"+lines)
	waits := begin(t, s, "asker", `{"wait": 60}`, as["alice"]...) // which is not at work
	var began atomic.Pointer[string]
	var refusals atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a := s.Post("/v1/agents/gate/runs", `{"prompt": "a"}`, as["alice"]...)
			switch {
			case a.Status == http.StatusCreated:
				began.Store(new(strings.TrimPrefix(a.Header.Get("Location"), "/v1/runs/")))
			case a.Status == http.StatusTooManyRequests && a.Code() == "limit_reached" && a.Header.Get("Retry-After") != "":
				refusals.Add(1)
			default:
				t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
			}
		})
	}
	all.Wait()
	if began.Load() == nil || refusals.Load() != 7 {
		t.Fatalf("%d are refused", refusals.Load())
	}
	refused(t, s.Post("/v1/runs/"+waits.ID+"/fork", `{"step": 0}`, as["alice"]...), 429, "limit_reached", "max_runs_per_subject")
	refused(t, s.Post("/v1/runs/"+waits.ID+"/resume", "", as["alice"]...), 429, "limit_reached")
	other := begin(t, s, "gate", `{"prompt": "a"}`, as["bob"]...)
	want(t, s.Post("/v1/runs/"+*began.Load()+"/cancel", "", as["alice"]...), 200)
	begin(t, s, "asker", `{"wait": 60}`, as["alice"]...)
	want(t, s.Post("/v1/runs/"+other.ID+"/cancel", "", as["bob"]...), 200)
}

// TestConsent: who may begin runs and not answer their questions cannot consent beforehand.
func TestConsent(t *testing.T) {
	key, entry := servertest.Key("alice", 1, `"run:agents", "read:runs"`)
	s := start(t, "api:\n  auth:\n    keys:\n"+entry)
	s.Key = key
	refused(t, s.Post("/v1/agents/asker/runs", `{"yes": true}`), 403, "forbidden", "write:runs")
	r := begin(t, s, "asker", `{"wait": 60}`)
	for _, at := range []string{"/answers", "/resume", "/cancel", "/fork"} {
		body := ""
		if at == "/answers" {
			body = "{}"
		}
		refused(t, s.Post("/v1/runs/"+r.ID+at, body), 403, "forbidden", "write:runs")
	}
	refused(t, s.Do("DELETE", "/v1/runs/"+r.ID, ""), 403, "forbidden", "write:runs")
}
