package anthropic

import (
	"encoding/json"

	"loki/internal/llm/provider/wire"
)

// The forms of the Messages API, as far as they are used: https://docs.claude.com/en/api/messages. What a model does not get is left
// out of a request, and what is of another type in a reply is as if it were not there.

// body is a request.
type body struct {
	Version       string        `json:"anthropic_version,omitempty"` // in place of a header, on Vertex AI
	Model         string        `json:"model,omitempty"`             // in the URL on Vertex AI
	MaxTokens     int64         `json:"max_tokens"`
	System        []content     `json:"system,omitempty"`
	Messages      []message     `json:"messages"`
	Tools         []tool        `json:"tools,omitempty"`
	ToolChoice    *choice       `json:"tool_choice,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	Thinking      *thinking     `json:"thinking,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	Stream        bool          `json:"stream,omitempty"`
}

// message is one of the user or of the assistant.
type message struct {
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

const (
	userRole      = "user"
	assistantRole = "assistant"
)

// content is a block of a message of a request. Which members it has depends on its type.
type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"` // may be empty
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"` // of redacted thinking
	Source    *source         `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Content   []content       `json:"content,omitempty"` // of a tool's result
	Cache     *ephemeral      `json:"cache_control,omitempty"`
}

// The types of content blocks. Those of the provider's own tools, which a patch can switch on, are not for us.
const (
	textBlock     = "text"
	thinkBlock    = "thinking"
	redactedBlock = "redacted_thinking"
	callBlock     = "tool_use"
	resultBlock   = "tool_result"
	imageBlock    = "image"
	documentBlock = "document"
)

// textOf returns a block of text.
func textOf(text string) content { return content{Type: textBlock, Text: text} }

// source is where an image or a document is.
type source struct {
	Type      string `json:"type"` // base64 or url
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// ephemeral marks the end of a prefix for the cache.
type ephemeral struct {
	Type string `json:"type"`
}

// tool is the declaration of a tool.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       *ephemeral      `json:"cache_control,omitempty"`
}

// choice says which tools have to be called: any, or the one with the name.
type choice struct {
	Type string `json:"type"` // any or tool
	Name string `json:"name,omitempty"`
}

// thinking asks for thoughts.
type thinking struct {
	Type         string `json:"type"` // enabled, adaptive or disabled
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

// outputConfig says what a reply is like.
type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

// outputFormat is the form of a reply.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// reply is a reply in one piece.
type reply struct {
	Content     []replyBlock `json:"content"`
	StopReason  wire.String  `json:"stop_reason"`
	StopDetails stopDetails  `json:"stop_details"`
	Usage       usage        `json:"usage"`
}

// replyBlock is a block of a reply.
type replyBlock struct {
	Type      wire.String    `json:"type"`
	Text      wire.String    `json:"text"`
	Thinking  wire.String    `json:"thinking"`
	Signature wire.String    `json:"signature"`
	Data      wire.String    `json:"data"`
	ID        wire.String    `json:"id"`
	Name      wire.String    `json:"name"`
	Input     wire.Arguments `json:"input"`
}

// piece returns b as the beginning of a block.
func (b replyBlock) piece() piece {
	return piece{
		typ: string(b.Type), text: string(b.Text), thinking: string(b.Thinking), signature: string(b.Signature), data: string(b.Data),
		id: string(b.ID), name: string(b.Name), input: string(b.Input),
	}
}

type stopDetails struct {
	Explanation wire.String `json:"explanation"`
}

// The reasons for which a reply ends.
const (
	endTurn        = "end_turn"
	maxTokens      = "max_tokens"
	stopSequence   = "stop_sequence"
	toolUse        = "tool_use"
	refusal        = "refusal"
	windowExceeded = "model_context_window_exceeded"
)

// event is an event of a streamed reply. Which members it has depends on its type.
type event struct {
	Type         wire.String `json:"type"`
	Index        wire.Int    `json:"index"`
	Message      reply       `json:"message"`
	ContentBlock replyBlock  `json:"content_block"`
	Usage        usage       `json:"usage"`
	Delta        struct {
		Text        wire.String `json:"text"`
		Thinking    wire.String `json:"thinking"`
		Signature   wire.String `json:"signature"`
		PartialJSON wire.String `json:"partial_json"`
		StopReason  wire.String `json:"stop_reason"`
		StopDetails stopDetails `json:"stop_details"`
	} `json:"delta"`
}

// usage counts tokens.
type usage struct {
	Input         wire.Int `json:"input_tokens"` // neither read from the cache nor written to it
	CacheRead     wire.Int `json:"cache_read_input_tokens"`
	CacheCreation wire.Int `json:"cache_creation_input_tokens"`
	Output        wire.Int `json:"output_tokens"`
	OutputDetails struct {
		Thinking wire.Int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}
