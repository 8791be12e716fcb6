package app

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/conversation/knowledge"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/setup/config"
)

// Embedder implements [rag.Models]: the default model is the one that is configured, else that of the
// program. If another model answers in place of all, it is that of the program.
func (a *App) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	id = cmp.Or(id, *cmp.Or(a.Config.RAGEmbeddingModel, new("")), rag.HashModel)
	standsIn := a.standIn != "" && id != rag.HashModel
	if standsIn {
		id = rag.HashModel
	}
	m, err := a.knowledgeModel(id, catalog.Embedding)
	if err != nil {
		return rag.Embedder{}, err
	}
	p, err := a.connect(m.Client)
	if err != nil {
		return rag.Embedder{}, err
	}
	embedder, ok := p.(provider.Embedder)
	if !ok {
		return rag.Embedder{}, a.unable(m)
	}
	return rag.Embedder{
		ID: m.ID(), Name: m.Name, Embedder: hintedEmbedder{embedder, a.hinted(m), a.meterFor(m)}, Cost: a.cost(m),
		MaxTokens: m.MaxInputTokens, MaxBatch: m.MaxBatchSize, ChunkSize: m.DefaultChunkSize, StandsIn: standsIn,
	}, nil
}

// Reranker implements [rag.Models]. If another model answers in place of all, passages keep their order.
func (a *App) Reranker(_ context.Context, id string) (rag.Reranker, error) {
	if a.standIn != "" {
		return rag.Reranker{ID: id, Name: id, Reranker: unordered{}}, nil
	}
	m, err := a.knowledgeModel(id, catalog.Reranker)
	if err != nil {
		return rag.Reranker{}, err
	}
	p, err := a.connect(m.Client)
	if err != nil {
		return rag.Reranker{}, err
	}
	reranker, ok := p.(provider.Reranker)
	if !ok {
		return rag.Reranker{}, a.unable(m)
	}
	return rag.Reranker{ID: m.ID(), Name: m.Name, Reranker: hintedReranker{reranker, a.hinted(m), a.meterFor(m)}, Cost: a.cost(m)}, nil
}

// knowledgeModel returns the model of a type that knowledge bases need. The hint of the error lists
// those of the type.
func (a *App) knowledgeModel(id string, of catalog.Type) (catalog.Model, error) {
	m, err := a.Catalog.Resolve(id, of)
	if err == nil {
		return m, nil
	}
	ids := a.Catalog.Listed(of)
	list := fmt.Sprintf("there are no %s models: add one to a client in %s", of, a.Config.File)
	if len(ids) > 0 {
		list = fmt.Sprintf("%s models: %s", of, strings.Join(ids, ", "))
	}
	if hint := fault.HintOf(err); hint != "" && len(ids) > 0 {
		list = hint + "; " + list
	}
	return m, fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", list)
}

// unable is the error for a model whose client cannot do what its type says.
func (a *App) unable(m catalog.Model) error {
	return fault.New(fault.Config, "client %s, of type %s, has no %s models, so %s cannot be used", m.Client, m.ClientType, m.Type, m.ID()).
		WithHint("%s models: %s", m.Type, strings.Join(a.Catalog.Listed(m.Type), ", "))
}

// cost returns what adds the price to a usage of a model, nil for one that costs nothing.
func (a *App) cost(m catalog.Model) func(chat.Usage) chat.Usage {
	if m.ClientType == catalog.Builtin || m.InputPrice == nil && a.Config.Client(m.Client).Local() {
		return nil
	}
	return func(u chat.Usage) chat.Usage {
		usd, known := m.Cost(u)
		if !known {
			usd = 0
		}
		u.Cost, u.CostUnknown = usd, !known
		return u
	}
}

// hinted returns what adds a hint to the errors of a model's provider.
func (a *App) hinted(m catalog.Model) func(error) error {
	client := a.Config.Client(m.Client)
	return func(err error) error {
		if err == nil || client.Type == config.TypeBuiltin || fault.HintOf(err) != "" {
			return err
		}
		if hint := a.advice(client, "", err); hint != "" {
			return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", hint)
		}
		return err
	}
}

// hintedEmbedder adds hints to errors, and records what was used.
type hintedEmbedder struct {
	provider.Embedder
	hint  func(error) error
	meter func(chat.Usage)
}

// Embed implements [provider.Embedder].
func (h hintedEmbedder) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	vectors, used, err := h.Embedder.Embed(ctx, req)
	h.meter(used)
	return vectors, used, h.hint(err)
}

// hintedReranker adds hints to errors, and records what was used.
type hintedReranker struct {
	provider.Reranker
	hint  func(error) error
	meter func(chat.Usage)
}

// Rerank implements [provider.Reranker].
func (h hintedReranker) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	ranked, used, err := h.Reranker.Rerank(ctx, req)
	h.meter(used)
	return ranked, used, h.hint(err)
}

// Knowledge returns what builds, opens and describes knowledge bases.
func (a *App) Knowledge() *knowledge.Service {
	tries, err := strconv.Atoi(a.Env.Get("LOKI_EMBEDDINGS_RETRY_LIMIT"))
	if err != nil || tries < 1 {
		tries = 2
	}
	return &knowledge.Service{
		Config: a.Config, Paths: a.Paths, Catalog: a.Catalog, Models: a, Loader: a.Loader, Hide: a.Hide, Trusted: a.Trust.Trusts,
		Retry:   retry.Policy{Attempts: tries, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute},
		StandIn: a.standIn != "", Playing: a.player != nil, Pool: &a.bases,
	}
}
