package clients

import (
	"cmp"

	"loki/internal/llm/catalog"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider/wrap"
)

// Resolve returns the chat model that id means. It is an error if there is none, unless another
// model answers in its place.
func (s *Service) Resolve(id string) (catalog.Model, error) {
	if s.StandIn == "" && !s.Replayed {
		return s.Catalog.Resolve(id, catalog.Chat)
	}
	m, err := s.Catalog.Resolve(cmp.Or(id, s.StandIn), catalog.Chat)
	if err != nil {
		return catalog.Model{Name: id, SupportsFunctionCalling: true}, nil
	}
	return m, nil
}

// standInFor returns the model called id with the stand-in for it, or with none while a cassette is played. It has the limits of the model
// and no price.
func (s *Service) standInFor(id string) (engine.Model, error) {
	facts, err := s.Resolve(id)
	if err != nil {
		return engine.Model{}, err
	}
	model := engine.Model{
		ID: cmp.Or(id, s.StandIn), Name: facts.Name, MaxInputTokens: facts.MaxInputTokens, OutputLimit: facts.MaxOutputTokens, SupportsTools: true,
	}
	if s.Replayed {
		if model.Provider = (wrap.Unasked{}); facts.Client != "" {
			model.ID, model.SupportsTools = facts.ID(), facts.SupportsFunctionCalling
		}
		return model, nil
	}
	m, err := s.Catalog.Resolve(s.StandIn, catalog.Chat)
	if err != nil {
		return engine.Model{}, err
	}
	chat, err := s.connect(m.Client)
	if err != nil {
		return engine.Model{}, err
	}
	model.Provider = wrap.Named{Provider: chat, Model: m.Name}
	return model, nil
}
