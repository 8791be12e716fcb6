package catalog

import (
	"cmp"
	"strings"

	"loki/internal/llm/provider/wire"
)

// Type says what a model is for.
type Type string

// The types of model.
const (
	Chat      Type = "chat"
	Embedding Type = "embedding"
	Reranker  Type = "reranker"
)

// ParseType returns the type that a configuration names: whatever begins with
// "embed" is an embedding model, with "rerank" a reranker, and all else is for chat.
func ParseType(name string) Type {
	switch {
	case strings.HasPrefix(name, "embed"):
		return Embedding
	case strings.HasPrefix(name, "rerank"):
		return Reranker
	}
	return Chat
}

// APIs of OpenAI that a model may need.
const (
	ChatCompletionsAPI = "chat_completions"
	ResponsesAPI       = "responses"
)

// DefaultChunkSize is the chunk size, in characters, of an embedding model that
// names none.
const DefaultChunkSize = 2000

// IsZero reports whether t is left out of the JSON form of a [Model].
func (t Type) IsZero() bool { return t == "" || t == Chat }

// Model is what is known about one model. Numbers are tokens unless they say
// otherwise, and 0 means unknown or no limit. Its JSON form has the keys of the YAML form,
// which [DecodeModel] reads, so that every text in it is YAML too.
type Model struct {
	Client     string `json:"-"` // name of the client it belongs to
	ClientType string `json:"-"` // the client's type

	// Listed is false for a model that is known by name only, because no list has
	// it: its limits, prices and abilities are all unset.
	Listed bool `json:"-"`

	Name     string `json:"name"`                // may be empty: the client has one nameless model
	Type     Type   `json:"type,omitzero"`       // absent for chat
	RealName string `json:"real_name,omitempty"` // the provider's name of it; empty means Name

	MaxInputTokens   int  `json:"max_input_tokens,omitempty"`
	MaxOutputTokens  int  `json:"max_output_tokens,omitempty"`
	RequireMaxTokens bool `json:"require_max_tokens,omitempty"` // send MaxOutputTokens with each request

	// Prices are US dollars for a million tokens; nil is unknown, 0 free.
	InputPrice       *float64 `json:"input_price,omitempty"`
	OutputPrice      *float64 `json:"output_price,omitempty"`
	CachedInputPrice *float64 `json:"cached_input_price,omitempty"` // of input that is read from the provider's cache
	CacheWritePrice  *float64 `json:"cache_write_price,omitempty"`  // of input that is written to the provider's cache

	// Chat models.
	SupportsVision          bool `json:"supports_vision,omitempty"`
	SupportsFunctionCalling bool `json:"supports_function_calling,omitempty"` // only then are tools offered to it
	SupportsReasoning       bool `json:"supports_reasoning,omitempty"`        // thinks before it answers, always or on demand
	// ReasoningLevels are the efforts of reasoning that the provider takes for the model,
	// in ascending order, such as "none", "low" and "max". Nil if they are unknown.
	ReasoningLevels    []string `json:"reasoning_levels,omitzero"`
	API                string   `json:"api,omitempty"`                  // the API that it is asked with, [ChatCompletionsAPI] or [ResponsesAPI]; "" means the client's
	ToolsAPI           string   `json:"tools_api,omitempty"`            // the API that requests with tools need as long as it reasons; "" means the same as without
	NoStream           bool     `json:"no_stream,omitempty"`            // ask for replies in one piece
	NoSystemMessage    bool     `json:"no_system_message,omitempty"`    // put system text into the first user message
	SystemPromptPrefix string   `json:"system_prompt_prefix,omitempty"` // comes before the system message, or is it

	// Embedding models.
	MaxTokensPerChunk int `json:"max_tokens_per_chunk,omitempty"`
	DefaultChunkSize  int `json:"default_chunk_size,omitempty"` // characters; [DefaultChunkSize] unless configured
	MaxBatchSize      int `json:"max_batch_size,omitempty"`     // texts in a request

	// Hidden models are known for what already names them: configurations, sessions,
	// roles and graphs. No list shows them.
	Hidden bool `json:"hidden,omitempty"`
	// Retired is the day, such as "2026-10-23", on which the provider switches the model
	// off. From then on the model is hidden, and [Catalog.Retirement] says so. Empty if
	// no day is known.
	Retired    string `json:"retired,omitempty"`
	ReplacedBy string `json:"replaced_by,omitempty"` // name of the same client's model to use instead, empty if none is known

	Patch *wire.Patch `json:"patch,omitempty"` // applied to every request, nil for none

	// Fallbacks are the ids of the models to try, in order, when this one fails. They
	// are as the configuration names them; [Catalog.Fallbacks] finds the models. An empty
	// list is not the same as none.
	Fallbacks []string `json:"fallback_models,omitzero"`
}

// ID returns the id of m: "client:name", or only the client if m has no name.
func (m Model) ID() string {
	if m.Name == "" {
		return m.Client
	}
	return m.Client + ":" + m.Name
}

// APIName returns the name of m that is sent to the provider.
func (m Model) APIName() string { return cmp.Or(m.RealName, m.Name) }
