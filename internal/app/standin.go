package app

import (
	"cmp"

	"loki/internal/llm/catalog"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider/wrap"
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
		if model.Provider = (wrap.Unasked{}); facts.Client != "" {
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
	model.Provider = wrap.Named{Provider: chat, Model: m.Name}
	return model, nil
}
