package cohere

import (
	"context"
	"encoding/json"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

type rerankRequest struct {
	Model     string   `json:"model"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n,omitempty"`
}

// Rerank implements [provider.Reranker]. Scores are between 0 and 1. Cohere bills
// searches, so the tokens of the usage are an estimate.
func (c *Client) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	ctx, m := c.frame.Call(ctx, wire.Rerank, req.Model)
	return c.frame.Rerank(ctx, req, c.frame.URL("/rerank"), rerankRequest{
		Model: m.RealName, Query: req.Query, Documents: req.Documents, TopN: min(req.TopN, len(req.Documents)),
	}, readRanking)
}

// readRanking reads a ranking and the tokens that the server counted.
func readRanking(data []byte) ([]client.Rated, int, error) {
	var reply struct {
		Results []client.Rated
		Meta    replyMeta
	}
	if err := json.Unmarshal(data, &reply); err != nil || len(reply.Results) == 0 {
		return nil, 0, wire.MissingError("ranking", data)
	}
	return reply.Results, reply.Meta.tokens(), nil
}
