package app

import (
	"context"
	"strings"
	"time"

	"loki/internal/catalog"
	"loki/internal/catalog/models"
	"loki/internal/chat"
	"loki/internal/config"
	"loki/internal/engine"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// connection is a client's provider, or why there is none.
type connection struct {
	chat provider.Chat
	err  error
}

// ChatModel implements [engine.Models].
func (a *App) ChatModel(id string) (engine.Model, error) {
	m, err := a.Catalog.Resolve(id, catalog.Chat)
	if err != nil {
		return engine.Model{}, err
	}
	model := engine.Model{
		ID:                 m.ID(),
		Name:               m.Name, // the client knows the real name
		MaxInputTokens:     m.MaxInputTokens,
		NoStream:           m.NoStream,
		NoSystemMessage:    m.NoSystemMessage,
		SystemPromptPrefix: m.SystemPromptPrefix,
		SupportsTools:      m.SupportsFunctionCalling,
	}
	model.Price = func(u chat.Usage) float64 {
		usd, _ := m.Cost(u) // what is not known is not counted
		return usd
	}
	model.Fallbacks = m.Fallbacks
	if m.RequireMaxTokens {
		model.MaxOutputTokens = m.MaxOutputTokens
	}
	if a.dryRun {
		model.Provider = dryRun{}
		return model, nil
	}
	client := a.Config.Client(m.Client)
	if client.Type != config.TypeBuiltin {
		model.Retry = engine.Retry{Attempts: client.Extra.Retries + 1, First: time.Second, Longest: time.Minute}
	}
	model.Provider, err = a.connect(m.Client)
	return model, err
}

// SyncModels fetches the list of known models that the configuration names, for the
// starts that follow.
func (a *App) SyncModels(ctx context.Context) (models.Synced, error) {
	url := ""
	if a.Config.SyncModelsURL != nil {
		url = strings.TrimSpace(*a.Config.SyncModelsURL)
	}
	return models.Sync(ctx, nil, url, a.Paths.ModelsOverrideFile, Version)
}

// connect returns the provider of the client called name, made on first use.
func (a *App) connect(name string) (provider.Chat, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.clients[name]
	if !ok {
		c.chat, c.err = a.newProvider(a.Config.Client(name))
		a.clients[name] = c
	}
	return c.chat, c.err
}

// wireModel tells what the catalogue knows of a client's model.
func (a *App) wireModel(client *config.Client) func(string) wire.Model {
	return func(name string) wire.Model {
		m, err := a.Catalog.Resolve(client.Name+":"+name, catalog.Chat)
		if err != nil {
			return wire.Model{}
		}
		p, err := client.ModelPatch(m)
		if err != nil {
			a.warn(err) // the request goes out without it
		}
		return wire.Model{RealName: m.APIName(), Patch: wirePatch(p)}
	}
}

func wirePatch(p *catalog.Patch) wire.Patch {
	if p == nil {
		return wire.Patch{}
	}
	sent := wire.Patch{URL: p.URL, Body: p.Body, Headers: make(map[string]any, len(p.Headers))}
	for _, h := range p.Headers {
		sent.Headers[h.Name] = nil
		if h.Value != nil {
			sent.Headers[h.Name] = *h.Value
		}
	}
	return sent
}
