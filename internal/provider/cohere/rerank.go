package cohere

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

type rerankRequest struct {
	Model     string   `json:"model"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n,omitempty"`
}

type rankedDocument struct {
	Index          *int
	RelevanceScore float64 `json:"relevance_score"`
}

// Rerank implements [provider.Reranker]. Scores are between 0 and 1. Cohere bills
// searches, so the tokens of the usage are an estimate. Without documents it asks
// nobody.
func (c *Client) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	if len(req.Documents) == 0 {
		return nil, chat.Usage{}, nil
	}
	m := wire.Lookup(c.model, req.Model)
	ctx = wire.WithCall(ctx, wire.Call{API: wire.Rerank, Model: req.Model, Patch: m.Patch})
	data, err := c.ask(ctx, "/rerank", rerankRequest{
		Model: m.RealName, Query: req.Query, Documents: req.Documents, TopN: min(req.TopN, len(req.Documents)),
	})
	if err != nil {
		return nil, chat.Usage{}, err
	}
	ranked, meta, err := readRanking(data, len(req.Documents))
	if err != nil {
		return nil, chat.Usage{}, err
	}
	if req.TopN > 0 && len(ranked) > req.TopN {
		ranked = ranked[:req.TopN]
	}
	// The model reads the query once with each document.
	read := append([]string{strings.Repeat(req.Query, len(req.Documents))}, req.Documents...)
	return ranked, meta.inputUsage(read...), nil
}

// readRanking reads a ranking of n documents and puts the best first.
func readRanking(data []byte, n int) ([]provider.Ranked, replyMeta, error) {
	var reply struct {
		Results []rankedDocument
		Meta    replyMeta
	}
	if err := json.Unmarshal(data, &reply); err != nil || len(reply.Results) == 0 {
		return nil, replyMeta{}, wire.Lacking("ranking", data)
	}
	ranked := make([]provider.Ranked, 0, len(reply.Results))
	seen := make(map[int]bool)
	for i, d := range reply.Results {
		if d.Index == nil || *d.Index < 0 || *d.Index >= n || seen[*d.Index] {
			return nil, replyMeta{}, &provider.Error{
				Kind: provider.BadReply, Msg: fmt.Sprintf("result %d of the ranking refers to no document of its own", i+1),
			}
		}
		seen[*d.Index] = true
		ranked = append(ranked, provider.Ranked{Index: *d.Index, Score: d.RelevanceScore})
	}
	slices.SortStableFunc(ranked, func(a, b provider.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, reply.Meta, nil
}
