package cohere

import (
	"cmp"
	"context"
	"encoding/json"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

// maxTexts is how many texts the models take at once.
const maxTexts = 96

type embedRequest struct {
	Model          string   `json:"model"`
	Texts          []string `json:"texts"`
	InputType      string   `json:"input_type"`
	EmbeddingTypes []string `json:"embedding_types"`
}

// Embed implements [provider.Embedder]. It asks for 96 texts at a time.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	ctx, m := c.frame.Call(ctx, wire.Embeddings, req.Model)
	payload := embedRequest{Model: m.RealName, InputType: "search_document", EmbeddingTypes: []string{"float"}}
	if req.Query {
		payload.InputType = "search_query"
	}
	return c.frame.Embed(ctx, req.Texts, client.Batches{Size: maxTexts}, func(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
		payload.Texts = texts
		err = c.frame.Ask(ctx, c.frame.URL("/embed"), payload, func(data []byte) error {
			var reply struct {
				Embeddings struct{ Float [][]float32 }
				Meta       replyMeta
			}
			if err := json.Unmarshal(data, &reply); err != nil || len(reply.Embeddings.Float) == 0 {
				return wire.MissingError("embeddings", data)
			}
			vectors, tokens = reply.Embeddings.Float, reply.Meta.tokens()
			return nil
		})
		return vectors, tokens, err
	})
}

// replyMeta is what a reply says beside its content.
type replyMeta struct {
	BilledUnits tokenCounts `json:"billed_units"`
	Tokens      tokenCounts
}

// tokens returns what a call that writes nothing has used, 0 if the server does not say.
func (m replyMeta) tokens() int {
	return cmp.Or(tokens(m.BilledUnits.InputTokens), tokens(m.Tokens.InputTokens))
}
