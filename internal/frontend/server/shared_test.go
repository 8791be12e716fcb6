package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/llm/event"
	"loki/internal/service/postgres/postgrestest"
)

// sharedConfig is the configuration of a server that has the database at an address in common with others.
func sharedConfig(address string) servertest.Files {
	return servertest.Files{
		"config.yaml": "model: builtin:echo\nstore: " + address + "\nrag_embedding_model: builtin:hash\n",
	}
}

func expect(t *testing.T, a servertest.Answer, want int) servertest.Answer {
	t.Helper()
	if a.Status != want {
		t.Fatalf("status %d, want %d: %s", a.Status, want, a.Body)
	}
	return a
}

// TestServersOfOneDatabase has two servers that share a database: what is made at one is there at the other.
func TestServersOfOneDatabase(t *testing.T) {
	address := postgrestest.Database(t)
	a := servertest.Start(t, sharedConfig(address))
	b := servertest.Program(t, sharedConfig(address))

	var made api.Session
	expect(t, a.Post("/v1/sessions", `{"alias": "both"}`), http.StatusCreated).JSON(t, &made)
	path := "/v1/sessions/" + made.ID
	messages := func(s *servertest.Server) []string {
		t.Helper()
		var d api.SessionDetails
		expect(t, s.Get(path), http.StatusOK).JSON(t, &d)
		var texts []string
		for _, m := range d.Messages {
			texts = append(texts, m.Text())
		}
		return texts
	}

	// Turns follow each other, whichever server they are at.
	var turns sync.WaitGroup
	for i := range 6 {
		turns.Go(func() {
			answer := []*servertest.Server{a, b}[i%2].Post(path+"/completions", fmt.Sprintf(`{"prompt": "turn %d"}`, i))
			if answer.Status != http.StatusOK {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
	}
	turns.Wait()
	for _, s := range []*servertest.Server{a, b} {
		texts := messages(s)
		if len(texts) != 12 {
			t.Fatalf("messages %q", texts)
		}
		for i := 0; i < len(texts); i += 2 {
			if texts[i+1] != texts[i] {
				t.Errorf("%q is answered by %q", texts[i], texts[i+1])
			}
		}
	}

	// A request with a key is done at one of them.
	key := []string{"Idempotency-Key", "k1"}
	first := expect(t, a.Post(path+"/completions", `{"prompt": "once"}`, key...), http.StatusOK)
	second := expect(t, b.Post(path+"/completions", `{"prompt": "once"}`, key...), http.StatusOK)
	if first.Body != second.Body || second.Header.Get("Idempotency-Replayed") != "true" || len(messages(b)) != 14 {
		t.Errorf("the second answer is %v %s, the first %s, messages %q", second.Header, second.Body, first.Body, messages(b))
	}

	// A job of one is seen at the other, at which it ends, too.
	file := filepath.Join(a.Dir, "rivers.md")
	if err := os.WriteFile(file, []byte("The Mur flows through Graz."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.App.Knowledge().Change(t.Context(), event.Scope{}, knowledge.Edit{Name: "rivers", Add: []string{file}}); err != nil {
		t.Fatal(err)
	}
	var job api.Job
	expect(t, a.Post("/v1/rags/rivers/rebuild", ""), http.StatusAccepted).JSON(t, &job)
	for late := time.Now().Add(20 * time.Second); job.Status == "running" && time.Now().Before(late); {
		expect(t, b.Get("/v1/jobs/"+job.ID), http.StatusOK).JSON(t, &job)
	}
	if job.Status != "done" || job.Target != "rivers" || job.FinishedAt == nil {
		t.Errorf("at the other server the job is %+v", job)
	}
	expect(t, b.Get("/v1/jobs/none"), http.StatusNotFound)

	// Each has one pool, one connection that listens and one that says that it lives, for all that it keeps there.
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	listen, all := 0, 0
	err = c.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE query LIKE 'LISTEN%'), count(*) FROM pg_stat_activity WHERE application_name = 'loki' AND datname = current_database()`).Scan(&listen, &all)
	if err != nil || listen != 2 || all > 2*12 {
		t.Errorf("%d connections listen, of %d (%v)", listen, all, err)
	}

	// One server is killed, and the session is deleted at the other.
	b.Kill()
	b.Begin()
	if texts := messages(b); len(texts) != 14 {
		t.Errorf("after a restart: %q", texts)
	}
	expect(t, b.Do(http.MethodDelete, path, ""), http.StatusNoContent)
	expect(t, a.Get(path), http.StatusNotFound)
	expect(t, a.Post(path+"/completions", `{"prompt": "gone"}`), http.StatusNotFound)
}

// TestResponsesOfServers has a second server go on with a response of the first one, which then goes on with that.
func TestResponsesOfServers(t *testing.T) {
	address := postgrestest.Database(t)
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	bob, bobKey := servertest.Key("bob", 2, "read, write")
	files := servertest.Files{
		"config.yaml":            "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\nstore: " + address + "\napi:\n  auth:\n    keys:\n" + aliceKey + bobKey,
		"rules.yaml":             "rules:\n  - match: {text: \"what did I say\"}\n    reply: \"{{history}}\"\ndefault: {reply: \"noted {{text}}\"}\n",
		"agents/asks/graph.yaml": strings.Replace(askAgent, "assignees: [ada], ", "", 1),
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	a, b := servertest.Start(t, files), servertest.ProgramIn(t, dir, files) // runs go on in the directory that they began in
	elsewhere := servertest.Program(t, files)
	type response struct {
		ID     string
		Output []struct {
			Content []struct{ Text string }
		}
		Loki struct {
			RunID string `json:"run_id"`
		}
	}
	ask := func(s *servertest.Server, model, input, previous string) (r response, text string) {
		t.Helper()
		body := fmt.Sprintf(`{"model": %q, "input": %q`, model, input)
		if previous != "" {
			body += fmt.Sprintf(`, "previous_response_id": %q`, previous)
		}
		expect(t, s.Post("/v1/responses", body+"}", "Authorization", "Bearer "+alice), http.StatusOK).JSON(t, &r)
		if len(r.Output) != 1 || len(r.Output[0].Content) != 1 {
			t.Fatalf("%+v", r)
		}
		return r, r.Output[0].Content[0].Text
	}
	said := func(s *servertest.Server, previous string, want ...string) {
		t.Helper()
		got := s.Get("/v1/sessions/"+sessionOf(previous), "Authorization", "Bearer "+alice)
		var d api.SessionDetails
		expect(t, got, http.StatusOK).JSON(t, &d)
		var texts []string
		for _, m := range d.Messages {
			texts = append(texts, m.Text())
		}
		if !slices.Equal(texts, want) {
			t.Errorf("%s: %q, want %q", previous, texts, want)
		}
	}
	const model = "builtin:script"
	first, _ := ask(a, model, "one", "")
	second, _ := ask(b, model, "two", first.ID)
	if sessionOf(second.ID) != sessionOf(first.ID) {
		t.Errorf("the second response is in another session: %s, %s", first.ID, second.ID)
	}
	third, _ := ask(a, model, "three", second.ID) // the first server has a copy that is old by now
	for _, s := range []*servertest.Server{a, b} {
		said(s, third.ID, "one", "noted one", "two", "noted two", "three", "noted three")
	}
	branch, _ := ask(b, model, "other", first.ID)
	if sessionOf(branch.ID) == sessionOf(first.ID) {
		t.Errorf("a branch is in the session of %s: %s", first.ID, branch.ID)
	}
	said(a, branch.ID, "one", "noted one", "other", "noted other")

	// Two servers go on with one response at the same moment: one goes on with the session, the other one has a branch.
	var both sync.WaitGroup
	ids := make([]string, 2)
	for i, s := range []*servertest.Server{a, b} {
		both.Go(func() {
			var r response
			answer := s.Post("/v1/responses", fmt.Sprintf(`{"model": %q, "input": "at once", "previous_response_id": %q}`, model, third.ID), "Authorization", "Bearer "+alice)
			if answer.Status == http.StatusOK {
				answer.JSON(t, &r)
			} else {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
			ids[i] = r.ID
		})
	}
	both.Wait()
	if ids[0] == "" || ids[1] == "" || sessionOf(ids[0]) == sessionOf(ids[1]) {
		t.Fatalf("the responses are %q", ids)
	}
	for _, id := range ids {
		said(a, id, "one", "noted one", "two", "noted two", "three", "noted three", "at once", "noted at once")
	}

	// The question of an agent is answered at the other server, too.
	question, _ := ask(a, "agent:asks", "x", "")
	refused := elsewhere.Post("/v1/responses", fmt.Sprintf(`{"model": "agent:asks", "input": "yes", "previous_response_id": %q}`, question.ID), "Authorization", "Bearer "+alice)
	if refused.Status != http.StatusConflict || !strings.Contains(refused.Body, "this server works elsewhere") {
		t.Errorf("in another directory: %d %s", refused.Status, refused.Body)
	}
	if _, text := ask(b, "agent:asks", "yes", question.ID); text != "yes" {
		t.Errorf("the agent answers %q", text)
	}

	// It is not for others, at no server, and is gone with its session.
	for _, s := range []*servertest.Server{a, b, elsewhere} {
		answer := s.Post("/v1/responses", fmt.Sprintf(`{"model": %q, "input": "x", "previous_response_id": %q}`, model, third.ID), "Authorization", "Bearer "+bob)
		if answer.Status != http.StatusNotFound || answer.Code() != "previous_response_not_found" {
			t.Errorf("as Bob: %d %s", answer.Status, answer.Body)
		}
	}
	expect(t, b.Do(http.MethodDelete, "/v1/sessions/"+sessionOf(first.ID), "", "Authorization", "Bearer "+alice), http.StatusNoContent)
	answer := a.Post("/v1/responses", fmt.Sprintf(`{"model": %q, "input": "x", "previous_response_id": %q}`, model, first.ID), "Authorization", "Bearer "+alice)
	if answer.Status != http.StatusNotFound || answer.Code() != "previous_response_not_found" {
		t.Errorf("of a session that was deleted at the other server: %d %s", answer.Status, answer.Body)
	}
}

// sessionOf returns the id of the session in which a response is.
func sessionOf(response string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(response, "resp_"), "_")
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}

// TestDatabaseAway stops the database below a server: whatever needs it is 503 when the wait for it is over, with a time to try again, and
// works as before once it is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t)
	s := servertest.Program(t, sharedConfig(database.Database(t)))
	var made api.Session
	expect(t, s.Post("/v1/sessions", "{}"), http.StatusCreated).JSON(t, &made)
	path := "/v1/sessions/" + made.ID
	expect(t, s.Post(path+"/completions", `{"prompt": "before"}`), http.StatusOK)
	expect(t, s.Get("/v1/runs"), http.StatusOK)
	database.Stop(t)
	var requests sync.WaitGroup
	for _, r := range []struct{ method, path, body, key string }{
		{"GET", "/v1/sessions", "", ""},
		{"POST", "/v1/sessions", "{}", ""},
		{"POST", "/v1/sessions", "{}", "k"},
		{"GET", path, "", ""},
		{"POST", path + "/completions", `{"prompt": "x"}`, ""},
		{"POST", path + "/empty", "", ""},
		{"DELETE", path, "", ""},
		{"GET", "/v1/runs", "", ""},
		{"GET", "/v1/runs/k3f0a1b2", "", ""},
		{"GET", "/v1/jobs/none", "", ""},
		{"POST", "/v1/responses", `{"model": "builtin:echo", "input": "x"}`, ""},
		{"POST", "/v1/responses", `{"model": "builtin:echo", "input": "x", "previous_response_id": "resp_` + strings.ReplaceAll(made.ID, "-", "") + `_1"}`, ""},
	} {
		requests.Go(func() {
			var header []string
			if r.key != "" {
				header = []string{"Idempotency-Key", r.key}
			}
			begun := time.Now()
			a := s.Do(r.method, r.path, r.body, header...)
			if a.Status != http.StatusServiceUnavailable || a.Code() != "overloaded" || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s %s %s after %v: %d %s", r.method, r.path, r.key, time.Since(begun).Round(time.Second), a.Status, a.Body)
			}
		})
	}
	requests.Wait()
	if a := s.Get("/healthz/ready"); a.Status != http.StatusServiceUnavailable {
		t.Errorf("ready: %d %s", a.Status, a.Body)
	}
	database.Restart(t)
	until(t, "it is back", func() bool { return s.Get(path).Status == http.StatusOK })
	expect(t, s.Post(path+"/completions", `{"prompt": "after"}`), http.StatusOK)
	expect(t, s.Get("/v1/runs"), http.StatusOK)
}
