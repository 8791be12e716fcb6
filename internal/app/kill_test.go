//go:build unix

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text/sample"
	"loki/internal/conversation/launch"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// The kill test runs a graph in a process of its own, kills that process with SIGKILL
// at a moment, resumes the run in another one, and compares what came of it with a run
// that nobody disturbed. The moments are all writes of the journal, before and after,
// and random ones. LOKI_KILL_TEST=full tries them all; otherwise it is a sample.

// Environment of the worker process.
const (
	workerMode   = "LOKI_TEST_WORKER"  // start, resume, resume_all, ask, answer, or first or last to answer only that question
	workerKillAt = "LOKI_TEST_KILL_AT" // number of the journal operation to die at
	workerAgent  = "LOKI_TEST_AGENT"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(workerMode); mode != "" {
		os.Exit(worker(mode))
	}
	if name := os.Getenv(serverName); name != "" {
		os.Exit(serve(name))
	}
	os.Exit(m.Run())
}

// worker is what the process does that is going to be killed. It prints how many
// journal operations there were.
func worker(mode string) int {
	killAt, _ := strconv.Atoi(os.Getenv(workerKillAt))
	d := &deadly{at: killAt}
	a, err := app.New(app.Options{Environ: os.Environ()})
	if err == nil {
		err = work(a, mode, d)
	}
	fmt.Println(d.n)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return fault.ExitCode(err)
}

// deadly ends the process at one of the moments before and after the writes of journals.
type deadly struct {
	mu    sync.Mutex
	n, at int
}

func (d *deadly) moment() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n++; d.n == d.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
}

// around makes a write with a moment before and after it.
func (d *deadly) around(write func() error) error {
	d.moment()
	defer d.moment()
	return write()
}

// deadlyStore has journals that a deadly watches.
type deadlyStore struct {
	run.Store
	*deadly
}

func (s deadlyStore) Create(ctx context.Context, info run.Info, start run.Checkpoint) (j run.Journal, err error) {
	err = s.around(func() (err error) { j, err = s.Store.Create(ctx, info, start); return err })
	return deadlyJournal{j, s.deadly}, err
}

func (s deadlyStore) Open(ctx context.Context, id string, unless ...run.Status) (j run.Journal, found run.Recovery, err error) {
	err = s.around(func() (err error) { j, found, err = s.Store.Open(ctx, id, unless...); return err })
	return deadlyJournal{j, s.deadly}, found, err
}

func (s deadlyStore) Answer(ctx context.Context, id, question string, r run.Reply) error {
	return s.around(func() error { return s.Store.Answer(ctx, id, question, r) })
}

type deadlyJournal struct {
	run.Journal
	*deadly
}

func (j deadlyJournal) Task(step int, node string) steps.Recorder {
	return deadlyTask{j.Journal.Task(step, node), j.deadly}
}

func (j deadlyJournal) Finished(ctx context.Context, t run.TaskRecord) error {
	return j.around(func() error { return j.Journal.Finished(ctx, t) })
}

func (j deadlyJournal) Commit(ctx context.Context, c run.Checkpoint, visits []run.Visit) error {
	return j.around(func() error { return j.Journal.Commit(ctx, c, visits) })
}

func (j deadlyJournal) Asked(ctx context.Context, p run.Pending) error {
	return j.around(func() error { return j.Journal.Asked(ctx, p) })
}

func (j deadlyJournal) End(ctx context.Context, e run.Ending) error {
	return j.around(func() error { return j.Journal.End(ctx, e) })
}

func (j deadlyJournal) Close() error { return j.around(j.Journal.Close) }

type deadlyTask struct {
	steps.Recorder
	*deadly
}

func (t deadlyTask) Begin(ctx context.Context, key string, s steps.Step) error {
	return t.around(func() error { return t.Recorder.Begin(ctx, key, s) })
}

func (t deadlyTask) Forget(ctx context.Context, key string) error {
	return t.around(func() error { return t.Recorder.Forget(ctx, key) })
}

func (t deadlyTask) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	return t.around(func() error { return t.Recorder.Record(ctx, key, s, result) })
}

func work(a *app.App, mode string, d *deadly) error {
	ctx := context.Background()
	runs := a.Runs()
	open := runs.Open
	runs.Open = func(durability graph.Durability) (run.Store, error) {
		store, err := open(durability)
		return deadlyStore{store, d}, err
	}
	if mode == "resume_all" {
		return resumeAll(ctx, a, runs)
	}
	if mode != "start" && mode != "ask" {
		r := run.Resumption{Continuation: run.Continuation{NoStream: true, Asker: ask.Unavailable{}}}
		if mode != "resume" {
			var err error
			if r.Answers, err = answers(ctx, a, mode); err != nil {
				return err
			}
		}
		_, err := runs.Resume(ctx, r)
		return err
	}
	ref, err := a.Agents.Find(os.Getenv(workerAgent))
	if err != nil {
		return err
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil {
		return err
	}
	if mode == "ask" {
		return askInSession(ctx, a, of, runs)
	}
	if of.Graph == nil {
		return converse(ctx, a, of, runs)
	}
	job, err := a.AgentJob(ctx, launch.Run{Agent: of, Prompt: "prompt", NoStream: true, Asker: ask.Unavailable{}})
	if err != nil {
		return err
	}
	_, err = runs.Start(ctx, job)
	return err
}

// answers returns an answer to each question that waits, or to the first or the last of them: what was interrupted is done
// again, and the rest goes on.
func answers(ctx context.Context, a *app.App, mode string) (map[string]string, error) {
	store, err := a.OpenRuns()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	list, err := store.Runs(ctx, run.Query{})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	h, err := store.History(ctx, list[0].ID)
	given := make(map[string]string)
	for i, p := range h.Pending {
		if mode == "first" && i > 0 || mode == "last" && i < len(h.Pending)-1 {
			continue
		}
		given[p.ID] = "go"
		if p.Item != nil || p.Node == "name" || p.Node == "review" { // of killQuestions
			given[p.ID] = "to " + p.ID
		}
		for _, answer := range []string{"retry", "accept"} { // after a call that may have been made, and of killedPlans
			if slices.Contains(p.Options, answer) {
				given[p.ID] = answer
			}
		}
	}
	return given, err
}

const killGraph = `
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

// post is the shell code that asks the counter service for one effect.
const post = `exec 3<>/dev/tcp/127.0.0.1/$COUNTER_PORT && printf 'POST / HTTP/1.0\r\nIdempotency-Key: %s\r\nContent-Length: 0\r\n\r\n' "$LOKI_IDEMPOTENCY_KEY" >&3 && answer=$(tail -n 1 <&3)`

const countScript = post + ` && printf '{"count": "%s"}\n' "$answer"`

const toolTurns = 4

// world is everything outside the process that is killed.
type world struct {
	scenario
	t       *testing.T
	dir     string
	model   *httptest.Server
	counter *httptest.Server

	mu    sync.Mutex
	calls map[string]int // model calls by what was asked
	made  map[string]int // requests to the counter by idempotency key
}

// scenario is what is killed.
type scenario struct {
	files   map[string]string
	agent   string // its path or name
	act     func(req killRequest) map[string]any
	asks    bool // it waits for an answer in the middle
	effects int
	lost    int // model calls that may be at work when a process ends, and are made again
	environ []string
}

// killRequest is a request to the model.
type killRequest struct {
	Messages []struct{ Role, Content string }
	Tools    []any

	rounds int // of tool calls
}

func newWorld(t *testing.T, s scenario) *world {
	w := &world{scenario: s, t: t, dir: t.TempDir(), calls: map[string]int{}, made: map[string]int{}}
	w.model = httptest.NewServer(http.HandlerFunc(w.answer))
	w.counter = httptest.NewServer(http.HandlerFunc(w.count))
	t.Cleanup(w.model.Close)
	t.Cleanup(w.counter.Close)
	for name, text := range s.files {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("model: test:m\nclients:\n- type: openai-compatible\n  name: test\n  api_base: %s\n  models:\n  - {name: m, supports_function_calling: true}\n", w.model.URL)
	if err := os.WriteFile(filepath.Join(w.dir, "config", "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// answer is the model.
func (w *world) answer(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req killRequest
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	var asked []string
	for i, m := range req.Messages {
		asked = append(asked, m.Role+":"+m.Content)
		if m.Role == "tool" && req.Messages[i-1].Role != "tool" {
			req.rounds++
		}
	}
	w.mu.Lock()
	w.calls[strings.Join(asked, "|")]++
	w.mu.Unlock()
	message := w.act(req)
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}},
		"usage":   map[string]int{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
	})
}

// count is a service that makes an effect once for each idempotency key, and says so
// in the same words each time.
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

func (w *world) environment(more ...string) []string {
	_, port, _ := strings.Cut(strings.TrimPrefix(w.counter.URL, "http://"), ":")
	return append(slices.Concat(os.Environ(), w.environ, more),
		"HOME="+w.dir, "LOKI_CONFIG_DIR="+filepath.Join(w.dir, "config"), "LOKI_STATE_DIR="+filepath.Join(w.dir, "state"),
		"COUNTER_PORT="+port, "AUTO_CONFIRM=1", "LOKI_SHELL=bash", "LOKI_TRUSTED_DIRS="+w.dir, workerAgent+"="+w.agent)
}

// spawn runs a worker to its end, or kills it after a time. It returns the exit
// status, -1 for a killed one, and the number of journal operations.
func (w *world) spawn(mode string, killAt int, killAfter time.Duration, more ...string) (status, operations int) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(w.environment(more...), workerMode+"="+mode, workerKillAt+"="+strconv.Itoa(killAt))
	cmd.Dir = w.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	_ = cmd.Wait()
	status = cmd.ProcessState.ExitCode()
	if status != -1 && status != 0 && status != 8 {
		w.t.Fatalf("%s: exit status %d: %s", mode, status, errs.String())
	}
	operations, _ = strconv.Atoi(strings.TrimSpace(out.String()))
	return status, operations
}

// app opens the world's state from outside the worker.
func (w *world) store() run.Store {
	w.t.Helper()
	a, err := app.New(app.Options{Environ: w.environment()})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := a.OpenRuns()
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// finish resumes the run until it has ended, answering its questions, and returns how often it was
// suspended meanwhile.
func (w *world) finish() (suspended int) {
	w.t.Helper()
	status := 0
	for range 20 {
		h, ok := w.history()
		switch {
		case !ok: // it was killed before there was a run
			status, _ = w.spawn("start", 0, 0)
		case h.Info.Status == run.Done:
			return suspended
		case len(h.Pending) > 0:
			status, _ = w.spawn("answer", 0, 0)
		default:
			status, _ = w.spawn("resume", 0, 0)
		}
		if status == 8 {
			suspended++
		}
	}
	w.t.Fatal("the run does not end")
	return suspended
}

func (w *world) history() (run.History, bool) {
	w.t.Helper()
	s := w.store()
	defer s.Close()
	runs, err := s.Runs(w.t.Context(), run.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(runs) == 0 {
		return run.History{}, false
	}
	if len(runs) > 1 {
		w.t.Fatalf("%d runs", len(runs))
	}
	h, err := s.History(w.t.Context(), runs[0].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return h, true
}

// outcome is what a run left behind.
type outcome struct {
	Output  string
	State   string
	Visits  []string
	Effects []string
	Calls   int // different model calls
}

func (w *world) outcome() outcome {
	w.t.Helper()
	h, ok := w.history()
	if !ok {
		w.t.Fatal("no run")
	}
	s := w.store()
	defer s.Close()
	last, err := s.Checkpoint(w.t.Context(), h.Info.ID, -1)
	if err != nil {
		w.t.Fatal(err)
	}
	o := outcome{Output: h.Info.Output, State: string(last.State.AppendJSON(nil)), Calls: len(w.calls)}
	for _, v := range h.Visits {
		o.Visits = append(o.Visits, fmt.Sprintf("%d %s %d", v.Step, v.Node, v.Number))
	}
	for key := range w.made {
		_, rest, _ := strings.Cut(key, "/")
		o.Effects = append(o.Effects, rest)
	}
	slices.Sort(o.Effects)
	return o
}

// repeated is the number of model calls that were made more than once.
func (w *world) repeated() int {
	n := 0
	for _, times := range w.calls {
		n += times - 1
	}
	return n
}

// recorded counts the finished model steps on record, made how often calls were.
func (w *world) recorded() (recorded, made int) {
	if h, ok := w.history(); ok {
		for _, s := range h.Steps {
			if s.Kind == "model" && s.Done {
				recorded++
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range maps.Values(w.calls) {
		made += n
	}
	return recorded, made
}

// killedGraph is a graph whose model wants the tool a few times where there is one, and otherwise
// says what it was asked.
func killedGraph() scenario {
	return scenario{
		files: map[string]string{"agent/graph.yaml": killGraph, "agent/count.sh": countScript}, agent: "./agent", asks: true, effects: 3 + toolTurns,
		act: func(req killRequest) map[string]any {
			if len(req.Tools) > 0 && req.rounds < toolTurns {
				return calls(effect(req.rounds + 1))
			}
			return says("said " + req.Messages[len(req.Messages)-1].Content)
		},
	}
}

func TestKill(t *testing.T) { killAndResume(t, killedGraph()) }

// killAndResume kills the process of a run at the writes of its journal, and at random moments, and
// resumes the run until it has ended. Then all is as if it had not been disturbed.
func killAndResume(t *testing.T, s scenario) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the graph's scripts need bash")
	}
	calm := newWorld(t, s)
	begin := time.Now()
	status, startOps := calm.spawn("start", 0, 0)
	took := time.Since(begin)
	answerOps := 0
	if s.asks {
		if status != 8 {
			t.Fatalf("the undisturbed run should wait for its question, but exits with %d", status)
		}
		status, answerOps = calm.spawn("answer", 0, 0)
	}
	if status != 0 {
		t.Fatalf("the undisturbed run exits with %d", status)
	}
	want := calm.outcome()
	if want.Output == "" || len(want.Effects) != s.effects || calm.repeated() != 0 {
		t.Fatalf("the undisturbed run is not what it should be: %+v", want)
	}
	t.Logf("%d journal operations before the question, in %s, and %d after the answer", startOps, took, answerOps)

	disturbed := func(t *testing.T, disturb func(*world)) {
		t.Parallel()
		w := newWorld(t, s)
		disturb(w)
		recorded, made := w.recorded()
		suspended := w.finish()
		got := w.outcome()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the resumed run differs:\n got %+v\nwant %+v", got, want)
		}
		if repeated := w.repeated(); repeated > made-recorded+(suspended+1)*s.lost {
			t.Errorf("%d model calls were made again, but only %d of %d were not on record", repeated, made-recorded, made)
		}
	}
	stride, random := max(1, (startOps+answerOps)*sample.Step(3)/12), 9/sample.Step(3)
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		stride, random = 1, 200
	}
	for at := 1; at <= startOps+answerOps; at += stride {
		t.Run(fmt.Sprintf("write_%03d", at), func(t *testing.T) {
			disturbed(t, func(w *world) {
				if at <= startOps {
					if status, _ := w.spawn("start", at, 0); status != -1 {
						t.Errorf("exit status %d, but it should have been killed", status)
					}
					return
				}
				w.spawn("start", 0, 0)
				if status, _ := w.spawn("answer", at-startOps, 0); status != -1 {
					t.Errorf("exit status %d, but it should have been killed", status)
				}
			})
		})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		after := time.Duration(rnd.Float64() * float64(took)).Round(100 * time.Microsecond)
		t.Run(fmt.Sprintf("random_%03d_%s", i, after), func(t *testing.T) {
			disturbed(t, func(w *world) { w.spawn("start", 0, after) })
		})
	}
}
