package acpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loki/internal/agent/harness/acp"
	"loki/internal/agent/harness/harnesstest"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/npmtest"
	"loki/internal/base/text/sample"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/frontend/cli"
	"loki/internal/frontend/command/display"
)

// TestMain runs the program for editors, and the scripted foreign agent.
func TestMain(m *testing.M) {
	if os.Getenv("FOREIGN_SCRIPT") != "" {
		harnesstest.Main()
		return
	}
	if os.Getenv("LOKI_ACP_TEST") == "program" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{
			ACP: func(ctx context.Context, o display.Options, with cli.EditorSessions) error {
				return Serve(ctx, o, Options(with))
			},
		}))
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for what has to happen.
const patience = time.Minute

// configuration has the files of the configuration of the tests.
var configuration = map[string]string{
	"config.yaml": "model: builtin:script\nenabled_tools: all\nauto_continue: true\nmemory: off\npermission: {fs_write: ask}\n",
	"script.yaml": `
rules:
  - match: {turn: 1, text: write it}
    tool_calls: [{name: fs_write, arguments: {path: made.txt, contents: "hello\n"}}]
  - match: {turn: 1, text: read it}
    tool_calls: [{name: fs_cat, arguments: {path: made.txt}}]
  - match: {turn: 2, text: read it, result_regex: "(not )?saved"}
    reply: "It has: $0"
  - match: {turn: 1, text: make a plan}
    tool_calls: [{name: todo__init, arguments: {goal: g}}, {name: todo__add, arguments: {task: one}}, {name: todo__add, arguments: {task: two}}, {name: todo__done, arguments: {id: 1}}]
  - match: {turn: 2, text: make a plan}
    tool_calls: [{name: todo__done, arguments: {id: 2}}]
  - match: {turn: 1, text: ask me}
    tool_calls: [{name: user__input, arguments: {question: "What is it called?"}}]
  - match: {turn: 1, text: run it}
    tool_calls: [{name: execute_command, arguments: {command: "echo ran; exit 3", sandbox: full, reason: test}}]
  - match: {turn: 1, text: count}
    tool_calls: [{name: execute_command, arguments: {command: "echo 1 >>count; sleep 0.2", sandbox: write}}]
  - match: {turn: 2, text: count}
    tool_calls: [{name: execute_command, arguments: {command: "echo 2 >>count; sleep 0.2", sandbox: write}}]
  - match: {turn: 3, text: count}
    tool_calls: [{name: execute_command, arguments: {command: "echo 3 >>count; sleep 0.2", sandbox: write}}]
  - match: {text: late}
    reply: late
    delay: 1h
  - match: {text: fail}
    error: {kind: refused, message: no}
default: {reply: "It is done."}
`,
	"agents/ask/graph.yaml": `
name: ask
description: Publishes after approval
start: who
settings: {on_failure: fail}
nodes:
  who: {type: input, question: "Who publishes?", state_updates: {who: "{{input}}"}, next: sure}
  sure:
    type: approval
    question: "Publish it?"
    options: [publish, drop]
    routes: {publish: good, drop: bad}
    on_other: bad
  good: {type: end, output: "{{who}} published {{initial_prompt}}"}
  bad: {type: end, output: "{{who}} dropped it"}
`,
	"macros/greet.yaml": "variables: [{name: who}]\nsteps: ['greet {{who}}', 'bye']\n",
}

// home returns a directory with the configuration, and an environment in which the program has it.
func home(t testing.TB) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range configuration {
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(dir, "config.yaml"), configuration["config.yaml"]+"trusted_dirs: ["+filepath.Join(dir, "agents")+"]\n")
	return dir, []string{
		"LOKI_ACP_TEST=program", "LOKI_CONFIG_DIR=" + dir, "XDG_CACHE_HOME=" + dir, "XDG_STATE_HOME=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
		"LOKI_SCRIPT_FILE=" + filepath.Join(dir, "script.yaml"), "SHELL=/bin/sh",
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = atomicfile.Write(path, []byte(text), atomicfile.Options{NoSync: true})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// editor is a client with the program as its agent.
type editor struct {
	*acp.Conn
	t       testing.TB
	dir     string // of the session
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	sent    *recorder // what the program has sent
	ended   chan struct{}
	answers func(method string, params json.RawMessage) (any, error)

	mu      sync.Mutex
	updates []any
	seen    chan struct{} // closed and replaced with each update
}

// recorder keeps what is read.
type recorder struct {
	io.Reader
	mu   sync.Mutex
	text bytes.Buffer
	over chan struct{} // closed at the end
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(p[:n])
	if err != nil {
		close(r.over)
	}
	return n, err
}

func (r *recorder) lines() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Split(bytes.TrimSpace(bytes.Clone(r.text.Bytes())), []byte("\n"))
}

// start starts the program in a directory. Capabilities are those of the client, in JSON; answers are its answers to requests.
func start(t testing.TB, env []string, dir, capabilities string, answers func(method string, params json.RawMessage) (any, error), args ...string) *editor {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, dir: dir, answers: answers, ended: make(chan struct{}), seen: make(chan struct{})}
	e.cmd = exec.Command(program, append([]string{"--acp"}, args...)...)
	e.cmd.Dir, e.cmd.Env = dir, env
	var stderr strings.Builder
	e.cmd.Stderr = &stderr
	stdout, err := e.cmd.StdoutPipe()
	if err == nil {
		e.stdin, err = e.cmd.StdinPipe()
	}
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	e.sent = &recorder{Reader: stdout, over: make(chan struct{})}
	e.Conn = acp.New(e.sent, e.stdin, e)
	go func() { // ends with the program
		_ = e.Serve(context.Background())
		_ = e.cmd.Wait()
		close(e.ended)
	}()
	t.Cleanup(func() {
		e.leave()
		if t.Failed() {
			t.Logf("standard error: %s", stderr.String())
		}
	})
	e.call(acp.Initialize, json.RawMessage(`{"protocolVersion": 1, "clientCapabilities": `+capabilities+`}`), nil)
	return e
}

// leave ends the connection, and waits for the program.
func (e *editor) leave() {
	_ = e.stdin.Close()
	select {
	case <-e.ended:
	case <-time.After(patience):
		_ = e.cmd.Process.Kill()
		<-e.ended
		e.t.Error("the program did not end")
	}
	if status := e.cmd.ProcessState.ExitCode(); status > 0 {
		e.t.Errorf("the program ended with status %d", status)
	}
}

// Notice implements [acp.Handler].
func (e *editor) Notice(_ context.Context, _ string, params json.RawMessage) {
	var n acp.SessionNotification
	if err := json.Unmarshal(params, &n); err != nil {
		e.t.Errorf("%s: %v", params, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n.Update)
	close(e.seen)
	e.seen = make(chan struct{})
}

// Request implements [acp.Handler].
func (e *editor) Request(_ context.Context, method string, params json.RawMessage) acp.Answer {
	return func() (any, error) {
		if e.answers == nil {
			return nil, &acp.Error{Code: acp.MethodNotFound, Message: method}
		}
		return e.answers(method, params)
	}
}

// call calls the program, which must not fail.
func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	if err := e.try(method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) try(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return e.Call(ctx, method, params, result)
}

// begin begins a session in a directory.
func (e *editor) begin(dir string) string {
	e.t.Helper()
	var r acp.SessionResponse
	e.call(acp.SessionNew, acp.NewSessionRequest{Cwd: dir, MCPServers: []acp.MCPServer{}}, &r)
	return r.SessionID
}

// say prompts, and returns what was answered and how the turn ended.
func (e *editor) say(id, text string) (said, stop string) {
	e.t.Helper()
	from := len(e.got())
	var r acp.PromptResponse
	e.call(acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text(text)}}, &r)
	return spoken(e.got()[from:]), r.StopReason
}

func (e *editor) got() []any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.updates)
}

// wait waits until f holds for an update.
func (e *editor) wait(f func(any) bool) {
	e.t.Helper()
	limit := time.After(patience)
	for {
		e.mu.Lock()
		updates, seen := slices.Clone(e.updates), e.seen
		e.mu.Unlock()
		if slices.ContainsFunc(updates, f) {
			return
		}
		select {
		case <-seen:
		case <-limit:
			e.t.Fatalf("it did not happen: %s", marshal(updates))
		}
	}
}

// spoken returns the texts of the agent in updates.
func spoken(updates []any) string {
	var said strings.Builder
	for _, u := range updates {
		if c, ok := u.(*acp.Chunk); ok && c.Kind == acp.AgentMessageChunk {
			said.WriteString(c.Content.Text)
		}
	}
	return said.String()
}

func marshal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// choose answers requests for permission with the option of a kind, and fails for others.
func choose(kind string) func(string, json.RawMessage) (any, error) {
	return func(method string, params json.RawMessage) (any, error) {
		var p acp.PermissionRequest
		if err := json.Unmarshal(params, &p); err != nil || method != acp.RequestPermission {
			return nil, &acp.Error{Code: acp.MethodNotFound, Message: method}
		}
		for _, o := range p.Options {
			if o.Kind == kind {
				return acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: "selected", OptionID: o.OptionID}}, nil
			}
		}
		return nil, errors.New("there is no such option")
	}
}

// TestPermission: the editor is asked with the whole call, and what it says counts, once or for the session.
func TestPermission(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]struct {
		asked int // in two turns
		made  bool
	}{acp.AllowOnce: {2, true}, acp.AllowAlways: {1, true}, acp.RejectOnce: {2, false}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, env := home(t)
			dir, asked := t.TempDir(), 0
			e := start(t, env, dir, `{}`, func(method string, params json.RawMessage) (any, error) {
				asked++
				for _, part := range []string{`"title":"fs_write made.txt"`, `"newText":"hello\n"`, `"toolCallId":"` + fmt.Sprint(asked) + `-call_`, `"rawInput":{"path":"made.txt"`} {
					if !strings.Contains(string(params), part) {
						t.Errorf("%s lacks %s", params, part)
					}
				}
				return choose(kind)(method, params)
			})
			id := e.begin(dir)
			for range 2 {
				if said, stop := e.say(id, "write it"); said != "It is done." || stop != acp.EndTurn {
					t.Errorf("%q, %s", said, stop)
				}
			}
			_, err := os.Stat(filepath.Join(dir, "made.txt"))
			if asked != want.asked || (err == nil) != want.made {
				t.Errorf("asked %d times, %v", asked, err)
			}
		})
	}
}

// TestModes: a mode holds from the next call on, and none is there that the command does not allow.
func TestModes(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir, asked := t.TempDir(), 0
	e := start(t, env, dir, `{}`, func(method string, params json.RawMessage) (any, error) {
		asked++
		return choose(acp.AllowOnce)(method, params)
	}, "--yes")
	write(t, filepath.Join(env[1][len("LOKI_CONFIG_DIR="):], "config.yaml"), strings.Replace(configuration["config.yaml"], "fs_write: ask", "fs_mkdir: ask", 1))
	id := e.begin(dir)
	made := func() bool { _, err := os.Stat(filepath.Join(dir, "made.txt")); return err == nil }
	for _, step := range []struct {
		mode, text string
		asked      int
		made       bool
	}{{modeRead, "write it", 0, false}, {modeAsk, "run it", 1, false}, {modeRead, "run it", 1, false}, {modeAll, "run it", 1, false}, {modeWrite, "write it", 1, true}} {
		e.call(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: step.mode}, nil)
		e.say(id, step.text)
		if asked != step.asked || made() != step.made {
			t.Errorf("mode %s, %s: asked %d times, made %v", step.mode, step.text, asked, made())
		}
	}
	var r acp.SetConfigOptionResponse
	e.call(acp.SetConfigOption, acp.SetConfigOptionRequest{SessionID: id, ConfigID: "mode", Value: "ask"}, &r)
	if r.ConfigOptions[0].CurrentValue != "ask" {
		t.Errorf("the mode is %v", r.ConfigOptions[0].CurrentValue)
	}
	other := start(t, env, dir, `{}`, nil)
	id = other.begin(dir)
	var failure *acp.Error
	if err := other.try(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: modeAll}, nil); !errors.As(err, &failure) || failure.Code != acp.InvalidParams || marshal(failure.Data) != `{"path":"modeId"}` {
		t.Errorf("mode all without --yes: %v", err)
	}
}

// TestReplay: a session is replayed the same each time, with the ids that its calls had, its plan and what was cut off.
func TestReplay(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	e := start(t, env, dir, `{}`, choose(acp.AllowOnce))
	id := e.begin(dir)
	e.say(id, "write it")
	e.say(id, "make a plan")
	lives := e.got()
	e.leave()
	var first string
	for i := range 2 {
		again := start(t, env, dir, `{}`, nil)
		again.call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil)
		got := slices.DeleteFunc(again.got(), func(u any) bool { _, is := u.(*acp.Commands); return is })
		if first == "" {
			first = marshal(got)
		}
		if marshal(got) != first {
			t.Errorf("replayed differently:\n%s\n%s", first, marshal(got))
		}
		for _, u := range lives {
			if c, ok := u.(*acp.ToolCall); ok && !strings.Contains(first, `"toolCallId":"`+c.ToolCallID+`"`) {
				t.Errorf("no call %s in %s", c.ToolCallID, first)
			}
		}
		if !strings.Contains(first, `"entries":[{"content":"one","priority":"medium","status":"completed"},{"content":"two","priority":"medium","status":"completed"}]`) || !strings.Contains(first, `"text":"write it"`) {
			t.Errorf("replayed: %s", first)
		}
		if i == 0 {
			again.leave()
			continue
		}
		if said, _ := again.say(id, "more"); said != "It is done." {
			t.Errorf("after it: %q", said)
		}
		again.call(acp.SessionDelete, acp.SessionRequest{SessionID: id}, nil)
		if err := again.try(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil); err == nil {
			t.Error("a deleted session was loaded")
		}
	}
}

// TestTwoSessions: sessions in two directories work at once, each in its own, and end with the client.
func TestTwoSessions(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	e := start(t, env, dirs[0], `{}`, choose(acp.AllowOnce))
	var work sync.WaitGroup
	ids := []string{e.begin(dirs[0]), e.begin(dirs[1])}
	for i, id := range ids {
		work.Go(func() {
			e.say(id, "write it")
			if _, err := os.Stat(filepath.Join(dirs[i], "made.txt")); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for i, dir := range dirs {
		var r acp.ListSessionsResponse
		e.call(acp.SessionList, acp.ListSessionsRequest{Cwd: dir}, &r)
		if len(r.Sessions) != 1 || r.Sessions[0].SessionID != ids[i] || r.Sessions[0].Cwd != dir {
			t.Errorf("sessions of %s: %+v", dir, r.Sessions)
		}
	}
	e.call(acp.SessionClose, acp.SessionRequest{SessionID: ids[1]}, nil)
	e.call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: ids[1], Cwd: dirs[1], MCPServers: []acp.MCPServer{}}, nil)
	began := time.Now()
	e.leave()
	if took := time.Since(began); took > patience/2 {
		t.Errorf("the end took %s", took)
	}
}

// TestCancel: prompts wait for each other, and all end when they are canceled.
func TestCancel(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	e := start(t, env, dir, `{}`, nil)
	id := e.begin(dir)
	stops := make(chan string)
	for range 3 {
		go func() { // ends with the turn
			var r acp.PromptResponse
			err := e.try(acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text("late")}}, &r)
			stops <- fmt.Sprint(r.StopReason, err)
		}()
	}
	for range 3 { // those that came before the notification are canceled; each has some time
		if err := e.Notify(acp.SessionCancel, acp.SessionRequest{SessionID: id}); err != nil {
			t.Fatal(err)
		}
	}
	limit := time.After(patience)
	for n := 0; n < 3; {
		select {
		case stop := <-stops:
			if n++; stop != "cancelled<nil>" {
				t.Errorf("stopped: %s", stop)
			}
		case <-time.After(50 * time.Millisecond):
			_ = e.Notify(acp.SessionCancel, acp.SessionRequest{SessionID: id})
		case <-limit:
			t.Fatal("they do not end")
		}
	}
	if said, stop := e.say(id, "and now"); said != "It is done." || stop != acp.EndTurn {
		t.Errorf("after it: %q, %s", said, stop)
	}
}

// TestQuestions: what a graph asks is a form, or options, or the next prompt answers it.
func TestQuestions(t *testing.T) {
	t.Parallel()
	t.Run("forms", func(t *testing.T) {
		t.Parallel()
		_, env := home(t)
		dir := t.TempDir()
		e := start(t, env, dir, `{"elicitation": {"form": {}}}`, func(_ string, params json.RawMessage) (any, error) {
			answer := "Ada"
			if strings.Contains(string(params), "Publish it?") {
				answer = "publish"
			}
			return acp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": answer}}, nil
		}, "-a", "ask")
		id := e.begin(dir)
		if said, stop := e.say(id, "page"); said != "Ada published page" || stop != acp.EndTurn {
			t.Errorf("%q, %s", said, stop)
		}
		e.wait(func(u any) bool {
			p, ok := u.(*acp.Plan)
			return ok && len(p.Entries) == 4 && p.Entries[0].Status == acp.Completed && p.Entries[3].Status == acp.Pending
		})
		again := start(t, env, dir, `{}`, nil)
		again.call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil)
		if said := spoken(again.got()); said != "Ada published page" {
			t.Errorf("replayed: %q", said)
		}
	})
	t.Run("prompts", func(t *testing.T) {
		t.Parallel()
		_, env := home(t)
		dir := t.TempDir()
		e := start(t, env, dir, `{}`, choose(acp.AllowOnce)) // the first option of the approval
		id := e.begin(dir)
		e.call(acp.SetConfigOption, acp.SetConfigOptionRequest{SessionID: id, ConfigID: "agent", Value: "ask"}, nil)
		if said, stop := e.say(id, "page"); !strings.HasPrefix(said, "Who publishes?") || stop != acp.EndTurn {
			t.Errorf("%q, %s", said, stop)
		}
		if said, stop := e.say(id, "Bob"); said != "Bob published page" || stop != acp.EndTurn {
			t.Errorf("%q, %s", said, stop)
		}
	})
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		_, env := home(t)
		dir := t.TempDir()
		e := start(t, env, dir, `{}`, nil)
		id := e.begin(dir)
		if said, stop := e.say(id, "ask me"); !strings.HasPrefix(said, "What is it called?") || stop != acp.EndTurn {
			t.Errorf("%q, %s", said, stop)
		}
		if said, stop := e.say(id, "Loki"); said != "It is done." || stop != acp.EndTurn {
			t.Errorf("%q, %s", said, stop)
		}
	})
}

// TestClientDoesWork: files that are not saved count, and commands without a sandbox run in a terminal of the editor.
func TestClientDoesWork(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			t.Parallel()
			conf, env := home(t)
			if off {
				write(t, filepath.Join(conf, "config.yaml"), configuration["config.yaml"]+"acp: {client_files: false, client_terminals: false}\n")
			}
			dir := t.TempDir()
			write(t, filepath.Join(dir, "made.txt"), "saved\n")
			var mu sync.Mutex
			var calls []string
			e := start(t, env, dir, `{"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}`, func(method string, params json.RawMessage) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, method)
				switch method {
				case acp.ReadTextFile:
					return acp.ReadTextFileResponse{Content: "not saved\n"}, nil
				case acp.WriteTextFile:
					return nil, nil
				case acp.TerminalCreate:
					return acp.CreateTerminalResponse{TerminalID: "t1"}, nil
				case acp.TerminalWait:
					return acp.ExitStatus{ExitCode: new(3)}, nil
				case acp.TerminalOutput:
					return acp.TerminalOutputResponse{Output: "printed"}, nil
				case acp.TerminalRelease:
					return nil, nil
				}
				return choose(acp.AllowOnce)(method, params)
			})
			id := e.begin(dir)
			said, _ := e.say(id, "read it")
			e.say(id, "write it")
			e.say(id, "run it")
			mu.Lock()
			defer mu.Unlock()
			if off {
				if strings.Contains(strings.Join(calls, " "), "fs/") || strings.Contains(strings.Join(calls, " "), "terminal/") || said != "It has: saved" {
					t.Errorf("%q, %q", calls, said)
				}
				return
			}
			text, err := os.ReadFile(filepath.Join(dir, "made.txt"))
			if said != "It has: not saved" || err != nil || string(text) != "saved\n" || !slices.Contains(calls, acp.WriteTextFile) {
				t.Errorf("%q, %q, %v, %q", said, text, err, calls)
			}
			if !slices.Contains(calls, acp.TerminalCreate) {
				t.Skip("there is no sandbox here, so no command is at level full")
			}
			if !slices.Contains(calls, acp.TerminalRelease) || !strings.Contains(marshal(e.got()), `"terminalId":"t1"`) || !strings.Contains(marshal(e.got()), "printed") {
				t.Errorf("%q, %s", calls, marshal(e.got()))
			}
		})
	}
}

// TestCommands: macros and the commands of the program are run, and other texts with a slash are prompts.
func TestCommands(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	e := start(t, env, dir, `{}`, nil)
	id := e.begin(dir)
	e.wait(func(u any) bool {
		c, ok := u.(*acp.Commands)
		return ok && slices.ContainsFunc(c.AvailableCommands, func(c acp.Command) bool { return c.Name == "greet" && c.Input.Hint == "<who>" })
	})
	for text, want := range map[string]string{"/greet Ada": "It is done.It is done.", "/nothing": "It is done.", "/resume": "No turn of this session was interrupted.", "/usage": "Input:"} {
		if said, stop := e.say(id, text); !strings.HasPrefix(said, want) || stop != acp.EndTurn {
			t.Errorf("%s: %q, %s", text, said, stop)
		}
	}
}

// TestErrors: what is wrong has its code, and where it is.
func TestErrors(t *testing.T) {
	t.Parallel()
	conf, env := home(t)
	dir := t.TempDir()
	e := start(t, env, dir, `{}`, nil)
	id := e.begin(dir)
	for _, tt := range []struct {
		method, params string
		code           int
		data           string
	}{
		{acp.SessionNew, `{"cwd": "relative", "mcpServers": []}`, acp.InvalidParams, `{"path":"cwd"}`},
		{acp.SessionNew, `{"cwd": "/nowhere", "mcpServers": []}`, acp.InvalidParams, `{"path":"cwd"}`},
		{acp.SessionNew, `{"cwd": "` + dir + `"}`, acp.InvalidParams, `{"path":"mcpServers"}`},
		{acp.SessionNew, `{"cwd": "` + dir + `", "mcpServers": [], "additionalDirectories": ["x"]}`, acp.InvalidParams, `{"path":"additionalDirectories.0"}`},
		{acp.SessionNew, `[]`, acp.InvalidParams, `{"path":""}`},
		{acp.SessionLoad, `{"cwd": "` + dir + `", "mcpServers": [], "sessionId": "` + strings.Repeat("0", 36) + `"}`, acp.ResourceNotFound, ""},
		{acp.SessionPrompt, `{"sessionId": "none", "prompt": []}`, acp.ResourceNotFound, `{"sessionId":"none"}`},
		{acp.SessionPrompt, `{"sessionId": "` + id + `", "prompt": []}`, acp.InvalidParams, `{"path":"prompt"}`},
		{acp.SessionPrompt, `{"sessionId": "` + id + `", "prompt": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}`, acp.InvalidParams, `{"path":"prompt.0.type"}`},
		{acp.SessionPrompt, `{"sessionId": "` + id + `", "prompt": [{"type": "resource_link", "name": "x", "uri": "file:///nowhere"}]}`, acp.InvalidParams, ""},
		{acp.SetConfigOption, `{"sessionId": "` + id + `", "configId": "model", "value": "none"}`, acp.InvalidParams, `{"path":"value"}`},
		{acp.SetConfigOption, `{"sessionId": "` + id + `", "configId": "none", "value": "x"}`, acp.InvalidParams, `{"path":"configId"}`},
		{acp.SessionList, `{"cursor": "x"}`, acp.InvalidParams, `{"path":"cursor"}`},
		{acp.SessionDelete, `{"sessionId": "none"}`, acp.ResourceNotFound, `{"sessionId":"none"}`},
		{acp.Authenticate, `{"methodId": "none"}`, acp.InvalidParams, `{"path":"methodId"}`},
		{"session/nothing", `{}`, acp.MethodNotFound, "null"},
	} {
		var failure *acp.Error
		err := e.try(tt.method, json.RawMessage(tt.params), nil)
		if !errors.As(err, &failure) || failure.Code != tt.code || tt.data != "" && marshal(failure.Data) != tt.data {
			t.Errorf("%s %s: %v, %v", tt.method, tt.params, err, marshal(failure))
		}
	}
	if _, stop := e.say(id, "fail"); stop != acp.Refusal {
		t.Errorf("a refusal ends with %s", stop)
	}
	write(t, filepath.Join(conf, "config.yaml"), "model: none:none\n")
	var failure *acp.Error
	if err := e.try(acp.SessionNew, acp.NewSessionRequest{Cwd: dir, MCPServers: []acp.MCPServer{}}, nil); !errors.As(err, &failure) || failure.Code != acp.AuthRequired {
		t.Errorf("without a model: %v", err)
	}
}

// TestHostileLines: what is no message is answered, and the session continues; a prompt text on the command line is an error.
func TestHostileLines(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--acp")
	cmd.Dir, cmd.Env = t.TempDir(), env
	cmd.Stdin = strings.NewReader("nonsense\n[]\n{}\n\x00\xff\n" + strings.Repeat("x", acp.MaxLine+10) + "\n" + `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":9}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"session/prompt"`)
	out, err := cmd.Output()
	var codes []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var m struct {
			Error  acp.Error `json:"error"`
			Result *acp.InitializeResponse
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Errorf("%s: %v", lines.Bytes(), err)
		}
		if m.Result != nil && m.Result.ProtocolVersion != 1 {
			t.Errorf("protocol version %d", m.Result.ProtocolVersion)
		}
		codes = append(codes, fmt.Sprint(m.Error.Code))
	}
	slices.Sort(codes)
	if got := strings.Join(codes, " "); err != nil || got != "-32600 -32600 -32700 -32700 -32700 -32700 0" {
		t.Errorf("%v, %s", err, got)
	}
	cmd = exec.Command(program, "--acp", "text")
	cmd.Env = env
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("with a text: %v", err)
	}
}

// TestKill: after kill -9 in the middle of a turn the session is loaded, and /resume ends the turn without a call that had ended. LOKI_KILL_TEST=full
// kills 200 times.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := 20
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		kills = 200
	}
	rest := "The last turn was interrupted. /resume continues it."
	for n := range kills {
		_, env := home(t)
		dir := t.TempDir()
		e := start(t, env, dir, `{}`, choose(acp.AllowOnce))
		id := e.begin(dir)
		e.call(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: modeWrite}, nil)
		go func() { // ends with the program
			_ = e.Call(context.Background(), acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text("count")}}, nil)
		}()
		ended := 0
		e.wait(func(u any) bool {
			if c, ok := u.(*acp.ToolCall); ok && (n%2 == 0 || c.Kind == acp.ToolCallChanges) {
				ended++
			}
			return ended > n%3
		})
		time.Sleep(rand.N(150 * time.Millisecond)) // where in the turn it is killed is to differ
		_ = e.cmd.Process.Kill()
		<-e.ended
		again := start(t, env, dir, `{}`, choose(acp.AllowOnce))
		again.call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil)
		again.call(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: modeWrite}, nil)
		if !strings.HasSuffix(spoken(again.got()), rest) {
			t.Errorf("replayed: %s", spoken(again.got()))
		}
		said, stop := again.say(id, "/resume")
		text, err := os.ReadFile(filepath.Join(dir, "count"))
		counted := string(text)
		if !strings.HasSuffix(said, "It is done.") || stop != acp.EndTurn || err != nil {
			t.Errorf("%q, %s, %v", said, stop, err)
		}
		for i := range 3 { // the call at work when it was killed may be repeated
			if n := strings.Count(counted, fmt.Sprintln(i+1)); n == 0 || n > 2 {
				t.Errorf("counted %q", counted)
			}
		}
		if len(strings.Fields(counted)) > 4 {
			t.Errorf("a call that had ended was repeated: %q", counted)
		}
		again.leave()
	}
}

// checker checks messages against the schema of the protocol.
type checker struct {
	schema map[string]*schema.Schema // by the names of definitions
	names  map[string]string         // of the definitions of methods, with Request, Response or Notification at the end
}

func newChecker(t testing.TB) *checker {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	c := &checker{schema: make(map[string]*schema.Schema), names: make(map[string]string)}
	for name, def := range whole.Defs {
		var of struct {
			Method string `json:"x-method"`
		}
		if err := json.Unmarshal(def, &of); err != nil || of.Method == "" {
			continue
		}
		for _, kind := range []string{"Request", "Response", "Notification"} {
			if strings.HasSuffix(name, kind) {
				c.names[of.Method+" "+kind] = name
			}
		}
		v, err := value.ParseJSON([]byte(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/` + name + `", "$defs": ` + marshal(whole.Defs) + `}`))
		if err == nil {
			c.schema[name], err = schema.Compile(v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// check checks what one side has sent. Methods are those of the requests of the other side, by their ids.
func (c *checker) check(line []byte, methods map[string]string) error {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	name, body := "", m.Params
	switch {
	case m.Method != "" && m.ID == nil:
		name = c.names[m.Method+" Notification"]
	case m.Method != "":
		name = c.names[m.Method+" Request"]
	case m.Result == nil:
		return nil
	default:
		name, body = c.names[methods[string(m.ID)]+" Response"], m.Result
	}
	of := c.schema[name]
	if of == nil {
		if m.Method == "$/cancel_request" {
			return nil
		}
		return fmt.Errorf("no schema for %q, method %q, %s", name, methods[string(m.ID)], line)
	}
	v, err := value.ParseJSON(body)
	if err != nil {
		return err
	}
	if found := of.Validate(v); len(found) > 0 {
		return fmt.Errorf("%s: %s\n%.2000s", name, schema.List(found, "; "), line)
	}
	return nil
}

// TestSchema has random turns, of which all messages satisfy the published schema: 1,000 with LOKI_TEST=full.
func TestSchema(t *testing.T) {
	t.Parallel()
	check := newChecker(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	_, env := home(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file.txt"), "text\n")
	var mu sync.Mutex
	pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return r.IntN(n) }
	e := start(t, env, dir, `{"fs": {"readTextFile": true}, "elicitation": {"form": {}}, "session": {"notices": {}, "compaction": {}}}`, func(method string, params json.RawMessage) (any, error) {
		switch method {
		case acp.ReadTextFile:
			return acp.ReadTextFileResponse{Content: "x"}, nil
		case acp.ElicitationCreate:
			return acp.ElicitationResponse{Action: []string{"accept", "decline"}[pick(2)], Content: map[string]any{"answer": "publish"}}, nil
		}
		var p acp.PermissionRequest
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		return acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: "selected", OptionID: p.Options[pick(len(p.Options))].OptionID}}, nil
	})
	methods := map[string]string{"1": acp.Initialize}
	last := 1
	call := func(method string, params, result any) {
		last++
		methods[fmt.Sprint(last)] = method
		_ = e.try(method, params, result) // an error is an answer, too
	}
	id := ""
	begin := func() {
		if id != "" {
			call(acp.SessionClose, acp.SessionRequest{SessionID: id}, nil)
		}
		var of acp.SessionResponse
		call(acp.SessionNew, acp.NewSessionRequest{Cwd: dir, MCPServers: []acp.MCPServer{}}, &of)
		id = of.SessionID
	}
	begin()
	texts := []string{"write it", "read it", "make a plan", "ask me", "count", "fail", "hello", "/usage", "/compress", "/greet x", "/resume"}
	blocks := []acp.ContentBlock{
		{Type: "resource_link", Name: "f", URI: "file://" + filepath.ToSlash(dir) + "/file.txt"},
		{Type: "resource_link", Name: "f", URI: "https://example.com"},
		{Type: "resource", Resource: &acp.Resource{URI: "zed:///x", Text: new("some text")}},
		{Type: "audio"},
		{Type: "image", Data: "iVBORw0KGgo=", MimeType: "image/png"},
	}
	for n := range 1000 / sample.Step(20) {
		switch pick(14) {
		case 0:
			call(acp.SetMode, acp.SetModeRequest{SessionID: id, ModeID: []string{"read", "ask", "write", "none"}[pick(4)]}, nil)
		case 1:
			call(acp.SetConfigOption, acp.SetConfigOptionRequest{SessionID: id, ConfigID: []string{"mode", "model", "thought_level", "role"}[pick(4)], Value: []string{"ask", "builtin:script", "low", "none"}[pick(4)]}, nil)
		case 2:
			call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil)
		case 3:
			call(acp.SessionList, acp.ListSessionsRequest{}, nil)
		case 4:
			call(acp.SessionClose, acp.SessionRequest{SessionID: id}, nil)
			call(acp.SessionResume, acp.LoadSessionRequest{SessionID: id, Cwd: dir}, nil)
		case 5:
			begin()
			if n%2 == 0 {
				call(acp.SetConfigOption, acp.SetConfigOptionRequest{SessionID: id, ConfigID: "agent", Value: "ask"}, nil)
			}
		default:
			p := acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text(texts[pick(len(texts))])}}
			if pick(4) == 0 {
				p.Prompt = append(p.Prompt, blocks[pick(len(blocks))])
			}
			call(acp.SessionPrompt, p, nil)
		}
	}
	e.leave()
	kinds := make(map[string]int)
	for _, line := range e.sent.lines() {
		if err := check.check(line, methods); err != nil {
			t.Error(err)
		}
		var m struct {
			Method string
			Params struct {
				Update struct{ SessionUpdate string }
			}
			Error *acp.Error
		}
		_ = json.Unmarshal(line, &m) // which was checked
		kinds[strings.TrimSpace(m.Method+" "+m.Params.Update.SessionUpdate)]++
		if m.Error != nil && m.Error.Code == acp.InternalError {
			t.Logf("%s", line)
		}
	}
	t.Log(kinds)
}

// TestTypeScriptClient writes a file with the client of the official SDK.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	if err := os.Symlink(npmtest.Install(t, filepath.Join("testdata", "client")), filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "client", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "client.mjs"), string(text))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "client.mjs"), program, work)
	cmd.Dir, cmd.Env = work, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	const want = `version 1 setup
modes ask read ask write
permission fs_write made.txt "hello\n" allow_once reject_once allow_always
stop end_turn "It is done."
file "hello\n(by the editor)\n"
read "It has: not saved"
stop cancelled
listed write it
replayed user_message_chunk tool_call tool_call_update agent_message_chunk user_message_chunk tool_call tool_call_update agent_message_chunk
error -32002
exit 0
`
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\n%s", err, out, stderr.String())
	}
}

// TestInterrupted: a turn at work when the input ends or the system ends the program continues with /resume, also one that waits for the user. One that the
// client cancels does not.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*editor){
		"input":   func(e *editor) { _ = e.stdin.Close() },
		"SIGTERM": func(e *editor) { _ = e.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(e *editor) { _ = e.cmd.Process.Signal(syscall.SIGHUP) },
		"kill":    func(e *editor) { _ = e.cmd.Process.Kill() },
	}
	if signal.Ignored(syscall.SIGHUP) { // as under nohup: the program ignores it, too
		delete(ends, "SIGHUP")
	}
	for name, end := range ends {
		for _, say := range []string{"write it", "page"} {
			t.Run(name+"/"+strings.ReplaceAll(say, " ", "_"), func(t *testing.T) {
				t.Parallel()
				_, env := home(t)
				dir := t.TempDir()
				var args []string
				capabilities := `{}`
				if say == "page" { // of a graph
					args, capabilities = []string{"-a", "ask"}, `{"elicitation": {"form": {}}}`
				}
				asked := make(chan struct{}, 1)
				var e *editor
				e = start(t, env, dir, capabilities, func(string, json.RawMessage) (any, error) {
					asked <- struct{}{}
					<-e.sent.over
					return nil, nil
				}, args...)
				id := e.begin(dir)
				go func() { // ends with the program
					_ = e.Call(context.Background(), acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text(say)}}, nil)
				}()
				select {
				case <-asked:
				case <-time.After(patience):
					t.Fatal("it does not ask")
				}
				end(e)
				<-e.ended
				again := start(t, env, dir, capabilities, func(_ string, params json.RawMessage) (any, error) {
					if say == "write it" {
						return choose(acp.AllowOnce)(acp.RequestPermission, params)
					}
					answer := "Ada"
					if strings.Contains(string(params), "Publish it?") {
						answer = "publish"
					}
					return acp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": answer}}, nil
				}, args...)
				var list acp.ListSessionsResponse
				again.call(acp.SessionList, acp.ListSessionsRequest{}, &list)
				if len(list.Sessions) != 1 || list.Sessions[0].SessionID != id {
					t.Errorf("the list: %+v", list)
				}
				again.call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil)
				asks := func(u any) bool {
					c, ok := u.(*acp.Chunk)
					return ok && c.Kind == acp.UserMessageChunk && c.Content.Text == say
				}
				if got := again.got(); !slices.ContainsFunc(got, asks) || !strings.HasSuffix(spoken(got), "The last turn was interrupted. /resume continues it.") {
					t.Errorf("replayed: %s", marshal(got))
				}
				want := map[string]string{"write it": "It is done.", "page": "Ada published page"}[say]
				if said, stop := again.say(id, "/resume"); said != want || stop != acp.EndTurn {
					t.Errorf("resumed: %q, %s", said, stop)
				}
				from := len(again.got())
				again.call(acp.SessionLoad, acp.LoadSessionRequest{SessionID: id, Cwd: dir, MCPServers: []acp.MCPServer{}}, nil)
				if got := again.got()[from:]; !strings.HasSuffix(spoken(got), want) || strings.Contains(spoken(got), "interrupted") || len(slices.DeleteFunc(got, func(u any) bool { return !asks(u) })) != 1 {
					t.Errorf("replayed after it: %s", marshal(again.got()[from:]))
				}
			})
		}
	}
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		_, env := home(t)
		dir := t.TempDir()
		e := start(t, env, dir, `{}`, nil)
		id := e.begin(dir)
		stopped := make(chan string)
		go func() { // ends with the turn
			var r acp.PromptResponse
			_ = e.try(acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text("late")}}, &r)
			stopped <- r.StopReason
		}()
		for stop := ""; stop == ""; {
			_ = e.Notify(acp.SessionCancel, acp.SessionRequest{SessionID: id})
			select {
			case stop = <-stopped:
			case <-time.After(50 * time.Millisecond):
			}
		}
		if said, _ := e.say(id, "/resume"); said != "No turn of this session was interrupted." {
			t.Errorf("resumed: %q", said)
		}
	})
}

// TestUnclearAnswers: an answer that chooses nothing is a refusal, and one that is not of the protocol is a clear error.
func TestUnclearAnswers(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	dir := t.TempDir()
	var answer json.RawMessage
	e := start(t, env, dir, `{}`, func(string, json.RawMessage) (any, error) { return answer, nil })
	id := e.begin(dir)
	for _, text := range []string{`null`, `{}`, `{"outcome": {"outcome": "perhaps"}}`, `{"outcome": {"outcome": "cancelled"}}`} {
		answer = json.RawMessage(text)
		if said, stop := e.say(id, "write it"); said != "It is done." || stop != acp.EndTurn {
			t.Errorf("%s: %q, %s", text, said, stop)
		}
	}
	for text, want := range map[string]string{
		`{"outcome": 5}`: "the answer to session/request_permission is not one of the protocol: outcome: a number is not what is expected",
		`[]`:             "the answer to session/request_permission is not one of the protocol: an array is not what is expected",
	} {
		answer = json.RawMessage(text)
		err := e.try(acp.SessionPrompt, acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.Text("write it")}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err == nil {
		t.Error("the file was written")
	}
}

// TestDeafClient: the program ends with its input although the client reads nothing, whatever it has to say.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"unknown": `{"jsonrpc": "2.0", "id": %d, "method": "none"}`, "invalid": `{"jsonrpc": "2.0", "id": [%d]}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, env := home(t)
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "--acp")
			cmd.Dir, cmd.Env = t.TempDir(), env
			in, err := cmd.StdinPipe()
			if err == nil {
				_, err = cmd.StdoutPipe()
			}
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3000 {
				if _, err := fmt.Fprintf(in, line+"\n", i); err != nil {
					t.Fatal(err)
				}
			}
			_ = in.Close()
			late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			if _ = cmd.Wait(); !late.Stop() {
				t.Error("it did not end")
			}
		})
	}
}

// TestClosedOutput: a client that closes the output of the program first ends it as one that closes the input does.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	_, env := home(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--acp")
	cmd.Dir, cmd.Env = t.TempDir(), env
	in, err := cmd.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_ = out.Close()
	if _, err := fmt.Fprintln(in, `{"jsonrpc": "2.0", "id": 1, "method": "none"}`); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	if err := cmd.Wait(); err != nil || !late.Stop() {
		t.Errorf("it ended with %v", err)
	}
}

// TestDeafOutput: a write after the end fails at once.
func TestDeafOutput(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer r.Close()
	out := newOutput(w, func() {})
	time.AfterFunc(10*time.Millisecond, out.end)
	for range 2 {
		if _, err := out.Write([]byte("x")); err == nil {
			t.Error("it was written")
		}
	}
}
