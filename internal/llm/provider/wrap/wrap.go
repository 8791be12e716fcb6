// Package wrap has providers around other ones, which add hints to errors and record what calls use, and providers that answer in
// place of others.
package wrap

import (
	"cmp"
	"context"
	"iter"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// Watch is what a provider is watched with.
type Watch struct {
	Came func(ctx context.Context) // is called when a piece of a reply has come; nil for nothing
	Hint func(error) error         // returns an error of the provider with a hint; nil stays nil
	Used func(chat.Usage)          // is called with what a call used
}

// Chat returns p with a watch.
func (w Watch) Chat(p provider.Chat) provider.Chat { return watched{Watch: w, chat: p} }

// Embedder returns p with a watch.
func (w Watch) Embedder(p provider.Embedder) provider.Embedder { return watched{Watch: w, embedder: p} }

// Reranker returns p with a watch.
func (w Watch) Reranker(p provider.Reranker) provider.Reranker { return watched{Watch: w, reranker: p} }

// watched has one of the providers.
type watched struct {
	Watch
	chat     provider.Chat
	embedder provider.Embedder
	reranker provider.Reranker
}

// Chat implements [provider.Chat].
func (w watched) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		for chunk, err := range w.chat.Chat(ctx, req) {
			if w.Came != nil {
				w.Came(ctx)
			}
			if err == nil && chunk.Kind == provider.End {
				w.Used(chunk.Usage)
			}
			if !yield(chunk, w.Hint(err)) {
				return
			}
		}
	}
}

func (w Watch) add(used chat.Usage) {
	if used != (chat.Usage{}) {
		w.Used(used)
	}
}

// Embed implements [provider.Embedder].
func (w watched) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	vectors, used, err := w.embedder.Embed(ctx, req)
	w.add(used)
	return vectors, used, w.Hint(err)
}

// Rerank implements [provider.Reranker].
func (w watched) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	ranked, used, err := w.reranker.Rerank(ctx, req)
	w.add(used)
	return ranked, used, w.Hint(err)
}

// Named asks another model than the request names.
type Named struct {
	Provider provider.Chat
	Model    string
}

// Chat implements [provider.Chat].
func (n Named) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	req.Model = n.Model
	return n.Provider.Chat(ctx, req)
}

// Unordered is a reranker after which the passages keep their order.
type Unordered struct{}

// Rerank implements [provider.Reranker].
func (Unordered) Rerank(_ context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	n := len(req.Documents)
	ranked := make([]provider.Ranked, min(n, cmp.Or(req.TopN, n)))
	for i := range ranked {
		ranked[i] = provider.Ranked{Index: i, Score: float64(n-i) / float64(n)}
	}
	return ranked, chat.Usage{}, nil
}

// Unasked is a provider that is not asked, because a cassette has the replies.
type Unasked struct{}

// Chat implements [provider.Chat].
func (Unasked) Chat(context.Context, provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		yield(provider.Chunk{}, fault.New(fault.Failure, "models are not asked while a cassette is played"))
	}
}
