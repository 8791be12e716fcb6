package conversations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// TestSessionsInParallel: 20 sessions of 20 turns each lose nothing, and turns do not mix.
func TestSessionsInParallel(t *testing.T) {
	s := servertest.Program(t, servertest.Files{"config.yaml": config()})
	const sessions, turns = 20, 20
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			var made api.Session
			a := s.Post("/v1/sessions", fmt.Sprintf(`{"alias": "s%d"}`, i))
			if a.Status != http.StatusCreated || json.Unmarshal([]byte(a.Body), &made) != nil {
				t.Errorf("session %d: %d %s", i, a.Status, a.Body)
				return
			}
			var asked sync.WaitGroup
			for turn := range turns {
				asked.Go(func() {
					text := fmt.Sprintf("session %d turn %d", i, turn)
					a := s.Post("/v1/sessions/"+made.ID+"/completions", `{"prompt": "`+text+`"}`)
					if a.Status != http.StatusOK || !strings.Contains(a.Body, `"final_message":"`+text+`"`) {
						t.Errorf("%s: %d %s", text, a.Status, a.Body)
					}
				})
			}
			asked.Wait()
			d := session(t, s, "/v1/sessions/"+made.ID)
			seen := make(map[string]bool)
			for n := 0; n+1 < len(d.Messages); n += 2 {
				question, answer := d.Messages[n], d.Messages[n+1]
				if question.Role != "user" || answer.Role != "assistant" || question.Text() != answer.Text() || !strings.HasPrefix(question.Text(), fmt.Sprintf("session %d turn ", i)) {
					t.Errorf("session %d has %q and %q", i, question.Text(), answer.Text())
				}
				seen[question.Text()] = true
			}
			if len(seen) != turns || d.Count != 2*turns {
				t.Errorf("session %d has %d turns in %d messages", i, len(seen), d.Count)
			}
		})
	}
	wg.Wait()
	// All are listed, in pages, each once.
	listed, cursor := make(map[string]bool), ""
	for {
		var page api.List[api.SessionEntry]
		want(t, s.Get("/v1/sessions?limit=7&cursor="+cursor), 200).JSON(t, &page)
		for _, e := range page.Data {
			listed[e.Alias] = true
			if e.Turns != turns {
				t.Errorf("%s has %d turns", e.Alias, e.Turns)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(listed) != sessions {
		t.Errorf("%d sessions are listed", len(listed))
	}
}

// TestSession goes through what can be done with a session.
func TestSession(t *testing.T) {
	s := servertest.Start(t, servertest.Files{
		"config.yaml": config(), "roles/poet.md": "In verse.", "rags/.keep": "",
		"agents/guide/config.yaml": "name: guide\nmodel: builtin:echo\ninstructions: Guide through {{place}}.\nvariables:\n  - {name: place, description: where}\n",
		"agents/steps/graph.yaml":  "name: steps\nversion: \"1.0\"\nstart: a\nnodes:\n  a: {type: end, output: done}\n",
	})
	path := newSession(t, s, `{"alias": "work", "role": "poet"}`)
	a := want(t, s.Post("/v1/sessions", `{"alias": "work"}`), http.StatusConflict)
	if a.Code() != "conflict" || !strings.Contains(a.Body, "the name is taken") {
		t.Errorf("a name that is taken: %s", a.Body)
	}
	for _, alias := range []string{"a/b", `a\u2028b`, `a\ufffeb`, `a\u0000b`} {
		want(t, s.Post("/v1/sessions", `{"alias": "`+alias+`"}`), http.StatusBadRequest)
	}
	c := completion(t, s, path+"/completions", `{"prompt": "one", "max_output_tokens": 10}`)
	if c.SessionID == nil || !strings.HasSuffix(path, *c.SessionID) || c.RunID == "" {
		t.Errorf("got %+v", c)
	}
	for _, text := range []string{"two", "three"} {
		completion(t, s, path+"/completions", `{"prompt": "`+text+`"}`)
	}
	d := session(t, s, path)
	if d.Count != 7 || d.Messages[0].Role != "system" || d.Role != "poet" || d.Settings["role_name"] != "poet" || d.Usage.InputTokens == 0 {
		t.Errorf("the session is %+v", d)
	}
	want(t, s.Get(path+"?limit=3&after=3"), 200).JSON(t, &d)
	if len(d.Messages) != 3 || d.NextAfter != 6 || d.Messages[0].Text() != "two" {
		t.Errorf("a page is %+v", d)
	}

	// What a conversation refuses is a conflict, with its words.
	for _, tt := range []struct{ method, at, body, text string }{
		{"POST", "/role", `{"name": "poet"}`, "session work has messages, so it keeps the role it began with"},
		{"DELETE", "/role", "", "session work has messages, so it keeps the role it began with"},
		{"POST", "/agent", `{"name": "guide", "variables": {"place": "Graz"}}`, "leave session work before entering an agent"},
		{"POST", "/completions", `{"prompt": "x", "role": "code"}`, "keeps the role it began with"},
		{"POST", "/completions", `{"prompt": "x", "agent": "guide"}`, "is not one of agent guide"},
	} {
		a := want(t, s.Do(tt.method, path+tt.at, tt.body), http.StatusConflict)
		if a.Code() != "conflict" || !strings.Contains(a.Body, tt.text) {
			t.Errorf("%s %s: %s", tt.method, tt.at, a.Body)
		}
	}
	var done api.SessionCompressed
	want(t, s.Post(path+"/compress", ""), 200).JSON(t, &done)
	if d = session(t, s, path); done.Messages == 0 || d.Count >= 7 {
		t.Errorf("compressed: %+v, %d messages are left", done, d.Count)
	}
	want(t, s.Post(path+"/empty", ""), 200)
	if d = session(t, s, path); d.Count != 0 || d.Role != "poet" {
		t.Errorf("emptied: %+v", d)
	}
	want(t, s.Post(path+"/compress", ""), http.StatusConflict)
	want(t, s.Do("DELETE", path+"/role", ""), 200)

	// An agent takes the session over, under the same id.
	for _, body := range []string{`{"name": "guide"}`, `{"name": "guide", "variables": {"auto_confirm": "1", "place": "x"}}`} {
		if a := s.Post(path+"/agent", body); a.Status != 400 && a.Status != 403 {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	a = want(t, s.Post(path+"/agent", `{"name": "steps"}`), http.StatusConflict)
	if !strings.Contains(a.Body, "agent steps is a graph, which has no sessions") {
		t.Errorf("a graph: %s", a.Body)
	}
	var now api.Session
	want(t, s.Post(path+"/agent", `{"name": "guide", "variables": {"place": "Graz"}}`), 200).JSON(t, &now)
	if now.Agent != "guide" || !strings.HasSuffix(path, now.ID) {
		t.Errorf("with an agent: %+v", now)
	}
	completion(t, s, path+"/completions", `{"prompt": "go"}`)
	if d = session(t, s, path); d.Count != 3 || !strings.Contains(d.Messages[0].Text(), "Guide through Graz.") {
		t.Errorf("with an agent: %+v", d.Messages)
	}
	a = want(t, s.Do("DELETE", path+"/agent", ""), http.StatusConflict)
	if !strings.Contains(a.Body, "keeps the agent it began with") {
		t.Errorf("leaving the agent: %s", a.Body)
	}
	want(t, s.Post(path+"/rag", `{"name": "nothing"}`), http.StatusNotFound)
	want(t, s.Post(path+"/empty", ""), 200)
	now = api.Session{}
	want(t, s.Do("DELETE", path+"/agent", ""), 200).JSON(t, &now)
	if now.Agent != "" {
		t.Errorf("without the agent: %+v", now)
	}

	want(t, s.Do("DELETE", path, ""), http.StatusNoContent)
	for _, a := range []servertest.Answer{s.Get(path), s.Do("DELETE", path, ""), s.Post(path+"/completions", `{"prompt": "x"}`), s.Get("/v1/sessions/nothing")} {
		if a.Status != http.StatusNotFound || a.Code() != "session_not_found" {
			t.Errorf("a session that is gone: %d %s", a.Status, a.Body)
		}
	}
}

// TestDeletedWhileARequestWaits: requests to a session are served in their order, and those behind its end are
// refused.
func TestDeletedWhileARequestWaits(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config("enabled_tools: all"), "functions/tools/nap.sh": strings.ReplaceAll(nap, "sleep 600", "sleep 1.5"), "rules.yaml": napRules})
	path := newSession(t, s, `{"model": "builtin:script"}`)
	var wg sync.WaitGroup
	answers := make([]servertest.Answer, 3) // goroutine i writes answers[i] only
	wg.Go(func() { answers[0] = s.Post(path+"/completions", `{"prompt": "nap first"}`) })
	until(t, 20*time.Second, "the first is at work", exists(s, "first"))
	wg.Go(func() { answers[1] = s.Do("DELETE", path, "") })
	time.Sleep(100 * time.Millisecond) // its order is that of its arrival
	wg.Go(func() { answers[2] = s.Post(path+"/completions", `{"prompt": "too late"}`) })
	wg.Wait()
	if answers[0].Status != 200 || answers[1].Status != 204 || answers[2].Status != 409 || !strings.Contains(answers[2].Body, "was deleted meanwhile") {
		t.Errorf("answers %d %s, %d %s, %d %s", answers[0].Status, answers[0].Body, answers[1].Status, answers[1].Body, answers[2].Status, answers[2].Body)
	}
}

// TestQuestion: a call that needs consent is refused outside of sessions, and waits for the answer in one.
func TestQuestion(t *testing.T) {
	s := servertest.Start(t, servertest.Files{
		"config.yaml": config("enabled_tools: all", "permission: {fs_write: ask}"),
		"rules.yaml": `rules:
  - match: {turn: 1}
    tool_calls: [{name: fs_write, arguments: {path: "{{text}}", contents: "x"}}]
default:
  reply: 'then: {{tool_result}}'
`,
	})
	const model = `"model": "builtin:script"`
	file := t.TempDir() + "/written"
	c := completion(t, s, "/v1/completions", `{"prompt": `+quote(file)+`, `+model+`}`)
	if len(c.ToolCalls) != 1 || !*c.ToolCalls[0].IsError || !strings.Contains(*c.ToolCalls[0].Result, "consent") || c.FinishReason != "stop" {
		t.Errorf("outside of sessions: %+v", c)
	}
	path := newSession(t, s, `{`+model+`}`)
	c = completion(t, s, path+"/completions", `{"prompt": `+quote(file)+`}`)
	if c.FinishReason != "question" || c.Question == nil || c.RunID == "" || len(c.Question.Options) != 4 || !strings.HasPrefix(c.Question.Options[2], "always for this run: ") { // none that would hold for other clients, too
		t.Fatalf("in a session: %+v", c)
	}
	if len(c.ToolCalls) != 1 || c.ToolCalls[0].Name != "fs_write" || c.ToolCalls[0].Result != nil || c.ToolCalls[0].IsError != nil {
		t.Errorf("the call that waits is %+v", c.ToolCalls)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("it was written without consent")
	}
	want(t, s.Post("/v1/runs/"+c.RunID+"/answers", `{`+quote(c.Question.ID)+`: "yes"}`), 200)
	until(t, 20*time.Second, "the run goes on", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	until(t, 20*time.Second, "the session has the answer", func() bool { return strings.Contains(s.Get(path).Body, "then: ") })
}

// TestConsentForARun: an answer that holds for the run holds after a further question, and after a restart, and not in the next turn.
func TestConsentForARun(t *testing.T) {
	dir := t.TempDir()
	files := servertest.Files{
		"config.yaml": config("enabled_tools: all", "permission: {fs_write: ask}"),
		"rules.yaml": `rules:
  - match: {turn: 1}
    tool_calls: [{name: fs_write, arguments: {path: "{{text}}/a", contents: "x"}}]
  - match: {turn: 2}
    tool_calls: [{name: fs_write, arguments: {path: "{{text}}/b", contents: "x"}}]
  - match: {turn: 3}
    tool_calls: [{name: fs_write, arguments: {path: "{{text}}/a", contents: "again"}}]
default: {reply: 'done'}
`,
	}
	s := servertest.Program(t, files)
	path := newSession(t, s, `{"model": "builtin:script"}`)
	answer := func(run, option string) api.RunDetail {
		t.Helper()
		var waiting api.List[api.Question]
		want(t, s.Get("/v1/runs/"+run+"/questions"), 200).JSON(t, &waiting)
		i := slices.IndexFunc(waiting.Data[0].Options, func(o string) bool { return strings.HasPrefix(o, option) })
		if i < 0 {
			t.Fatalf("no option %q in %+v", option, waiting.Data)
		}
		want(t, s.Post("/v1/runs/"+run+"/answers", `{`+quote(waiting.Data[0].ID)+`: `+quote(waiting.Data[0].Options[i])+`}`), 200)
		return rested(t, s, run)
	}
	c := completion(t, s, path+"/completions", `{"prompt": `+quote(dir)+`}`)
	if r := answer(c.RunID, "always for this run: "); r.Waiting != 1 { // for the other file
		t.Fatalf("after the first answer: %+v", r)
	}
	s.Kill()
	s.Begin()
	if r := answer(c.RunID, "yes"); r.Status != "done" {
		t.Fatalf("the file that may be written is asked about again: %+v", r)
	}
	if again, err := os.ReadFile(dir + "/a"); string(again) != "again" {
		t.Errorf("the file holds %q, %v", again, err)
	}
	if c = completion(t, s, path+"/completions", `{"prompt": `+quote(dir)+`}`); c.FinishReason != "question" {
		t.Errorf("the next turn: %+v", c)
	}
}

// TestForkAndRegenerate: a session begins with the turns of another one up to a message, and its last question is answered again.
func TestForkAndRegenerate(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config(), "roles/poet.md": "In verse.", "rules.yaml": `rules:
  - {match: {text: two}, times: 1, reply: second}
default: {reply: 'said {{text}}'}
`})
	path := newSession(t, s, `{"role": "poet", "model": "builtin:script"}`)
	for _, text := range []string{"one", "two"} {
		completion(t, s, path+"/completions", `{"prompt": "`+text+`"}`)
	}
	said := func(path string) string {
		var texts []string
		for _, m := range session(t, s, path).Messages {
			texts = append(texts, m.Text())
		}
		return strings.Join(texts, "|")
	}
	whole := "In verse.|one|said one|two|second"
	for _, tt := range []struct{ body, want string }{
		{`{}`, whole}, {`{"messages": 5}`, whole}, {`{"messages": 4}`, "In verse.|one|said one"}, {`{"messages": 3}`, "In verse.|one|said one"}, {`{"messages": 1}`, ""}, {`{"messages": 0}`, ""},
	} {
		var made api.Session
		want(t, s.Post(path+"/fork", tt.body), http.StatusCreated).JSON(t, &made)
		if got := said("/v1/sessions/" + made.ID); got != tt.want || made.Role != "poet" || made.Model != "builtin:script" {
			t.Errorf("%s: %q of %+v, want %q", tt.body, got, made, tt.want)
		}
		completion(t, s, "/v1/sessions/"+made.ID+"/completions", `{"prompt": "more"}`)
		if got := said("/v1/sessions/" + made.ID); !strings.HasPrefix(got, "In verse.|") || !strings.HasSuffix(got, "|more|said more") {
			t.Errorf("%s: the fork continues as %q", tt.body, got)
		}
	}
	if got := said(path); got != whole {
		t.Errorf("the session itself is %q", got)
	}
	if c := completion(t, s, path+"/regenerate", `{}`); c.FinalMessage != "said two" || c.RunID == "" {
		t.Errorf("the other answer is %+v", c)
	}
	if got := said(path); got != "In verse.|one|said one|two|said two" {
		t.Errorf("with another answer the session is %q", got)
	}
	if c := completion(t, s, path+"/regenerate", `{"model": "builtin:echo"}`); c.Model != "builtin:echo" || session(t, s, path).Model != "builtin:echo" {
		t.Errorf("another model: %+v", c)
	}
	want(t, s.Post(path+"/regenerate", `{"model": "builtin:nope"}`), http.StatusNotFound)
	want(t, s.Post(newSession(t, s, `{}`)+"/regenerate", `{}`), http.StatusConflict)

	// A request that names the version of the messages that it is about does nothing once there are others.
	seen := session(t, s, path).Version
	want(t, s.Post(path+"/fork", `{"version": `+quote(seen)+`}`), http.StatusCreated)
	completion(t, s, path+"/regenerate", `{"version": `+quote(seen)+`}`)
	completion(t, s, path+"/completions", `{"prompt": "three"}`)
	now, whole := session(t, s, path).Version, said(path)
	for _, verb := range []string{"/fork", "/regenerate"} {
		if a := want(t, s.Post(path+verb, `{"version": `+quote(seen)+`}`), http.StatusConflict); !strings.Contains(a.Body, "has changed since its messages were read") {
			t.Errorf("%s of what was: %s", verb, a.Body)
		}
	}
	if now == seen || said(path) != whole || session(t, s, path).Version != now {
		t.Errorf("version %s, then %s and %s with %q", seen, now, session(t, s, path).Version, said(path))
	}
	want(t, s.Post("/v1/sessions/nothing/fork", `{}`), http.StatusNotFound)
}

// asks has a tool ask for consent before it writes the file that a question names.
func asks() servertest.Files {
	return servertest.Files{
		"config.yaml": config("enabled_tools: all", "permission: {fs_write: ask}"),
		"rules.yaml": `rules:
  - match: {regex: '^/.*', turn: 1}
    tool_calls: [{name: fs_write, arguments: {path: "{{text}}", contents: "x"}}]
  - match: {regex: '^say '}
    reply: 'said {{text}}'
default:
  reply: 'then: {{tool_result}}'
`,
	}
}

// rested returns a run once it is not at work.
func rested(t *testing.T, s *servertest.Server, id string) (r api.RunDetail) {
	t.Helper()
	until(t, 20*time.Second, "run "+id+" rests", func() bool {
		r = api.RunDetail{}
		want(t, s.Get("/v1/runs/"+id), 200).JSON(t, &r)
		return !r.Active
	})
	return r
}

// TestTwoAnswersAtOnce: of two questions of a session that are answered at the same time one goes on, and the other one
// is refused before its answer is used up.
func TestTwoAnswersAtOnce(t *testing.T) {
	s := servertest.Start(t, asks())
	path, dir := newSession(t, s, `{"model": "builtin:script"}`), t.TempDir()
	var asked [2]api.Completion
	for i := range asked {
		asked[i] = completion(t, s, path+"/completions", `{"prompt": `+quote(fmt.Sprintf("%s/file%d", dir, i))+`}`)
		if asked[i].FinishReason != "question" {
			t.Fatalf("question %d: %+v", i, asked[i])
		}
	}
	var answers [2]servertest.Answer // goroutine i writes answers[i] only
	var all sync.WaitGroup
	for i, c := range asked {
		all.Go(func() { answers[i] = s.Post("/v1/runs/"+c.RunID+"/answers", `{`+quote(c.Question.ID)+`: "yes"}`) })
	}
	all.Wait()
	taken := 0
	for i, c := range asked {
		r := rested(t, s, c.RunID)
		switch {
		case answers[i].Status == http.StatusOK && r.Status == "done":
			taken++
		case answers[i].Status == http.StatusConflict && r.Status == "suspended" && r.Waiting == 1:
		default:
			t.Errorf("answer %d: %d %s, and then the run is %s with %d questions", i, answers[i].Status, answers[i].Body, r.Status, r.Waiting)
		}
	}
	if taken != 1 {
		t.Errorf("%d answers are taken", taken)
	}
}

// TestSessionKeepsModel: the model that a turn asks for is that of the turns after it, as on the command line.
func TestSessionKeepsModel(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config(), "rules.yaml": "default: {reply: by rule}\n"})
	path := newSession(t, s, "{}")
	for i, tt := range []struct{ model, want string }{
		{"", "builtin:echo"}, {"builtin:script", "builtin:script"}, {"", "builtin:script"}, {"builtin:echo", "builtin:echo"}, {"", "builtin:echo"},
	} {
		c := completion(t, s, path+"/completions", `{"prompt": "x", "model": `+quote(tt.model)+`}`)
		if now := session(t, s, path).Model; c.Model != tt.want || now != tt.want {
			t.Errorf("turn %d is answered by %s, and the session has %s, want %s", i, c.Model, now, tt.want)
		}
	}
	// One that cannot be had changes nothing.
	want(t, s.Post(path+"/completions", `{"prompt": "x", "model": "builtin:nope"}`), http.StatusNotFound)
	want(t, s.Post(path+"/completions", `{"prompt": " ", "model": "builtin:script"}`), http.StatusBadRequest)
	if now := session(t, s, path).Model; now != "builtin:echo" {
		t.Errorf("after a request that is refused it has %s", now)
	}
}

// TestTurnAfterQuestion: a turn behind one that waits for an answer says so, once, also after a restart. The answer is put
// behind it then, if that is asked for.
func TestTurnAfterQuestion(t *testing.T) {
	s := servertest.Program(t, asks())
	path, dir := newSession(t, s, `{"model": "builtin:script"}`), t.TempDir()
	named := func(c api.Completion) (runs []string) {
		for _, w := range c.Warnings {
			if rest, ok := strings.CutPrefix(w, "question chat/1.1 of run "); ok {
				runs = append(runs, rest[:8])
			}
		}
		return runs
	}
	first := completion(t, s, path+"/completions", `{"prompt": `+quote(dir+"/first")+`}`)
	second := completion(t, s, path+"/completions", `{"prompt": `+quote(dir+"/second")+`}`)
	if first.Question == nil || second.Question == nil || len(named(first)) > 0 || !slices.Equal(named(second), []string{first.RunID}) {
		t.Fatalf("the first turn is %+v, the second one %+v", first, second)
	}
	s.Signal(syscall.SIGTERM)
	s.Wait()
	s.Begin()
	third := completion(t, s, path+"/completions", `{"prompt": "say hello"}`)
	if !slices.Equal(named(third), []string{first.RunID, second.RunID}) || third.FinalMessage != "said say hello" {
		t.Errorf("after the restart it is %+v", third)
	}
	if fourth := completion(t, s, path+"/completions", `{"prompt": "say more"}`); len(named(fourth)) > 0 {
		t.Errorf("once more: %q", fourth.Warnings)
	}
	at, yes := "/v1/runs/"+first.RunID+"/answers", `{`+quote(first.Question.ID)+`: "yes"}`
	a := want(t, s.Post(at, yes), http.StatusConflict)
	if !strings.Contains(a.Body, "has continued since") || !strings.Contains(a.Body, "answers?force=true") {
		t.Errorf("the answer is refused with %s", a.Body)
	}
	want(t, s.Post(at+"?force=true", yes), http.StatusOK)
	if r := rested(t, s, first.RunID); r.Status != "done" {
		t.Errorf("the run is %s: %s", r.Status, r.Error)
	}
	d := session(t, s, path)
	if last := d.Messages[len(d.Messages)-1].Text(); !strings.HasPrefix(last, "then: ") {
		t.Errorf("the session ends with %q", last)
	}
}

// TestExport: a session and a run are documents to save, which browsers neither show nor run.
func TestExport(t *testing.T) {
	s := servertest.Program(t, servertest.Files{"config.yaml": config()})
	var made api.Session
	want(t, s.Post("/v1/sessions", `{}`), http.StatusCreated).JSON(t, &made)
	path := "/v1/sessions/" + made.ID
	want(t, s.Get(path+"/export"), http.StatusConflict)
	want(t, s.Post(path+"/completions", `{"prompt": "<b>hello</b>"}`), http.StatusOK)
	for format, text := range map[string]string{"": "\n## User\n\n<b>hello</b>\n", "?format=md": "\n## User\n", "?format=html": "&lt;b&gt;hello&lt;/b&gt;"} {
		a := want(t, s.Get(path+"/export"+format), http.StatusOK)
		if !strings.Contains(a.Body, text) || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment;") || !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%q: %v\n%s", format, a.Header, a.Body)
		}
	}
	want(t, s.Get(path+"/export?format=pdf"), http.StatusBadRequest)
	want(t, s.Get("/v1/sessions/nothing/export"), http.StatusNotFound)
	want(t, s.Get("/v1/runs/nothing1/export"), http.StatusNotFound)
}
