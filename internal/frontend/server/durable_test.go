package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/frontend/server/servertest"
	"loki/internal/workflow/run/webhook"
)

// slowAgent has three steps, each of which leaves a line when it is done.
const slowAgent = `
name: slow
start: a
settings: {timeout: 300}
nodes:
  a: {type: script, script: scripts/step.sh, state_updates: {}, next: b}
  b: {type: script, script: scripts/step.sh, state_updates: {}, next: c}
  c: {type: script, script: scripts/step.sh, state_updates: {}, next: end}
  end: {type: end, output: "{{initial_prompt}} {{count}}"}
`

const stepScript = `#!/bin/sh
# The state has how many steps were made.
n=$(printf '%s' "$GRAPH_STATE" | sed -n 's/.*"count": *\([0-9]*\).*/\1/p')
sleep 0.1
printf '{"count": %d}\n' "$(( ${n:-0} + 1 ))"
`

// until waits until ok, which looks at another process.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// status returns the status and the output of a run.
func status(t *testing.T, s *servertest.Server, id string) (is, output string) {
	t.Helper()
	var r struct{ Status, Output string }
	s.Get("/v1/runs/"+id).JSON(t, &r)
	return r.Status, r.Output
}

// restsAt asks until the status of a run is not before any more, and returns it.
func restsAt(t *testing.T, s *servertest.Server, id string, before ...string) (is, output string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) { // another process works
		is, output = status(t, s, id)
		if !strings.Contains(strings.Join(before, " "), is) {
			return is, output
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s is still %s; the server says:\n%s", id, is, s.Stderr())
		}
	}
}

// TestKillWithRuns kills a server, twice, while 20 runs work or wait for their turn. All end as if it had not been.
func TestKillWithRuns(t *testing.T) {
	s := servertest.Program(t, servertest.Files{
		"config.yaml":                 "api: {limits: {max_concurrent_runs: 8}}\n",
		"agents/slow/graph.yaml":      slowAgent,
		"agents/slow/scripts/step.sh": stepScript,
	})
	var ids []string
	for i := range 20 {
		a := s.Post("/v1/agents/slow/runs", fmt.Sprintf(`{"prompt": "run %d"}`, i))
		var r struct{ ID string }
		if a.JSON(t, &r); a.Status != http.StatusCreated || r.ID == "" {
			t.Fatalf("run %d: %d %s", i, a.Status, a.Body)
		}
		ids = append(ids, r.ID)
	}
	for range 2 {
		s.Kill()
		s.Begin()
	}
	for i, id := range ids {
		is, output := restsAt(t, s, id, "running", "queued", "interrupted")
		if want := fmt.Sprintf("run %d 3", i); is != "done" || output != want {
			t.Errorf("run %s is %s with %q, want %q", id, is, output, want)
		}
		events := s.Get("/v1/runs/" + id + "/events")
		n := 0
		for line := range strings.Lines(events.Body) {
			if number, ok := strings.CutPrefix(strings.TrimSpace(line), "id: "); ok {
				if n++; number != fmt.Sprint(n) {
					t.Fatalf("event %d of run %s has number %s", n, id, number)
				}
			}
		}
		if n < 8 {
			t.Errorf("run %s has %d events:\n%s", id, n, events.Body)
		}
	}
}

const askAgent = `
name: asks
start: ask
nodes:
  ask: {type: approval, question: "Publish <b>it</b>?", options: [yes, no], routes: {yes: end, no: end}, on_other: end, assignees: [ada], state_updates: {answer: "{{choice}}"}}
  end: {type: end, output: "{{answer}}"}
`

// receive starts a receiver of webhooks whose notices have a signature with the secret s3cret.
func receive(t *testing.T) (address string, notices <-chan notice) {
	got := make(chan notice, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var at int64
		_, _ = fmt.Sscan(r.Header.Get("Webhook-Timestamp"), &at)
		if sig := webhook.Sign("s3cret", r.Header.Get("Webhook-Id"), time.Unix(at, 0), body); sig != r.Header.Get("Webhook-Signature") {
			t.Errorf("the signature of %s is wrong", body)
		}
		var n notice
		if err := json.Unmarshal(body, &n); err != nil {
			t.Error(err)
		}
		got <- n
	}))
	t.Cleanup(hook.Close)
	return hook.URL, got
}

// notice is what a webhook is sent.
type notice struct {
	Type string
	Data struct {
		Status, Output string
		AnswerURL      string `json:"answer_url"`
	}
}

// TestWebhooksOfARun begins runs with webhooks of their own. One of them is canceled, and goes on after the server
// was killed.
func TestWebhooksOfARun(t *testing.T) {
	address, notices := receive(t)
	s := servertest.Program(t, servertest.Files{
		".env":                   "LOKI_FETCH_ALLOW=127.0.0.1\n",
		"agents/asks/graph.yaml": askAgent,
	})
	begin := func(hook string) (id string) {
		t.Helper()
		a := s.Post("/v1/agents/asks/runs", `{"prompt": "x", "webhooks": [`+hook+`]}`)
		var r struct{ ID string }
		if a.JSON(t, &r); a.Status != http.StatusCreated || strings.Contains(a.Body, "s3cret") {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return r.ID
	}
	id := begin(fmt.Sprintf(`{"url": %q, "secret": "s3cret", "events": ["canceled", "finished"]}`, address+"/s3cret?key=s3cret"))
	if is, _ := restsAt(t, s, id, "running"); is != "suspended" {
		t.Fatalf("the run is %s", is)
	}
	if a := s.Post("/v1/runs/"+id+"/cancel", ""); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if n := <-notices; n.Type != "canceled" {
		t.Fatalf("the first notice is %+v", n)
	}
	type detail struct {
		Notices []struct {
			Event, URL, Error, Again string
			Tries, Status            int
		}
	}
	var d detail
	onRecord := func(n int) func() bool {
		return func() bool {
			a := s.Get("/v1/runs/" + id)
			d = detail{}
			if a.JSON(t, &d); strings.Contains(a.Body, "s3cret") {
				t.Fatalf("a secret is shown: %s", a.Body)
			}
			return len(d.Notices) == n
		}
	}
	until(t, "the first notice is on record", onRecord(1)) // otherwise it is sent again
	s.Kill()
	s.Begin()
	if a := s.Post("/v1/runs/"+id+"/resume", ""); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if is, _ := restsAt(t, s, id, "running"); is != "suspended" {
		t.Fatalf("the run is %s", is)
	}
	if a := s.Post("/v1/runs/"+id+"/answers", `{"ask": "yes"}`); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if n := <-notices; n.Type != "finished" || n.Data.Output != "yes" {
		t.Fatalf("the second notice is %+v", n)
	}
	until(t, "both notices are on record", onRecord(2))
	if n := d.Notices[1]; n.Event != "finished" || n.URL != address || n.Tries != 1 || n.Status != http.StatusOK || n.Error != "" || n.Again != "" {
		t.Errorf("the second delivery is %+v", n)
	}
	journal, err := filepath.Glob(filepath.Join(s.Dir, "state", "*.db*"))
	for _, file := range journal {
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "s3cret") {
			t.Errorf("%s has the secret (%v)", file, err)
		}
	}
	if err != nil || len(journal) == 0 || strings.Contains(s.Stderr(), "s3cret") {
		t.Errorf("record %v, %v; log:\n%s", journal, err, s.Stderr())
	}
	for _, wrong := range []string{`{"url": "http://169.254.169.254/latest"}`, `{"url": "ftp://a.test"}`, `{"url": "nowhere"}`, `{"url": "https://a.test", "events": ["finish"]}`, `{"secret": "x"}`, `{"url": "http://a"},` + strings.Repeat(`{"url": "http://a"},`, 8) + `{"url": "http://a"}`} {
		if a := s.Post("/v1/agents/asks/runs", `{"prompt": "x", "webhooks": [`+wrong+`]}`); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "webhooks") {
			t.Errorf("%s: %d %s", wrong, a.Status, a.Body)
		}
	}
}

// TestAnswerLink notifies an address of a question, and answers that with the link in the notice.
func TestAnswerLink(t *testing.T) {
	address, notices := receive(t)
	s := servertest.Program(t, servertest.Files{
		"config.yaml":            fmt.Sprintf("api: {webhooks: [{agent: asks, url: %q, secret: s3cret}]}\n", address),
		"agents/asks/graph.yaml": askAgent,
	})
	a := s.Post("/v1/agents/asks/runs", `{"prompt": "x"}`)
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	asked := <-notices
	if asked.Type != "question" || asked.Data.Status != "suspended" || !strings.HasPrefix(asked.Data.AnswerURL, s.URL+"/answer/") {
		t.Fatalf("the notice is %+v", asked)
	}
	link := strings.TrimPrefix(asked.Data.AnswerURL, s.URL)
	page := s.Get(link)
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "Publish &lt;b&gt;it&lt;/b&gt;?") || strings.Contains(page.Body, "<script") {
		t.Errorf("the page: %d %s", page.Status, page.Body)
	}
	if wrong := s.Get(link + "A"); wrong.Status != http.StatusNotFound {
		t.Errorf("another link: %d %s", wrong.Status, wrong.Body)
	}
	form := url.Values{"answer": {"yes"}}.Encode()
	for _, wrong := range []string{"", "x=y", "answer=", "answer=yes&answer=no"} {
		if a := s.Post(link, wrong, "Content-Type", "application/x-www-form-urlencoded"); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "Nothing was answered") {
			t.Errorf("%q: %d %s", wrong, a.Status, a.Body)
		}
	}
	if a := s.Post(link, `{"answer": "yes"}`); a.Status != http.StatusBadRequest {
		t.Errorf("JSON: %d %s", a.Status, a.Body)
	}
	if a := s.Post(link, form, "Content-Type", "application/x-www-form-urlencoded", "Origin", "http://evil.example"); a.Status != http.StatusForbidden {
		t.Errorf("another site: %d %s", a.Status, a.Body)
	}
	if thanks := s.Post(link, form, "Content-Type", "application/x-www-form-urlencoded"); thanks.Status != http.StatusOK {
		t.Fatalf("the answer: %d %s", thanks.Status, thanks.Body)
	}
	if end := <-notices; end.Type != "finished" || end.Data.Output != "yes" {
		t.Errorf("the last notice is %+v", end)
	}
	if again := s.Post(link, form, "Content-Type", "application/x-www-form-urlencoded"); again.Status != http.StatusGone {
		t.Errorf("answered again: %d %s", again.Status, again.Body)
	}
	if left, err := filepath.Glob(filepath.Join(s.Dir, "state", "links.key")); err != nil || len(left) != 1 {
		t.Errorf("the key of links: %v, %v", left, err)
	}
}

// TestHostileLinks tries links that no notice had, and one link many times at once.
func TestHostileLinks(t *testing.T) {
	address, notices := receive(t)
	files := servertest.Files{
		"config.yaml": fmt.Sprintf("api: {webhooks: [{url: %q, secret: s3cret}]}\n", address),
		".env":        "LOKI_LOG_LEVEL=debug\n",
		"agents/asks/graph.yaml": `
name: asks
start: ask
nodes:
  ask: {type: approval, question: "<script>alert(1)</script>", options: ["\"><img src=x onerror=alert(1)>", no], routes: {"\"><img src=x onerror=alert(1)>": end, no: end}, on_other: end, state_updates: {answer: "{{choice}}"}}
  end: {type: end, output: "{{answer}}"}
`,
	}
	begin := func(s *servertest.Server) (id, link string) {
		t.Helper()
		var r struct{ ID string }
		if a := s.Post("/v1/agents/asks/runs", `{"prompt": "x"}`); a.Status != http.StatusCreated {
			t.Fatalf("%d %s", a.Status, a.Body)
		} else {
			a.JSON(t, &r)
		}
		asked := <-notices
		return r.ID, strings.TrimPrefix(asked.Data.AnswerURL, s.URL)
	}
	s, other := servertest.Program(t, files), servertest.Program(t, files)
	_, foreign := begin(other)
	id, link := begin(s)
	page := s.Get(link)
	if page.Status != http.StatusOK || strings.Contains(page.Body, "<script") || strings.Contains(page.Body, "<img") || !strings.Contains(page.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page: %d %v\n%s", page.Status, page.Header, page.Body)
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	body, mac, _ := strings.Cut(strings.TrimPrefix(link, "/answer/"), ".")
	for _, wrong := range []string{foreign, link[:len(link)-1], link[:len(link)/2], "/answer/" + body, "/answer/." + mac, "/answer/" + mac + "." + body, "/answer/" + url.PathEscape("../"+body+"."+mac), "/answer/%00", link + "." + mac} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if a := s.Do(method, wrong, "answer=no", form...); a.Status != http.StatusNotFound && a.Status != http.StatusBadRequest {
				t.Errorf("%s %s: %d", method, wrong, a.Status)
			}
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "BREW"} {
		if a := s.Do(method, link, "answer=no", form...); a.Status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, a.Status)
		}
	}
	if a := s.Do(http.MethodHead, link, ""); a.Status != http.StatusOK {
		t.Errorf("HEAD: %d", a.Status)
	}
	if a := s.Post(link, "answer="+strings.Repeat("x", 300<<10), form...); a.Status != http.StatusBadRequest {
		t.Errorf("a long answer: %d", a.Status)
	}
	if is, _ := status(t, s, id); is != "suspended" {
		t.Fatalf("the run is %s", is)
	}
	var answering sync.WaitGroup
	var thanked atomic.Int32
	for range 8 {
		answering.Go(func() {
			switch a := s.Post(link, "answer=no", form...); a.Status {
			case http.StatusOK, http.StatusAccepted:
				thanked.Add(1)
			case http.StatusGone:
			default:
				t.Errorf("at once with others: %d %s", a.Status, a.Body)
			}
		})
	}
	answering.Wait()
	if is, output := restsAt(t, s, id, "running"); is != "done" || output != "no" || thanked.Load() != 1 {
		t.Errorf("the run is %s with %q, %d were thanked", is, output, thanked.Load())
	}
	s.Signal(os.Interrupt)
	s.Wait()
	logs, err := filepath.Glob(filepath.Join(s.Dir, "cache", "*", "*.log"))
	all := s.Stderr()
	for _, name := range logs {
		text, readErr := os.ReadFile(name)
		err, all = errors.Join(err, readErr), all+string(text)
	}
	if err != nil || !strings.Contains(all, "/answer/…") {
		t.Errorf("the log has no such request: %v %v", logs, err)
	}
	if strings.Contains(all, body) || strings.Contains(all, mac) {
		t.Errorf("the log has the token:\n%s", all)
	}
}
