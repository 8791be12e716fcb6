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
	"loki/internal/llm/provider/wrap"
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
	if m.ClientType != catalog.Builtin {
		embedder = a.governor.Embedder(embedder, a.limits(m))
	}
	return rag.Embedder{
		ID: m.ID(), Name: m.Name, Embedder: a.watch(m).Embedder(embedder), Cost: a.cost(m),
		MaxTokens: m.MaxInputTokens, MaxBatch: m.MaxBatchSize, ChunkSize: m.DefaultChunkSize, StandsIn: standsIn,
	}, nil
}

// Reranker implements [rag.Models]. If another model answers in place of all, passages keep their order.
func (a *App) Reranker(_ context.Context, id string) (rag.Reranker, error) {
	if a.standIn != "" {
		return rag.Reranker{ID: id, Name: id, Reranker: wrap.Unordered{}}, nil
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
	if m.ClientType != catalog.Builtin {
		reranker = a.governor.Reranker(reranker, a.limits(m))
	}
	return rag.Reranker{ID: m.ID(), Name: m.Name, Reranker: a.watch(m).Reranker(reranker), Cost: a.cost(m)}, nil
}

// knowledgeModel returns the model of a type that knowledge bases need. The hint of the error lists
// those of the type.
func (a *App) knowledgeModel(id string, of catalog.Type) (catalog.Model, error) {
	m, err := a.Catalog.Resolve(id, of)
	if err == nil {
		return m, nil
	}
	ids := a.Catalog.ListIDs(of)
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
		WithHint("%s models: %s", m.Type, strings.Join(a.Catalog.ListIDs(m.Type), ", "))
}

// isFree reports whether calls of a model cost nothing.
func (a *App) isFree(m catalog.Model) bool {
	return m.ClientType == catalog.Builtin || m.InputPrice == nil && a.Config.Client(m.Client).Local()
}

// cost returns what adds the price to a usage of a model, nil for one that costs nothing.
func (a *App) cost(m catalog.Model) func(chat.Usage) chat.Usage {
	if a.isFree(m) {
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

// hint returns what adds advice to the errors of a client's provider. unknown is what to do if the provider has no such model.
func (a *App) hint(client *config.Client, unknown string) func(error) error {
	return func(err error) error {
		if err == nil || client.Type == config.TypeBuiltin || fault.HintOf(err) != "" {
			return err
		}
		if hint := client.Advice(a.Env, unknown, err); hint != "" {
			return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", hint)
		}
		return err
	}
}

// watch returns what a model of knowledge bases is watched with. The calls of the program's own, which work on this machine, are not
// recorded.
func (a *App) watch(m catalog.Model) wrap.Watch {
	w := wrap.Watch{Hint: a.hint(a.Config.Client(m.Client), ""), Used: a.meter(m)}
	if m.ClientType == catalog.Builtin {
		w.Used = func(chat.Usage) {}
	}
	return w
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
