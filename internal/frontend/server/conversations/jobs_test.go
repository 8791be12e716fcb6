package conversations_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/llm/event"
)

// TestRebuild: a second rebuild joins the first, and a stream tells how it goes.
func TestRebuild(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config("rag_embedding_model: builtin:hash")})
	file := t.TempDir() + "/rivers.md"
	if err := os.WriteFile(file, []byte("The Mur flows through Graz."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.App.Knowledge().Change(t.Context(), event.Scope{}, knowledge.Edit{Name: "rivers", Add: []string{file}}); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 8) // goroutine i writes ids[i] only
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var j api.Job
			a := s.Post("/v1/rags/rivers/rebuild", "")
			if a.Status != http.StatusAccepted {
				t.Errorf("%d %s", a.Status, a.Body)
				return
			}
			a.JSON(t, &j)
			ids[i] = j.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		var j api.Job
		until(t, 20*time.Second, "the job ends", func() bool {
			j = api.Job{}
			want(t, s.Get("/v1/jobs/"+id), 200).JSON(t, &j)
			return j.Status != "running"
		})
		if j.Status != "done" || j.Progress == nil || j.Progress.Total != 1 {
			t.Errorf("the job ended so: %+v, progress %+v", j, j.Progress)
		}
	}
	a := want(t, s.Get("/v1/jobs/"+ids[0], "Accept", "text/event-stream"), 200)
	if list := frames(a.Body); len(list) != 1 || list[0][0] != "finished" || !strings.Contains(list[0][1], `"done"`) {
		t.Errorf("the stream of a job that has ended: %s", a.Body)
	}
	c := completion(t, s, "/v1/completions", `{"prompt": "Where does the Mur flow?", "rag": "rivers"}`)
	if !strings.Contains(c.FinalMessage, "through Graz") {
		t.Errorf("from the knowledge base: %q", c.FinalMessage)
	}
	path := newSession(t, s, `{"rag": "rivers"}`)
	if c = completion(t, s, path+"/completions", `{"prompt": "Where does the Mur flow?"}`); !strings.Contains(c.FinalMessage, "through Graz") {
		t.Errorf("in a session: %q", c.FinalMessage)
	}
	if d := session(t, s, path); d.RAG != "rivers" || d.Messages[0].Text() != "Where does the Mur flow?" {
		t.Errorf("the session is %+v", d)
	}
	want(t, s.Do("DELETE", path+"/rag", ""), 200)
	if c = completion(t, s, path+"/completions", `{"prompt": "And the Drau?"}`); strings.Contains(c.FinalMessage, "through Graz") {
		t.Errorf("without the knowledge base: %q", c.FinalMessage)
	}
	want(t, s.Get("/v1/jobs/nothing"), http.StatusNotFound)
	want(t, s.Post("/v1/rags/nothing/rebuild", ""), http.StatusNotFound)
}

// TestReload: mcp.json is read again, and with one that is not valid the servers of before go on.
func TestReload(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	valid := `{"mcpServers": {"one": {"command": ` + quote(exe) + `, "env": {"` + serverName + `": "one"}, "expose": "direct"}}}`
	s := servertest.Program(t, servertest.Files{
		"config.yaml":        config("mcp_server_support: true\nenabled_mcp_servers: one\npermission: {\"mcp__*\": allow}"),
		"functions/mcp.json": valid,
		"rules.yaml":         "rules:\n  - match: {turn: 1}\n    tool_calls: [{name: mcp__one__pid}]\ndefault:\n  reply: '{{tool_result}}'\n",
	})
	process := func() string { // that answers a call
		t.Helper()
		text := completion(t, s, "/v1/completions", `{"prompt": "who", "model": "builtin:script"}`).FinalMessage
		if !strings.Contains(text, "process ") {
			t.Fatalf("the server's tool returned %q", text)
		}
		return text
	}
	before := process()
	if now := process(); now != before {
		t.Errorf("the connection is not kept: the answers are from %s and %s", before, now)
	}
	for _, bad := range []string{`{`, `{"mcpServers": {"one": {}}}`} {
		if err := os.WriteFile(s.Dir+"/functions/mcp.json", []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := s.Post("/v1/mcp/reload", ""); a.Status < 400 {
			t.Errorf("an invalid file: %d %s", a.Status, a.Body)
		}
		if now := process(); now != before {
			t.Errorf("after reading %s the answer is from %s, before from %s", bad, now, before)
		}
	}
	if err := os.WriteFile(s.Dir+"/functions/mcp.json", []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := want(t, s.Post("/v1/mcp/reload", ""), 200); !strings.Contains(a.Body, `"one"`) {
		t.Errorf("got %s", a.Body)
	}
	if now := process(); now == before {
		t.Errorf("the answer is still from %s", now)
	}
}
