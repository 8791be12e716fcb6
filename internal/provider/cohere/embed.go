package cohere

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

// maxTexts is how many texts the models take at once.
const maxTexts = 96

type embedRequest struct {
	Model          string   `json:"model"`
	Texts          []string `json:"texts"`
	InputType      string   `json:"input_type"`
	EmbeddingTypes []string `json:"embedding_types"`
}

// Embed implements [provider.Embedder]. It asks for 96 texts at a time, and for none
// nobody.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	m := wire.Lookup(c.model, req.Model)
	ctx = wire.WithCall(ctx, wire.Call{API: wire.Embeddings, Model: req.Model, Patch: m.Patch})
	payload := embedRequest{Model: m.RealName, InputType: "search_document", EmbeddingTypes: []string{"float"}}
	if req.Query {
		payload.InputType = "search_query"
	}
	var vectors [][]float32
	var usage chat.Usage
	for rest := req.Texts; len(rest) > 0; {
		n := min(len(rest), maxTexts)
		payload.Texts, rest = rest[:n], rest[n:]
		data, err := c.ask(ctx, "/embed", payload)
		if err != nil {
			return nil, chat.Usage{}, err
		}
		more, u, err := readVectors(data, payload.Texts)
		if err != nil {
			return nil, chat.Usage{}, err
		}
		vectors = append(vectors, more...)
		usage = usage.Add(u)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, chat.Usage{}, &provider.Error{Kind: provider.BadReply, Msg: "embeddings that are empty or differ in length"}
		}
	}
	return vectors, usage, nil
}

// replyMeta is what a reply says beside its content.
type replyMeta struct {
	BilledUnits tokenCounts `json:"billed_units"`
	Tokens      tokenCounts
}

func readVectors(data []byte, texts []string) ([][]float32, chat.Usage, error) {
	var reply struct {
		Embeddings struct{ Float [][]float32 }
		Meta       replyMeta
	}
	if err := json.Unmarshal(data, &reply); err != nil || len(reply.Embeddings.Float) == 0 {
		return nil, chat.Usage{}, wire.Lacking("embeddings", data)
	}
	vectors := reply.Embeddings.Float
	if len(vectors) != len(texts) {
		return nil, chat.Usage{}, &provider.Error{Kind: provider.BadReply, Msg: fmt.Sprintf("%d embeddings for %d texts", len(vectors), len(texts))}
	}
	return vectors, reply.Meta.inputUsage(texts...), nil
}

// inputUsage returns what a call that writes nothing has used, or an estimate for
// texts.
func (m replyMeta) inputUsage(texts ...string) chat.Usage {
	return normalize.InputUsage(cmp.Or(tokens(m.BilledUnits.InputTokens), tokens(m.Tokens.InputTokens)), texts...)
}
