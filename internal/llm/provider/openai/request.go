package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// chatRequest is the body of a request for chat completions.
type chatRequest struct {
	Model               string           `json:"model"`
	Messages            []sentMessage    `json:"messages"`
	MaxTokens           int              `json:"max_tokens,omitempty"`
	MaxCompletionTokens int              `json:"max_completion_tokens,omitempty"`
	Temperature         *float64         `json:"temperature,omitempty"`
	TopP                *float64         `json:"top_p,omitempty"`
	Stream              bool             `json:"stream,omitempty"`
	StreamOptions       *streamOptions   `json:"stream_options,omitempty"`
	Tools               []normalize.Tool `json:"tools,omitempty"`
	ToolChoice          any              `json:"tool_choice,omitempty"` // "required" or a namedFunction
	Stop                []string         `json:"stop,omitempty"`
	Seed                *int64           `json:"seed,omitempty"`
	FrequencyPenalty    float64          `json:"frequency_penalty,omitempty"`
	PresencePenalty     float64          `json:"presence_penalty,omitempty"`
	Format              *chatForm        `json:"response_format,omitempty"`
	CacheKey            string           `json:"prompt_cache_key,omitempty"`

	ReasoningEffort provider.Effort `json:"reasoning_effort,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type sentMessage struct {
	Role             chat.Role       `json:"role"`
	Content          any             `json:"content"` // string, []normalize.Part, or nil beside tool calls
	ReasoningContent *string         `json:"reasoning_content,omitempty"`
	Reasoning        *string         `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"` // OpenRouter
	ToolCalls        []sentCall      `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
}

type sentCall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type"`
	Function normalize.Function `json:"function"`
	Extra    *extraContent      `json:"extra_content,omitempty"` // Google
}

// newChatRequest puts req into the words of d.
func newChatRequest(req provider.Request, m wire.Model, d dialect) chatRequest {
	r := chatRequest{
		Model: m.RealName, Messages: sentMessages(req.Messages, d),
		Stream: req.Stream, ReasoningEffort: d.effort(req.Effort, m.Efforts),
	}
	if !d.noSampling {
		r.Temperature, r.TopP = req.Temperature, req.TopP
	}
	// A model whose patch deletes max_tokens wants the newer name.
	if v, ok := m.Patch.Body.Get("max_tokens"); d.completionTokens || ok && v.IsNull() {
		r.MaxCompletionTokens = req.MaxOutputTokens
	} else {
		r.MaxTokens = req.MaxOutputTokens
	}
	if req.Stream && !d.noStreamOptions {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, normalize.FunctionTool(t))
	}
	if !d.noConstraints {
		r.Stop, r.Seed = normalize.Stops(req, mostStops), req.Seed
		r.FrequencyPenalty, r.PresencePenalty = req.FrequencyPenalty, req.PresencePenalty
	}
	if name := req.Choice.Name; name != "" {
		r.ToolChoice = namedFunction{Type: "function", Function: &functionName{name}}
	} else if req.Choice.Required {
		r.ToolChoice = "required"
	}
	return r
}

// mostStops is how many texts at which it ends a request may have.
const mostStops = 4

// namedFunction is the choice of a tool: in chat completions by Function, in responses by Name.
type namedFunction struct {
	Type     string        `json:"type"`
	Function *functionName `json:"function,omitempty"`
	Name     string        `json:"name,omitempty"`
}

type functionName struct {
	Name string `json:"name"`
}

// effort implements [payload].
func (r chatRequest) effort() provider.Effort { return r.ReasoningEffort }

func (r chatRequest) hasReasoning() bool {
	for _, m := range r.Messages {
		if m.ReasoningContent != nil || m.Reasoning != nil || m.ReasoningDetails != nil {
			return true
		}
	}
	return false
}

// signed reports whether a call or a message bears a signature.
func (r chatRequest) signed() bool {
	return slices.ContainsFunc(r.Messages, func(m sentMessage) bool {
		return m.ReasoningDetails != nil || slices.ContainsFunc(m.ToolCalls, func(c sentCall) bool { return c.Extra != nil })
	})
}

// calls reports whether the conversation holds calls.
func (r chatRequest) calls() bool {
	return slices.ContainsFunc(r.Messages, func(m sentMessage) bool { return len(m.ToolCalls) > 0 })
}

// sentMessages translates a conversation.
func sentMessages(messages []chat.Message, d dialect) []sentMessage {
	assistant := func(m chat.Message, inLoop, last bool) (sentMessage, bool) {
		return assistantMessage(m, d, inLoop, last)
	}
	return normalize.Messages(messages, assistant, func(role chat.Role, content any, callID string) sentMessage {
		s := sentMessage{Role: role, Content: content}
		if role == chat.ToolRole {
			s.ToolCallID = d.callID(callID)
		}
		return s
	})
}

// assistantMessage translates m, unless there is nothing to say: an answer that
// broke off before its first word is not a message to most servers. The last message
// of a conversation is left as it is, since the model must continue it.
func assistantMessage(m chat.Message, d dialect, inLoop, last bool) (sentMessage, bool) {
	text := m.Text()
	if !last {
		text = chat.WithoutThinking(text)
	}
	s := sentMessage{Role: m.Role, Content: text}
	if text == "" && len(m.ToolCalls) > 0 {
		s.Content = nil
	}
	for i, c := range m.ToolCalls {
		s.ToolCalls = append(s.ToolCalls, sentCall{
			ID: d.callID(c.ID), Type: "function", Extra: d.extra(c, i == 0),
			Function: normalize.FunctionOf(c),
		})
	}
	reasoning := reasoningOf(m)
	if details := detailsOf(m); details != nil && inLoop && !d.noSignatures && d.reasoning != reasoningNever {
		s.ReasoningDetails = details // the words are among them
	} else if d.reasoning == reasoningAlways || d.reasoning == reasoningInLoop && inLoop && len(m.ToolCalls) > 0 && reasoning != "" {
		if d.reasoningField == fieldReasoning {
			s.Reasoning = &reasoning
		} else {
			s.ReasoningContent = &reasoning
		}
	}
	return s, text != "" || len(m.ToolCalls) > 0
}

func reasoningOf(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == chat.ReasoningPart {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// maxCallID is the longest tool-call id that OpenAI accepts.
const maxCallID = 40

// callID returns id in a form that the server accepts. The same id always gives
// the same result, so that calls and their results stay together.
func (d dialect) callID(id string) string {
	sum := func() string {
		h := sha256.Sum256([]byte(id))
		return hex.EncodeToString(h[:])
	}
	switch {
	case d.shortIDs && !isShortID(id):
		return sum()[:9]
	case len(id) > maxCallID:
		return "call_" + sum()[:32]
	}
	return id
}

func isShortID(id string) bool {
	return len(id) == 9 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
