package openai

import (
	"bytes"
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
	TopK      int      `json:"top_k,omitempty"` // Voyage
}

type rankedDocument struct {
	Index          *wire.Int
	RelevanceScore *float64 `json:"relevance_score"`
	Score          *float64
}

// Rerank implements [provider.Reranker]. Without documents it asks nobody.
func (c Compatible) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	if len(req.Documents) == 0 {
		return nil, chat.Usage{}, nil
	}
	m := wire.Lookup(c.model, req.Model)
	ctx = wire.WithCall(ctx, wire.Call{API: wire.Rerank, Model: req.Model, Patch: m.Patch})
	payload := rerankRequest{Model: m.RealName, Query: req.Query, Documents: req.Documents}
	if strings.HasPrefix(c.name, "voyageai") {
		payload.TopK = req.TopN
	} else {
		payload.TopN = req.TopN
	}
	var ranked []provider.Ranked
	var told *wireUsage
	err := c.postJSON(ctx, c.endpoint(wire.Rerank, m.RealName), payload, func(data []byte) error {
		docs, u, err := readRanking(data)
		if err != nil {
			return err
		}
		told = u
		ranked, err = rank(docs, len(req.Documents))
		return err
	})
	if err != nil {
		return nil, chat.Usage{}, err
	}
	if req.TopN > 0 && len(ranked) > req.TopN {
		ranked = ranked[:req.TopN]
	}
	// The model reads the query once with each document.
	read := append([]string{strings.Repeat(req.Query, len(req.Documents))}, req.Documents...)
	return ranked, told.inputUsage(read...), nil
}

// readRanking reads the list of results or data, or a bare list.
func readRanking(data []byte) ([]rankedDocument, *wireUsage, error) {
	var reply struct {
		Results []rankedDocument
		Data    []rankedDocument
		Usage   *wireUsage
	}
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		err = json.Unmarshal(data, &reply.Results)
	} else {
		err = json.Unmarshal(data, &reply)
	}
	docs := reply.Results
	if docs == nil {
		docs = reply.Data
	}
	if wire.Tolerate(err) != nil || len(docs) == 0 || docs[0].Index == nil {
		return nil, nil, wire.Lacking("ranking", data)
	}
	return docs, reply.Usage, nil
}

// rank checks docs, which refer to n documents, and puts the best first. Servers
// without scores are taken to have sorted them.
func rank(docs []rankedDocument, n int) ([]provider.Ranked, error) {
	ranked := make([]provider.Ranked, 0, len(docs))
	seen := make(map[int]bool)
	for i, d := range docs {
		if d.Index == nil || *d.Index < 0 || int(*d.Index) >= n || seen[int(*d.Index)] {
			return nil, &provider.Error{Kind: provider.BadReply, Msg: fmt.Sprintf("result %d of the ranking refers to no document of its own", i+1)}
		}
		seen[int(*d.Index)] = true
		r := provider.Ranked{Index: int(*d.Index)}
		if score := cmp.Or(d.RelevanceScore, d.Score); score != nil {
			r.Score = *score
		} else {
			r.Score = float64(len(docs) - i)
		}
		ranked = append(ranked, r)
	}
	slices.SortStableFunc(ranked, func(a, b provider.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, nil
}
