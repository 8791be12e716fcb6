package server

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/text"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/catalog"
	"loki/internal/llm/engine/governor"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
)

// metadata adds the endpoints that say what there is.
func (s *Server) metadata() {
	const about, there = "Server", "What there is"
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/healthz/live", Summary: "Is the process alive?", Tag: about, Public: true, Answer: api.Health{}}, s.live)
	rest.Register(s.api, rest.Operation{
		Method: http.MethodGet, Path: "/healthz/ready", Summary: "Does the server take requests?", Tag: about, Public: true, Answer: api.Health{},
	}, s.ready)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/info", Summary: "Describe this server", Tag: about}, s.info)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/info/mcp", Summary: "Count the connections to MCP servers", Tag: about, Scope: auth.AdminMCP}, s.infoMCP)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/limits", Summary: "List the limits of providers", Tag: about, Scope: auth.ReadModels}, s.limits)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/usage", Summary: "Add up what calls of models used", Tag: about, Scope: auth.ReadRuns}, s.usage)
	rest.Register(s.api, rest.Operation{Method: http.MethodPost, Path: "/v1/auth/check", Summary: "Who am I, and what may I?", Tag: about}, s.check)
	rest.Register(s.api, rest.Operation{
		Method: http.MethodGet, Path: "/v1/models", Summary: "List what can answer: models, roles and agents", Tag: there, Scope: auth.ReadModels, OpenAIErrors: true,
	}, s.models)
	rest.Register(s.api, rest.Operation{
		Method: http.MethodGet, Path: "/v1/models/{id...}", Summary: "Describe what can answer", Tag: there, Scope: auth.ReadModels, OpenAIErrors: true,
	}, s.model)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/agents", Summary: "List the agents", Tag: there, Scope: auth.ReadAgents}, s.agents)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/roles", Summary: "List the roles", Tag: there, Scope: auth.ReadRoles}, s.roles)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/rags", Summary: "List the knowledge bases", Tag: there, Scope: auth.ReadRAGs}, s.rags)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/rags/{name}", Summary: "Describe a knowledge base and its documents", Tag: there, Scope: auth.ReadRAGs}, s.rag)
	rest.Register(s.api, rest.Operation{
		Method: http.MethodPost, Path: "/v1/rags/{name}/query", Summary: "Search in a knowledge base", Tag: there, Scope: auth.RunAgents, Action: audit.Completion,
	}, s.query)
	rest.Register(s.api, rest.Operation{Method: http.MethodPost, Path: "/v1/highlight", Summary: "Find the tokens of code", Tag: there}, s.highlight)
}

func (s *Server) info(context.Context, *struct{}) (*api.Info, error) {
	l := s.api.Limits()
	return &api.Info{
		Name: "loki", Version: app.Version, DefaultModel: s.standard(), Auth: s.settings.Load().Auth.Mode, StartedAt: s.started.UTC(), Memory: string(s.o.App.ServerMemory()),
		Limits: api.Limits{MaxBodyBytes: l.Body, MaxConcurrentRequests: l.Requests, PerSubjectConcurrency: l.PerSubject, RequestTimeoutSeconds: int(l.Timeout.Seconds())},
	}, nil
}

func (s *Server) infoMCP(context.Context, *struct{}) (*api.MCPInfo, error) {
	p := s.o.App.MCP.Pool()
	return &api.MCPInfo{
		Started: p.Started, ActiveHits: p.ActiveHits, IdleHits: p.IdleHits, Misses: p.Misses, HitRate: p.HitRate(),
		IdleEvictions: p.IdleEvictions, CapEvictions: p.CapEvictions, HealthOK: p.HealthOK, HealthFailed: p.HealthFailed, Idle: p.Idle, InUse: p.InUse,
	}, nil
}

func (s *Server) limits(ctx context.Context, in *struct{ rest.Page }) (*api.List[api.Limit], error) {
	known, err := s.o.App.Models.Governor.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := func(l governor.Status) (api.Limit, error) { return api.Limit(l), nil }
	return rest.PageOf(known, in.Page, func(l governor.Status) string { return l.Client + ":" + l.Model }, limit)
}

func (s *Server) check(ctx context.Context, _ *struct{}) (*api.Check, error) {
	who := rest.Subject(ctx)
	c := &api.Check{Subject: who.Subject, KeyID: who.KeyID, Scopes: []string{}}
	for _, scope := range who.Scopes {
		c.Scopes = append(c.Scopes, string(scope))
	}
	return c, nil
}

// standard returns the id of the model that answers requests which name none; empty if there is none.
func (s *Server) standard() string {
	if id := s.o.App.Config.Model; id != "" {
		return id
	}
	m, err := s.o.App.Catalog.Default()
	if err != nil {
		return ""
	}
	return m.ID()
}

func (s *Server) models(context.Context, *struct{}) (*api.List[api.Model], error) {
	var list []api.Model
	standard := s.standard()
	for _, t := range []catalog.Type{catalog.Chat, catalog.Embedding, catalog.Reranker} {
		for m := range s.o.App.Catalog.Models(t) {
			list = append(list, api.Model{
				ID: m.ID(), Object: "model", OwnedBy: m.Client, Kind: string(m.Type), Default: m.ID() == standard,
				MaxInputTokens: m.MaxInputTokens, MaxOutputTokens: m.MaxOutputTokens, InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
				Vision: m.SupportsVision, Tools: m.SupportsFunctionCalling, Reasoning: m.SupportsReasoning,
			})
		}
	}
	roles, err := s.o.App.Roles().Names()
	if err != nil {
		return nil, err
	}
	for _, name := range roles {
		list = append(list, api.Model{ID: "role:" + name, Object: "model", OwnedBy: "loki", Kind: "role"})
	}
	agents, err := s.o.App.Agents.List()
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		list = append(list, api.Model{ID: "agent:" + a.Name, Object: "model", OwnedBy: "loki", Kind: "agent", Description: a.Description})
	}
	return api.NewList(list, ""), nil
}

// modelRequest asks for one entry of the list of models.
type modelRequest struct {
	ID string `path:"id" maxLength:"512" doc:"as in the list"`
}

func (s *Server) model(ctx context.Context, in *modelRequest) (*api.Model, error) {
	list, err := s.models(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range list.Data {
		if m.ID == in.ID {
			return &m, nil
		}
	}
	return nil, rest.NotFound("model", in.ID).WithHint("GET /v1/models lists them")
}

func (s *Server) agents(_ context.Context, in *struct{ rest.Page }) (*api.List[api.Agent], error) {
	entries, err := s.o.App.Agents.List()
	if err != nil {
		return nil, err
	}
	return rest.PageOf(entries, in.Page, func(e agent.Entry) string { return e.Name }, func(e agent.Entry) (api.Agent, error) {
		return api.Agent{Name: e.Name, Kind: cmp.Or(string(e.Kind), "unknown"), Description: e.Description}, nil
	})
}

// beginning is how many characters of a role's prompt a list shows.
const beginning = 200

func (s *Server) roles(_ context.Context, in *struct{ rest.Page }) (*api.List[api.Role], error) {
	library := s.o.App.Roles()
	names, err := library.Names()
	if err != nil {
		return nil, err
	}
	return rest.PageOf(names, in.Page, strings.Clone, func(name string) (api.Role, error) {
		entry := api.Role{Name: name}
		if r, _, err := library.Load(name); err == nil {
			entry.Model, entry.Description = r.Settings.Model, text.OneLine(r.Prompt, beginning)
		}
		return entry, nil
	})
}

func (s *Server) rags(ctx context.Context, in *struct{ rest.Page }) (*api.List[api.RAG], error) {
	names, err := s.o.App.Knowledge().Names(ctx)
	if err != nil {
		return nil, err
	}
	return rest.PageOf(names, in.Page, strings.Clone, func(name string) (api.RAG, error) { return api.RAG{Name: name}, nil })
}
