package governor

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// once is one call to a provider. ctx is for the call. came says that a part of the reply came.
type once func(ctx context.Context) (used chat.Usage, came bool, err error)

// call makes a call when it is its turn, and again as long as the provider refuses it.
func (l *limiter) call(ctx context.Context, need amount, ask once) error {
	w := l.enter(ctx, need)
	defer func() {
		if w.refused > 0 {
			l.report(ctx, w, 0)
		}
	}()
	for {
		if err := l.await(ctx, w); err != nil {
			return err
		}
		if again, err := l.try(ctx, w, ask); !again {
			return err
		}
	}
}

// try makes the call of w once. again says that it has to be repeated.
func (l *limiter) try(ctx context.Context, w *waiter, ask once) (again bool, err error) {
	var (
		mu   sync.Mutex
		said []reading
	)
	inner := wire.WithHeader(ctx, func(h http.Header) {
		if !l.limits.Learn {
			return
		}
		now := time.Now()
		list := readings(h, now)
		if len(list) == 0 {
			return
		}
		mu.Lock()
		said = list
		mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.update(func(s *state) { s.learn(now, w.ticket, list) })
	})
	end := func(s *state, _ time.Time) { s.release(l.id) }
	defer func() { l.end(w, func(s *state, now time.Time) { end(s, now) }) }()
	used, came, err := ask(inner)
	switch {
	case err == nil:
		end = func(s *state, now time.Time) {
			s.endSucceeded(now, l.id, w.ticket, amount{float64(used.InputTokens), float64(used.OutputTokens)})
		}
	case l.limits.Learn && provider.KindOf(err) == provider.RateLimited:
		w.refused++
		mu.Lock()
		refusal, _ := errors.AsType[*provider.Error](err)
		empty := usedUp(said) || refusal.Rate
		mu.Unlock()
		end = func(s *state, now time.Time) {
			wait := s.endRefused(now, l.id, w.ticket, l.limits, refusal.RetryAfter, empty)
			if w.notUntil = now.Add(wait); wait <= l.limits.ParkAfter {
				again = !came
				return
			}
			for _, other := range l.waiting { // it does not wait either
				other.notUntil = time.Time{}
			}
			refusal.RetryAfter = wait
		}
	case l.limits.Learn && provider.KindOf(err) == provider.Transient && !came:
		end = func(s *state, now time.Time) { s.endFailed(now, l.id) }
	}
	return again, err
}

// Chat returns p within the limit of a model.
func (g *Governor) Chat(p provider.Chat, o Options) provider.Chat {
	if o.Limits.None() {
		return p
	}
	return governed{limiter: g.limit(o), chat: p}
}

// Embedder returns p within the limit of a model.
func (g *Governor) Embedder(p provider.Embedder, o Options) provider.Embedder {
	if o.Limits.None() {
		return p
	}
	return governed{limiter: g.limit(o), embedder: p}
}

// Reranker returns p within the limit of a model.
func (g *Governor) Reranker(p provider.Reranker, o Options) provider.Reranker {
	if o.Limits.None() {
		return p
	}
	return governed{limiter: g.limit(o), reranker: p}
}

type governed struct {
	*limiter
	chat     provider.Chat
	embedder provider.Embedder
	reranker provider.Reranker
}

// Chat implements [provider.Chat].
func (g governed) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		stopped := false
		err := g.call(ctx, g.needs(req), func(ctx context.Context) (used chat.Usage, came bool, err error) {
			for chunk, err := range g.chat.Chat(ctx, req) {
				if err != nil {
					return used, came, err
				}
				came = came || chunk.Kind != provider.Note
				if chunk.Kind == provider.End {
					used = chunk.Usage
				}
				if !yield(chunk, nil) {
					stopped = true
					return used, true, nil
				}
			}
			return used, came, nil
		})
		if err != nil && !stopped {
			yield(provider.Chunk{}, err)
		}
	}
}

// needs estimates what a request takes from limits of tokens.
func (g governed) needs(req provider.Request) amount {
	g.mu.Lock()
	known, output := g.known, g.output
	g.mu.Unlock()
	if !known {
		return amount{}
	}
	estimate := token.Estimate()
	if req.MaxOutputTokens > 0 {
		output = req.MaxOutputTokens
	}
	return amount{float64(estimate.Messages(req.Messages) + estimate.Tools(req.Tools)), float64(output)}
}

// Embed implements [provider.Embedder].
func (g governed) Embed(ctx context.Context, req provider.EmbedRequest) (vectors [][]float32, used chat.Usage, err error) {
	err = g.call(ctx, texts(req.Texts), func(ctx context.Context) (chat.Usage, bool, error) {
		vectors, used, err = g.embedder.Embed(ctx, req)
		return used, false, err
	})
	return vectors, used, err
}

// Rerank implements [provider.Reranker].
func (g governed) Rerank(ctx context.Context, req provider.RerankRequest) (ranked []provider.Ranked, used chat.Usage, err error) {
	err = g.call(ctx, texts(req.Documents), func(ctx context.Context) (chat.Usage, bool, error) {
		ranked, used, err = g.reranker.Rerank(ctx, req)
		return used, false, err
	})
	return ranked, used, err
}

// texts estimates the tokens of texts.
func texts(list []string) amount {
	n := 0
	for _, text := range list {
		n += token.Estimate().Text(text)
	}
	return amount{input: float64(n)}
}
