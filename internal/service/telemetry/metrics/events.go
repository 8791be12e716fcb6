package metrics

import (
	"context"
	"sync"
	"time"

	"loki/internal/llm/event"
)

// Events fills families from events: those of runs, nodes, models and tools. It implements [event.Emitter], never
// fails, and may receive the events of several runs at once.
type Events struct {
	agents, models, tools, nodes Names

	runs, duration, failures, calls, tokens, cost, firstToken, toolCalls *Family

	mu   sync.Mutex
	open map[string]map[event.Place]*call // calls of models that have not been answered yet, by the run
}

// call is a call of a model.
type call struct {
	model string
	begun time.Time
	first bool // a piece of the answer has come
}

// The values of the label outcome.
const (
	succeeded = "ok"
	failed    = "error"
)

// NewEvents adds the families to a registry.
func NewEvents(r *Registry) *Events {
	return &Events{
		open: make(map[string]map[event.Place]*call),
		runs: r.Counter("runs_finished_total", "Runs and answers that ended or were suspended, by how. A resumed run ends again.", "status"),
		duration: r.Histogram("run_duration_seconds", "How long runs and answers worked, until they ended or were suspended.",
			[]float64{0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400}, "agent"),
		failures:   r.Counter("node_failures_total", "Nodes of graphs that failed, tolerated failures included.", "type"),
		calls:      r.Counter("model_calls_total", "Calls of models; each attempt counts.", "model", "outcome"),
		tokens:     r.Counter("model_tokens_total", "Tokens of answered calls. cached is a part of input, reasoning a part of output.", "model", "kind"),
		cost:       r.Counter("model_cost_usd_total", "Price of answered calls, as far as it is known.", "model"),
		firstToken: r.Histogram("time_to_first_token_seconds", "From the call of a model to the first piece of its answer, which may be the whole answer.", Seconds(), "model"),
		toolCalls:  r.Counter("tool_calls_total", "Calls of tools by models.", "tool", "outcome"),
	}
}

// Emit implements [event.Emitter].
func (e *Events) Emit(_ context.Context, ev event.Event) error {
	switch b := ev.Body.(type) {
	case event.ModelCall:
		e.countCall(ev, b.Model)
	case event.Delta, event.Reasoning:
		e.piece(ev)
	case event.Reply:
		e.countReply(ev, b)
	case event.ToolResult:
		outcome := succeeded
		if b.Failed {
			outcome = failed
		}
		e.toolCalls.Add(1, e.tools.Value(b.Name), outcome)
	case event.NodeFinished:
		if b.Error != "" {
			e.failures.Add(1, e.nodes.Value(b.NodeType))
		}
	case event.Finished:
		e.countFinished(ev, b)
	}
	return nil
}

func (e *Events) countCall(ev event.Event, model string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	of := e.open[ev.Run]
	if of == nil {
		of = make(map[event.Place]*call)
		e.open[ev.Run] = of
	}
	at := ev.Place()
	if before := of[at]; before != nil { // which is tried again
		e.calls.Add(1, e.models.Value(before.model), failed)
	}
	of[at] = &call{model: model, begun: ev.Time}
}

func (e *Events) piece(ev event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.open[ev.Run][ev.Place()]; c != nil && !c.first {
		c.first = true
		e.firstToken.Observe(ev.Time.Sub(c.begun).Seconds(), e.models.Value(c.model))
	}
}

func (e *Events) countReply(ev event.Event, b event.Reply) {
	e.mu.Lock()
	at := ev.Place()
	if c := e.open[ev.Run][at]; c != nil && !c.first { // it came in one piece
		e.firstToken.Observe(ev.Time.Sub(c.begun).Seconds(), e.models.Value(c.model))
	}
	delete(e.open[ev.Run], at)
	e.mu.Unlock()
	model := e.models.Value(b.Model)
	e.calls.Add(1, model, succeeded)
	e.tokens.Add(float64(b.Usage.InputTokens), model, "input")
	e.tokens.Add(float64(b.Usage.CachedInputTokens), model, "cached")
	e.tokens.Add(float64(b.Usage.OutputTokens), model, "output")
	e.tokens.Add(float64(b.Usage.ReasoningTokens), model, "reasoning")
	e.cost.Add(b.Usage.Cost, model)
}

// countFinished counts a run that ended, and the calls of it, or of the child agent that ended, that got no answer.
func (e *Events) countFinished(ev event.Event, b event.Finished) {
	e.mu.Lock()
	for at, c := range e.open[ev.Run] {
		if ev.Depth == 0 || at.AgentID == ev.AgentID {
			e.calls.Add(1, e.models.Value(c.model), failed)
			delete(e.open[ev.Run], at)
		}
	}
	if len(e.open[ev.Run]) == 0 {
		delete(e.open, ev.Run)
	}
	e.mu.Unlock()
	if ev.Depth > 0 {
		return
	}
	e.runs.Add(1, b.Status())
	e.duration.Observe(b.Duration.Seconds(), e.agents.Value(ev.Agent))
}
