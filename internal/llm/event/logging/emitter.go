package logging

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/event"
)

// Emitter returns an emitter that logs what happens in graph runs and single answers.
// It never fails, and it may receive the events of several runs at once. What models
// and humans wrote is not logged, except where an error quotes it and, at level trace,
// in states.
//
//	error  runs and answers that failed, with all causes
//	warn   nodes, tools and attempts that failed, warnings
//	info   begin and end of a run and of a child agent, and the summary of a run's performance
//	debug  visits of nodes, routing, size and keys of the state, model and tool calls
//	trace  the state
//
// Records of a graph run begin with [graph:NAME] and belong to package graph. Model and
// tool calls belong to package engine. Records of a child agent have its id in brackets.
func Emitter(logger *slog.Logger) event.Emitter {
	return &emitter{
		graph:  logger.With(packageKey, "graph"),
		engine: logger.With(packageKey, "engine"),
		runs:   make(map[event.Run]*runLog),
	}
}

type emitter struct {
	graph, engine *slog.Logger

	mu   sync.Mutex
	runs map[event.Run]*runLog
}

// runLog holds the state of logging for an open run.
type runLog struct {
	graph string // name
	stats performance
	step  int      // super-step that nodes belongs to
	nodes []string // that ran in it
	end   string   // end node, once one was reached
	state map[string]value.Value

	noSnapshots bool // the state is not to be logged
}

// Emit implements [event.Emitter].
func (e *emitter) Emit(ctx context.Context, ev event.Event) error {
	if _, limited := ev.Body.(event.Limited); event.IsTransient(ev.Body) && !limited {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := ev.InRun()
	r := e.runs[key]
	if b, ok := ev.Body.(event.Started); ok {
		r = &runLog{graph: b.Graph, noSnapshots: b.NoSnapshots, state: make(map[string]value.Value)}
		for _, m := range b.State {
			r.state[m.Name] = m.Value
		}
		e.runs[key] = r
	}
	if r == nil {
		r = &runLog{} // such as a warning from before the run
	}
	l := recorder{ctx: ctx, emitter: e, run: r, ev: ev}
	l.record()
	if _, ok := ev.Body.(event.Finished); ok {
		delete(e.runs, key)
	}
	return nil
}

// recorder maps one event to records.
type recorder struct {
	ctx context.Context
	*emitter
	run *runLog
	ev  event.Event
}

func (l recorder) record() {
	switch b := l.ev.Body.(type) {
	case event.Started:
		l.logStarted(b)
	case event.NodeStarted:
		l.nodeStarted(b)
	case event.NodeFinished:
		l.nodeFinished(b)
	case event.StateUpdated:
		l.stateUpdated(b)
	case event.ModelCall:
		l.log(l.engine, slog.LevelDebug, "model is called", "model", b.Model, "turn", b.Turn)
	case event.Reply:
		l.log(l.engine, slog.LevelDebug, "model replied", "model", b.Model, "stop", string(b.Stop),
			"input_tokens", b.Usage.InputTokens, "output_tokens", b.Usage.OutputTokens)
	case event.ToolCall:
		l.log(l.engine, slog.LevelDebug, "tool is called", "tool", b.Name, "id", b.ID)
	case event.ToolResult:
		l.toolResult(b)
	case event.Question:
		l.log(l.graph, slog.LevelDebug, "a human is asked", "id", b.ID)
	case event.Answer:
		text := "the human answered"
		if b.TimedOut {
			text = "no answer came in time, and the default is taken"
		}
		l.log(l.graph, slog.LevelDebug, text, "id", b.ID)
	case event.Undoing:
		l.log(l.graph, slog.LevelWarn, "the run failed and is undone", "nodes", b.Nodes, "error", b.Error)
	case event.Waiting:
		l.log(l.graph, slog.LevelDebug, "a node waits", "id", b.ID, "signal", b.Signal, "until", b.Until)
	case event.Signal:
		text := "a signal was taken"
		if b.TimedOut {
			text = "no signal came in time, and the default is taken"
		}
		l.log(l.graph, slog.LevelDebug, text, "id", b.ID, "signal", b.Name)
	case event.Limited:
		if b.Reason == "spending" && b.Waited == 0 {
			l.log(l.engine, slog.LevelInfo, "a call waits for others, because a limit of spending has no room beside them")
		}
	case event.Retry:
		l.log(l.engine, slog.LevelWarn, "attempt failed and is repeated", "attempt", b.Attempt, "wait", b.Wait, "error", b.Error)
	case event.CompressionFinished:
		l.log(l.engine, slog.LevelInfo, "session compressed", "messages", b.Messages, "before", b.Before, "after", b.After,
			"input_tokens", b.Usage.InputTokens, "output_tokens", b.Usage.OutputTokens, "error", b.Error)
	case event.SessionNamed:
		l.log(l.engine, slog.LevelInfo, "session named", "title", b.Title, "input_tokens", b.Usage.InputTokens, "output_tokens", b.Usage.OutputTokens)
	case event.ServersStarted:
		l.log(l.engine, slog.LevelInfo, "MCP servers started", "servers", b.Servers, "failed", b.Failed)
	case event.IndexStarted:
		l.log(l.engine, slog.LevelInfo, "knowledge base is built", "base", b.Base, "model", b.Model, "resumed", b.Resumed)
	case event.IndexFinished:
		l.indexFinished(b)
	case event.Retrieved:
		l.log(l.engine, slog.LevelDebug, "knowledge base searched", "base", b.Base, "passages", len(b.Sources), "took", b.Duration.Round(time.Millisecond))
	case event.AgentWaits:
		l.waits(b)
	case event.TodoUpdated:
		l.log(l.engine, slog.LevelDebug, "todo list changed", "items", len(b.Todos), "done", b.DoneCount())
	case event.AutoContinue:
		l.log(l.engine, slog.LevelInfo, "items of the todo list are open, so the agent continues", "count", b.Count, "max", b.Max, "open", b.Open)
	case event.MessageSent:
		l.log(l.engine, slog.LevelDebug, "message sent", "to", b.To, "bytes", len(b.Text))
	case event.TaskUpdated:
		l.log(l.engine, slog.LevelDebug, "task "+b.ID+" is "+b.Status, "owner", b.Owner)
	case event.Escalation:
		l.log(l.engine, slog.LevelInfo, "question to the agents above", "id", b.ID)
	case event.EscalationAnswered:
		if b.TimedOut {
			l.log(l.engine, slog.LevelWarn, "no agent answered the question in time", "id", b.ID)
			return
		}
		l.log(l.engine, slog.LevelInfo, "question answered", "id", b.ID)
	case event.Warning:
		l.log(l.graph, slog.LevelWarn, b.Text)
	case event.Finished:
		l.logFinished(b)
	}
}

// log writes a record. In a graph run it begins with the graph's name and, where the
// event has one, the node.
func (l recorder) log(to *slog.Logger, level slog.Level, message string, attrs ...any) {
	if !to.Enabled(l.ctx, level) {
		return
	}
	if where := place(l.ev.Source); where != "" {
		message = where + ": " + message
	}
	l.line(to, level, message, attrs...)
}

// line is log without the node.
func (l recorder) line(to *slog.Logger, level slog.Level, message string, attrs ...any) {
	if l.ev.AgentID != "" {
		message = "[" + l.ev.AgentID + "] " + message
	}
	if l.run.graph != "" {
		message = "[graph:" + l.run.graph + "] " + message
	}
	ctx := l.ctx
	if l.ev.Run != "" {
		ctx = context.WithValue(ctx, runIDKey{}, l.ev.Run)
	}
	to.Log(ctx, level, message, attrs...)
}

// place names the node of src, with the element a map works on: draft, each[3].
func place(src event.Source) string {
	if src.Node == "" || src.Item == nil {
		return src.Node
	}
	return src.Node + "[" + itoa(*src.Item) + "]"
}

func (l recorder) waits(b event.AgentWaits) {
	if len(b.On) == 0 {
		l.log(l.engine, slog.LevelDebug, "agent waits no more")
		return
	}
	l.log(l.engine, slog.LevelDebug, "agent waits", "on", strings.Join(b.On, ","))
}

func (l recorder) indexFinished(b event.IndexFinished) {
	took := ms(b.Duration.Round(time.Millisecond))
	if b.Error != "" {
		l.log(l.engine, slog.LevelError, "knowledge base not built after "+took, "base", b.Base, "error", b.Error)
		return
	}
	l.log(l.engine, slog.LevelInfo, "knowledge base built in "+took, "base", b.Base, "documents", b.Files, "chunks", b.Chunks,
		"added", b.Added, "kept", b.Kept, "removed", b.Removed, "passed_over", b.Passed, "failed", b.Failed, "input_tokens", b.Usage.InputTokens)
}

func (l recorder) logStarted(b event.Started) {
	if b.Graph == "" {
		if l.ev.AgentID == "" {
			l.line(l.engine, slog.LevelDebug, "answer started", "model", b.Model)
			return
		}
		attrs := []any{"agent", l.ev.Agent, "depth", l.ev.Depth, "model", b.Model}
		if b.Parent != "" {
			attrs = append(attrs, "parent", b.Parent)
		}
		if where := place(event.Source{Node: b.ParentNode, Item: b.ParentItem}); where != "" {
			attrs = append(attrs, "for", where)
		}
		l.line(l.engine, slog.LevelInfo, "child started", attrs...)
		return
	}
	what := "run started at " + b.Node
	if b.Resumed {
		what = "run resumed"
	}
	var attrs []any
	if l.ev.Run != "" {
		attrs = append(attrs, "run", l.ev.Run)
	}
	if l.ev.Agent != "" {
		attrs = append(attrs, "agent", l.ev.Agent)
	}
	if l.ev.Depth > 0 {
		attrs = append(attrs, "depth", l.ev.Depth)
	}
	l.line(l.graph, slog.LevelInfo, what, attrs...)
	l.snapshot("state at the beginning")
}

func (l recorder) nodeStarted(b event.NodeStarted) {
	if l.run.step != l.ev.Step {
		l.run.step, l.run.nodes = l.ev.Step, nil
	}
	l.run.nodes = append(l.run.nodes, l.ev.Node)
	l.run.stats.enter(l.ev.Node)
	l.log(l.graph, slog.LevelDebug, "visit "+itoa(b.Visit)+" of "+b.NodeType+" node")
}

func (l recorder) nodeFinished(b event.NodeFinished) {
	l.run.stats.add(l.ev.Node, b.Duration)
	switch {
	case b.Canceled:
		l.log(l.graph, slog.LevelDebug, b.NodeType+" node canceled, others were faster")
	case b.Error != "" && len(b.Targets) > 0:
		l.log(l.graph, slog.LevelWarn, b.NodeType+" node failed, the run continues at "+strings.Join(b.Targets, ", "), "error", b.Error)
	case b.Error != "":
		l.log(l.graph, slog.LevelWarn, b.NodeType+" node failed", "error", b.Error)
	}
	for _, target := range b.Targets {
		l.line(l.graph, slog.LevelDebug, l.ev.Node+" -> "+target)
	}
	if b.End {
		l.run.end = l.ev.Node
		l.line(l.graph, slog.LevelDebug, l.ev.Node+" -> END")
	}
}

// stateUpdated logs the state that the nodes of a super-step have changed.
func (l recorder) stateUpdated(b event.StateUpdated) {
	if l.run.state == nil {
		return
	}
	for _, m := range b.Values {
		l.run.state[m.Name] = m.Value
	}
	l.snapshot("state after " + l.stepName())
}

// snapshot logs the size and the keys of the state, and at trace all of it.
func (l recorder) snapshot(when string) {
	if len(l.run.state) == 0 || l.run.noSnapshots || !l.graph.Enabled(l.ctx, slog.LevelDebug) {
		return
	}
	members := make([]value.Member, 0, len(l.run.state))
	names := make([]string, 0, len(l.run.state))
	for name, v := range l.run.state {
		names = append(names, name)
		members = append(members, value.Member{Name: name, Value: v})
	}
	slices.Sort(names)
	slices.SortFunc(members, func(a, b value.Member) int { return cmp.Compare(a.Name, b.Name) })
	state := value.ObjectOf(members...).Value()
	l.line(l.graph, slog.LevelDebug, when, "bytes", len(state.AppendJSON(nil)), "keys", strings.Join(names, ","))
	if l.graph.Enabled(l.ctx, LevelTrace) {
		l.line(l.graph, LevelTrace, when, "state", state)
	}
}

// stepName names the super-step of the event by its nodes.
func (l recorder) stepName() string {
	if l.run.step != l.ev.Step || len(l.run.nodes) == 0 {
		return "super-step " + itoa(l.ev.Step)
	}
	if len(l.run.nodes) == 1 {
		return l.run.nodes[0]
	}
	return "super-step {" + strings.Join(slices.Sorted(slices.Values(l.run.nodes)), ",") + "}"
}

// toolFailureLength bounds the logged output of a failed tool, in bytes.
const toolFailureLength = 200 + len(text.Mark)

func (l recorder) toolResult(b event.ToolResult) {
	if !b.Failed {
		l.log(l.engine, slog.LevelDebug, "tool returned", "tool", b.Name, "id", b.ID, "bytes", len(b.Text))
		return
	}
	l.log(l.engine, slog.LevelWarn, "tool failed", "tool", b.Name, "id", b.ID, "error", text.Cut(b.Text, toolFailureLength))
}

func (l recorder) logFinished(b event.Finished) {
	took := b.Duration.Round(time.Millisecond)
	to, what := l.graph, "run"
	switch {
	case l.run.graph == "" && l.ev.AgentID != "":
		to, what = l.engine, "child"
	case l.run.graph == "":
		to, what = l.engine, "answer"
	}
	status := b.Status()
	switch {
	case status == string(fault.Suspended):
		l.line(to, slog.LevelInfo, what+" suspended after "+ms(took), "reason", cmp.Or(b.Reason, b.Error))
		return
	case status == string(fault.Canceled):
		l.line(to, slog.LevelWarn, what+" canceled after "+ms(took), "error", b.Error)
		return
	case status == event.Failed:
		l.line(to, slog.LevelError, what+" failed after "+ms(took), "code", b.Code, "error", b.Error)
		return
	case what == "answer":
		l.line(to, slog.LevelDebug, "answer finished in "+ms(took))
		return
	case what == "child":
		l.line(to, slog.LevelInfo, "child finished in "+ms(took), "outcome", b.Outcome,
			"input_tokens", b.Usage.InputTokens, "output_tokens", b.Usage.OutputTokens)
		return
	}
	at := ""
	if l.run.end != "" {
		at = " at " + l.run.end
	}
	l.line(to, slog.LevelInfo, "run finished"+at+" in "+ms(took), "steps", b.Steps, "failures", b.Failures)
	if len(l.run.stats.order) == 0 {
		return
	}
	l.line(to, slog.LevelInfo, "performance summary (slowest first):")
	for line := range l.run.stats.lines() {
		l.line(to, slog.LevelInfo, "  "+line)
	}
}
