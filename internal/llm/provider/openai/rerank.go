package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

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
	TopK      int      `json:"top_k,omitempty"` // Voyage
}

// Rerank implements [provider.Reranker].
func (c Compatible) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	ctx, m := c.frame.Call(ctx, wire.Rerank, req.Model)
	payload := rerankRequest{Model: m.RealName, Query: req.Query, Documents: req.Documents}
	if strings.HasPrefix(c.frame.Name, "voyageai") {
		payload.TopK = req.TopN
	} else {
		payload.TopN = req.TopN
	}
	return c.frame.Rerank(ctx, req, c.endpoint(wire.Rerank, m.RealName), payload, readRanking)
}

// readRanking reads the list of results or data, or a bare list, and returns with it the
// tokens that the server counted.
func readRanking(data []byte) ([]client.Rated, int, error) {
	var reply struct {
		Results []client.Rated
		Data    []client.Rated
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
		return nil, 0, wire.MissingError("ranking", data)
	}
	return docs, reply.Usage.total(), nil
}
