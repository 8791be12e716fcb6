// Package provider is the contract between Loki and the makers of models.
//
// A provider implements [Chat], and [Embedder] or [Reranker] where it has them;
// callers find the latter two by type assertion. A model id is "client:model": the
// client is one configured connection, the model is the provider's own name.
// The sub-packages implement the contract: openai speaks the OpenAI wire format,
// builtin holds the models that are part of Loki and work offline. The sub-package
// providertest is the suite that every implementation passes.
package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// Chat completes conversations. Its method may be called from several goroutines.
type Chat interface {
	// Chat sends one request and yields the reply piece by piece.
	//
	// The sequence yields zero or more notes and text, reasoning and tool-call chunks and then
	// exactly one chunk of kind [End]. If anything fails it yields one non-nil error
	// instead, after whatever was received before, and stops; the error is an
	// [*Error] or wraps ctx's error. A consumer that stops early releases the
	// connection. The sequence can be ranged over once.
	Chat(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// Embedder turns texts into vectors.
type Embedder interface {
	// Embed returns one vector per text, in order. All have the same length.
	Embed(ctx context.Context, req EmbedRequest) ([][]float32, chat.Usage, error)
}

// Reranker orders documents by their relevance to a query.
type Reranker interface {
	// Rerank returns at most req.TopN documents, best first.
	Rerank(ctx context.Context, req RerankRequest) ([]Ranked, chat.Usage, error)
}

// Lister names the models of a server.
type Lister interface {
	// ListModels returns the server's own names of its models, as far as they fit into one reply. It uses no tokens.
	ListModels(ctx context.Context) ([]string, error)
}

// Request is one call to a chat model.
type Request struct {
	Model    string         // the provider's own name of the model, without the client
	Messages []chat.Message // at most one system message, first
	Tools    []chat.Tool
	chat.Sampling
	// Constraints are passed on where the provider's API has them. Constraints that it lacks are notes, except Stop,
	// which the caller sees to as well.
	chat.Constraints
	MaxOutputTokens int  // 0 leaves it to the provider
	Stream          bool // false asks for the reply in one piece
	Origin          Origin

	// OutputLimit is the longest reply that the model can write, in tokens, for providers
	// that have to say how long a reply may be; 0 means unknown.
	OutputLimit int

	// Format is the form that the reply has to have, nil for any text. The messages ask for
	// it, too, since no provider takes all of a schema. A provider without
	// structured output, or whose server refuses it for the model, sends the request
	// without the format.
	Format *Format
}

// Format is the form of a reply: JSON that satisfies a JSON Schema.
type Format struct{ Schema value.Value }

// GoesOn reports whether a request is likely to be sent again with more after it: it offers tools,
// or continues a conversation. A cache for prompts is worth its price
// then, and not for a single question.
func GoesOn(req Request) bool {
	return len(req.Tools) > 0 || slices.ContainsFunc(req.Messages, func(m chat.Message) bool { return m.Role == chat.Assistant })
}

// Effort is [chat.Effort].
type Effort = chat.Effort

// The efforts, in ascending order.
const (
	NoEffort      = chat.NoEffort
	MinimalEffort = chat.MinimalEffort
	LowEffort     = chat.LowEffort
	MediumEffort  = chat.MediumEffort
	HighEffort    = chat.HighEffort
	XHighEffort   = chat.XHighEffort
	MaxEffort     = chat.MaxEffort
)

// EffortNames lists the efforts for messages.
func EffortNames() string { return chat.EffortNames() }

// Origin says where in Loki a request comes from. It is never sent to a remote
// provider.
type Origin struct {
	Node string // the graph node that asks, empty outside graphs
	Turn int    // 1 for the first call of a tool loop, then counting up
}

// ChunkKind says what a [Chunk] carries.
type ChunkKind int

// The kinds of chunk.
const (
	Text      ChunkKind = iota + 1 // Text is a piece of the answer
	Reasoning                      // Text is a piece of the model's reasoning
	ToolCall                       // ToolCall is one call, as the server sent it: complete unless Stop says that the reply was cut off
	Note                           // Text, for the user, says what of the request the model got in another way; not part of the reply
	End                            // the reply is complete: Stop and Usage are set
)

// Chunk is a piece of a streamed reply.
type Chunk struct {
	Kind      ChunkKind
	Text      string          // Text, Reasoning, Note
	Signature string          // Reasoning: not empty if this ends a block of reasoning, of which it is the proof
	ToolCall  chat.ToolCall   // ToolCall
	Stop      chat.StopReason // End
	Usage     chat.Usage      // End; estimated if the provider reported none
	Limit     int             // End: the output limit that was sent, in tokens, if it is another than the request's
	Window    bool            // End with chat.StopLength: it was not the output limit, but the context window is full
	Broken    bool            // End: the calls may lack arguments, or have those of others, so they must not be run
	Body      string          // End of a reply without text and calls: the beginning of what the server sent
}

// EmbedRequest asks for the vectors of texts.
type EmbedRequest struct {
	Model string
	Texts []string
	Query bool // the texts are search queries, not documents
	// Dimensions is how many numbers the vectors should have, where an API lets the caller choose; 0 leaves it
	// to the model.
	Dimensions int
}

// RerankRequest asks for the order of documents.
type RerankRequest struct {
	Model     string
	Query     string
	Documents []string
	TopN      int // 0 means all
}

// Ranked is one document of a [Reranker]'s answer.
type Ranked struct {
	Index int     // into RerankRequest.Documents
	Score float64 // higher is better; not comparable across calls
}

// ErrorKind sorts failures by what a caller can do about them.
type ErrorKind string

// The kinds of failure.
const (
	Authentication  ErrorKind = "authentication"   // key missing, wrong or without rights
	RateLimited     ErrorKind = "rate_limited"     // too many requests: wait RetryAfter
	ContextOverflow ErrorKind = "context_overflow" // the conversation is longer than the model allows
	Transient       ErrorKind = "transient"        // connection lost, time-out, overload: the same call may work later
	Refused         ErrorKind = "refused"          // the provider declined, or broke off, for its content rules
	Invalid         ErrorKind = "invalid"          // the request is wrong, or the model unknown: the same call will fail again
	BadReply        ErrorKind = "bad_reply"        // the reply cannot be understood
)

// Error is a failed call to a provider.
type Error struct {
	Kind       ErrorKind
	Status     int           // HTTP status, 0 if there was none
	RetryAfter time.Duration // how long the provider asks to wait, 0 if it did not say
	URL        string        // where the request went, without user and query; may be empty
	Msg        string        // the provider's message; holds no key or header
	Err        error         // cause, may be nil
	Rate       bool          // a limit of requests or tokens in a time is used up, and not one of calls at once
	Away       bool          // it was not asked, because it did not answer earlier calls: another model can be asked at once
}

// Error returns the message, the HTTP status if there is one, and the cause.
func (e *Error) Error() string {
	msg := e.Msg
	if e.Status != 0 {
		msg = fmt.Sprintf("%s (HTTP %d)", msg, e.Status)
	}
	if e.Err != nil {
		if msg == "" {
			return e.Err.Error()
		}
		return msg + ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode returns [fault.Refused] for refusals and [fault.Provider] for other failures,
// except for a key that could not even be read: that is what its cause is, such as a
// secret that is missing.
func (e *Error) FaultCode() fault.Code {
	if e.Kind == Refused {
		return fault.Refused
	}
	if f, ok := errors.AsType[*fault.Error](e.Err); ok && e.Kind == Authentication {
		return f.Code
	}
	return fault.Provider
}

// KindOf returns the kind of the [*Error] in err, "" if there is none.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// Retryable reports whether the same call may succeed later.
func Retryable(err error) bool {
	kind := KindOf(err)
	return kind == RateLimited || kind == Transient
}

// RetryAfter returns how long the provider asked to wait, 0 if it did not.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
