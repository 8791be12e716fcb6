package cohere

import (
	"encoding/json"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// chatRequest is the body of a request to /chat.
type chatRequest struct {
	Model       string           `json:"model"`
	Messages    []sentMessage    `json:"messages"`
	MaxTokens   int              `json:"max_tokens,omitempty"`
	Temperature *float64         `json:"temperature,omitempty"`
	P           *float64         `json:"p,omitempty"`
	Stream      bool             `json:"stream,omitempty"`
	Tools       []normalize.Tool `json:"tools,omitempty"`
	Thinking    *thinking        `json:"thinking,omitempty"`
	ToolChoice  string           `json:"tool_choice,omitempty"`
	Stop        []string         `json:"stop_sequences,omitempty"`
	Seed        *int64           `json:"seed,omitempty"`
	Frequency   float64          `json:"frequency_penalty,omitempty"` // 0 to 1, as the next
	Presence    float64          `json:"presence_penalty,omitempty"`
	Format      *sentFormat      `json:"response_format,omitempty"`
}

// mostStops is how many texts at which it ends a request may have.
const mostStops = 5

// sentFormat is the form of a reply.
type sentFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"json_schema"`
}

type sentMessage struct {
	Role       chat.Role  `json:"role"`
	Content    any        `json:"content,omitempty"` // string or []normalize.Part
	ToolPlan   string     `json:"tool_plan,omitempty"`
	ToolCalls  []sentCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type sentCall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type"`
	Function normalize.Function `json:"function"`
}

type thinking struct {
	Type        string `json:"type"`
	TokenBudget int    `json:"token_budget,omitempty"`
}

func newChatRequest(req provider.Request, realName string) chatRequest {
	r := chatRequest{
		Model: realName, Messages: normalize.Messages(req.Messages, assistantMessage, otherMessage), MaxTokens: req.MaxOutputTokens,
		Temperature: req.Temperature, P: req.TopP, Stream: req.Stream,
		Thinking: newThinking(req, realName), Stop: normalize.Stops(req, mostStops), Seed: req.Seed,
	}
	if takesPenalties(req) {
		r.Frequency, r.Presence = req.FrequencyPenalty, req.PresencePenalty
	}
	if req.Choice.Required {
		r.ToolChoice = "REQUIRED"
	}
	for _, t := range req.Tools {
		if name := req.Choice.Name; name != "" && t.Name != name { // the API cannot name one
			continue
		}
		r.Tools = append(r.Tools, normalize.FunctionTool(t))
	}
	return r
}

// takesPenalties reports whether the API takes the penalties of a request, which it has from 0 to 1 only.
func takesPenalties(req provider.Request) bool {
	return min(req.FrequencyPenalty, req.PresencePenalty) >= 0 && max(req.FrequencyPenalty, req.PresencePenalty) <= 1
}

// newThinking translates the effort. Thinking counts as output: of a limited output
// it gets at most half. Only models that reason take the field.
func newThinking(req provider.Request, realName string) *thinking {
	if !strings.Contains(realName, "reasoning") && !strings.Contains(req.Model, "reasoning") {
		return nil
	}
	if req.Effort == provider.NoEffort {
		return &thinking{Type: "disabled"}
	}
	budget := normalize.ThinkingBudget(req.Effort)
	if budget == 0 {
		return nil
	}
	if req.MaxOutputTokens > 0 {
		budget = max(1, min(budget, req.MaxOutputTokens/2))
	}
	return &thinking{Type: "enabled", TokenBudget: budget}
}

func otherMessage(role chat.Role, content any, callID string) sentMessage {
	return sentMessage{Role: role, Content: content, ToolCallID: callID}
}

// assistantMessage translates m, unless there is nothing to say. The last message of
// a conversation is left as it is, since the model must continue it.
func assistantMessage(m chat.Message, inLoop, last bool) (sentMessage, bool) {
	text := m.Text()
	if !last {
		text = chat.WithoutThinking(text)
	}
	if len(m.ToolCalls) == 0 {
		return sentMessage{Role: m.Role, Content: text}, text != ""
	}
	s := sentMessage{Role: m.Role, ToolPlan: text}
	for _, c := range m.ToolCalls {
		s.ToolCalls = append(s.ToolCalls, sentCall{
			ID: c.ID, Type: "function", Function: normalize.FunctionOf(c),
		})
	}
	if reasoning := reasoningOf(m); inLoop && reasoning != nil {
		s.Content = reasoning
	}
	return s, true
}

// reasoningOf returns the reasoning that may be Cohere's, which signs none.
func reasoningOf(m chat.Message) []normalize.Part {
	var parts []normalize.Part
	for _, p := range m.Parts {
		if p.Type == chat.ReasoningPart && p.Signature == "" && p.Text != "" {
			parts = append(parts, normalize.Part{Type: "thinking", Thinking: p.Text})
		}
	}
	return parts
}
