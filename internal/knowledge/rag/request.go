package rag

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// requests sends requests to models.
type requests struct {
	budget engine.Budget // nil bounds nothing
	retry  retry.Policy
	events event.Scope // gets a warning for a repetition, once for requests that fail in the same way
}

// send makes one try of a request. It returns what was used even with an error.
type send func(context.Context) (chat.Usage, error)

// do makes a request to the model called id, and again if it failed in passing. The usage is that of
// all tries. What the provider says about the time when the same call may work is in the error, as
// [engine.WithTime] puts it there.
func (r requests) do(ctx context.Context, id string, input int, cost func(chat.Usage) chat.Usage, send send) (chat.Usage, error) {
	var total chat.Usage
	for failures := 1; ; failures++ {
		used, err := r.try(ctx, id, input, cost, send)
		if total = total.Add(used); err == nil {
			return total, nil
		}
		wait, stop := r.wait(ctx, err, failures, r.retry)
		if stop != nil {
			return total, stop
		}
		if err := r.warn(ctx, err, wait); err != nil {
			return total, err
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return total, err
		}
	}
}

// try makes a request once. It is reserved in the budget: input is the estimate of its tokens.
func (r requests) try(ctx context.Context, id string, input int, cost func(chat.Usage) chat.Usage, send send) (chat.Usage, error) {
	if cost == nil {
		cost = func(u chat.Usage) chat.Usage { return u }
	}
	settle := func(chat.Usage) {}
	if r.budget != nil {
		most := cost(chat.Usage{InputTokens: input, Estimated: true})
		var err error
		if settle, err = r.budget.Reserve(ctx, most, most, true); err != nil {
			return chat.Usage{}, err
		}
	}
	used, err := send(ctx)
	used = cost(used)
	settle(used)
	if err != nil {
		err = fmt.Errorf("model %s: %w", id, err)
	}
	return used, err
}

// wait returns how long to wait before the next try of a request whose last one, after failures in a
// row, ended with err. It returns an error if there is not to be another one.
func (r requests) wait(ctx context.Context, err error, failures int, policy retry.Policy) (time.Duration, error) {
	if ctx.Err() != nil || !provider.Retryable(err) {
		return 0, err
	}
	wait, ok := policy.Wait(failures, provider.RetryAfter(err), rand.Float64())
	if !ok {
		return 0, engine.WithTime(err, policy.Patience(), time.Now())
	}
	return wait, nil
}

// warn says that a request that ended with err is repeated after a wait.
func (r requests) warn(ctx context.Context, err error, wait time.Duration) error {
	text := fmt.Sprintf("%v; trying again in %v", err, wait.Round(100*time.Millisecond))
	return r.events.Emit(ctx, event.Warning{Text: text, Once: true})
}

// embed returns the vectors of texts, each of length 1, or zero if it has no direction. query says
// that the texts are questions. Only those are sent again if that failed in passing: a build looks at
// all of its requests before it does.
func (r requests) embed(ctx context.Context, m Embedder, texts []string, query bool) (vectors [][]float32, used chat.Usage, err error) {
	do := r.try
	if query {
		do = r.do
	}
	used, err = do(ctx, m.ID, tokens(texts), m.Cost, func(ctx context.Context) (used chat.Usage, err error) {
		vectors, used, err = m.Embed(ctx, provider.EmbedRequest{Model: m.Name, Texts: texts, Query: query})
		if err == nil {
			err = checkVectors(vectors, len(texts))
		}
		return used, err
	})
	if err != nil {
		return nil, used, err
	}
	for _, v := range vectors {
		normalize(v)
	}
	return vectors, used, nil
}

// tokens estimates the tokens of texts.
func tokens(texts []string) int {
	n := 0
	for _, text := range texts {
		n += chat.EstimateTokens(text)
	}
	return n
}

// checkVectors returns an error if what a model returned is not n vectors of the same length.
func checkVectors(vectors [][]float32, n int) error {
	bad := func(format string, args ...any) error {
		return &provider.Error{Kind: provider.BadReply, Msg: fmt.Sprintf(format, args...)}
	}
	if len(vectors) != n {
		return bad("%d vectors for %d texts", len(vectors), n)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return bad("vectors that are empty or differ in length")
		}
		if slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }) {
			return bad("a vector with a number that is not finite")
		}
	}
	return nil
}

// normalize gives v the length 1, unless it is zero.
func normalize(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
}

// DefaultBatch is how many texts are in a request to a model that does not say how many it takes.
const DefaultBatch = 16

// batch returns how many of n texts the next request to m takes, at least 1 if there are any: most,
// or as many as fit the tokens of a request. full reports whether more would not fit.
func (m Embedder) batch(tokens func(i int) int, n, most int) (size int, full bool) {
	sum := 0
	for size < n {
		sum += tokens(size)
		if size == most || size > 0 && m.MaxTokens > 0 && sum > m.MaxTokens {
			return size, true
		}
		size++
	}
	return size, size >= most
}

// batchSize returns the most texts of a request to m.
func (m Embedder) batchSize() int { return cmp.Or(m.MaxBatch, DefaultBatch) }
