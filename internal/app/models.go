package app

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"loki/internal/catalog"
	"loki/internal/chat"
	"loki/internal/config"
	"loki/internal/engine"
	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/provider/builtin"
	"loki/internal/provider/openai"
	"loki/internal/value"
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
	if m.InputPrice != nil {
		model.InputPrice = *m.InputPrice
	}
	if m.OutputPrice != nil {
		model.OutputPrice = *m.OutputPrice
	}
	if m.RequireMaxTokens {
		model.MaxOutputTokens = m.MaxOutputTokens
	}
	if a.dryRun {
		model.Provider = dryRun{}
		return model, nil
	}
	model.Provider, err = a.connect(m.Client)
	return model, err
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

func (a *App) newProvider(c *config.Client) (provider.Chat, error) {
	if err := c.CheckSecrets(a.Env); err != nil {
		return nil, err
	}
	switch c.Type {
	case config.TypeBuiltin:
		script, err := c.Field(a.Env, "script")
		if err != nil {
			return nil, err
		}
		return builtin.New(builtin.Options{ScriptFile: cmp.Or(a.Env.Get("LOKI_SCRIPT_FILE"), script)}), nil
	case config.TypeOpenAI, config.TypeOpenAICompatible:
		o, err := a.openAIOptions(c)
		if err != nil {
			return nil, err
		}
		if c.Type == config.TypeOpenAI {
			return asChat(openai.New(o))
		}
		return asChat(openai.NewCompatible(o))
	default:
		return nil, fault.New(fault.Config, "client %s: this version cannot talk to clients of type %s yet", c.Name, c.Type).
			WithHint("many services also speak the OpenAI protocol: use type openai-compatible with their api_base")
	}
}

// asChat passes on a provider, or an error of the configuration.
func asChat[T provider.Chat](p T, err error) (provider.Chat, error) {
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "")
	}
	return p, nil
}

func (a *App) openAIOptions(c *config.Client) (openai.Options, error) {
	o := openai.Options{
		Name:           c.Name,
		APIKey:         func() (string, error) { return c.Field(a.Env, "api_key") },
		Proxy:          c.Extra.Proxy,
		ConnectTimeout: c.Extra.ConnectTimeout,
		UserAgent:      a.Config.UserAgentHeader(Version),
		Model:          a.wireModel(c.Name),
	}
	var err error
	if o.APIBase, err = c.Field(a.Env, "api_base"); err != nil {
		return o, err
	}
	if c.Type == config.TypeOpenAI {
		if o.Organization, err = c.Field(a.Env, "organization_id"); err != nil {
			return o, err
		}
	}
	for api, rules := range map[config.API]*openai.PatchRules{
		config.ChatCompletions: &o.Patches.ChatCompletions,
		config.Embeddings:      &o.Patches.Embeddings,
		config.Rerank:          &o.Patches.Rerank,
	} {
		configured, err := c.PatchRules(a.Env, api)
		if err != nil {
			return o, err
		}
		for _, r := range configured {
			*rules = append(*rules, openai.PatchRule{Pattern: r.Pattern, Patch: wirePatch(r.Patch)})
		}
	}
	return o, nil
}

// wireModel tells what the catalogue knows of a client's model.
func (a *App) wireModel(client string) func(string) openai.Model {
	return func(name string) openai.Model {
		m, err := a.Catalog.Resolve(client+":"+name, catalog.Chat)
		if err != nil {
			return openai.Model{}
		}
		return openai.Model{RealName: m.APIName(), Patch: wirePatch(m.Patch)}
	}
}

func wirePatch(p *catalog.Patch) openai.Patch {
	if p == nil {
		return openai.Patch{}
	}
	wire := openai.Patch{URL: p.URL, Headers: make(map[string]any, len(p.Headers))}
	for _, h := range p.Headers {
		wire.Headers[h.Name] = nil
		if h.Value != nil {
			wire.Headers[h.Name] = *h.Value
		}
	}
	if p.Body != nil {
		wire.Body = make(map[string]any, p.Body.Len())
		for name, v := range p.Body.All() {
			wire.Body[name] = plain(v)
		}
	}
	return wire
}

// plain returns v as encoding/json would read it, which a merge patch works on.
func plain(v value.Value) any {
	if o := v.AsObject(); o != nil {
		m := make(map[string]any, o.Len())
		for name, member := range o.All() {
			m[name] = plain(member)
		}
		return m
	}
	if v.IsNull() {
		return nil
	}
	return v
}

// dryRun is a provider that answers with the prompt it was given and sends nothing.
type dryRun struct{}

// Chat implements [provider.Chat].
func (dryRun) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		texts := make([]string, 0, len(req.Messages))
		for _, m := range req.Messages {
			texts = append(texts, m.Text())
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: strings.Join(texts, "\n\n")}, nil) {
			yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd}, nil)
		}
	}
}
