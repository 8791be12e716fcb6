package telemetry

import (
	"context"
	"strings"
	"sync"
	"time"

	"loki/internal/llm/event"
	"loki/internal/llm/event/telemetry/metrics"
)

// Meter counts what happens, and sends the figures. The nil Meter does nothing, at no cost. Its methods may be called from
// several goroutines.
type Meter struct {
	exporter *exporter
	start    time.Time
	stop     chan struct{} // closed by Shutdown
	done     chan struct{} // closed by the goroutine that reads the figures again and again
	end      sync.Once

	facts    metrics.Facts
	registry metrics.Registry

	agents, models, tools, nodes, schedules metrics.Names

	inference, firstChunk, nextChunk, agent, agentCalls, agentTools, tool *metrics.Family
	input, output, cacheRead, cacheWrite, reasoning                       *metrics.Family
	node, wait, refused, late                                             *metrics.Family
}

// StartMeter returns the meter that the OTEL_* variables ask for, or nil if they ask for none, as [Start] does for traces.
func StartMeter(ctx context.Context, getenv func(string) string, version string) (*Meter, error) {
	x, s, err := export(ctx, getenv, figures, version)
	if x == nil {
		return nil, err
	}
	m := &Meter{start: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), exporter: x}
	m.addFamilies()
	go m.work(s.interval) // ends with Shutdown
	return m, nil
}

// doublings returns bounds of buckets, each twice the one before.
func doublings(first float64, n int) []float64 {
	bounds := make([]float64, n)
	for i := range bounds {
		bounds[i] = first
		first *= 2
	}
	return bounds
}

// Attributes of metrics that spans do not have.
const (
	errorType     = "error.type"
	tokenModality = "gen_ai.token.modality"
	nodeType      = "loki.node.type"
)

// addFamilies adds what is counted. The names beginning with gen_ai. are those of
// https://github.com/open-telemetry/semantic-conventions-genai, v0.1.0.
func (m *Meter) addFamilies() {
	r := &m.registry
	seconds := func(name, help string, bounds []float64, labels ...string) *metrics.Family {
		return r.Histogram(name, help, bounds, labels...).In("s")
	}
	tokens := func(name, help string) *metrics.Family {
		return r.Counter("gen_ai.client.inference.usage."+name, help, genAIOperation, genAIProvider, genAIModel, tokenModality).In("{token}")
	}
	m.inference = seconds("gen_ai.client.inference.duration", "How long calls of models took.", doublings(0.01, 14), genAIOperation, genAIProvider, genAIModel, errorType)
	m.firstChunk = seconds("gen_ai.client.inference.time_to_first_chunk", "From the call of a model to the first piece of its answer.",
		[]float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, genAIOperation, genAIProvider, genAIModel)
	m.nextChunk = seconds("gen_ai.client.inference.time_per_output_chunk", "From a piece of an answer to the next one.",
		[]float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}, genAIOperation, genAIProvider, genAIModel)
	m.input = tokens("input_tokens", "Tokens of prompts, cached ones included.")
	m.output = tokens("output_tokens", "Tokens of answers, reasoning included.")
	m.cacheRead = tokens("cache_read.input_tokens", "Tokens of prompts that were read from the provider's cache.")
	m.cacheWrite = tokens("cache_write.input_tokens", "Tokens of prompts that were written to the provider's cache.")
	m.reasoning = tokens("reasoning.output_tokens", "Tokens of answers that are reasoning.")
	m.agent = seconds("gen_ai.invoke_agent.duration", "How long agents worked, until they ended or were suspended.", doublings(0.1, 13), genAIAgent, errorType)
	m.agentCalls = r.Histogram("gen_ai.invoke_agent.inference_calls", "Calls of models by an agent.", doublings(1, 8), genAIAgent).In("{inference_call}")
	m.agentTools = r.Histogram("gen_ai.invoke_agent.tool_calls", "Calls of tools by an agent.", doublings(1, 8), genAIAgent).In("{tool_call}")
	m.tool = seconds("gen_ai.execute_tool.duration", "How long calls of tools took.", doublings(0.01, 14), genAITool, errorType)
	m.node = seconds("loki.node.duration", "How long nodes of graphs took.", doublings(0.01, 16), genAIAgent, nodeType, errorType)
	m.wait = seconds("loki.limit.wait", "How long calls of models waited because the provider took no more.", doublings(0.25, 12), genAIProvider, genAIModel)
	m.refused = r.Counter("loki.limit.refused", "Calls of models that the provider refused because there were too many.", genAIProvider, genAIModel).In("{refusal}")
	m.late = seconds("loki.schedule.late", "How long after its time a schedule started a run.", []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 86400}, "loki.schedule.name")
}

// Emitter returns an emitter that counts what happens, in any number of runs at once. It is nil for a nil meter. Emit never fails, and
// does not wait.
func (m *Meter) Emitter() event.Emitter {
	if m == nil {
		return nil
	}
	return event.Func(func(_ context.Context, ev event.Event) error {
		for _, fact := range m.facts.Of(ev) {
			m.count(fact)
		}
		return nil
	})
}

// modelOf returns the provider and the name of a model as attributes have them.
func (m *Meter) modelOf(id string) (provider, model string) {
	client, model, ok := strings.Cut(m.models.Value(id), ":")
	if !ok { // above the limit
		return client, client
	}
	return providerName(client), model
}

func (m *Meter) count(fact any) {
	failure := func(failed bool, kind string) string {
		if failed {
			return kind
		}
		return ""
	}
	switch f := fact.(type) {
	case metrics.Call:
		m.countCall(f)
	case metrics.Tool:
		if f.Timed {
			m.tool.Observe(f.Took.Seconds(), m.tools.Value(f.Name), failure(f.Failed, "tool"))
		}
	case metrics.Node:
		m.node.Observe(f.Took.Seconds(), m.agents.Value(f.Agent), m.nodes.Value(f.Type), failure(f.Failed, other))
	case metrics.Agent:
		if f.Name == "" {
			return
		}
		name := m.agents.Value(f.Name)
		m.agent.Observe(f.Took.Seconds(), name, f.Code)
		m.agentCalls.Observe(float64(f.Calls), name)
		m.agentTools.Observe(float64(f.Tools), name)
	case metrics.Wait:
		provider, model := m.modelOf(f.Model)
		if f.Took > 0 {
			m.wait.Observe(f.Took.Seconds(), provider, model)
		}
		m.refused.Add(float64(f.Refused), provider, model)
	case metrics.Late:
		m.late.Observe(f.By.Seconds(), m.schedules.Value(f.Schedule))
	}
}

// countCall counts a call of a model. Providers do not say which tokens of a prompt are those of images.
func (m *Meter) countCall(c metrics.Call) {
	provider, model := m.modelOf(c.Model)
	if c.Timed {
		m.inference.Observe(c.Took.Seconds(), "chat", provider, model, c.Error)
	}
	if !c.Whole { // it was streamed
		m.firstChunk.Observe(c.First.Seconds(), "chat", provider, model)
	}
	for _, took := range c.Pieces {
		m.nextChunk.Observe(took.Seconds(), "chat", provider, model)
	}
	const mixed, text = "unknown", "text"
	m.input.Add(float64(c.Usage.InputTokens), "chat", provider, model, mixed)
	m.cacheRead.Add(float64(c.Usage.CachedInputTokens), "chat", provider, model, mixed)
	m.cacheWrite.Add(float64(c.Usage.CacheWriteTokens), "chat", provider, model, mixed)
	m.output.Add(float64(c.Usage.OutputTokens), "chat", provider, model, text)
	m.reasoning.Add(float64(c.Usage.ReasoningTokens), "chat", provider, model, text)
}

// work reads the figures again and again. While an earlier reading waits for the collector there is no other, because each has all.
func (m *Meter) work(interval time.Duration) {
	defer close(m.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if m.exporter.isIdle() {
				m.read()
			}
		case <-m.stop:
			return
		}
	}
}

// read hands the figures to the exporter.
func (m *Meter) read() {
	now := time.Now()
	for _, r := range m.registry.Read() {
		m.exporter.put(appendMetric(r, m.start, now))
	}
}

// Shutdown sends the last figures and stops the meter. It takes as long as [Tracer.Shutdown] at most. The error says why figures did not
// arrive; it is meant as a warning.
func (m *Meter) Shutdown(ctx context.Context) error {
	if m == nil {
		return nil
	}
	m.end.Do(func() {
		close(m.stop)
		<-m.done
		m.read()
	})
	return m.exporter.shutdown(ctx)
}
