package clients

import (
	"context"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/catalog"
	"loki/internal/llm/catalog/models"
	"loki/internal/llm/engine"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
	"loki/internal/llm/provider/wrap"
	"loki/internal/setup/config"
)

// connection is a client's provider, or why there is none.
type connection struct {
	chat provider.Chat
	err  error
}

// ChatModel implements [engine.Models].
func (s *Service) ChatModel(ctx context.Context, id string) (engine.Model, error) {
	return s.chatModel(ctx, id, false)
}

// chatModel returns the model called id. A dry one answers with what would be sent to it.
func (s *Service) chatModel(ctx context.Context, id string, dry bool) (engine.Model, error) {
	if s.StandIn != "" || s.Replayed {
		return s.standInFor(id)
	}
	m, err := s.Catalog.Resolve(id, catalog.Chat)
	if err != nil && dry && id == "" { // nothing is configured, and nothing is sent
		m, err = s.Catalog.Resolve("builtin:echo", catalog.Chat)
	}
	if err != nil {
		return engine.Model{}, s.withPlace(id, err)
	}
	retirement := s.Catalog.Retirement(m)
	switch {
	case retirement == "":
	case id == s.Named:
		event.WarnText(ctx, retirement)
	default:
		s.Notices.Once("retired "+m.ID(), retirement, func(text string) { event.WarnText(ctx, text) })
	}
	model := engine.Model{
		ID:                 m.ID(),
		Name:               m.Name, // the client knows the real name
		MaxInputTokens:     m.MaxInputTokens,
		NoStream:           m.NoStream,
		NoSystemMessage:    m.NoSystemMessage,
		SystemPromptPrefix: m.SystemPromptPrefix,
		SupportsTools:      m.SupportsFunctionCalling,
		SupportsImages:     m.SupportsVision,
	}
	if !s.isFree(m) {
		model.Price = m.Cost
	}
	model.Fallbacks = m.Fallbacks
	model.OutputLimit = m.MaxOutputTokens
	if m.RequireMaxTokens {
		model.MaxOutputTokens = m.MaxOutputTokens
	}
	if m.ClientType == config.TypeClaude { // whose API requires a limit
		model.OutputLimit = s.Catalog.OutputLimit(m)
	}
	if dry {
		model.Provider = wrap.Dry{}
		return model, nil
	}
	client := s.Config.Client(m.Client)
	if client.Type != config.TypeBuiltin {
		model.Retry = retry.Policy{ // waits of 0.5 to 1 s, 1 to 2 s and so on, up to 1 minute
			Attempts: client.Extra.Retries + 1, Backoff: 750 * time.Millisecond, Factor: 2, MaxBackoff: 45 * time.Second, Jitter: 1. / 3,
			Most: client.Limits.ParkAfter,
		}
	}
	if model.Provider, err = s.connect(m.Client); err != nil {
		return model, err
	}
	unknown := retirement
	if near := s.Catalog.Near(m); unknown == "" && len(near) > 0 {
		unknown = "did you mean " + strings.Join(near, " or ") + "?"
	}
	w := wrap.Watch{Hint: s.hint(client, unknown), Used: s.meter(m)}
	if client.Type != config.TypeBuiltin {
		w.Came = func(ctx context.Context) { // warnings that arose when the client looked for its key
			for _, text := range s.Notices.Take() {
				event.WarnText(ctx, text)
			}
		}
	}
	if client.Type != config.TypeBuiltin {
		o := s.limits(m)
		o.Fallback = len(model.Fallbacks) > 0
		model.Provider = s.Governor.Chat(model.Provider, o)
	}
	model.Provider = w.Chat(model.Provider)
	return model, nil
}

// limits returns what the limit of a model is made with.
func (s *Service) limits(m catalog.Model) governor.Options {
	client := s.Config.Client(m.Client)
	return governor.Options{Client: m.Client, Model: m.APIName(), Limits: client.Limits, Account: func() string { return client.Account(s.Env, m.APIName()) }}
}

// withPlace adds to the error for a model that cannot be found the place where it was
// configured, unless the command itself names it.
func (s *Service) withPlace(id string, err error) error {
	if level := s.Env.Get(sandbox.LevelVariable); level != "" && !s.Config.Exists && fault.CodeOf(err) == fault.Config {
		return fault.Wrap(fault.Config, err, "").WithHint("the sandbox (level %s) keeps the configuration from this program; %s", level, sandbox.NeedsFull)
	}
	from := s.Config.ModelFrom()
	if id == "" || id == s.Named || id != s.Config.Model || from == "" {
		return err
	}
	return fault.Wrap(fault.CodeOf(err), err, "%s: model", from).WithHint("%s", fault.HintOf(err))
}

// Dry returns the configured models, which answer with what would be sent to them.
func (s *Service) Dry() engine.Models { return dry{s} }

type dry struct{ of *Service }

// ChatModel implements [engine.Models].
func (d dry) ChatModel(ctx context.Context, id string) (engine.Model, error) {
	return d.of.chatModel(ctx, id, true)
}

// SyncModels fetches the list of known models that the configuration names, for the
// starts that follow.
func (s *Service) SyncModels(ctx context.Context) (models.Synced, error) {
	url := ""
	if s.Config.SyncModelsURL != nil {
		url = strings.TrimSpace(*s.Config.SyncModelsURL)
	}
	return models.Sync(ctx, nil, url, s.Paths.ModelsOverrideFile, s.Version)
}

// connect returns the provider of the client called name, made on first use.
func (s *Service) connect(name string) (provider.Chat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clients[name]
	if !ok {
		c.chat, c.err = s.newProvider(s.Config.Client(name))
		s.clients[name] = c
	}
	return c.chat, c.err
}

// wireModel returns what the catalog knows of a client's models.
func (s *Service) wireModel(client *config.Client) func(string) wire.Model {
	return func(name string) wire.Model {
		m, err := s.Catalog.Resolve(client.Name+":"+name, catalog.Chat)
		for _, of := range []catalog.Type{catalog.Embedding, catalog.Reranker} {
			if err != nil {
				m, err = s.Catalog.Resolve(client.Name+":"+name, of)
			}
		}
		if err != nil {
			return wire.Model{}
		}
		p, err := client.ModelPatch(m)
		if err != nil {
			s.Notices.Later(err.Error()) // the request goes out without it
		}
		if p == nil {
			p = new(wire.Patch)
		}
		return wire.Model{RealName: m.APIName(), Patch: *p, Efforts: efforts(m.ReasoningLevels), API: m.API, ToolsAPI: m.ToolsAPI, NoCache: !client.Extra.PromptCache}
	}
}

// efforts returns levels of reasoning in their own type. It keeps nil apart from none.
func efforts(levels []string) []provider.Effort {
	if levels == nil {
		return nil
	}
	list := make([]provider.Effort, len(levels))
	for i, l := range levels {
		list[i] = provider.Effort(l)
	}
	return list
}
