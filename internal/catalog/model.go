package catalog

import (
	"cmp"
	"strings"

	"loki/internal/value"
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
const DefaultChunkSize = 1000

// Model is what is known about one model. Numbers are tokens unless they say
// otherwise, and 0 means unknown or no limit.
type Model struct {
	Client     string // name of the client it belongs to
	ClientType string // the client's type
	Name       string // may be empty: the client has one nameless model
	Type       Type
	RealName   string // the provider's name of it; empty means Name

	// Listed is false for a model that is known by name only, because no list has
	// it: its limits, prices and abilities are all unset.
	Listed bool

	// Hidden models are known for what already names them: configurations, sessions,
	// roles and graphs. No list shows them.
	Hidden bool
	// Retired is the day, such as "2026-10-23", on which the provider switches the model
	// off. From then on the model is hidden, and [Catalog.Retirement] says so. Empty if
	// no day is known.
	Retired    string
	ReplacedBy string // name of the same client's model to use instead, empty if none is known

	MaxInputTokens int

	// Prices are US dollars for a million tokens; nil is unknown, 0 free.
	InputPrice       *float64
	OutputPrice      *float64
	CachedInputPrice *float64 // of input that is read from the provider's cache
	CacheWritePrice  *float64 // of input that is written to the provider's cache

	Patch *Patch // applied to every request, nil for none

	// Fallbacks are the ids of the models to try, in order, when this one fails. They
	// are as the configuration names them; [Catalog.Fallbacks] finds the models.
	Fallbacks []string

	// Chat models.
	MaxOutputTokens         int
	RequireMaxTokens        bool // send MaxOutputTokens with each request
	SupportsVision          bool
	SupportsFunctionCalling bool // only then are tools offered to it
	SupportsReasoning       bool // thinks before it answers, always or on demand
	// ReasoningLevels are the efforts of reasoning that the provider takes for the model,
	// in ascending order, such as "none", "low" and "max". Nil if they are unknown.
	ReasoningLevels    []string
	API                string // the API that it is asked with, [ChatCompletionsAPI] or [ResponsesAPI]; "" means the client's
	ToolsAPI           string // the API that requests with tools need as long as it reasons; "" means the same as without
	NoStream           bool   // ask for replies in one piece
	NoSystemMessage    bool   // put system text into the first user message
	SystemPromptPrefix string // comes before the system message, or is it

	// Embedding models.
	MaxTokensPerChunk int
	DefaultChunkSize  int // characters; [DefaultChunkSize] unless configured
	MaxBatchSize      int // texts in a request
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

// Patch is a change to a finished request, for what a provider wants differently.
// It is immutable.
type Patch struct {
	URL     string        // replaces the URL unless empty
	Body    *value.Object // merged into the body as RFC 7396 says; nil leaves it
	Headers []Header
}

// Header is a header that a [Patch] sets or, with a nil value, removes.
type Header struct {
	Name  string
	Value *string
}
