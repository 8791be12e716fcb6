package conversations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/text/sample"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// working are the files of a server whose model calls a tool twice before it answers, and needs a while for each.
func working(delay string) servertest.Files {
	return servertest.Files{
		"config.yaml": strings.Replace(config("permission: {fs_ls: allow}", "enabled_tools: fs_ls"), "visible_tools: [nap.sh, fs_write]", "visible_tools: [fs_ls]", 1),
		"rules.yaml": strings.ReplaceAll(`
rules:
  - match: {text: work, turn: 1}
    tool_calls: [{name: fs_ls, arguments: {path: .}}]
    delay: DELAY
  - match: {text: work, turn: 2}
    tool_calls: [{name: fs_ls, arguments: {path: ./}}]
    delay: DELAY
default: {reply: "read {{text}}", delay: DELAY}
`, "DELAY", delay),
	}
}

// ask asks in a session in the background, and returns when a message is taken, with its answer.
func ask(t *testing.T, s *servertest.Server, path, message string) (sent api.SentMessage, wait func()) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := http.Post(s.URL+path+"/completions", "application/json", strings.NewReader(`{"prompt": "work", "model": "builtin:script"}`))
		if err == nil { // else the server was killed
			r.Body.Close()
		}
	})
	until(t, 20*time.Second, "a message is taken", func() bool {
		a := s.Post(path+"/messages", message)
		if a.Status != http.StatusAccepted && a.Status != http.StatusConflict {
			t.Fatalf("status %d: %s", a.Status, a.Body)
		}
		_ = json.Unmarshal([]byte(a.Body), &sent)
		return a.Status == http.StatusAccepted
	})
	return sent, wg.Wait
}

// TestMessages says something to a model while it works in a session: the session has it once, one that was taken back is never read,
// and an idle session takes none.
func TestMessages(t *testing.T) {
	s := servertest.Start(t, working("300ms"))
	path := newSession(t, s, `{"model": "builtin:script"}`)
	want(t, s.Post(path+"/messages", `{"text": "too early"}`), http.StatusConflict)
	now, wait := ask(t, s, path, `{"text": "first", "when": "now"}`)
	var gone, next api.SentMessage
	for text, to := range map[string]*api.SentMessage{"gone": &gone, "second": &next} {
		a := want(t, s.Post(path+"/messages", `{"text": "`+text+`"}`), http.StatusAccepted)
		if err := json.Unmarshal([]byte(a.Body), to); err != nil {
			t.Fatal(err)
		}
	}
	if now.When != "now" || next.When != "next" || now.Run != next.Run || now.ID == next.ID {
		t.Errorf("sent were %+v and %+v", now, next)
	}
	want(t, s.Do(http.MethodDelete, path+"/messages/"+gone.ID, ""), http.StatusNoContent)
	want(t, s.Do(http.MethodDelete, path+"/messages/"+gone.ID, ""), http.StatusNotFound)
	want(t, s.Do(http.MethodDelete, path+"/messages/99", ""), http.StatusNotFound)
	want(t, s.Post(path+"/messages", `{"text": ""}`), http.StatusBadRequest)
	want(t, s.Post(path+"/messages", `{"text": "x", "when": "later"}`), http.StatusBadRequest)
	want(t, s.Post("/v1/runs/"+now.Run+"/messages", `{"text": "third"}`), http.StatusAccepted)
	wait()
	want(t, s.Post(path+"/messages", `{"text": "too late"}`), http.StatusConflict)
	want(t, s.Post("/v1/runs/"+now.Run+"/messages", `{"text": "too late"}`), http.StatusConflict)
	want(t, s.Do(http.MethodDelete, path+"/messages/"+now.ID, ""), http.StatusConflict)
	body := s.Get(path).Body
	for text, n := range map[string]int{"first": 1, "second": 1, "third": 1, "gone": 0, "too early": 0, "too late": 0} {
		if got := strings.Count(body, fmt.Sprintf(`"text":"%s"`, text)) + strings.Count(body, fmt.Sprintf(`"content":"%s"`, text)); got != n {
			t.Errorf("%q is in the session %d times, want %d: %s", text, got, n, body)
		}
	}
	if n := strings.Count(body, `"steer":true`); n != 3 {
		t.Errorf("%d messages are marked in %s", n, body)
	}
}

// TestMessageAcrossKills kills the server at many moments after it has taken a message, and starts it again. The run resumes, and the session
// has the message once, answered.
func TestMessageAcrossKills(t *testing.T) {
	s := servertest.ProgramIn(t, t.TempDir(), working("25ms"))
	kills := 100 / sample.Step(10)
	for i := range kills {
		path := newSession(t, s, `{"model": "builtin:script"}`)
		text := fmt.Sprintf("message %d.", i)
		when := []string{"now", "next"}[i%2]
		sent, wait := ask(t, s, path, fmt.Sprintf(`{"text": %q, "when": %q}`, text, when))
		time.Sleep(time.Duration(i*130/kills) * time.Millisecond)
		s.Kill()
		wait()
		s.Begin()
		body := ""
		deadline := time.Now().Add(30 * time.Second)
		for body = s.Get(path).Body; !strings.Contains(body, "read "+text); body = s.Get(path).Body {
			if time.Now().After(deadline.Add(-24 * time.Second)) {
				t.Fatalf("kill %d, %s: the session is %s, the runs are %s", i, when, body, s.Get("/v1/runs/"+sent.Run).Body)
			}
			time.Sleep(20 * time.Millisecond) // for the server, which resumes
		}
		if strings.Count(body, `"steer":true`) != 1 || strings.Count(body, text) != 2 {
			t.Errorf("kill %d, %s: the session is %s", i, when, body)
		}
	}
}
