package conversations_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

func TestCompletion(t *testing.T) {
	s := servertest.Start(t, servertest.Files{
		"config.yaml":   config(),
		"roles/poet.md": "---\ntemperature: 0.5\n---\nIn verse: __INPUT__",
		"rules.yaml":    napRules,
	})
	c := completion(t, s, "/v1/completions", `{"prompt": "hi"}`)
	if c.FinalMessage != "hi" || c.SessionID != nil || c.Model != "builtin:echo" || c.FinishReason != "stop" || c.Turns != 1 ||
		c.Usage.InputTokens == 0 || c.Usage.CostUSD == nil || c.RequestID == "" || c.RunID != "" {
		t.Errorf("got %+v", c)
	}
	if c = completion(t, s, "/v1/completions", `{"prompt": "hi", "role": "poet"}`); c.FinalMessage != "In verse: hi" {
		t.Errorf("with a role: %q", c.FinalMessage)
	}
}

// TestRefusedCompletions: what cannot be asked is named.
func TestRefusedCompletions(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config()})
	for _, tt := range []struct {
		name, body string
		status     int
		code, text string
	}{
		{"no_prompt", `{}`, 400, "invalid_request", "prompt: is missing"},
		{"blank", `{"prompt": " "}`, 400, "invalid_request", "prompt"},
		{"empty_parts", `{"prompt": []}`, 400, "invalid_request", "prompt"},
		{"number", `{"prompt": 1}`, 400, "invalid_request", "prompt"},
		{"unknown_member", `{"prompt": "x", "tempo": 1}`, 400, "invalid_request", "tempo: is not a member"},
		{"part_without_member", `{"prompt": [{"type": "text"}, {"type": "image_url"}]}`, 400, "invalid_request", "prompt[1]"},
		{"http_picture", `{"prompt": [{"type": "image_url", "image_url": {"url": "http://x"}}]}`, 400, "invalid_request", "https:"},
		{"model", `{"prompt": "x", "model": "no:model"}`, 404, "model_not_found", ""},
		{"role", `{"prompt": "x", "role": "nobody"}`, 404, "role_not_found", ""},
		{"role_outside", `{"prompt": "x", "role": "../config"}`, 404, "role_not_found", ""},
		{"agent", `{"prompt": "x", "agent": "nobody"}`, 404, "agent_not_found", ""},
		{"agent_path", `{"prompt": "x", "agent": "./agents"}`, 404, "agent_not_found", ""},
		{"rag", `{"prompt": "x", "rag": "nothing"}`, 404, "rag_not_found", ""},
		{"role_and_agent", `{"prompt": "x", "role": "a", "agent": "b"}`, 400, "invalid_request", "cannot have a role"},
		{"variables_alone", `{"prompt": "x", "variables": {"a": "b"}}`, 400, "invalid_request", "variables"},
		{"consent", `{"prompt": "x", "agent": "coder", "variables": {"AUTO_CONFIRM": "1"}}`, 403, "forbidden", "consent"},
		{"schema", `{"prompt": "x", "schema": {"type": 1}}`, 400, "invalid_request", "schema"},
		{"two_forms", `{"prompt": "x", "files": [{"path": "/a", "url": "http://b"}]}`, 400, "invalid_request", "exactly one"},
		{"no_form", `{"prompt": "x", "files": [{}]}`, 400, "invalid_request", "exactly one"},
		{"command", "{\"prompt\": \"x\", \"files\": [{\"url\": \"`id`\"}]}", 400, "invalid_request", "http"},
		{"base64", `{"prompt": "x", "files": [{"content_base64": "%"}]}`, 400, "invalid_request", "files[0]"},
		{"binary", `{"prompt": "x", "files": [{"content_base64": "AAAA/////wAA"}]}`, 400, "invalid_request", "files[0]"},
		{"temperature", `{"prompt": "x", "temperature": 9}`, 400, "invalid_request", "temperature"},
		{"effort", `{"prompt": "x", "effort": "huge"}`, 400, "invalid_request", "effort"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, accept := range []string{"application/json", "text/event-stream"} { // nothing has been sent
				a := want(t, s.Post("/v1/completions", tt.body, "Accept", accept), tt.status)
				if a.Code() != tt.code || !strings.Contains(a.Body, tt.text) || strings.Contains(a.Body, s.Dir) {
					t.Errorf("got %s", a.Body)
				}
			}
		})
	}
}

// TestCompletionStream looks at the frames of a stream.
func TestCompletionStream(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config()})
	for _, how := range []struct{ body, accept string }{{`{"prompt": "a b", "stream": true}`, "*/*"}, {`{"prompt": "a b"}`, "text/event-stream"}} {
		a := want(t, s.Post("/v1/completions", how.body, "Accept", how.accept), 200)
		if a.Header.Get("Content-Type") != "text/event-stream" || a.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("headers %v", a.Header)
		}
		text, names := "", []string{}
		for _, f := range frames(a.Body) {
			names = append(names, f[0])
			if f[0] == "assistant_delta" {
				var d struct{ Text string }
				if err := json.Unmarshal([]byte(f[1]), &d); err != nil {
					t.Fatal(err)
				}
				text += d.Text
			}
		}
		if text != "a b" || names[0] != "started" || names[len(names)-1] != "finished" || !slices.Contains(names, "usage") {
			t.Errorf("text %q, events %q", text, names)
		}
		var end api.CompletionFinished
		if err := json.Unmarshal([]byte(frames(a.Body)[len(names)-1][1]), &end); err != nil || end.Outcome.FinalMessage != "a b" || end.Outcome.Turns != 1 {
			t.Errorf("ended with %+v, %v", end, err)
		}
		if n := strings.Count(a.Body, "\nid: ") + 1; n != len(names) {
			t.Errorf("%d ids for %d frames", n, len(names))
		}
	}
}

// TestFiles: a request reads files below the roots only, whatever links and paths say.
func TestFiles(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{root + "/a.txt": "inside", outside + "/b.txt": "secret", root + "/.hidden": "hidden"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link.txt": outside + "/b.txt", "dir": outside, "fine.txt": "a.txt"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
	s := servertest.Start(t, servertest.Files{"config.yaml": config("  files: {roots: [" + quote(root) + "]}")})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "private") }))
	defer page.Close()
	for _, tt := range []struct{ name, file, text string }{
		{"path", `{"path": ` + quote(root+"/a.txt") + `}`, "inside"},
		{"link_inside", `{"path": ` + quote(root+"/fine.txt") + `}`, "inside"},
		{"link", `{"path": ` + quote(root+"/link.txt") + `}`, ""},
		{"link_to_a_directory", `{"path": ` + quote(root+"/dir/b.txt") + `}`, ""},
		{"dots", `{"path": ` + quote(root+"/../"+filepath.Base(outside)+"/b.txt") + `}`, ""},
		{"outside", `{"path": ` + quote(outside+"/b.txt") + `}`, ""},
		{"relative", `{"path": "a.txt"}`, ""},
		{"directory", `{"path": ` + quote(root) + `}`, ""},
		{"pattern", `{"path": ` + quote(root+"/*.txt") + `}`, ""},
		{"command", "{\"path\": \"`cat /etc/passwd`\"}", ""},
		{"loopback", `{"url": ` + quote(page.URL) + `}`, ""},
		{"metadata", `{"url": "http://169.254.169.254/latest/meta-data/"}`, ""},
		{"sent_along", `{"name": "c.txt", "content_base64": "` + base64.StdEncoding.EncodeToString([]byte("along")) + `"}`, "along"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.Post("/v1/completions", `{"prompt": "x", "files": [`+tt.file+`]}`)
			if tt.text == "" {
				if a.Status != 400 || a.Code() != "invalid_request" || strings.Contains(a.Body, "secret") || strings.Contains(a.Body, "private\"") {
					t.Errorf("%d %s", a.Status, a.Body)
				}
				return
			}
			if want(t, a, 200); !strings.Contains(a.Body, tt.text) {
				t.Errorf("got %s", a.Body)
			}
		})
	}
	c := completion(t, s, "/v1/completions", `{"prompt": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},`+
		` {"type": "file", "file": {"path": `+quote(root+"/a.txt")+`}}]}`)
	if !strings.Contains(c.FinalMessage, "see") || !strings.Contains(c.FinalMessage, "[image]") || !strings.Contains(c.FinalMessage, "inside") {
		t.Errorf("parts: %q", c.FinalMessage)
	}
}

// agents returns the files of ten agents, each with tasks and tools of its own.
func agents(n int) servertest.Files {
	rules := &strings.Builder{}
	files := servertest.Files{"config.yaml": config()}
	rules.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(rules, `
  - match: {system: "You are number %[1]d.", turn: 1}
    tool_calls: [{name: todo__init, arguments: {goal: goal %[1]d}}, {name: todo__add, arguments: {task: "task %[1]d of {{text}}"}}]
  - match: {system: "You are number %[1]d.", turn: 2}
    tool_calls: [{name: own%[1]d, arguments: {what: thing %[1]d}}, {name: todo__list}]
  - match: {system: "You are number %[1]d.", turn: 3}
    tool_calls: [{name: todo__done, arguments: {id: 1}}]
  - match: {system: "You are number %[1]d."}
    reply: 'answer %[1]d to {{text}}'
`, i)
		dir := fmt.Sprintf("agents/number%d/", i)
		files[dir+"config.yaml"] = fmt.Sprintf("name: number%d\nmodel: builtin:script/rules.yaml\nauto_continue: true\ninstructions: You are number %[1]d.\n", i)
		files[dir+"tools.sh"] = fmt.Sprintf("#!/usr/bin/env bash\n# @cmd Do it.\n# @option --what!\nown%d() { echo \"did $argc_what\" >> \"$LLM_OUTPUT\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n", i)
	}
	files["rules.yaml"] = rules.String()
	return files
}

// TestTenAgents: each of ten requests at once has tool calls, a todo list and an answer of its own.
func TestTenAgents(t *testing.T) {
	s := servertest.Program(t, agents(10))
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			a := s.Post("/v1/completions", fmt.Sprintf(`{"prompt": "question %d", "agent": "number%[1]d"}`, i))
			var c api.Completion
			if a.Status != 200 || json.Unmarshal([]byte(a.Body), &c) != nil {
				t.Errorf("agent %d: %d %s", i, a.Status, a.Body)
				return
			}
			var calls []string
			for _, call := range c.ToolCalls {
				calls = append(calls, call.Name)
				for other := range 10 {
					if text := call.Args + *call.Result; other != i && (strings.Contains(text, fmt.Sprint("thing ", other)) || strings.Contains(text, fmt.Sprint("task ", other)) || strings.Contains(text, fmt.Sprint("goal ", other))) {
						t.Errorf("agent %d has a call of agent %d: %+v", i, other, call)
					}
				}
			}
			if got, wanted := strings.Join(calls, " "), fmt.Sprintf("todo__init todo__add own%d todo__list todo__done", i); got != wanted {
				t.Errorf("agent %d called %s, want %s", i, got, wanted)
				return
			}
			if !strings.Contains(*c.ToolCalls[2].Result, fmt.Sprintf("did thing %d", i)) || !strings.Contains(*c.ToolCalls[3].Result, fmt.Sprintf("task %d of question %[1]d", i)) {
				t.Errorf("agent %d: %+v", i, c.ToolCalls)
			}
			if c.FinalMessage != fmt.Sprintf("answer %d to question %[1]d", i) || c.RunID == "" || c.Turns != 4 {
				t.Errorf("agent %d: %+v", i, c)
			}
		})
	}
	wg.Wait()
}

// TestDisconnect: when the client leaves, the work ends with all its children within a second.
func TestDisconnect(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("there is no /proc to look for processes")
	}
	s := servertest.Program(t, servertest.Files{
		"config.yaml": config("enabled_tools: all"), "functions/tools/nap.sh": nap, "rules.yaml": napRules,
		"agents/sleepy/config.yaml": "name: sleepy\nmodel: builtin:script/rules.yaml\nglobal_tools: [nap.sh]\ninstructions: Sleep.\n",
	})
	work := newSession(t, s, `{"model": "builtin:script"}`)
	for _, tt := range []struct{ name, path, members string }{
		{"plain", "/v1/completions", `"model": "builtin:script"`},
		{"stream", "/v1/completions", `"model": "builtin:script", "stream": true`},
		{"agent", "/v1/completions", `"agent": "sleepy"`},
		{"session", work + "/completions", `"stream": true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mark := fmt.Sprint("mark", time.Now().UnixNano())
			begun := exists(s, mark)
			leave(t, s, tt.path, `{"prompt": "nap `+mark+`", `+tt.members+`}`, func() bool { return begun() && running(mark+" child") })
			until(t, time.Second, "the tool and its child are gone", func() bool { return !running(mark) })
		})
	}
	// What was received is in the session, and the next turn goes on from there.
	var d api.SessionDetails
	until(t, time.Second, "the turn is kept", func() bool {
		d = session(t, s, work)
		return d.Count == 2
	})
	if got, want := d.Messages[1].Text(), "Let me sleep.\n\n[The answer was interrupted.]"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	if c := completion(t, s, work+"/completions", `{"prompt": "again"}`); c.FinalMessage != "said again" {
		t.Errorf("then %q", c.FinalMessage)
	}
	// The model that the first turn of a session asks for is that of the session, also if the turn was interrupted.
	first, mark := newSession(t, s, `{}`), fmt.Sprint("mark", time.Now().UnixNano())
	leave(t, s, first+"/completions", `{"prompt": "nap `+mark+`", "model": "builtin:script"}`, exists(s, mark))
	until(t, 10*time.Second, "the turn is kept", func() bool {
		d = session(t, s, first)
		return d.Count == 2
	})
	if d.Model != "builtin:script" {
		t.Errorf("the session has the model %q", d.Model)
	}
}

// TestSlowReader: a client that reads nothing slows down nobody else, and is cut in the end.
func TestSlowReader(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": strings.NewReplacer(
		"request_timeout_seconds: 60", "request_timeout_seconds: 20", // also for the 5 MB until the turn begins, which takes seconds on a busy machine
		"limits: {", "limits: {max_body_bytes: 20000000, ").Replace(config())})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(256 << 10)
	}
	body := `{"stream": true, "prompt": "` + strings.Repeat(strings.Repeat("a", 10_000)+" ", 500) + `"}` // more than the buffers of a connection take
	path := newSession(t, s, `{}`) + "/completions"
	fmt.Fprintf(conn, "POST "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answer, sent := bufio.NewReader(conn), time.Now()
	var head strings.Builder
	for line := ""; line != "event: started\n"; head.WriteString(line) { // its turn in the session has begun
		if line, err = answer.ReadString('\n'); err != nil {
			t.Fatalf("%v after %v and %q", err, time.Since(sent), head.String()+line)
		}
	}
	begun := time.Now()
	for range 20 {
		completion(t, s, "/v1/completions", `{"prompt": "quick"}`)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("20 other requests took %v", took)
	}
	until(t, time.Minute, "the client is cut, so that its session can be used", func() bool {
		return s.Post(path, `{"prompt": "next"}`).Status == http.StatusOK
	})
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	all, err := io.ReadAll(answer)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection is not closed: %v, after %d bytes, the last %q", err, len(all), all[max(0, len(all)-200):])
	}
	if strings.Contains(string(all), "event: finished") {
		t.Error("the whole answer was written")
	}
}

// TestHalfRequests: a client that leaves in the middle of its request leaves nothing behind.
func TestHalfRequests(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": config()})
	for _, text := range []string{
		"POST /v1/compl",
		"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"prompt\":",
		"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pro",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, text)
		conn.Close()
	}
	if c := completion(t, s, "/v1/completions", `{"prompt": "still here"}`); c.FinalMessage != "still here" {
		t.Errorf("got %q", c.FinalMessage)
	}
}
