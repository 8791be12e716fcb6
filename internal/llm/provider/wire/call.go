package wire

import (
	"context"
	"net/http"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
)

// API is a kind of request that a client can be patched for.
type API string

// The APIs, as the configuration calls them.
const (
	ChatCompletions API = "chat_completions"
	Embeddings      API = "embeddings"
	Rerank          API = "rerank"
)

// APIs returns all of them.
func APIs() []API { return []API{ChatCompletions, Embeddings, Rerank} }

// Model is what the configuration says about one model name. The zero value says
// nothing.
type Model struct {
	RealName string // name sent to the server; empty means the name itself
	Patch    Patch  // applied to every request with this model, before the client's rules

	Efforts  []provider.Effort // that it knows; nil means that they are not known
	NoCache  bool              // do not mark its prompts for the provider's cache
	API      string            // that it is asked with, in the words of the configuration; empty means the client's
	ToolsAPI string            // that requests with tools need as long as it reasons; empty means the same as without
}

// Lookup returns what model says about name, with the real name filled in. A nil
// model says nothing.
func Lookup(model func(name string) Model, name string) Model {
	var m Model
	if model != nil {
		m = model(name)
	}
	if m.RealName == "" {
		m.RealName = name
	}
	return m
}

// Call is what the client has to know about one request beside the request.
type Call struct {
	API   API
	Model string // the name as configured, which the client's patterns match
	Patch Patch  // the model's own
}

// WithCall returns a context for one request, or for the requests of one operation
// of an SDK: the client of [NewClient] patches them as c says. [Failure] with that
// context keeps what is secret in them out of errors.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, &call{Call: c})
}

type callKey struct{}

// call is a Call under way.
type call struct {
	Call
	mu      sync.Mutex
	secrets secrets // of the requests so far
}

type headerKey struct{}

// WithHeader returns a context for requests. read gets the header fields of each response to them, also of one that refuses
// the request. It may be called from several goroutines.
func WithHeader(ctx context.Context, read func(http.Header)) context.Context {
	return context.WithValue(ctx, headerKey{}, read)
}

// callOf returns the call of ctx, nil if there is none.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

func (c *call) keep(s secrets) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range s.texts {
		c.secrets.add(text)
	}
}

func (c *call) clean(e *provider.Error) *provider.Error {
	if c == nil {
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.secrets.inError(e)
}

// maxReply returns how long a reply may be unless the client says so, in bytes.
// 2,000 vectors of 4,000 numbers are 100 MB of JSON; a call that is not known may
// be for such.
func (c *call) maxReply() int64 {
	if c != nil && c.API != Embeddings {
		return 64 << 20
	}
	return 256 << 20
}

// configError is a fault of the configuration of a client.
func configError(format string, args ...any) *fault.Error {
	return fault.New(fault.Config, format, args...)
}
