package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

const saga = `
name: saga
start: hotel
reducers: {log: append}
nodes:
  hotel: {type: script, script: x.sh, compensate: cancel_hotel, next: [car, flight]}
  car: {type: script, script: x.sh, state_updates: {}, compensate: cancel, next: pay}
  flight: {type: script, script: x.sh, state_updates: {}, compensate: cancel, next: pay}
  pay: {type: script, script: x.sh, next: done}
  cancel_hotel: {type: script, script: x.sh}
  cancel: {type: script, script: x.sh}
  done: {type: end}
`

// agency executes the nodes of a saga, each with one step. Nodes log what they do.
type agency struct {
	mu   sync.Mutex
	log  []string         // steps really made
	fail map[string]error // by node
	stop func(id string)  // called when a node is executed; nil for nothing
}

func (a *agency) Execute(ctx context.Context, t *run.Task) graph.Result {
	what := t.Node.ID
	if undone, ok := t.Draft.Get(graph.CompensatesKey); ok != (t.Undoes != nil) {
		return graph.Result{Err: fmt.Errorf("the state says that %s undoes %s", what, undone)}
	} else if ok {
		why, _ := t.Draft.Get(graph.LastErrorKey)
		message, _ := why.AsObject().Get("message")
		node, _ := undone.AsObject().Get("node")
		writes, _ := undone.AsObject().Get("writes")
		what += fmt.Sprintf(" %s %s because %s", node.Text(), writes, message.Text())
	}
	if a.stop != nil {
		a.stop(t.Node.ID)
	}
	if ctx.Err() != nil {
		return graph.Result{Err: context.Cause(ctx)}
	}
	_, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Script, Key: "work"}, func(context.Context) (string, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if err := a.fail[t.Node.ID]; err != nil {
			return "", err
		}
		a.log = append(a.log, what)
		return what, nil
	})
	t.Usage = chat.Usage{InputTokens: 1}
	if err != nil {
		return graph.Result{Err: err}
	}
	if t.Node.Type == graph.EndNode {
		return graph.Result{Ended: true}
	}
	t.Draft.Set("log", value.Of(t.Node.ID))
	return graph.Result{Targets: t.Node.Next}
}

func (a *agency) undone() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []string
	for _, what := range a.log {
		if strings.HasPrefix(what, "cancel") {
			list = append(list, what)
		}
	}
	return strings.Join(list, "; ")
}

const sagaUndone = `cancel flight {"log":"flight"} because no money; cancel car {"log":"car"} because no money; cancel_hotel hotel {"log":"hotel"} because no money`

// TestUndoes: what finished is undone in reverse order, as steps of the run, and the run ends with its error.
func TestUndoes(t *testing.T) {
	store, p := memstore.New(nil), plan(t, saga)
	nodes := &agency{fail: map[string]error{"pay": errors.New("no money")}}
	c := new(eventtest.Collector)
	id, out, err := begin(t, store, p, nodes, c)
	undone, ok := errors.AsType[*run.UndoneError](err)
	if !ok || undone.Undone != 3 || undone.Step != 0 || err.Error() != `at node "pay": no money; undone: 3 nodes` || nodes.undone() != sagaUndone {
		t.Errorf("error %v, undone %s", err, nodes.undone())
	}
	h, histErr := store.History(t.Context(), id)
	if histErr != nil || h.Info.Status != run.Failed || h.Info.Undone == nil || *h.Info.Undone != (run.Undone{Nodes: 3}) || out.Usage.InputTokens != 7 {
		t.Errorf("%+v, %v, usage %v", h.Info, histErr, out.Usage)
	}
	var visited []string
	for _, v := range h.Visits {
		visited = append(visited, fmt.Sprintf("%d %s", v.Step, v.Node))
	}
	if got := strings.Join(visited, ", "); got != "1 hotel, 2 car, 2 flight, 3 pay, 4 cancel, 5 cancel, 6 cancel_hotel" {
		t.Errorf("visits %s", got)
	}
	if undoing := eventtest.Bodies[event.Undoing](c); len(undoing) != 1 || !slices.Equal(undoing[0].Nodes, []string{"flight", "car", "hotel"}) {
		t.Errorf("events %+v", undoing)
	}
	var undoes []string
	for _, started := range eventtest.Bodies[event.NodeStarted](c) {
		if started.Undoes != "" {
			undoes = append(undoes, started.Undoes)
		}
	}
	if !slices.Equal(undoes, []string{"flight", "car", "hotel"}) {
		t.Errorf("events say that they undo %v", undoes)
	}
}

// TestUndoesSiblings: what has finished beside a node that failed is undone, too, although its writes are not merged.
func TestUndoesSiblings(t *testing.T) {
	nodes := &agency{fail: map[string]error{"car": errors.New("no money")}}
	_, out, err := begin(t, memstore.New(nil), plan(t, saga), nodes, nil)
	if want := `cancel flight {"log":"flight"} because no money; cancel_hotel hotel {"log":"hotel"} because no money`; err == nil || nodes.undone() != want {
		t.Errorf("%v: undone %s", err, nodes.undone())
	}
	if log, _ := out.State.Get("log"); log.String() != `["hotel","cancel","cancel_hotel"]` {
		t.Errorf("the state has %s", log)
	}
}

// TestUndoGoesOn stops a run at each of its compensations, and goes on with it: nothing is undone twice, and it ends with the first error.
func TestUndoGoesOn(t *testing.T) {
	for stop := range 3 {
		store, p := memstore.New(nil), plan(t, saga)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		count := 0
		nodes := &agency{fail: map[string]error{"pay": fault.New(fault.Tool, "no money").WithHint("earn some")}}
		nodes.stop = func(id string) {
			if strings.HasPrefix(id, "cancel") {
				if count++; count == stop+1 {
					cancel(run.ErrInterrupted)
				}
			}
		}
		start := run.StartCheckpoint(p, graph.State{})
		j, err := store.Create(t.Context(), run.Info{}, start)
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Run(ctx, run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}, Journal: j, Events: event.NewScope(nil, event.Source{}, nil)})
		if !errors.Is(err, run.ErrInterrupted) {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		nodes.stop = nil
		_, err = resume(t, store, p, nodes, j.ID())
		if _, ok := errors.AsType[*run.UndoneError](err); !ok || nodes.undone() != sagaUndone || fault.CodeOf(err) != fault.Tool || fault.HintOf(err) != "earn some" {
			t.Errorf("stopped at %d: %v, undone %s", stop, err, nodes.undone())
		}
	}
}

// TestUndoFails: a compensation that fails is reported, and the others are made.
func TestUndoFails(t *testing.T) {
	store := memstore.New(nil)
	nodes := &agency{fail: map[string]error{"pay": errors.New("no money"), "cancel": errors.New("closed")}}
	c := new(eventtest.Collector)
	id, _, err := begin(t, store, plan(t, saga), nodes, c)
	want := "at node \"pay\": no money; undone: 1 node\n  could not be undone: node \"flight\", visit 1: compensation \"cancel\": closed\n  could not be undone: node \"car\", visit 1: compensation \"cancel\": closed"
	if err == nil || err.Error() != want || len(eventtest.Bodies[event.Warning](c)) != 2 {
		t.Errorf("error %v, warnings %v", err, eventtest.Bodies[event.Warning](c))
	}
	if info, err := store.Info(t.Context(), id); err != nil || *info.Undone != (run.Undone{Nodes: 1, Lost: 2}) {
		t.Errorf("%+v, %v", info.Undone, err)
	}
}

// TestCanceledRunIsUndone: the effects of a run that is canceled are undone although its context has ended. The node that was at work is
// not among them.
func TestCanceledRunIsUndone(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	nodes := &agency{stop: func(id string) {
		if id == "pay" {
			cancel(context.Canceled)
		}
	}}
	p := plan(t, saga)
	_, err := run.Run(ctx, run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start(p)}, Events: event.NewScope(nil, event.Source{}, nil)})
	if fault.CodeOf(err) != fault.Canceled || strings.Count(nodes.undone(), ";") != 2 || strings.Contains(nodes.undone(), "pay") {
		t.Errorf("%v: undone %s", err, nodes.undone())
	}
}

// TestNotUndone: a run that can go on, that another process has, or whose user wants that, is left as it is.
func TestNotUndone(t *testing.T) {
	for _, tt := range []struct {
		name string
		keep bool
		err  error
	}{
		{"kept", true, errors.New("no money")},
		{"limit", false, fault.New(fault.Limit, "no tokens")},
		{"suspended", false, fault.New(fault.Suspended, "waits")},
		{"lease", false, run.ErrLeaseLost},
	} {
		p := plan(t, saga)
		nodes := &agency{fail: map[string]error{"pay": tt.err}}
		out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start(p), Keep: tt.keep}, Events: event.NewScope(nil, event.Source{}, nil)})
		if err == nil || !errors.Is(err, tt.err) || nodes.undone() != "" || out.Undone != nil || out.Steps != 2 {
			t.Errorf("%s: %v, undone %s", tt.name, err, nodes.undone())
		}
	}
}

// sagaService is a service whose runs are sagas of nodes.
func sagaService(t *testing.T, store run.Store, nodes run.Executor) (*run.Service, run.Job) {
	p := plan(t, saga)
	j := run.Job{
		Info: run.Info{Agent: "saga", Definition: []byte(saga), Fingerprint: graph.Fingerprint(p.Graph())}, Graph: p.Graph(), Start: start(p), Durability: graph.DurabilityProcess,
		Events: event.NewScope(nil, event.Source{}, nil),
		Make: func(_ context.Context, at run.Point) (run.Work, func() error, error) {
			return run.Graph{Plan: p, Nodes: nodes, Start: at.Last, Tasks: at.Tasks, Keep: at.Keep, Canceled: at.Canceled}, nil, nil
		},
	}
	return service(lasting{Store: store}, j), j
}

// TestUndoneRunIsOver: it is not resumed, but its steps before that can be begun anew, without what was undone.
func TestUndoneRunIsOver(t *testing.T) {
	store := memstore.New(nil)
	nodes := &agency{fail: map[string]error{"pay": errors.New("no money")}}
	s, j := sagaService(t, store, nodes)
	out, err := s.Start(t.Context(), j)
	again := "begin anew: loki --fork " + out.Run + "@0"
	if err == nil || fault.HintOf(err) != again {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
	refused := func(err error) {
		t.Helper()
		if _, ok := errors.AsType[*run.RefusedError](err); !ok || fault.CodeOf(err) != fault.Usage || fault.HintOf(err) != again || !strings.Contains(err.Error(), "what it did was undone") {
			t.Errorf("%v, hint %q", err, fault.HintOf(err))
		}
	}
	_, err = s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}})
	refused(err)
	for _, step := range []int{-1, 3, 6} {
		_, err = s.Fork(t.Context(), run.Fork{Continuation: run.Continuation{ID: out.Run}, Step: step})
		refused(err)
	}
	nodes.log = nil
	if _, err = s.Fork(t.Context(), run.Fork{Continuation: run.Continuation{ID: out.Run}, Step: 2}); err == nil || nodes.undone() != "" {
		t.Errorf("the fork: %v, undone %s", err, nodes.undone())
	}
	nodes.log, nodes.fail = nil, nil
	if _, err = s.Fork(t.Context(), run.Fork{Continuation: run.Continuation{ID: out.Run}, Step: 0}); err != nil {
		t.Error(err)
	}
}

// TestKeptRunGoesOn: with Keep, a run that failed is resumed as ever, and is undone if it fails then.
func TestKeptRunGoesOn(t *testing.T) {
	store := memstore.New(nil)
	nodes := &agency{fail: map[string]error{"pay": errors.New("no money")}}
	s, j := sagaService(t, store, nodes)
	j.Keep = true
	out, err := s.Start(t.Context(), j)
	if fault.HintOf(err) != "resume it where it stopped: loki --resume "+out.Run || nodes.undone() != "" {
		t.Errorf("%v, hint %q, undone %s", err, fault.HintOf(err), nodes.undone())
	}
	_, err = s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run}})
	if _, ok := errors.AsType[*run.UndoneError](err); !ok || nodes.undone() != sagaUndone {
		t.Errorf("%v, undone %s", err, nodes.undone())
	}
}

// TestUndoOfNested: a nested graph undoes its own effects when it fails. An interruption on the way does not make it forget that; once all
// is undone, the next time begins anew.
func TestUndoOfNested(t *testing.T) {
	p, record := plan(t, saga), &noteRecord{results: make(map[string][]byte)}
	nodes := &agency{fail: map[string]error{"pay": errors.New("no money")}}
	nested := func(ctx context.Context) error {
		_, err := run.RunNested(ctx, run.NestedOptions{
			Work: run.Graph{Plan: p, Nodes: nodes, Start: start(p)}, Events: event.NewScope(nil, event.Source{}, nil), Steps: steps.New(record),
		})
		return err
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	nodes.stop = func(id string) {
		if id == "cancel_hotel" {
			cancel(run.ErrInterrupted)
		}
	}
	if err := nested(ctx); !errors.Is(err, run.ErrInterrupted) {
		t.Fatal(err)
	}
	nodes.stop, nodes.fail = nil, nil
	err := nested(t.Context())
	if _, ok := errors.AsType[*run.UndoneError](err); !ok || nodes.undone() != sagaUndone || slices.Contains(nodes.log, "pay") {
		t.Errorf("%v, log %q", err, nodes.log)
	}
	nodes.log = nil
	if err := nested(t.Context()); err != nil || len(nodes.log) != 5 {
		t.Errorf("%v, log %q", err, nodes.log)
	}
}

// noteRecord is a record of steps in memory.
type noteRecord struct {
	mu      sync.Mutex
	results map[string][]byte
}

func (r *noteRecord) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, ok := r.results[key]
	return steps.Record{Result: result, Done: ok}, nil
}

func (r *noteRecord) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[key] = result
	return nil
}

func (*noteRecord) Begin(context.Context, string, steps.Step) error { return nil }
func (*noteRecord) Forget(context.Context, string) error            { return nil }
