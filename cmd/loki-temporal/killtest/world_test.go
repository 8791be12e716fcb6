//go:build unix

package killtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/temporaltest"
)

// graphYAML has a node of most types, several of which run side by side, a loop of tool calls and a question.
const graphYAML = `
name: kill
start: first
sandbox: full
global_tools: [execute_command]
reducers: {log: append}
settings: {max_concurrency: 4}
nodes:
  first: {type: script, script: count.sh, next: think}
  think: {type: llm, prompt: "think about {{initial_prompt}} after {{count}}", state_updates: {log: "{{output}}"}, next: [left, right, each]}
  left: {type: script, script: count.sh, state_updates: {log: "left"}, next: join}
  right: {type: llm, prompt: "right of {{initial_prompt}}", state_updates: {log: "{{output}}"}, next: join}
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: ones, next: join}
  one: {type: llm, prompt: "item {{item}}"}
  join: {type: llm, prompt: "join {{log}} {{ones}}", state_updates: {log: "{{output}}"}, next: loop}
  loop:
    type: llm
    instructions: use the tool
    prompt: loop
    tools: [execute_command]
    max_iterations: 10
    on_uncertain: retry
    state_updates: {looped: "{{output}}"}
    next: approve
  approve: {type: approval, question: "Go on?", options: [go, stop], routes: {go: last, stop: done}, on_other: done, state_updates: {choice_was: "{{choice}}"}}
  last: {type: script, script: count.sh, next: done}
  done: {type: end, output: "{{log}} {{ones}} {{looped}} {{choice_was}} {{count}}"}
initial_state: {items: [1, 2, 3, 4, 5]}
`

// sagaYAML waits for a time and a signal, has nodes side by side within a budget, fails, and undoes what it did.
const sagaYAML = `
name: saga
start: hotel
sandbox: full
settings: {max_concurrency: 4, on_failure: fail, validate_before_run: false, budget: {tokens: 100000}}
nodes:
  hotel: {type: script, script: count.sh, compensate: undo, next: pause}
  pause: {type: wait, for: 0.5, next: [left, right, flight]}
  left: {type: llm, prompt: "left of {{initial_prompt}}", next: paid}
  right: {type: llm, prompt: "right of {{initial_prompt}}", next: paid}
  flight: {type: script, script: count.sh, compensate: undo, next: paid}
  paid: {type: wait, join: all, signal: paid, state_updates: {sum: "{{signal.sum}}"}, next: bad}
  bad: {type: script, script: missing.sh, next: done}
  undo: {type: script, script: count.sh, retry: {attempts: 2}}
  done: {type: end}
`

// budgetYAML has two maps side by side that would use more than its budget: 15 tokens for each of 24 items.
const budgetYAML = `
name: budget
start: begin
settings: {max_concurrency: 4, budget: {tokens: 150}}
nodes:
  begin: {type: script, script: count.sh, next: [left, right]}
  left: {type: map, over: "{{items}}", as: item, branch: one, collect_into: ones, next: done}
  right: {type: map, over: "{{items}}", as: item, branch: two, collect_into: twos, next: done}
  one: {type: llm, prompt: "one {{item}}"}
  two: {type: llm, prompt: "two {{item}}"}
  done: {type: end}
initial_state: {items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}
`

// post is the shell code that asks the counter service for one effect.
const post = `exec 3<>/dev/tcp/127.0.0.1/$COUNTER_PORT && printf 'POST / HTTP/1.0\r\nIdempotency-Key: %s\r\nContent-Length: 0\r\n\r\n' "$LOKI_IDEMPOTENCY_KEY" >&3 && answer=$(tail -n 1 <&3)`

const (
	countScript = "#!/usr/bin/env bash\n" + post + ` && printf '{"count": "%s"}\n' "$answer"`
	toolTurns   = 4
	effects     = 3 + toolTurns // of a run
)

// server is a Temporal server.
type server struct {
	*temporaltest.TestServer
	client client.Client
	binary string // loki-temporal
}

// newServer starts a server and builds the program.
func newServer(t *testing.T, o ...temporaltest.TestServerOption) *server {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the graph's scripts need bash")
	}
	s := &server{binary: filepath.Join(t.TempDir(), "loki-temporal")}
	build := exec.Command("go", "build", "-o", s.binary, ".")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	s.TestServer = temporaltest.NewServer(append(o, temporaltest.WithT(t))...)
	s.client = s.GetDefaultClient()
	return s
}

// world is what a run touches: an agent, a model, and a service that counts effects.
type world struct {
	*server
	t       *testing.T
	dir     string
	model   *httptest.Server
	counter *httptest.Server

	mu      sync.Mutex
	calls   map[string]int // of the model, by what was asked
	made    map[string]int // effects, by key
	workers []*exec.Cmd
	key     string // that encrypts what goes to the server, empty for none
}

func newWorld(t *testing.T, s *server) *world {
	t.Helper()
	w := &world{server: s, t: t, dir: t.TempDir(), calls: make(map[string]int), made: make(map[string]int)}
	w.model = httptest.NewServer(http.HandlerFunc(w.answer))
	w.counter = httptest.NewServer(http.HandlerFunc(w.count))
	t.Cleanup(func() {
		for range len(w.workers) {
			w.kill(0)
		}
		w.model.Close()
		w.counter.Close()
	})
	config := fmt.Sprintf("model: test:m\nclients:\n- type: openai-compatible\n  name: test\n  api_base: %s\n  models:\n  - {name: m, supports_function_calling: true}\n", w.model.URL)
	for name, text := range map[string]string{"agent/graph.yaml": graphYAML, "agent/count.sh": countScript, "saga/graph.yaml": sagaYAML, "saga/count.sh": countScript, "budget/graph.yaml": budgetYAML, "budget/count.sh": countScript, "config/config.yaml": config, "wrong.yaml": "review: go"} {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// answer is the model: it wants the tool a few times where there is one, and otherwise says what it was asked.
func (w *world) answer(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req struct {
		Messages []struct{ Role, Content string }
		Tools    []any
	}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	rounds := 0
	var asked []string
	for i, m := range req.Messages {
		asked = append(asked, m.Role+":"+m.Content)
		if m.Role == "tool" && req.Messages[i-1].Role != "tool" {
			rounds++
		}
	}
	w.mu.Lock()
	w.calls[strings.Join(asked, "|")]++
	w.mu.Unlock()
	message := map[string]any{"role": "assistant", "content": "said " + req.Messages[len(req.Messages)-1].Content}
	if len(req.Tools) > 0 && rounds < toolTurns {
		command, _ := json.Marshal(map[string]string{
			"command": post + fmt.Sprintf(` && echo "$answer" # %d`, rounds+1), "sandbox": "full", "reason": "The counter listens on this machine.",
		})
		message = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": "call_1", "type": "function", "function": map[string]any{"name": "execute_command", "arguments": string(command)},
		}}}
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}},
		"usage":   map[string]int{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
	})
}

// count is a service that makes an effect once for each idempotency key, and says so in the same words each time.
func (w *world) count(rw http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		http.Error(rw, "no key", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.made[key]++
	w.mu.Unlock()
	_, rest, _ := strings.Cut(key, "/") // the run's id differs from run to run
	fmt.Fprintf(rw, "did %s\n", strings.ReplaceAll(rest, "\"", ""))
}

// command is the program with arguments.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.binary, args...)
	cmd.Dir = w.dir
	_, port, _ := strings.Cut(strings.TrimPrefix(w.counter.URL, "http://"), ":")
	cmd.Env = append(os.Environ(),
		"HOME="+w.dir, "LOKI_CONFIG_DIR="+filepath.Join(w.dir, "config"), "LOKI_STATE_DIR="+filepath.Join(w.dir, "state"), "LOKI_CACHE_DIR="+filepath.Join(w.dir, "cache"),
		"COUNTER_PORT="+port, "AUTO_CONFIRM=1", "LOKI_SHELL=bash", "LOKI_TRUSTED_DIRS="+w.dir,
		"TEMPORAL_ADDRESS="+w.GetFrontendHostPort(), "TEMPORAL_NAMESPACE="+w.GetDefaultNamespace(), "LOKI_TEMPORAL_KEY="+w.key)
	return cmd
}

// queue is the task queue of the world's runs.
func (w *world) queue() string {
	return filepath.Base(filepath.Dir(w.dir)) + "-" + filepath.Base(w.dir)
}

// try runs the program to its end, and returns what it printed and its exit status.
func (w *world) try(args ...string) (out, errs string, code int) {
	w.t.Helper()
	return w.begin(args...)()
}

// begin starts the program, and returns what waits for its end like try.
func (w *world) begin(args ...string) (end func() (out, errs string, code int)) {
	w.t.Helper()
	cmd := w.command(append([]string{"--task-queue", w.queue()}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return func() (out, errs string, code int) {
		_ = cmd.Wait()
		return strings.TrimSpace(stdout.String()), stderr.String(), cmd.ProcessState.ExitCode()
	}
}

// do is try for what has to succeed.
func (w *world) do(args ...string) string {
	w.t.Helper()
	out, errs, code := w.try(args...)
	if code != 0 {
		w.t.Fatalf("%q: exit status %d\n%s", args, code, errs)
	}
	return out
}

// work starts a worker.
func (w *world) work() {
	w.t.Helper()
	cmd := w.command("--worker", "--task-queue", w.queue())
	cmd.Stderr = &lines{w.t}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.workers = append(w.workers, cmd)
}

// lines logs what a worker prints.
type lines struct{ t *testing.T }

func (l *lines) Write(p []byte) (int, error) {
	if text := strings.TrimSpace(string(p)); !strings.HasPrefix(text, "working on") {
		l.t.Log("worker: " + text)
	}
	return len(p), nil
}

// kill kills a worker with SIGKILL.
func (w *world) kill(i int) { w.end(i, syscall.SIGKILL) }

// end ends a worker with a signal.
func (w *world) end(i int, signal syscall.Signal) {
	cmd := w.workers[i]
	w.workers = slices.Delete(w.workers, i, i+1)
	_ = cmd.Process.Signal(signal)
	var status *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &status) {
		w.t.Error(err)
	}
}

// status is what a run says of itself.
type status struct {
	Status string          `json:"status"`
	Output string          `json:"output"`
	State  json.RawMessage `json:"state"`
	Waits  []struct {
		ID string `json:"id"`
	} `json:"waits"`
	Failure *struct{ Message, Code string } `json:"failure"`
	Usage   json.RawMessage                 `json:"usage"`
	Events  []struct {
		Type, Node string
		Step       int
		Visit      int
	} `json:"events"`
}

// status asks a run how it stands. It returns false if no worker answered.
func (w *world) status(id string) (s status, ok bool) {
	w.t.Helper()
	reply, err := w.client.QueryWorkflow(w.t.Context(), id, "", "loki-status", map[string]any{"after": 0, "state": true})
	if err == nil {
		err = reply.Get(&s)
	}
	return s, err == nil
}

// await returns how a run stands once it has a status. Meanwhile it calls disturb, if that is not nil.
func (w *world) await(id, want string, disturb func()) status {
	w.t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		if disturb != nil {
			disturb()
		}
		s, ok := w.status(id)
		switch {
		case ok && s.Status == want:
			return s
		case ok && s.Failure != nil:
			w.t.Fatalf("the run failed: %+v", *s.Failure)
		}
		time.Sleep(50 * time.Millisecond)
	}
	s, _ := w.status(id)
	w.t.Fatalf("the run is not %s: %+v", want, s)
	return s
}

// outcome is what a run left behind.
type outcome struct {
	Output  string
	State   string
	Usage   string
	Path    []string // finished nodes
	Effects []string
	Calls   int // different calls of the model
}

func (w *world) outcome(s status) outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := outcome{Output: s.Output, State: string(s.State), Usage: string(s.Usage), Calls: len(w.calls)}
	for _, ev := range s.Events {
		if ev.Type == "node_finished" {
			o.Path = append(o.Path, fmt.Sprintf("%d %s", ev.Step, ev.Node))
		}
	}
	slices.Sort(o.Path)
	o.Path = slices.Compact(o.Path) // one that waits, and one that is begun again, finishes more than once
	for key := range w.made {
		_, rest, _ := strings.Cut(key, "/")
		o.Effects = append(o.Effects, rest)
	}
	slices.Sort(o.Effects)
	return o
}
