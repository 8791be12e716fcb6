package builtin

import (
	"context"
	"fmt"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/builtin/hash"
)

// Embed returns the vectors of texts. See [provider.Embedder].
func (p *Provider) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	if req.Model != Hash {
		return nil, chat.Usage{}, invalid(nil, "unknown embedding model %q; the built-in one is %s", req.Model, Hash)
	}
	e, ok := p.hashes.Get().(*hash.Embedder)
	if !ok {
		e = new(hash.Embedder)
	}
	defer p.hashes.Put(e)
	vectors := make([][]float32, len(req.Texts))
	var usage chat.Usage
	for i, text := range req.Texts {
		if err := ctx.Err(); err != nil {
			return nil, usage, fmt.Errorf("model %s: %w", req.Model, err)
		}
		vectors[i] = e.Embed(text, req.Query)
		usage.InputTokens += chat.EstimateTokens(text)
	}
	return vectors, usage, nil
}
