package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"loki/internal/api"
	"loki/internal/app"
	"loki/internal/event"
	"loki/internal/postgres/postgrestest"
	"loki/internal/server/servertest"
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
	if err := a.App.ChangeBase(t.Context(), event.Scope{}, app.BaseChange{Name: "rivers", Add: []string{file}}); err != nil {
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
