package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// Batches says how texts are sent to be embedded.
type Batches struct {
	Size  int // texts a request; 0 means all
	Width int // requests at once; 0 means 1
}

// embedded is what one request gave.
type embedded struct {
	vectors [][]float32
	usage   chat.Usage
	err     error
}

// Embed returns the vectors that ask gets for texts, in the order of the texts; without
// texts it asks for nothing. tokens is what the server counted, 0 if it did not. The
// first failure cancels the context of the other requests. ctx is one of [Frame.Call].
func (f *Frame) Embed(ctx context.Context, texts []string, b Batches,
	ask func(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error),
) ([][]float32, chat.Usage, error) {
	batches := slices.Collect(slices.Chunk(texts, cmp.Or(b.Size, max(len(texts), 1))))
	results := make([]embedded, len(batches)) // each is written by the one goroutine that took its index
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int)
	var failed error
	var once sync.Once
	var wg sync.WaitGroup
	for range min(max(b.Width, 1), len(batches)) {
		wg.Go(func() { // ends when next is closed
			for i := range next {
				results[i] = embed(inner, batches[i], ask)
				if err := results[i].err; err != nil {
					once.Do(func() { failed = err; cancel() })
				}
			}
		})
	}
	for i := range batches {
		next <- i // after a failure requests end at once
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, chat.Usage{}, f.RequestError(ctx, ctx.Err())
	}
	if failed != nil {
		return nil, chat.Usage{}, failed
	}
	var vectors [][]float32
	var usage chat.Usage
	for _, r := range results {
		vectors, usage = append(vectors, r.vectors...), usage.Add(r.usage)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, chat.Usage{}, badReply("embeddings that are empty or differ in length")
		}
	}
	return vectors, usage, nil
}

func embed(ctx context.Context, texts []string, ask func(context.Context, []string) ([][]float32, int, error)) embedded {
	if ctx.Err() != nil {
		return embedded{err: ctx.Err()}
	}
	vectors, tokens, err := ask(ctx, texts)
	if err == nil && len(vectors) != len(texts) {
		err = badReply("%d embeddings for %d texts", len(vectors), len(texts))
	}
	return embedded{vectors, normalize.InputUsage(tokens, texts...), err}
}

func badReply(format string, args ...any) error {
	return &provider.Error{Kind: provider.BadReply, Msg: fmt.Sprintf(format, args...)}
}

// Rated is one document of a server's ranking.
type Rated struct {
	Index          *wire.Int // into the documents of the request
	RelevanceScore *float64  `json:"relevance_score"`
	Score          *float64  // the same, as other servers call it; both nil of a server that only sorts
}

// Rerank sends payload to target and returns the answer to req, best first. read returns
// the ranking in a reply, and the tokens that the server counted, 0 if it did not. Without
// documents nothing is sent. ctx is one of [Frame.Call].
func (f *Frame) Rerank(ctx context.Context, req provider.RerankRequest, target string, payload any,
	read func([]byte) (list []Rated, tokens int, err error),
) ([]provider.Ranked, chat.Usage, error) {
	if len(req.Documents) == 0 {
		return nil, chat.Usage{}, nil
	}
	var ranked []provider.Ranked
	var tokens int
	err := f.Ask(ctx, target, payload, func(data []byte) (err error) {
		var list []Rated
		if list, tokens, err = read(data); err == nil {
			ranked, err = rank(list, len(req.Documents))
		}
		return err
	})
	if err != nil {
		return nil, chat.Usage{}, err
	}
	if req.TopN > 0 && len(ranked) > req.TopN {
		ranked = ranked[:req.TopN]
	}
	// The model reads the query once with each document.
	texts := append([]string{strings.Repeat(req.Query, len(req.Documents))}, req.Documents...)
	return ranked, normalize.InputUsage(tokens, texts...), nil
}

// rank checks list, which refers to n documents, and puts the best first.
func rank(list []Rated, n int) ([]provider.Ranked, error) {
	ranked := make([]provider.Ranked, len(list))
	seen := make(map[int]bool)
	for i, r := range list {
		if r.Index == nil || *r.Index < 0 || int(*r.Index) >= n || seen[int(*r.Index)] {
			return nil, badReply("result %d of the ranking refers to no document of its own", i+1)
		}
		seen[int(*r.Index)] = true
		ranked[i] = provider.Ranked{Index: int(*r.Index), Score: float64(len(list) - i)}
		if score := cmp.Or(r.RelevanceScore, r.Score); score != nil {
			ranked[i].Score = *score
		}
	}
	slices.SortStableFunc(ranked, func(a, b provider.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, nil
}
