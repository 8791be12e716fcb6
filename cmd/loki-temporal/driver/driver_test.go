//go:build unix

package driver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/conversation/launch"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// rules are those of the model: it says what it was asked.
const rules = `
rules:
  - match: {regex: '^tool', turn: 1}
    tool_calls: [{name: execute_command, arguments: {command: 'echo x >> effects; echo counted', sandbox: full, reason: test}}]
  - match: {regex: '^tool'}
    reply: 'tool said {{tool_result}}'
default: {reply: 'said {{text}}'}
`

// wholeGraph has a node of most types.
const wholeGraph = `
name: whole
model: builtin:script/rules.yaml
start: first
sandbox: full
reducers: {log: append}
initial_state: {items: [a, b, c]}
nodes:
  first: {type: script, script: count.sh, next: [think, each]}
  think: {type: llm, prompt: "{{initial_prompt}} after {{count}}", state_updates: {log: "{{output}}"}, next: join}
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: ones, next: join}
  one: {type: llm, prompt: "item {{item}}"}
  join: {type: llm, prompt: "join {{log}}", join: all, state_updates: {log: "{{output}}"}, next: review}
  review: {type: approval, question: "Go on with {{count}}?", options: [go, stop], routes: {go: done, stop: done}, on_other: done, state_updates: {chosen: "{{choice}}"}}
  done: {type: end, output: "{{log}} {{ones}} {{chosen}}"}
`

const countScript = "#!/bin/sh\necho x >> effects\nprintf '{\"count\": \"%s\"}' \"$LOKI_IDEMPOTENCY_KEY\"\n"

// world is a program with an agent, and a server that Temporal's test environment plays.
type world struct {
	t   *testing.T
	dir string
	app *app.App
	// agent is the path of the agent; empty for that in dir.
	agent string
	env   *testsuite.TestWorkflowEnvironment

	mu      sync.Mutex
	signals int           // that activities sent
	lost    int           // number of the signal after which the server gives up the activity
	tasks   []driver.Task // that activities were given
	sent    []string      // by activities

	queries, updates atomic.Int32 // of activities
}

// newWorld has an agent in the working directory, whose graph is in YAML.
func newWorld(t *testing.T, graphYAML string) *world { return newWorldWith(t, graphYAML, nil) }

// scratch returns a directory for a test. The environment of tests ends a workflow without waiting for the activities that it canceled, such
// as those that lost a race, so some may write while the directory is removed.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("", "loki-temporal-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 1000 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
		}
		t.Error(err)
	})
	return dir
}

// newWorldWith is newWorld with further files.
func newWorldWith(t *testing.T, graphYAML string, more map[string]string) *world {
	t.Helper()
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: scratch(t)}
	t.Chdir(w.dir)
	files := map[string]string{
		"agent/graph.yaml": graphYAML, "agent/count.sh": countScript, "rules.yaml": rules, "config/config.yaml": "stream: false\n",
	}
	maps.Copy(files, more)
	for name, text := range files {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.app, err = app.New(app.Options{Environ: append(os.Environ(),
		"HOME="+w.dir, "LOKI_CONFIG_DIR="+filepath.Join(w.dir, "config"), "LOKI_STATE_DIR="+filepath.Join(w.dir, "state"), "LOKI_CACHE_DIR="+filepath.Join(w.dir, "cache"),
		"LOKI_TRUSTED_DIRS="+w.dir+string(filepath.ListSeparator)+examples, "LOKI_SHELL=sh", "API_TOKEN=secret-token-value")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.app.Close() })
	w.reset()
	return w
}

// reset gives the world a new workflow.
func (w *world) reset() {
	var suite testsuite.WorkflowTestSuite
	w.env = suite.NewTestWorkflowEnvironment()
	w.env.SetTestTimeout(20 * time.Second)
	w.env.SetStartTime(time.Now())
	nodes := &driver.Nodes{App: w.app, Client: w}
	w.env.RegisterWorkflowWithOptions(driver.Graph, workflow.RegisterOptions{Name: driver.WorkflowName})
	w.env.RegisterActivityWithOptions(func(ctx context.Context, sealed json.RawMessage) (json.RawMessage, error) {
		var t driver.Task
		if err := json.Unmarshal(sealed, &t); err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.tasks = append(w.tasks, t)
		w.mu.Unlock()
		return nodes.Execute(ctx, sealed)
	}, activity.RegisterOptions{Name: driver.ActivityName})
}

// SignalWorkflow implements [driver.Client].
func (w *world) SignalWorkflow(_ context.Context, _, _, signal string, arg any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signals++
	data, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	w.sent = append(w.sent, string(data))
	w.env.SignalWorkflow(signal, arg)
	if w.signals == w.lost {
		return serviceerror.NewNotFound("the activity timed out")
	}
	return nil
}

// QueryWorkflow implements [driver.Client].
func (w *world) QueryWorkflow(_ context.Context, _, _, query string, args ...any) (converter.EncodedValue, error) {
	w.queries.Add(1)
	return w.env.QueryWorkflow(query, args...)
}

// update is an update of the workflow that ends with done.
type update struct{ done chan error }

func (u *update) WorkflowID() string { return "" }
func (u *update) RunID() string      { return "" }
func (u *update) UpdateID() string   { return "" }

func (u *update) Get(ctx context.Context, _ any) error {
	select {
	case err := <-u.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// UpdateWorkflow implements [driver.Client].
func (w *world) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	u := &update{make(chan error, 1)}
	w.env.RegisterDelayedCallback(func() { // in the environment's own goroutine, since activities side by side would race for its updates
		w.env.UpdateWorkflow(o.UpdateName, o.UpdateID, &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { u.done <- err }, OnComplete: func(_ any, err error) { u.done <- err },
		}, o.Args...)
	}, 0)
	w.updates.Add(1)
	return u, nil
}

// RecordActivityHeartbeat implements [driver.Client].
func (w *world) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// start returns what a run of the agent begins with.
func (w *world) start(prompt string) driver.Start {
	w.t.Helper()
	job := w.job(prompt, ask.Unavailable{})
	return driver.Start{Info: job.Info, Heartbeat: time.Hour, Point: driver.Point{Last: job.Start}}
}

// job returns the job of the agent.
func (w *world) job(prompt string, asker ask.Asker) run.Job {
	w.t.Helper()
	ref, err := w.app.Agents.Find(cmp.Or(w.agent, "./agent"))
	if err != nil {
		w.t.Fatal(err)
	}
	of, _, err := w.app.Agents.Load(ref)
	if err != nil {
		w.t.Fatal(err)
	}
	variables, err := agent.Values(of.InForce.Variables, nil, func(graph.Variable) (string, bool, error) { return "", false, nil })
	if err != nil {
		w.t.Fatal(err)
	}
	job, err := w.app.AgentJob(w.t.Context(), launch.Run{
		Agent: of, Prompt: prompt, Variables: variables, NoStream: true, Events: w.app.Events(event.Discard), Asker: asker,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// run runs a workflow to its end, and answers its questions.
func (w *world) run(s driver.Start, answers ...map[string]string) (driver.Result, error) {
	for i, a := range answers {
		a := driver.Letter{ID: fmt.Sprint(i), Answers: a}
		w.env.RegisterDelayedCallback(func() {
			w.env.UpdateWorkflow("loki-answer", fmt.Sprint(i), &testsuite.TestUpdateCallback{
				OnAccept:   func() {},
				OnReject:   func(err error) { w.t.Errorf("answer %v is refused: %v", a, err) },
				OnComplete: func(any, error) {},
			}, a)
		}, time.Duration(i+1)*time.Hour)
	}
	w.env.ExecuteWorkflow(driver.WorkflowName, s)
	if !w.env.IsWorkflowCompleted() {
		w.t.Fatal("the workflow did not end")
	}
	if err := w.env.GetWorkflowError(); err != nil {
		return driver.Result{}, err
	}
	var r driver.Result
	return r, w.env.GetWorkflowResult(&r)
}

// effects returns how many effects there were.
func (w *world) effects() int {
	data, err := os.ReadFile(filepath.Join(w.dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// status asks the run how it stands.
func (w *world) status() driver.Status {
	w.t.Helper()
	v, err := w.env.QueryWorkflow("loki-status", driver.Request{State: true})
	if err != nil {
		w.t.Fatal(err)
	}
	var s driver.Status
	if err := v.Get(&s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// types returns the types of the events of the run, with their nodes.
func (w *world) types() []string {
	w.t.Helper()
	var types []string
	for _, ev := range w.status().Events {
		var e struct{ Type, Node string }
		if err := json.Unmarshal(ev, &e); err != nil {
			w.t.Fatal(err)
		}
		types = append(types, strings.TrimSpace(e.Type+" "+e.Node))
	}
	return types
}

func TestWholeGraph(t *testing.T) {
	w := newWorld(t, wholeGraph)
	r, err := w.run(w.start("hello"), map[string]string{"review": "go"})
	if err != nil {
		t.Fatal(err)
	}
	const key = "default-test-workflow-id/1/first"
	want := `["said hello after ` + key + `","said join [\"said hello after ` + key + `\"]"] ["said item a","said item b","said item c"] go`
	if r.Output != want || r.Steps != 5 || w.effects() != 1 {
		t.Errorf("%d steps, %d effects, output\n%s\nwant\n%s", r.Steps, w.effects(), r.Output, want)
	}
	types := w.types()
	for _, want := range []string{"started", "node_started first", "step_started", "reply think", "reply each", "step_finished", "question review", "answer review", "node_finished done", "finished"} {
		if !slices.Contains(types, want) {
			t.Errorf("no event %q in %q", want, types)
		}
	}
}

// TestReplay replays the history of a run on a real server. It fails if a change of the workflow would break runs that are at
// work. make temporal-kill says how to record a new history, for a change that is meant to.
func TestReplay(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(driver.Graph, workflow.RegisterOptions{Name: driver.WorkflowName})
	if err := r.ReplayWorkflowHistoryFromJSONFile(nil, "testdata/history.json"); err != nil {
		t.Fatal(err)
	}
}

// loop is a graph whose model calls a tool with an effect, and then has its reply changed by a script.
const loop = `
name: loop
model: builtin:script/rules.yaml
start: work
sandbox: full
global_tools: [execute_command]
nodes:
  work: {type: llm, prompt: tool, instructions: x, tools: [execute_command], on_uncertain: retry, state_updates: {said: "{{output}}"}, next: done}
  done: {type: end, output: "{{said}}"}
`

// TestLostExecution has the server give up an execution after each of its signals. The next one gets the steps that are on
// record, and does not make them again.
func TestLostExecution(t *testing.T) {
	calm := newWorld(t, loop)
	start := calm.start("x")
	start.Terms.Yes = true
	want, err := calm.run(start)
	if err != nil || !strings.Contains(want.Output, "counted") || calm.effects() != 1 {
		t.Fatalf("%+v, %d effects, %v", want, calm.effects(), err)
	}
	all := calm.signals
	if all < 4 {
		t.Fatalf("only %d signals", all)
	}
	for at := 1; at <= all; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			w := newWorld(t, loop)
			w.lost = at
			start := w.start("x")
			start.Terms.Yes = true
			r, err := w.run(start)
			if err != nil || r.Output != want.Output || r.Usage != want.Usage {
				t.Errorf("%+v, %v", r, err)
			}
			if n := w.effects(); n != 1 {
				t.Errorf("%d effects", n)
			}
			if n := len(w.tasks); n != 3 {
				t.Errorf("%d executions, want one more than the 2 of an undisturbed run", n)
			} else if again := w.tasks[1]; again.Node != "work" || again.Attempt != 2 || len(again.Steps) == 0 {
				t.Errorf("the second execution: attempt %d of %s, %d steps", again.Attempt, again.Node, len(again.Steps))
			}
		})
	}
}

// TestContinueAsNew has a run go on in a workflow of its own after each super-step.
func TestContinueAsNew(t *testing.T) {
	w := newWorld(t, strings.Replace(wholeGraph, "type: approval", "timeout: 3600, default: go, type: approval", 1))
	start := w.start("hello")
	for n := 1; ; n++ {
		w.reset()
		w.env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
			w.env.SetContinueAsNewSuggested(true) // from the second super-step on
		})
		r, err := w.run(start)
		var next *workflow.ContinueAsNewError
		if !errors.As(err, &next) {
			if err != nil || !strings.HasSuffix(r.Output, `["said item a","said item b","said item c"] go`) || r.Steps != 5 || w.effects() != 1 {
				t.Errorf("%d effects, %+v, %v", w.effects(), r, err)
			}
			if n != 5 {
				t.Errorf("%d workflows, want one for each super-step", n)
			}
			return
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &start); err != nil {
			t.Fatal(err)
		}
		if n > 20 {
			t.Fatal("the run does not end")
		}
	}
}

// TestAnswers refuses what is not an answer, and takes one that comes as a signal.
func TestAnswers(t *testing.T) {
	w := newWorld(t, `
name: answers
start: name
nodes:
  name: {type: input, question: "Name?", validation: "len(input) > 3", state_updates: {name: "{{input}}"}, next: done}
  done: {type: end, output: "{{name}}"}
`)
	refused := make(map[string]error)
	refuse := func(name string, l driver.Letter) {
		l.ID = name
		w.env.RegisterDelayedCallback(func() {
			w.env.UpdateWorkflow("loki-answer", name, &testsuite.TestUpdateCallback{
				OnAccept:   func() { t.Errorf("%s: accepted", name) },
				OnReject:   func(err error) { refused[name] = err },
				OnComplete: func(any, error) {},
			}, l)
		}, time.Hour)
	}
	try := func(name string, answers map[string]string) { refuse(name, driver.Letter{Answers: answers}) }
	try("other question", map[string]string{"first": "John"})
	refuse("list", driver.Letter{Answers: map[string]string{"name": `["Anne","Eve"]`}, Lists: []string{"name"}})
	try("too short", map[string]string{"name": "Joe"})
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow("loki-answer", driver.Letter{ID: "a", Answers: map[string]string{"nothing": "go"}})
		w.env.SignalWorkflow("loki-answer", driver.Letter{ID: "b", Typed: []string{"Anne"}})
		w.env.SignalWorkflow("loki-answer", driver.Letter{ID: "b", Typed: []string{"Robert"}})
	}, 2*time.Hour)
	r, err := w.run(w.start("hello"))
	if err != nil || r.Output != "Anne" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := refused["other question"]; err == nil || !strings.Contains(err.Error(), `has no waiting question "first"`) {
		t.Errorf("other question: %v", err)
	}
	if err := refused["list"]; err == nil || !strings.Contains(err.Error(), "and not a list") {
		t.Errorf("list: %v", err)
	}
	if err := refused["too short"]; err == nil || !strings.Contains(err.Error(), "the answer to name cannot be taken") {
		t.Errorf("too short: %v", err)
	}
	if n := strings.Count(strings.Join(w.types(), "\n"), "warning"); n != 1 {
		t.Errorf("%d warnings, want that of the letter to a question that does not wait", n)
	}
}

// TestDeadline has the default taken when the time for an answer is over.
func TestDeadline(t *testing.T) {
	w := newWorld(t, `
name: deadline
start: ask
nodes:
  ask: {type: input, question: "Name?", timeout: 2, default: none, state_updates: {name: "{{input}}"}, next: done}
  done: {type: end, output: "{{name}}"}
`)
	r, err := w.run(w.start("x"))
	if err != nil || r.Output != "none" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFailedRun goes on with a run that has failed: finished nodes do not run again.
func TestFailedRun(t *testing.T) {
	w := newWorld(t, `
name: failed
start: first
sandbox: full
nodes:
  first: {type: script, script: count.sh, next: [second, third]}
  second: {type: script, script: count.sh, next: done}
  third: {type: script, script: bad.sh, next: done}
  done: {type: end, join: all, output: "done"}
settings: {on_failure: fail, validate_before_run: false}
reducers: {count: append}
`)
	bad := filepath.Join(w.dir, "agent", "bad.sh")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\ntest -e mended && echo '{}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := w.run(w.start("x"))
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != "tool" || !strings.Contains(failed.Message(), `at node "third": script bad.sh`) {
		t.Fatalf("%v", err)
	}
	if w.effects() != 2 {
		t.Fatalf("%d effects", w.effects())
	}
	v, err := w.env.QueryWorkflow("loki-point")
	if err != nil {
		t.Fatal(err)
	}
	var start driver.Start
	if err := v.Get(&start); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mended", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.reset()
	r, err := w.run(start)
	if err != nil || r.Output != "done" || w.effects() != 2 || r.Steps != 3 {
		t.Errorf("%d effects, %+v, %v", w.effects(), r, err)
	}
}

// TestCanceled ends a run whose node is at work.
func TestCanceled(t *testing.T) {
	w := newWorld(t, wholeGraph)
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour) // while the question waits
	_, err := w.run(w.start("hello"))
	if !temporal.IsCanceledError(err) {
		t.Errorf("%v", err)
	}
	if types := w.types(); types[len(types)-1] != "finished" {
		t.Errorf("the last event is %s", types[len(types)-1])
	}
}

// TestLargeStep refuses a step that the server would not take.
func TestLargeStep(t *testing.T) {
	w := newWorld(t, `
name: large
start: large
sandbox: full
nodes:
  large: {type: script, script: large.sh, fallback: done, next: done}
  done: {type: end, output: "done"}
`)
	if err := os.WriteFile(filepath.Join(w.dir, "agent", "large.sh"), []byte("#!/bin/sh\nprintf '{\"x\": \"%02100000d\"}' 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := w.run(w.start("x"))
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != "limit" || !strings.Contains(failed.Message(), `a step of node "large" takes 2100`) {
		t.Errorf("%v", err)
	}
}

// TestSecrets looks for a secret in what goes to the server.
func TestSecrets(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	config := "clients:\n- {type: openai-compatible, name: mine, api_base: http://127.0.0.1:1, api_key: " + secret + ", models: [{name: m}]}\n"
	w := newWorldWith(t, `
name: secret
start: tell
sandbox: full
nodes:
  tell: {type: script, script: tell.sh, next: done}
  done: {type: end, output: "{{initial_prompt}} and {{told}}"}
`, map[string]string{"config/config.yaml": config, "agent/tell.sh": "#!/bin/sh\nprintf '%s' \"$GRAPH_STATE\" >state\nprintf '{\"told\": \"" + secret + "\"}'\n"})
	data, err := json.Marshal(w.start("use " + secret))
	if err != nil {
		t.Fatal(err)
	}
	var start driver.Start
	if err := json.Unmarshal([]byte(w.app.Seal(string(data))), &start); err != nil {
		t.Fatal(err)
	}
	r, err := w.run(start)
	if err != nil {
		t.Fatal(err)
	}
	if w.app.Unseal(r.Output) != "use "+secret+" and "+secret || strings.Contains(r.Output, secret) {
		t.Errorf("output %q", r.Output)
	}
	if state, err := os.ReadFile("state"); err != nil || !strings.Contains(string(state), secret) {
		t.Errorf("the script got the state %s, %v", state, err)
	}
	for _, sent := range append(w.sent, fmt.Sprint(w.tasks)) {
		if strings.Contains(sent, secret) {
			t.Errorf("sent: %s", sent)
		}
	}
	if len(w.sent) == 0 {
		t.Error("nothing was sent")
	}
}

// TestProviderThatAsksForTime has a run wait for its provider, and go on by itself.
func TestProviderThatAsksForTime(t *testing.T) {
	w := newWorldWith(t, `
name: later
model: builtin:script/later.yaml
start: think
nodes:
  think: {type: llm, prompt: x, state_updates: {said: "{{output}}"}, next: done}
  done: {type: end, output: "{{said}}"}
`, map[string]string{"later.yaml": `
rules:
  - match: {text: x}
    times: 1
    error: {kind: rate_limited, status: 429, message: too many requests, retry_after: 2h}
default: {reply: at last}
`})
	before := w.env.Now()
	w.env.RegisterDelayedCallback(func() {
		if s := w.status(); s.Status != run.Suspended || s.Until.IsZero() {
			t.Errorf("after an hour: %+v", s)
		}
	}, time.Hour)
	r, err := w.run(w.start("x"))
	if waited := w.env.Now().Sub(before); err != nil || r.Output != "at last" || waited < 2*time.Hour-time.Minute {
		t.Errorf("%+v, %v, after %s", r, err, waited)
	}
}

// TestConsent has a tool wait for consent, which is a question of the run.
func TestConsent(t *testing.T) {
	w := newWorld(t, loop)
	r, err := w.run(w.start("x"), map[string]string{"work/1.1": "yes"})
	if err != nil || !strings.Contains(r.Output, "counted") || w.effects() != 1 {
		t.Errorf("%d effects, %+v, %v", w.effects(), r, err)
	}
	if len(w.tasks) != 3 || len(w.tasks[1].Steps) == 0 {
		t.Errorf("%d executions", len(w.tasks))
	}
}

// TestBudget ends a run whose budget is used up by nodes that would run side by side.
func TestBudget(t *testing.T) {
	const budget = `
name: budget
model: builtin:script/rules.yaml
start: first
settings: {budget: {tokens: %d}}
nodes:
  first: {type: llm, prompt: first, max_tokens: 5, next: [a, b]}
  a: {type: llm, prompt: a, max_tokens: 5, next: done}
  b: {type: llm, prompt: b, max_tokens: 5, next: done}
  done: {type: end, join: all, output: "done"}
`
	w := newWorld(t, fmt.Sprintf(budget, 1000))
	enough, err := w.run(w.start("x"))
	if err != nil {
		t.Fatal(err)
	}
	limit := enough.Usage.Total()*2/3 + 1
	w = newWorld(t, fmt.Sprintf(budget, limit))
	_, err = w.run(w.start("x"))
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != "limit" || !strings.Contains(failed.Message(), fmt.Sprintf(`LLM node failed: the budget of %d tokens is used up`, limit)) {
		t.Errorf("%v", err)
	}
	if w.updates.Load() != 2 || w.status().Usage.Total() > limit {
		t.Errorf("%d calls asked the workflow, and %+v was used of %d", w.updates.Load(), w.status().Usage, limit)
	}
}

// TestQuestionBesideFailure fails a run whose question waits beside a node that has failed: no answer mends it.
func TestQuestionBesideFailure(t *testing.T) {
	w := newWorld(t, `
name: both
start: first
sandbox: full
settings: {validate_before_run: false}
nodes:
  first: {type: script, script: count.sh, next: [ask, bad]}
  ask: {type: input, question: "Name?", state_updates: {name: "{{input}}"}, next: done}
  bad: {type: script, script: missing.sh}
  done: {type: end, join: all, output: "done"}
`)
	_, err := w.run(w.start("x"))
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || !strings.Contains(failed.Message(), `at node "bad"`) {
		t.Errorf("%v", err)
	}
}

// TestChild has a node run another agent, whose steps are steps of the node.
func TestChild(t *testing.T) {
	w := newWorldWith(t, `
name: parent
start: ask
sandbox: full
nodes:
  ask: {type: agent, agent: child, prompt: "do {{initial_prompt}}", state_updates: {said: "{{output}}"}, next: done}
  done: {type: end, output: "{{said}}"}
`, map[string]string{"config/agents/child/graph.yaml": `
name: child
start: count
sandbox: full
nodes:
  count: {type: script, script: count.sh, next: review}
  review: {type: approval, question: "{{initial_prompt}}?", options: [go, stop], routes: {go: done, stop: done}, on_other: done, state_updates: {chosen: "{{choice}}"}}
  done: {type: end, output: "{{chosen}}"}
`, "config/agents/child/count.sh": countScript})
	w.env.RegisterDelayedCallback(func() {
		waits := w.status().Waits
		if len(waits) != 1 || waits[0].Text != "do x?" {
			t.Fatalf("waits: %+v", waits)
		}
		w.env.SignalWorkflow("loki-answer", driver.Letter{ID: "a", Answers: map[string]string{waits[0].ID: "go"}})
	}, time.Hour)
	r, err := w.run(w.start("x"))
	if err != nil || r.Output != "go" || w.effects() != 1 {
		t.Errorf("%d effects, %+v, %v", w.effects(), r, err)
	}
}

// TestRoom has nodes with a large state begin in turns, because a server would not take all of their inputs at once.
func TestRoom(t *testing.T) {
	nodes, next := "", ""
	for _, id := range []string{"a", "b", "c", "d"} {
		nodes += fmt.Sprintf("  %s: {type: script, script: count.sh, state_updates: {log: x}, next: done}\n", id)
		next += id + ", "
	}
	w := newWorldWith(t, "name: room\nstart: large\nsandbox: full\nreducers: {count: append, log: append}\nnodes:\n  large: {type: script, script: large.sh, next: ["+next+"]}\n"+nodes+
		"  done: {type: end, join: all, output: done}\n", map[string]string{"agent/large.sh": "#!/bin/sh\nprintf '{\"x\": \"%01200000d\"}' 1\n"})
	var timers int
	w.env.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
	r, err := w.run(w.start("x"))
	if err != nil || r.Output != "done" || w.effects() != 4 {
		t.Errorf("%d effects, %v", w.effects(), err)
	}
	if timers == 0 {
		t.Error("all were sent at once")
	}
}

// TestManySteps has an execution lost after its steps have become more than what fits into the input of the next one.
func TestManySteps(t *testing.T) {
	const many = `
name: many
start: each
sandbox: full
initial_state: {items: [1, 2, 3, 4, 5, 6]}
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: one, output_key: one, collect_into: ones, max_concurrency: 1, next: done}
  one: {type: script, script: large.sh}
  done: {type: end, output: "done"}
`
	// The last result is short, and so is the state after the node.
	const large = "#!/bin/sh\necho x >>effects\nprintf '{\"one\": \"\", \"x\": \"%0900000d\"}' 1\n"
	calm := newWorldWith(t, many, map[string]string{"agent/large.sh": large})
	want, err := calm.run(calm.start("x"))
	if err != nil || calm.effects() != 6 {
		t.Fatalf("%d effects, %v", calm.effects(), err)
	}
	w := newWorldWith(t, many, map[string]string{"agent/large.sh": large})
	w.lost = calm.signals - 2
	r, err := w.run(w.start("x"))
	if err != nil || r.Output != want.Output || w.effects() != 6 {
		t.Errorf("%d effects, %+v, %v", w.effects(), r, err)
	}
	if n := w.queries.Load(); n < 2 || len(w.tasks) != 3 || w.tasks[1].Steps != nil || w.tasks[1].Further < 5 {
		t.Errorf("%d queries, %d executions", n, len(w.tasks))
	}
}
