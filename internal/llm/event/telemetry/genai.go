package telemetry

import (
	"encoding/json"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// Attributes of the semantic conventions for generative AI.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
const (
	genAIOperation = "gen_ai.operation.name"
	genAIProvider  = "gen_ai.provider.name"
	genAISystem    = "gen_ai.system" // what provider.name was called; some backends still read it
	genAIAgent     = "gen_ai.agent.name"
	genAIModel     = "gen_ai.request.model"
	genAIFinish    = "gen_ai.response.finish_reasons"
	genAIInput     = "gen_ai.usage.input_tokens"
	genAICached    = "gen_ai.usage.cache_read.input_tokens"
	genAIOutput    = "gen_ai.usage.output_tokens"
	genAIReasoning = "gen_ai.usage.reasoning.output_tokens"
	genAIMessages  = "gen_ai.output.messages"
	genAITool      = "gen_ai.tool.name"
	genAIToolType  = "gen_ai.tool.type"
	genAIToolID    = "gen_ai.tool.call.id"
	genAIArguments = "gen_ai.tool.call.arguments"
	genAIResult    = "gen_ai.tool.call.result"
	genAISource    = "gen_ai.data_source.id"
	genAIQuery     = "gen_ai.retrieval.query.text"
)

// spanName is an operation and what it is done with.
func spanName(operation, subject string) string {
	if subject == "" {
		return operation
	}
	return operation + " " + subject
}

// providerName is the convention's name of the provider behind a client, or the name of
// the client where there is none.
func providerName(client string) string {
	switch client {
	case "claude":
		return "anthropic"
	case "gemini":
		return "gcp.gemini"
	case "vertexai":
		return "gcp.vertex_ai"
	case "bedrock":
		return "aws.bedrock"
	case "azure-openai":
		return "azure.ai.openai"
	case "mistral":
		return "mistral_ai"
	case "xai":
		return "x_ai"
	case "moonshot":
		return "moonshot_ai"
	}
	return client
}

// modelSpan begins the span of a model call.
func (t *Tracer) modelSpan(parent *span, start time.Time, b event.ModelCall) *span {
	client, model, ok := strings.Cut(b.Model, ":")
	if !ok {
		model = b.Model
	}
	s := t.newSpan(parent, spanName("chat", model), kindClient, start)
	s.set(genAIOperation, "chat")
	s.set(genAIProvider, providerName(client))
	s.set(genAISystem, providerName(client))
	s.set(genAIModel, model)
	s.set("loki.turn", b.Turn)
	return s
}

// describeReply adds what a model answered to the span of its call.
func (t *Tracer) describeReply(s *span, b event.Reply) {
	s.set(genAIFinish, finishReasons(b.Stop))
	s.set(genAIInput, b.Usage.InputTokens)
	s.set(genAICached, b.Usage.CachedInputTokens)
	s.set(genAIOutput, b.Usage.OutputTokens)
	s.set(genAIReasoning, b.Usage.ReasoningTokens)
	if b.Usage.Estimated {
		s.set("loki.usage.estimated", true)
	}
	if t.s.content {
		s.set(genAIMessages, outputMessages(b))
	}
}

func finishReasons(stop chat.StopReason) []string {
	switch stop {
	case "":
		return nil
	case chat.StopToolCalls:
		return []string{"tool_call"}
	}
	return []string{string(stop)}
}

// outputMessages is a reply in the form of the convention.
func outputMessages(b event.Reply) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role   string `json:"role"`
		Parts  []part `json:"parts"`
		Finish string `json:"finish_reason,omitempty"`
	}
	m := message{Role: "assistant", Parts: []part{{"text", b.Text}}}
	if reasons := finishReasons(b.Stop); reasons != nil {
		m.Finish = reasons[0]
	}
	data, err := json.Marshal([]message{m})
	if err != nil { // strings always marshal
		return ""
	}
	return string(data)
}

// toolSpan begins the span of a tool call.
func (t *Tracer) toolSpan(parent *span, start time.Time, b event.ToolCall) *span {
	s := t.newSpan(parent, spanName("execute_tool", b.Name), kindInternal, start)
	s.set(genAIOperation, "execute_tool")
	s.set(genAITool, b.Name)
	s.set(genAIToolType, "function")
	s.set(genAIToolID, b.ID)
	if t.s.content {
		s.set(genAIArguments, b.Arguments)
	}
	return s
}

func (t *Tracer) finishTool(s *span, end time.Time, b event.ToolResult) {
	if t.s.content {
		s.set(genAIResult, b.Text)
	}
	o := outcome{}
	if b.Failed {
		o = outcome{failed: true, kind: "tool"}
	}
	t.finishAs(s, end, o)
}

// retrievalSpan returns the span of a search in a knowledge base, which is reported at its end.
func (t *Tracer) retrievalSpan(parent *span, end time.Time, b event.Retrieved) *span {
	s := t.newSpan(parent, spanName("retrieval", b.Base), kindInternal, end.Add(-b.Duration))
	s.set(genAIOperation, "retrieval")
	s.set(genAISource, b.Base)
	s.set("loki.retrieval.passages", len(b.Sources))
	if t.s.content {
		s.set(genAIQuery, b.Query)
	}
	return s
}
