package metrics

import (
	"context"

	"loki/internal/llm/event"
)

// Events fills families from events: those of runs, nodes, models and tools. It implements [event.Emitter], never
// fails, and may receive the events of several runs at once.
type Events struct {
	agents, models, tools, nodes Names

	runs, duration, failures, calls, tokens, cost, firstToken, toolCalls *Family

	facts Facts
}

// The values of the label outcome.
const (
	succeeded = "ok"
	failed    = "error"
)

// NewEvents adds the families to a registry.
func NewEvents(r *Registry) *Events {
	return &Events{
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
	for _, fact := range e.facts.Of(ev) {
		switch f := fact.(type) {
		case Call:
			e.countCall(f)
		case Tool:
			e.toolCalls.Add(1, e.tools.Value(f.Name), outcome(f.Failed))
		case Node:
			if f.Failed {
				e.failures.Add(1, e.nodes.Value(f.Type))
			}
		case Agent:
			if !f.Child {
				e.runs.Add(1, f.Status)
				e.duration.Observe(f.Took.Seconds(), e.agents.Value(f.Name))
			}
		}
	}
	return nil
}

func outcome(isFailed bool) string {
	if isFailed {
		return failed
	}
	return succeeded
}

func (e *Events) countCall(c Call) {
	model := e.models.Value(c.Model)
	e.calls.Add(1, model, outcome(c.Error != ""))
	if c.Timed && (c.Error == "" || !c.last.IsZero()) {
		e.firstToken.Observe(c.First.Seconds(), model)
	}
	if c.Error != "" {
		return
	}
	e.tokens.Add(float64(c.Usage.InputTokens), model, "input")
	e.tokens.Add(float64(c.Usage.CachedInputTokens), model, "cached")
	e.tokens.Add(float64(c.Usage.OutputTokens), model, "output")
	e.tokens.Add(float64(c.Usage.ReasoningTokens), model, "reasoning")
	e.cost.Add(c.Usage.Cost, model)
}
