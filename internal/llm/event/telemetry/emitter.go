package telemetry

import (
	"context"
	"maps"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
)

// emitter makes spans of the events of what the user started.
type emitter struct {
	tracer *Tracer
	runs   map[event.Run]*openRun // guarded by tracer.mu
}

// openRun is a graph run or a single answer in progress.
type openRun struct {
	key   event.Run
	owner *emitter
	seq   int
	last  time.Time // of its last event
	under *work     // what it began in, nil at the top

	self  work             // the run itself, and calls outside of nodes
	step  *span            // super-step of several nodes, nil outside of one
	stepN int              // its number
	nodes map[string]*work // that are at work
}

// work is a place where models and tools are called, one model at a time: a node, an
// item of a map, or a single answer.
type work struct {
	*span
	seq   int
	last  time.Time        // of its last event
	model *span            // call in progress, nil for none
	tools map[string]*span // calls in progress, by id
	asks  map[string]*span // questions in progress, by id
	items map[int]*work    // of a map node
}

// outcome is how a piece of work ended.
type outcome struct {
	failed  bool
	kind    string // error.type
	message string // empty where it may not be sent
}

// other is the error.type of a failure of which no more is known.
const other = "_OTHER"

// failure is the outcome of an error. Its text may quote what a model wrote, so that it
// is sent only where that is.
func (t *Tracer) failure(kind, text string) outcome {
	if text == "" {
		return outcome{}
	}
	o := outcome{failed: true, kind: kind}
	if t.s.content {
		o.message = text
	}
	return o
}

// Emit implements [event.Emitter].
func (e *emitter) Emit(_ context.Context, ev event.Event) error {
	switch ev.Body.(type) {
	case event.StateUpdated, event.AgentWaits, event.TodoUpdated:
		return nil
	}
	if event.IsTransient(ev.Body) {
		return nil
	}
	t := e.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	key := ev.InRun()
	r := e.runs[key]
	if b, ok := ev.Body.(event.Started); ok {
		if r != nil {
			t.finishRun(r, ev.Time, outcome{}) // its end was not reported
		}
		e.begin(key, ev, b)
		return nil
	}
	if r == nil {
		return nil // such as a warning from before the run
	}
	r.last = ev.Time
	e.record(r, ev)
	return nil
}

func (e *emitter) begin(key event.Run, ev event.Event, b event.Started) {
	t := e.tracer
	name := "answer"
	if b.Graph != "" || ev.Agent != "" {
		name = spanName("invoke_agent", ev.Agent)
	}
	t.seq++
	r := &openRun{key: key, owner: e, seq: t.seq, last: ev.Time, nodes: make(map[string]*work)}
	if w := e.parent(ev, b); w != nil {
		r.under, r.self.span = w, t.newSpan(w.span, name, kindInternal, ev.Time)
	} else {
		r.self.span = t.rootSpan(name, ev.Time)
	}
	r.self.last = ev.Time
	if name != "answer" {
		r.self.set(genAIOperation, "invoke_agent")
		r.self.set(genAIAgent, ev.Agent)
	}
	r.self.set("loki.run.id", ev.Run)
	r.self.set("loki.graph.name", b.Graph)
	r.self.set("loki.depth", ev.Depth)
	r.self.set("loki.agent.id", ev.AgentID)
	if b.Resumed {
		r.self.set("loki.run.resumed", true)
	}
	e.runs[key], t.open[r] = r, struct{}{}
}

// parent returns the work that a child agent began in: that of its parent, or if that is not
// known, what the user started; nil for none. Tools that start a child return before it
// ends, so it is not under them.
func (e *emitter) parent(ev event.Event, b event.Started) *work {
	if ev.Depth == 0 {
		return nil
	}
	r := e.runs[event.Run{ID: ev.Run, AgentID: b.Parent}]
	if r == nil {
		if r = e.runs[event.Run{ID: ev.Run}]; r == nil {
			return nil
		}
	}
	return r.at(e.tracer, event.Source{Node: b.ParentNode, Item: b.ParentItem}, r.last)
}

// at returns the work that events of src are about. The item of a map begins with its
// first event.
func (r *openRun) at(t *Tracer, src event.Source, now time.Time) *work {
	w := r.nodes[src.Node]
	if w == nil {
		return &r.self
	}
	if src.Item == nil {
		return w
	}
	item := w.items[*src.Item]
	if item == nil {
		item = &work{span: t.newSpan(w.span, "map_item", kindInternal, now), last: now}
		item.attrs = append(item.attrs, attr{"loki.map.item", *src.Item}) // 0 too
		if w.items == nil {
			w.items = make(map[int]*work)
		}
		w.items[*src.Item] = item
	}
	return item
}

// record makes the spans of an event within a run.
func (e *emitter) record(r *openRun, ev event.Event) {
	t := e.tracer
	switch b := ev.Body.(type) {
	case event.StepStarted:
		r.finishStep(t, ev.Time)
		r.step, r.stepN = t.newSpan(r.self.span, "super_step", kindInternal, ev.Time), ev.Step
		r.step.set("loki.step", ev.Step)
		r.step.set("loki.step.nodes", b.Nodes)
		return
	case event.StepFinished:
		r.finishStep(t, ev.Time)
		return
	case event.NodeStarted:
		e.nodeStarted(r, ev, b)
		return
	case event.NodeFinished:
		e.nodeFinished(r, ev, b)
		return
	case event.Finished:
		e.endRun(r, ev, b)
		return
	}
	w := r.at(t, ev.Source, ev.Time)
	w.last = ev.Time
	switch b := ev.Body.(type) {
	case event.ModelCall:
		t.finishModel(w, ev.Time, outcome{failed: true, kind: other})
		w.model = t.modelSpan(w.span, ev.Time, b)
	case event.Reply:
		if w.model != nil {
			t.describeReply(w.model, b)
			t.finishModel(w, ev.Time, outcome{})
		}
	case event.ToolCall:
		put(&w.tools, b.ID, t.toolSpan(w.span, ev.Time, b))
	case event.ToolResult:
		if s := take(w.tools, b.ID); s != nil {
			t.finishTool(s, ev.Time, b)
		}
	case event.Question:
		put(&w.asks, b.ID, t.questionSpan(w.span, "question", ev.Time, b.ID, b.Text))
	case event.Answer:
		t.finishQuestion(take(w.asks, b.ID), ev.Time, b.Text)
	case event.Retry:
		failed := t.failure(other, b.Error)
		t.finishModel(w, ev.Time, failed)
		m := mark{time: ev.Time, name: "retry", attrs: []attr{
			{"loki.retry.attempt", b.Attempt}, {"loki.retry.wait_ms", int(b.Wait.Milliseconds())},
		}}
		if failed.message != "" {
			m.attrs = append(m.attrs, attr{"loki.retry.error", failed.message})
		}
		w.marks = append(w.marks, m)
	case event.Escalation:
		put(&w.asks, b.ID, t.questionSpan(w.span, "escalation", ev.Time, b.ID, b.Text))
	case event.EscalationAnswered:
		t.finishQuestion(take(w.asks, b.ID), ev.Time, b.Text)
	case event.Retrieved:
		t.finish(t.retrievalSpan(w.span, ev.Time, b), ev.Time)
	case event.AutoContinue:
		w.marks = append(w.marks, mark{time: ev.Time, name: "auto_continue", attrs: []attr{{"loki.auto_continue.count", b.Count}, {"loki.todo.open", b.Open}}})
	case event.Warning:
		m := mark{time: ev.Time, name: "warning"}
		if t.s.content {
			m.attrs = []attr{{"loki.warning.text", b.Text}}
		}
		w.marks = append(w.marks, m)
	}
}

// questionSpan returns the span of a question to a human or, if it is an escalation, to agents.
func (t *Tracer) questionSpan(parent *span, name string, start time.Time, id, text string) *span {
	s := t.newSpan(parent, name, kindInternal, start)
	s.set("loki.question.id", id)
	if t.s.content {
		s.set("loki.question.text", text)
	}
	return s
}

// finishQuestion ends the span of a question; nil if its beginning was not reported.
func (t *Tracer) finishQuestion(s *span, end time.Time, answer string) {
	if s == nil {
		return
	}
	if t.s.content {
		s.set("loki.question.answer", answer)
	}
	t.finish(s, end)
}

func (e *emitter) nodeStarted(r *openRun, ev event.Event, b event.NodeStarted) {
	t := e.tracer
	if r.step != nil && r.stepN != ev.Step {
		r.finishStep(t, ev.Time)
	}
	parent := r.self.span
	if r.step != nil {
		parent = r.step
	}
	t.seq++
	w := &work{span: t.newSpan(parent, spanName("node", ev.Node), kindInternal, ev.Time), seq: t.seq, last: ev.Time}
	w.set("loki.node.id", ev.Node)
	w.set("loki.node.type", b.NodeType)
	w.set("loki.node.visit", b.Visit)
	w.set("loki.step", ev.Step)
	r.nodes[ev.Node] = w
}

func (e *emitter) nodeFinished(r *openRun, ev event.Event, b event.NodeFinished) {
	w := take(r.nodes, ev.Node)
	if w == nil {
		return
	}
	w.set("loki.node.targets", b.Targets)
	if waited := ev.Time.Sub(w.start) - b.Duration; b.Duration > 0 && waited > 0 { // for its turn
		w.set("loki.node.wait_ms", int(waited.Milliseconds()))
	}
	if b.Error != "" && len(b.Targets) > 0 {
		w.set("loki.node.tolerated", true)
	}
	if b.Canceled {
		w.set("loki.node.canceled", true)
	}
	e.tracer.finishWork(w, ev.Time, e.tracer.failure(other, b.Error))
}

func (e *emitter) endRun(r *openRun, ev event.Event, b event.Finished) {
	r.self.set("loki.run.steps", b.Steps)
	r.self.set("loki.run.failures", b.Failures)
	r.self.set("loki.agent.outcome", b.Outcome)
	if b.Status() == string(fault.Suspended) { // waiting is not a failure
		r.self.set("loki.run.suspended", true)
		e.tracer.finishRun(r, ev.Time, outcome{})
		return
	}
	e.tracer.finishRun(r, ev.Time, e.tracer.failure(b.Code, b.Error))
}

// finishRun ends a run and what is still open in it.
func (t *Tracer) finishRun(r *openRun, end time.Time, o outcome) {
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		t.finishWork(take(r.nodes, name), end, o)
	}
	r.finishStep(t, end)
	t.finishWork(&r.self, end, o)
	if r.under != nil {
		r.under.last = end
	}
	delete(t.open, r)
	delete(r.owner.runs, r.key)
}

func (r *openRun) finishStep(t *Tracer, end time.Time) {
	if r.step != nil {
		t.finish(r.step, end)
		r.step = nil
	}
}

// finishWork ends w, and before it what is open in it. Items of a map ended with their
// last event, unless a call of theirs was cut off.
func (t *Tracer) finishWork(w *work, end time.Time, o outcome) {
	for _, i := range slices.Sorted(maps.Keys(w.items)) {
		item := w.items[i]
		if item.model == nil && len(item.tools) == 0 && len(item.asks) == 0 {
			t.finishWork(item, item.last, outcome{})
		} else {
			t.finishWork(item, end, o)
		}
	}
	t.finishModel(w, end, o)
	for _, calls := range []map[string]*span{w.tools, w.asks} {
		for _, id := range slices.Sorted(maps.Keys(calls)) {
			t.finishAs(calls[id], end, o)
		}
	}
	t.finishAs(w.span, end, o)
}

func (t *Tracer) finishModel(w *work, end time.Time, o outcome) {
	if w.model != nil {
		t.finishAs(w.model, end, o)
		w.model = nil
	}
}

func (t *Tracer) finishAs(s *span, end time.Time, o outcome) {
	if o.failed {
		s.fail(o.kind, o.message)
	}
	t.finish(s, end)
}

// put and take handle maps that most places never need.
func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

func take[V any](m map[string]V, key string) V {
	v := m[key]
	delete(m, key)
	return v
}
