package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"loki/internal/agent/team"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// agentFunc is what an agent of a test does.
type agentFunc func(ctx context.Context, a *agent) (string, error)

// agent is a member at work. Its calls are numbered, as those of a model are.
type agent struct {
	m      *team.Member
	prompt string
	frame  *run.Frame
	box    *tool.Box
	st     steps.Steps
	calls  int
}

func newAgent(m *team.Member, prompt string, st steps.Steps) *agent {
	set, err := tool.NewSet(m.Tools()...)
	if err != nil {
		panic(err)
	}
	return &agent{m: m, prompt: prompt, box: tool.NewBox(tool.Options{Tools: set}), st: st}
}

// call makes a call and returns its result. The error is one that ends the work.
func (a *agent) call(ctx context.Context, name string, args any) (string, error) {
	a.calls++
	doc, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	text, _, err := a.box.Call(ctx, chat.ToolCall{Name: name, Arguments: string(doc)}, a.st.At(fmt.Sprintf("tool/%d/1", a.calls)))
	return text, err
}

// step is work of an agent that is recorded, such as a model call.
func (a *agent) step(ctx context.Context, key string, usage chat.Usage, fn func() string) (string, error) {
	made := false
	type reply struct {
		Text  string
		Usage chat.Usage
	}
	r, err := steps.Do(ctx, a.st, steps.Step{Kind: steps.Model, Key: key}, func(ctx context.Context) (reply, error) {
		made = true
		return reply{fn(), usage}, ctx.Err()
	})
	if err == nil && !made && a.m.Budget != nil {
		a.m.Budget.Spend(r.Usage)
	}
	return r.Text, err
}

type object = map[string]any

// result is all that results of tools have.
type result struct {
	Status     string
	ID         string
	Agent      string
	Message    string
	ExitStatus string `json:"exit_status"`
	Outcome    team.Status
	Output     string
	Error      string `json:"tool_call_error"`
	TaskID     string `json:"task_id"`
	Messages   []struct {
		From    string
		Payload struct{ Content string }
	}
	Pending []struct {
		ID       string `json:"escalation_id"`
		From     string `json:"from_agent_id"`
		Question string
	} `json:"pending_escalations"`
	Dispatched []result `json:"auto_dispatched"`
	Warnings   []string
	Agents     []result
	Tasks      []struct {
		ID, Status string
		Owner      *string
		BlockedBy  []string `json:"blocked_by"`
	}
}

// get makes a call and reads its result.
func (a *agent) get(ctx context.Context, name string, args any) (result, error) {
	text, err := a.call(ctx, name, args)
	if err != nil {
		return result{}, err
	}
	var r result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("%s: %w", text, err)
	}
	return r, nil
}

// work is a run.Work made of an agentFunc.
type work struct {
	do     agentFunc
	member *team.Member
	prompt string
	used   chat.Usage
}

func (w *work) Started() event.Started { return event.Started{Model: "test:model"} }

func (w *work) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	a := newAgent(w.member, w.prompt, f.Steps())
	a.frame = f
	out, err := w.do(ctx, a)
	return run.Outcome{Output: out, Usage: w.used.Add(w.member.Close())}, err
}

// agents are those that can be started, by name.
type agents map[string]agentFunc

// rig is a team with a record and events.
type rig struct {
	agents agents
	limits team.Limits // of everyone
	budget graph.Budget
	used   chat.Usage // by each child itself
	rec    *recorder
	events *eventtest.Collector
	o      team.Options

	mu      sync.Mutex
	started []string // ids, in the order of Start; guarded by mu
}

func newRig(as agents) *rig {
	limits := team.DefaultLimits()
	limits.CanSpawn, limits.MaxConcurrent = true, 1000
	return &rig{agents: as, limits: limits, rec: newRecorder(), events: new(eventtest.Collector)}
}

var errNoAgent = errors.New("no agent is called that")

func (r *rig) start(_ context.Context, s team.Spawn) (team.Child, error) {
	do := r.agents[s.Agent]
	if do == nil {
		return team.Child{}, fmt.Errorf("agent %q: %w", s.Agent, errNoAgent)
	}
	r.mu.Lock()
	r.started = append(r.started, s.Member.ID)
	r.mu.Unlock()
	return team.Child{Limits: r.limits, Graph: s.Agent == "graph", Job: run.Job{
		Limit: r.budget,
		Make: func(context.Context, run.Point) (run.Work, func() error, error) {
			return &work{do: do, member: s.Member, prompt: s.Prompt, used: r.used}, nil, nil
		},
	}}, nil
}

// team makes a team, as a process does when it begins or goes on.
func (r *rig) team(ctx context.Context) (*team.Team, error) {
	o := r.o
	o.Agent, o.Limits, o.Start = "root", r.limits, r.start
	o.Events = event.NewScope(r.events, event.Source{Agent: "root"}, nil)
	if r.rec != nil {
		o.Steps = steps.New(r.rec)
	}
	return team.New(ctx, o)
}

// unrecorded makes a team without a record.
func (r *rig) unrecorded(ctx context.Context) (*team.Team, error) {
	u := &rig{agents: r.agents, limits: r.limits, events: new(eventtest.Collector)}
	return u.team(ctx)
}

// runBudget returns a budget of tokens, nil for 0.
func runBudget(tokens int) *run.Budget {
	return run.NewBudget(graph.Budget{Tokens: tokens}, chat.Usage{})
}

// run lets the root do something, and closes the team.
func (r *rig) run(ctx context.Context, do agentFunc) (out string, used chat.Usage, err error) {
	t, err := r.team(ctx)
	if err != nil {
		return "", used, err
	}
	defer func() { used = used.Add(t.Root().Close()) }()
	out, err = do(ctx, newAgent(t.Root(), "", t.Root().Steps))
	return out, used, err
}

// must runs the root, and fails the test if that fails.
func (r *rig) must(t testing.TB, do agentFunc) (out string, used chat.Usage) {
	t.Helper()
	out, used, err := r.run(t.Context(), do)
	if err != nil {
		t.Fatal(err)
	}
	return out, used
}

// recorder keeps steps in memory.
type recorder struct {
	stepstest.Recorder
	order   []string // keys, as they were recorded; guarded by Mu
	left    int      // how many more are recorded before the process dies; -1: all
	died    func()   // called when it dies
	damaged string   // a step with this key cannot be read
	lookups int
}

func newRecorder() *recorder {
	return &recorder{Recorder: stepstest.Recorder{Records: make(map[string]steps.Record)}, left: -1}
}

// until returns a copy with the first n records, as another process finds it.
func (r *recorder) until(n int) *recorder {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	c := newRecorder()
	for _, key := range r.order[:n] {
		c.Records[key] = r.Records[key]
	}
	c.order = slices.Clone(r.order[:n])
	return c
}

// keys returns the keys that have the prefix, sorted.
func (r *recorder) keys(prefix string) []string {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Records)), func(k string) bool { return !strings.HasPrefix(k, prefix) })
}

// results returns the keys of the ends of children.
func (r *recorder) results() []string {
	return slices.DeleteFunc(r.keys("agents/"), func(k string) bool { return !strings.HasSuffix(k, "/result") })
}

func (r *recorder) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.lookups++; key == r.damaged && key != "" {
		return steps.Record{}, stepstest.ErrDied
	}
	return r.Records[key], nil
}

func (r *recorder) Record(_ context.Context, key string, _ steps.Step, data []byte) error {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.left == 0 {
		if r.died != nil {
			r.died()
		}
		return stepstest.ErrDied
	}
	r.left--
	if r.Records[key].Done {
		return fmt.Errorf("step %s is recorded twice", key)
	}
	r.Records[key] = steps.Record{Done: true, Result: slices.Clone(data)}
	r.order = append(r.order, key)
	return nil
}
