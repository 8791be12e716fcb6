// Package builtin is the provider whose models are part of Loki: they need no
// network and no key, stream like any other, and answer the same request always in
// the same way.
//
// The model "extract" summarizes by choosing sentences, "echo" repeats the user's
// message, and "script" answers from a file of rules, which makes it the test
// double for agents and graphs. The embedding model "hash" turns texts into vectors by their
// words. Token counts are [chat.EstimateTokens] of what goes
// in and out. A model that has no tokenizer of its own has no truer count, so
// its usage is not marked as estimated.
package builtin

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/builtin/script"
)

// The names of the models.
const (
	Extract = "extract"
	Echo    = "echo"
	Script  = "script" // with Options.ScriptFile; "script/PATH" names the rule file itself
	Hash    = "hash"   // an embedding model
)

// Options configures [New]. The zero value of each field is its default.
type Options struct {
	// ScriptFile is the rule file of the model "script", relative to the working
	// directory. Empty means that this model answers with an error that says so.
	ScriptFile string

	// OnlyScriptFile refuses the models "script/PATH". It is for servers, where
	// a caller who names a model must not name a file to read.
	OnlyScriptFile bool

	// Sleep waits for d, or until ctx is done and then returns ctx's error. Nil means
	// a real timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Provider is the built-in provider. It implements [provider.Chat] and [provider.Embedder]; its
// methods may be called from several goroutines.
type Provider struct {
	options Options
	sleep   func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex
	scripts map[string]*script.File // guarded by mu: the rule files read so far, by clean path

	hashes sync.Pool // of *hash.Embedder
}

var (
	_ provider.Chat     = (*Provider)(nil)
	_ provider.Embedder = (*Provider)(nil)
)

// New returns a provider. It reads no file: a rule file is read when the first
// request needs it and then kept, with the counts of its rules, as long as the
// provider.
func New(o Options) *Provider {
	p := &Provider{options: o, sleep: o.Sleep, scripts: make(map[string]*script.File)}
	if p.sleep == nil {
		p.sleep = retry.Sleep
	}
	return p
}

// Model describes one chat model of the provider.
type Model struct {
	Name    string // as in provider.Request.Model
	Summary string // one line for lists
	Tools   bool   // the model may answer with tool calls
}

// Models returns the chat models, in a fixed order.
func (p *Provider) Models() []Model {
	return []Model{
		{Name: Extract, Summary: "summarizes by choosing the most important sentences of a text"},
		{Name: Echo, Summary: "repeats the last user message"},
		{Name: Script, Summary: "answers from a file of rules, for tests", Tools: true},
	}
}

// Chat answers req. See [provider.Chat].
func (p *Provider) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(provider.Chunk{}, fmt.Errorf("model %s: %w", req.Model, err))
			return
		}
		r, err := p.answer(ctx, req)
		if err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		p.send(ctx, req, r, yield)
	}
}

// answer has the model that req names make a reply.
func (p *Provider) answer(ctx context.Context, req provider.Request) (reply, error) {
	name, path, hasPath := strings.Cut(req.Model, "/")
	switch {
	case req.Model == Extract:
		return extractReply(req), nil
	case req.Model == Echo:
		return echoReply(req), nil
	case name == Script && !hasPath:
		return p.scriptReply(ctx, req, p.options.ScriptFile)
	case name == Script && p.options.OnlyScriptFile:
		return reply{}, invalid(nil, "the model %q names a rule file, which is not allowed here; use the model %q", req.Model, Script)
	case name == Script:
		return p.scriptReply(ctx, req, path)
	}
	return reply{}, invalid(nil, "unknown model %q; the built-in models are %s, %s, %s and %s/PATH", req.Model, Extract, Echo, Script, Script)
}

// invalid returns the error of a request that will fail again. cause may be nil.
func invalid(cause error, format string, args ...any) error {
	return &provider.Error{Kind: provider.Invalid, Msg: fmt.Sprintf(format, args...), Err: cause}
}

// lastUser returns the last user message, the zero message if there is none.
func lastUser(req provider.Request) chat.Message {
	var last chat.Message
	for _, m := range req.Messages {
		if m.Role == chat.User {
			last = m
		}
	}
	return last
}
