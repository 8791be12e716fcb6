package clients

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wrap"
	"loki/internal/setup/config"
)

// Embedder implements [rag.Models]: the default model is the one that is configured, else that of the
// program. If another model answers in place of all, it is that of the program.
func (s *Service) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	id = cmp.Or(id, *cmp.Or(s.Config.RAGEmbeddingModel, new("")), rag.HashModel)
	standsIn := s.StandIn != "" && id != rag.HashModel
	if standsIn {
		id = rag.HashModel
	}
	m, err := s.Find(id, catalog.Embedding)
	if err != nil {
		return rag.Embedder{}, err
	}
	p, err := s.connect(m.Client)
	if err != nil {
		return rag.Embedder{}, err
	}
	embedder, ok := p.(provider.Embedder)
	if !ok {
		return rag.Embedder{}, s.unable(m)
	}
	if m.ClientType != catalog.Builtin {
		embedder = s.Governor.Embedder(embedder, s.limits(m))
	}
	return rag.Embedder{
		ID: m.ID(), Name: m.Name, Embedder: s.watch(m).Embedder(embedder), Cost: s.cost(m),
		MaxTokens: m.MaxInputTokens, MaxBatch: m.MaxBatchSize, ChunkSize: m.DefaultChunkSize, StandsIn: standsIn,
	}, nil
}

// Reranker implements [rag.Models]. If another model answers in place of all, passages keep their order.
func (s *Service) Reranker(_ context.Context, id string) (rag.Reranker, error) {
	if s.StandIn != "" {
		return rag.Reranker{ID: id, Name: id, Reranker: wrap.Unordered{}}, nil
	}
	m, err := s.Find(id, catalog.Reranker)
	if err != nil {
		return rag.Reranker{}, err
	}
	p, err := s.connect(m.Client)
	if err != nil {
		return rag.Reranker{}, err
	}
	reranker, ok := p.(provider.Reranker)
	if !ok {
		return rag.Reranker{}, s.unable(m)
	}
	if m.ClientType != catalog.Builtin {
		reranker = s.Governor.Reranker(reranker, s.limits(m))
	}
	return rag.Reranker{ID: m.ID(), Name: m.Name, Reranker: s.watch(m).Reranker(reranker), Cost: s.cost(m)}, nil
}

// Find returns the model of a type that knowledge bases need. The hint of the error lists
// those of the type.
func (s *Service) Find(id string, of catalog.Type) (catalog.Model, error) {
	m, err := s.Catalog.Resolve(id, of)
	if err == nil {
		return m, nil
	}
	ids := s.Catalog.ListIDs(of)
	list := fmt.Sprintf("there are no %s models: add one to a client in %s", of, s.Config.File)
	if len(ids) > 0 {
		list = fmt.Sprintf("%s models: %s", of, strings.Join(ids, ", "))
	}
	if hint := fault.HintOf(err); hint != "" && len(ids) > 0 {
		list = hint + "; " + list
	}
	return m, fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", list)
}

// unable is the error for a model whose client cannot do what its type says.
func (s *Service) unable(m catalog.Model) error {
	return fault.New(fault.Config, "client %s, of type %s, has no %s models, so %s cannot be used", m.Client, m.ClientType, m.Type, m.ID()).
		WithHint("%s models: %s", m.Type, strings.Join(s.Catalog.ListIDs(m.Type), ", "))
}

// isFree reports whether calls of a model cost nothing.
func (s *Service) isFree(m catalog.Model) bool {
	return m.ClientType == catalog.Builtin || m.InputPrice == nil && s.Config.Client(m.Client).Local()
}

// cost returns what adds the price to a usage of a model, nil for one that costs nothing.
func (s *Service) cost(m catalog.Model) func(chat.Usage) chat.Usage {
	if s.isFree(m) {
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
func (s *Service) hint(client *config.Client, unknown string) func(error) error {
	return func(err error) error {
		if err == nil || client.Type == config.TypeBuiltin || fault.HintOf(err) != "" {
			return err
		}
		if hint := client.Advice(s.Env, unknown, err); hint != "" {
			return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", hint)
		}
		return err
	}
}

// watch returns what a model of knowledge bases is watched with. The calls of the program's own, which work on this machine, are not
// recorded.
func (s *Service) watch(m catalog.Model) wrap.Watch {
	w := wrap.Watch{Hint: s.hint(s.Config.Client(m.Client), ""), Used: s.meter(m)}
	if m.ClientType == catalog.Builtin {
		w.Used = func(chat.Usage) {}
	}
	return w
}
