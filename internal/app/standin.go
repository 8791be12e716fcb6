package app

import (
	"cmp"
	"context"
	"iter"

	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider"
)

// TestModel is the variable with the id of a model that answers in place of all others: tests of agents
// set it. The models that are asked for need not be configured.
const TestModel = "LOKI_TEST_MODEL"

// resolve returns the chat model that id means. It is an error if there is none, unless another
// model answers in its place.
func (a *App) resolve(id string) (catalog.Model, error) {
	if a.standIn == "" && a.player == nil {
		return a.Catalog.Resolve(id, catalog.Chat)
	}
	m, err := a.Catalog.Resolve(cmp.Or(id, a.standIn), catalog.Chat)
	if err != nil {
		return catalog.Model{Name: id, SupportsFunctionCalling: true}, nil
	}
	return m, nil
}

// standInFor returns the model called id with the stand-in for it, or with none while a cassette is played. It has the limits of the model
// and no price.
func (a *App) standInFor(id string) (engine.Model, error) {
	facts, err := a.resolve(id)
	if err != nil {
		return engine.Model{}, err
	}
	model := engine.Model{
		ID: cmp.Or(id, a.standIn), Name: facts.Name, MaxInputTokens: facts.MaxInputTokens, OutputLimit: facts.MaxOutputTokens, SupportsTools: true,
	}
	if a.player != nil {
		if model.Provider = (unasked{}); facts.Client != "" {
			model.ID, model.SupportsTools = facts.ID(), facts.SupportsFunctionCalling
		}
		return model, nil
	}
	m, err := a.Catalog.Resolve(a.standIn, catalog.Chat)
	if err != nil {
		return engine.Model{}, err
	}
	chat, err := a.connect(m.Client)
	if err != nil {
		return engine.Model{}, err
	}
	model.Provider = standIn{chat, m.Name}
	return model, nil
}

// unordered stands in for all rerankers.
type unordered struct{}

// Rerank implements [provider.Reranker]: the passages keep their order.
func (unordered) Rerank(_ context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	n := len(req.Documents)
	ranked := make([]provider.Ranked, min(n, cmp.Or(req.TopN, n)))
	for i := range ranked {
		ranked[i] = provider.Ranked{Index: i, Score: float64(n-i) / float64(n)}
	}
	return ranked, chat.Usage{}, nil
}

// standIn asks another model than the one that is asked.
type standIn struct {
	chat provider.Chat
	name string
}

// Chat implements [provider.Chat].
func (s standIn) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	req.Model = s.name
	return s.chat.Chat(ctx, req)
}
