// Package chat is the vocabulary of a conversation with a model: messages and
// their parts, tool declarations, calls and results, usage and stop reasons. It imports no
// other package of the program.
package chat

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a [Message].
type Role string

// The roles of the four kinds of message.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one entry of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts,omitempty"`

	// ToolCalls are the calls an assistant message makes, in the model's order.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`

	// ToolCallID and ToolName say which call a tool message answers; its parts
	// are the result. Failed marks a result that reports an error.
	ToolCallID string `json:"tool_call_id,omitempty"`
	ToolName   string `json:"tool_name,omitempty"`
	Failed     bool   `json:"failed,omitempty"`

	// Continuation marks a user message with which the program, not the user, asks the model to
	// continue its work. It belongs to the turn of the question before it.
	Continuation bool `json:"continuation,omitempty"`

	// Steer marks a user message that the user sent while the model worked. It belongs to the turn of the question before it.
	Steer bool `json:"steer,omitempty"`
}

// Question reports whether m is what the user asked, which begins a turn.
func (m Message) Question() bool { return m.Role == User && !m.Continuation && !m.Steer }

// Text returns a message of one text part.
func Text(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Type: TextPart, Text: text}}}
}

// Text returns the message's text parts joined without a separator. Reasoning and
// images are left out.
func (m Message) Text() string {
	if len(m.Parts) == 1 && m.Parts[0].Type == TextPart {
		return m.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == TextPart {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// PartType says what a [Part] holds.
type PartType string

// The kinds of part.
const (
	TextPart      PartType = "text"
	ImagePart     PartType = "image"
	ReasoningPart PartType = "reasoning"
)

// Part is a piece of a message's content.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"` // text and reasoning
	URL  string   `json:"url,omitempty"`  // images: an https: or a data: URL

	// Signature is the provider's own proof of a reasoning part. It is sent back
	// unchanged to the provider that made it and has no meaning elsewhere. A reasoning
	// part with a signature but no text is encrypted by the provider.
	Signature string `json:"signature,omitempty"`
}

// Tool declares a function that a model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema of type object; nil means no parameters
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID        string `json:"id"`        // unique within a conversation, never empty
	Name      string `json:"name"`      // as declared, or whatever the model made up
	Arguments string `json:"arguments"` // JSON text as the model wrote it, possibly malformed; "{}" when it wrote none

	// Signature is the provider's own proof of the reasoning that led to the call.
	// Like that of a [Part] it goes back unchanged to the provider that made it.
	Signature string `json:"signature,omitempty"`
}

// Usage counts the tokens of one or more model calls.
type Usage struct {
	InputTokens       int  `json:"input_tokens"`                  // whole prompt, cached tokens included
	CachedInputTokens int  `json:"cached_input_tokens,omitempty"` // part of InputTokens that was read from the provider's cache
	CacheWriteTokens  int  `json:"cache_write_tokens,omitempty"`  // part of InputTokens that was written to the provider's cache
	OutputTokens      int  `json:"output_tokens"`                 // whole reply, reasoning included
	ReasoningTokens   int  `json:"reasoning_tokens,omitempty"`    // part of OutputTokens
	Estimated         bool `json:"estimated,omitempty"`           // at least one call reported no usage and was estimated

	// Cost is the price of the tokens in US dollars. If the price of a part of a call is
	// unknown, Cost is 0 and CostUnknown is set, so that a part is never shown as the whole.
	Cost        float64 `json:"cost,omitempty"`
	CostUnknown bool    `json:"cost_unknown,omitempty"` // the cost of at least one call is not in Cost
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:       u.InputTokens + v.InputTokens,
		CachedInputTokens: u.CachedInputTokens + v.CachedInputTokens,
		CacheWriteTokens:  u.CacheWriteTokens + v.CacheWriteTokens,
		OutputTokens:      u.OutputTokens + v.OutputTokens,
		ReasoningTokens:   u.ReasoningTokens + v.ReasoningTokens,
		Estimated:         u.Estimated || v.Estimated,
		Cost:              u.Cost + v.Cost,
		CostUnknown:       u.CostUnknown || v.CostUnknown,
	}
}

// Sub returns u without v, which was added to it.
func (u Usage) Sub(v Usage) Usage {
	u.InputTokens -= v.InputTokens
	u.CachedInputTokens -= v.CachedInputTokens
	u.CacheWriteTokens -= v.CacheWriteTokens
	u.OutputTokens -= v.OutputTokens
	u.ReasoningTokens -= v.ReasoningTokens
	u.Cost -= v.Cost
	return u
}

// Total returns input plus output tokens.
func (u Usage) Total() int { return u.InputTokens + u.OutputTokens }

// StopReason says why a reply ended.
type StopReason string

// The stop reasons. A provider's unknown reason becomes StopOther.
const (
	StopEnd       StopReason = "stop"           // the model was done
	StopLength    StopReason = "length"         // the output limit was reached
	StopToolCalls StopReason = "tool_calls"     // the model waits for tool results
	StopFiltered  StopReason = "content_filter" // the provider cut the reply
	StopOther     StopReason = "other"
)

// EstimateTokens returns a rough count of the tokens in text: an ASCII character is a
// quarter of a token and any other a half, rounded up.
func EstimateTokens(text string) int {
	quarters := 0
	for _, r := range text {
		if r < 0x80 {
			quarters++
		} else {
			quarters += 2
		}
	}
	return (quarters + 3) / 4
}
