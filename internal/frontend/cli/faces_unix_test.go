//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/ptytest"
	"loki/internal/base/text/sample"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/repl"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/acpserver"
	"loki/internal/frontend/server/mcpserver"
	"loki/internal/llm/event"
)

// everyFace is the program with all of its faces.
func everyFace() {
	os.Exit(Main(os.Args[1:], os.Environ(), Terminal(), Faces{
		REPL: repl.Run, Server: server.Serve, MCP: mcpserver.Serve,
		ACP: func(ctx context.Context, o display.Options, with EditorSessions) error {
			return acpserver.Serve(ctx, o, acpserver.Options(with))
		},
	}))
}

// faceNames are the faces, each with how its answers come.
var faceNames = []struct {
	name string
	via  event.Via
}{
	{"terminal", event.ViaCommand}, {"repl", event.ViaTerminal}, {"page", event.ViaPage}, {"rest", event.ViaREST}, {"openai", event.ViaOpenAI}, {"acp", event.ViaACP}, {"mcp", event.ViaMCP},
}

// TestFaces opens a question in each face and answers it in each other one. The face that opened it withdraws it and ends with the run, and a
// second answer is told how the first one came. By default, each face opens and answers one; with LOKI_TEST=full there are all 42 pairs.
func TestFaces(t *testing.T) {
	t.Parallel()
	w := newFaces(t)
	for i, from := range faceNames {
		for j, to := range faceNames {
			if i == j || !sample.Full() && j != (i+3)%len(faceNames) {
				continue
			}
			t.Run(from.name+"_"+to.name, func(t *testing.T) {
				t.Parallel()
				word := fmt.Sprintf("w%d%d", i, j)
				withdrawn := w.open(t, from.name, word)
				id := w.asked(t, word)
				w.answer(t, to.name, id)
				withdrawn(id)
				w.until(t, "the run is done", func() bool { return strings.Contains(w.get(t, "/v1/runs/"+id), `"status":"done"`) })
				if events := w.get(t, "/v1/runs/"+id+"/events"); !strings.Contains(events, `"via":"`+string(to.via)+`"`) {
					t.Errorf("not answered by %s: %s", to.via, events)
				}
				status, body := w.post(t, "/v1/runs/"+id+"/answers", `{"sure": "drop"}`)
				if status != http.StatusConflict || !strings.Contains(body, `"conflict"`) || !strings.Contains(body, "was answered by "+string(to.via)) {
					t.Errorf("a second answer: %d, %s", status, body)
				}
				if from.name == "openai" {
					status, body := w.post(t, "/v1/chat/completions", `{"model": "agent:ask", "messages": [{"role": "user", "content": "drop"}], "loki": {"run_id": "`+id+`"}}`)
					if status != http.StatusConflict || !strings.Contains(body, "was answered by "+string(to.via)) {
						t.Errorf("a second answer there: %d, %s", status, body)
					}
				}
			})
		}
	}
}

// TestAnswersOfFourProcesses has four processes give 100 answers to 25 questions of a run at once. One answer to each counts, and it is the one
// that the run has.
func TestAnswersOfFourProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "home", "config")
	var nodes strings.Builder
	for i := range 25 {
		fmt.Fprintf(&nodes, "  q%d: {type: input, question: \"What is q%[1]d?\", state_updates: {a%[1]d: \"{{input}}\"}, next: done}\n", i)
	}
	write(t, filepath.Join(config, "config.yaml"), "model: builtin:echo\n")
	write(t, filepath.Join(config, "agents", "ask", "graph.yaml"), "name: ask\nstart: all\nsettings: {max_concurrency: 25}\nnodes:\n  all: {type: script, script: all.sh, next: ["+
		strings.Join(numbered("q", 25), ", ")+"]}\n"+nodes.String()+"  done: {type: end, output: \"{{"+strings.Join(numbered("a", 25), "}} {{")+"}}\"}\n")
	write(t, filepath.Join(config, "agents", "ask", "all.sh"), "#!/bin/sh\necho '{}'\n")
	w := &faces{dir: dir}
	out, err := w.command("-a", "ask", "--output", "json", "go").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "25 questions wait") {
		t.Fatalf("%v: %s", err, out)
	}
	var list []struct{ ID string }
	out, err = w.command("--runs", "--output", "json").Output()
	if err != nil || json.Unmarshal(out, &list) != nil || len(list) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	var won sync.Map
	var answering sync.WaitGroup
	for p := range 4 {
		answering.Go(func() {
			for i := range 25 {
				q, text := fmt.Sprintf("q%d", i), fmt.Sprintf("p%dq%d", p, i)
				out, err := w.command("-q", "--resume", list[0].ID, "--answer", q+"="+text).CombinedOutput()
				status := 0
				if exit, ok := err.(*exec.ExitError); ok {
					status = exit.ExitCode()
				}
				switch {
				case status == 0 || status == 8: // it waits for others
					if first, twice := won.LoadOrStore(q, text); twice {
						t.Errorf("%s and %s both count", first, text)
					}
				case !strings.Contains(string(out), "answered by command"):
					t.Errorf("%s: status %d: %s", text, status, out)
				}
			}
		})
	}
	answering.Wait()
	shown, err := w.command("--run", list[0].ID).Output()
	for i := range 25 {
		if text, ok := won.Load(fmt.Sprintf("q%d", i)); err != nil || !ok || !strings.Contains(string(shown), text.(string)) {
			t.Errorf("question %d: %v, %v: %s", i, text, err, shown)
		}
	}
}

// numbered returns names with numbers from 0.
func numbered(name string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(name, i))
	}
	return list
}

// faces is a user with all faces in one directory.
type faces struct {
	dir, url string
	editor   *acp.Conn
	mcp      *mcp.ClientSession

	mu      sync.Mutex
	editing map[string]*form // by session
	forms   map[string]*form // of MCP, by the word in the question
	said    map[string]string
}

// form is a question that a client shows: open is closed when it is there, and gone when it is withdrawn. With an answer it is answered.
type form struct {
	answer     string
	open, gone chan struct{}
}

func newForm(answer string) *form {
	return &form{answer, make(chan struct{}), make(chan struct{})}
}

// faceLimit is how long the test waits for what has to happen.
const faceLimit = time.Minute

// newFaces starts a server, an editor and an MCP client.
func newFaces(t *testing.T) *faces {
	w := &faces{dir: t.TempDir(), editing: make(map[string]*form), forms: make(map[string]*form), said: make(map[string]string)}
	config := filepath.Join(w.dir, "home", "config")
	write(t, filepath.Join(config, "config.yaml"), "model: builtin:echo\ntheme: dark\nmcp_server: {runs: all}\n")
	write(t, filepath.Join(config, "agents", "ask", "graph.yaml"), `
name: ask
description: publishes
start: sure
nodes:
  sure: {type: approval, question: "Publish {{initial_prompt}}?", options: [publish, drop], routes: {publish: good, drop: bad}, on_other: bad}
  good: {type: end, output: "{{initial_prompt}} is published."}
  bad: {type: end, output: "{{initial_prompt}} is dropped."}
`)
	serve := w.command("--serve", "127.0.0.1:0")
	lines, err := serve.StderrPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	})
	for log := bufio.NewScanner(lines); w.url == "" && log.Scan(); {
		if url, ok := strings.CutPrefix(log.Text(), "listening on "); ok && strings.HasPrefix(url, "http") {
			w.url = url
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the server
	w.startEditor(t)
	w.startClient(t)
	return w
}

// command is a command of the user.
func (w *faces) command(args ...string) *exec.Cmd {
	cmd := exec.Command("loki-faces", args...)
	cmd.Dir, cmd.Env = w.dir, emptyHome(w.dir, "TERM=xterm-256color", "NO_COLOR=")
	return cmd
}

// startEditor starts the program for an editor with forms.
func (w *faces) startEditor(t *testing.T) {
	cmd := w.command("--acp")
	out, err := cmd.StdoutPipe()
	in, err2 := cmd.StdinPipe()
	if err != nil || err2 != nil || cmd.Start() != nil {
		t.Fatal(err, err2)
	}
	w.editor = acp.New(out, in, w)
	served := make(chan error, 1)
	go func() { served <- w.editor.Serve(context.Background()) }() // ends with the program
	t.Cleanup(func() {
		_ = in.Close()
		<-served
		_ = cmd.Wait()
	})
	w.call(t, acp.Initialize, json.RawMessage(`{"protocolVersion": 1, "clientCapabilities": {"elicitation": {"form": {}}}}`), nil)
}

func (w *faces) call(t *testing.T, method string, params, result any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faceLimit)
	defer cancel()
	if err := w.editor.Call(ctx, method, params, result); err != nil {
		t.Errorf("%s: %v", method, err)
	}
}

// Notice implements [acp.Handler].
func (w *faces) Notice(_ context.Context, _ string, params json.RawMessage) {
	var n struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Content json.RawMessage `json:"content"`
		} `json:"update"`
	}
	_ = json.Unmarshal(params, &n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[n.SessionID] += string(n.Update.Content)
}

// Request implements [acp.Handler].
func (w *faces) Request(ctx context.Context, method string, params json.RawMessage) acp.Answer {
	return func() (any, error) {
		var r struct {
			SessionID string `json:"sessionId"`
		}
		_ = json.Unmarshal(params, &r)
		w.mu.Lock()
		f := w.editing[r.SessionID]
		w.mu.Unlock()
		if method != acp.ElicitationCreate || f == nil {
			return nil, &acp.Error{Code: acp.MethodNotFound, Message: method}
		}
		if !f.ask(ctx) {
			return nil, ctx.Err()
		}
		return acp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": f.answer}}, nil
	}
}

// ask shows the form, and reports whether it is answered. Otherwise it waits until it is withdrawn.
func (f *form) ask(ctx context.Context) bool {
	close(f.open)
	if f.answer != "" {
		return true
	}
	<-ctx.Done()
	close(f.gone)
	return false
}

// startClient starts the program for a client of MCP with forms.
func (w *faces) startClient(t *testing.T) {
	o := &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		w.mu.Lock()
		f := w.forms[strings.TrimSuffix(strings.TrimPrefix(req.Params.Message, "Publish "), "?")]
		w.mu.Unlock()
		if f == nil || !f.ask(ctx) {
			return &mcp.ElicitResult{Action: "cancel"}, ctx.Err()
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": f.answer}}, nil
	}}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).
		Connect(t.Context(), &mcp.CommandTransport{Command: w.command("--mcp")}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	w.mcp = c
}

// tool calls a tool, and returns its text.
func (w *faces) tool(ctx context.Context, name string, arguments map[string]any) string {
	r, err := w.mcp.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error()
	}
	all, _ := json.Marshal(r.Content) // texts can be encoded
	return string(all)
}

// session begins a session in the editor, which shows questions as a form.
func (w *faces) session(t *testing.T, f *form) string {
	var r acp.SessionResponse
	w.call(t, acp.SessionNew, acp.NewSessionRequest{Cwd: w.dir, MCPServers: []acp.MCPServer{}}, &r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.editing[r.SessionID] = f
	return r.SessionID
}

// open has a face run the agent with a word, and returns once the question is there. withdrawn waits until the face has withdrawn it and shows the end
// of the run with an id.
func (w *faces) open(t *testing.T, face, word string) (withdrawn func(id string)) {
	t.Helper()
	question, output := "Publish "+word+"?", word+" is published."
	switch face {
	case "terminal":
		x := ptytest.Start(t, 100, w.command("-a", "ask", word))
		x.Sees(question, "to choose")
		return func(string) {
			x.Sees("answered", output)
			if status := x.Ends(); status != 0 {
				t.Errorf("status %d", status)
			}
		}
	case "repl":
		x := ptytest.Start(t, 100, w.command("-a", "ask"))
		x.Sees("ask>")
		x.Types(word + "\r")
		x.Sees(question, "to choose")
		return func(string) {
			x.Sees("answered", output, "ask>")
			x.Types("\x04")
			x.Ends()
		}
	case "page", "rest":
		if status, body := w.post(t, "/v1/agents/ask/runs", `{"prompt": "`+word+`"}`); status != http.StatusCreated {
			t.Fatalf("%d, %s", status, body)
		}
		return func(id string) {
			w.until(t, "the question is gone", func() bool { return !strings.Contains(w.get(t, "/v1/questions"), question) })
			if face == "page" {
				w.stream(t, "/v1/runs/"+id+"/events", `"type":"answer"`, `"type":"finished"`)
			}
		}
	case "openai":
		status, body := w.post(t, "/v1/chat/completions", `{"model": "agent:ask", "messages": [{"role": "user", "content": "`+word+`"}]}`)
		if status != http.StatusOK || !strings.Contains(body, question) {
			t.Fatalf("%d, %s", status, body)
		}
		return func(string) {} // the question was the answer
	case "acp":
		f := newForm("")
		id := w.session(t, f)
		w.call(t, acp.SetConfigOption, acp.SetConfigOptionRequest{SessionID: id, ConfigID: "agent", Value: "ask"}, nil)
		done := make(chan struct{})
		t.Cleanup(func() { <-done })
		var r acp.PromptResponse
		go func() { // ends with the turn
			defer close(done)
			w.call(t, acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text(word)}}, &r)
		}()
		w.wait(t, "the form is there", f.open)
		return func(string) {
			w.wait(t, "the form is withdrawn", f.gone)
			w.wait(t, "the turn ends", done)
			w.mu.Lock()
			defer w.mu.Unlock()
			if r.StopReason != acp.EndTurn || !strings.Contains(w.said[id], output) {
				t.Errorf("%s: %s", r.StopReason, w.said[id])
			}
		}
	}
	f := newForm("")
	w.mu.Lock()
	w.forms[word] = f
	w.mu.Unlock()
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	result := ""
	go func() { // ends with the call
		defer close(done)
		result = w.tool(t.Context(), "ask", map[string]any{"prompt": word})
	}()
	w.wait(t, "the form is there", f.open)
	return func(string) {
		w.wait(t, "the form is withdrawn", f.gone)
		w.wait(t, "the call ends", done)
		if !strings.Contains(result, output) {
			t.Errorf("the call: %s", result)
		}
	}
}

// answer answers the question of a run in a face.
func (w *faces) answer(t *testing.T, face, id string) {
	t.Helper()
	switch face {
	case "terminal":
		if out, err := w.command("--resume", id, "--answer", "publish").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	case "repl":
		x := ptytest.Start(t, 100, w.command("--attach", id))
		x.Sees("to choose")
		x.Types("publish\r")
		if status := x.Ends(); status != 0 {
			t.Errorf("status %d", status)
		}
	case "page", "rest":
		path := "/v1/runs/" + id + "/answers"
		if face == "page" {
			path += "?via=page"
		}
		if status, body := w.post(t, path, `{"sure": "publish"}`); status != http.StatusOK && status != http.StatusAccepted {
			t.Fatalf("%d, %s", status, body)
		}
	case "openai":
		status, body := w.post(t, "/v1/chat/completions", `{"model": "agent:ask", "messages": [{"role": "user", "content": "publish"}], "loki": {"run_id": "`+id+`"}}`)
		if status != http.StatusOK {
			t.Fatalf("%d, %s", status, body)
		}
	case "acp":
		session := w.session(t, newForm("publish"))
		var r acp.PromptResponse
		w.call(t, acp.SessionPrompt, acp.PromptRequest{SessionID: session, Prompt: []acp.ContentBlock{acp.Text("/resume " + id)}}, &r)
		if r.StopReason != acp.EndTurn {
			t.Errorf("%s: %s", r.StopReason, w.said[session])
		}
	case "mcp":
		if said := w.tool(t.Context(), "loki_answer", map[string]any{"run_id": id, "question_id": "sure", "answer": "publish"}); strings.Contains(said, "rror") {
			t.Errorf("loki_answer: %s", said)
		}
	}
}

// asked returns the id of the run that asks about a word.
func (w *faces) asked(t *testing.T, word string) (id string) {
	t.Helper()
	w.until(t, "the question is on record", func() bool {
		var list struct {
			Data []struct{ Run, Text string }
		}
		_ = json.Unmarshal([]byte(w.get(t, "/v1/questions")), &list)
		for _, q := range list.Data {
			if q.Text == "Publish "+word+"?" {
				id = q.Run
			}
		}
		return id != ""
	})
	return id
}

func (w *faces) get(t *testing.T, path string) string {
	t.Helper()
	_, body := w.do(t, http.MethodGet, path, "")
	return body
}

func (w *faces) post(t *testing.T, path, body string) (status int, answer string) {
	t.Helper()
	return w.do(t, http.MethodPost, path, body)
}

func (w *faces) do(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) == nil {
		data = compact.Bytes()
	}
	return resp.StatusCode, string(data)
}

// stream follows the events of a run, as the page does, until each of the texts came.
func (w *faces) stream(t *testing.T, path string, texts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faceLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); len(texts) > 0 && lines.Scan(); {
		if strings.Contains(lines.Text(), texts[0]) {
			texts = texts[1:]
		}
	}
	if len(texts) > 0 {
		t.Errorf("no event with %s", texts)
	}
}

// wait waits until a channel is closed.
func (w *faces) wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(faceLimit):
		t.Fatalf("it does not happen that %s", what)
	}
}

// until waits until something holds.
func (w *faces) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(faceLimit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}
