package server

import (
	"context"
	"net/http"

	"loki/internal/api"
	"loki/internal/app"
	"loki/internal/auth"
	"loki/internal/catalog"
	"loki/internal/server/rest"
)

// metadata adds the endpoints that say what there is.
func (s *Server) metadata() {
	const tag = "Server"
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/healthz/live", Summary: "Is the process alive?", Tag: tag, Public: true},
		func(context.Context, *struct{}) (*api.Health, error) { return &api.Health{Status: "ok"}, nil })
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/info", Summary: "About this server", Tag: tag}, s.info)
	rest.Register(s.api, rest.Operation{Method: http.MethodGet, Path: "/v1/models", Summary: "List what can answer", Tag: tag, Scope: auth.ReadModels, OpenAIErrors: true}, s.models)
}

func (s *Server) info(context.Context, *struct{}) (*api.Info, error) {
	l := s.api.Limits()
	return &api.Info{
		Name: "loki", Version: app.Version, DefaultModel: s.o.App.Config.Model, Auth: "disabled", StartedAt: s.started.UTC(),
		Limits: api.Limits{MaxBodyBytes: l.Body, MaxConcurrentRequests: l.Requests, PerSubjectConcurrency: l.PerSubject, RequestTimeoutSeconds: int(l.Timeout.Seconds())},
	}, nil
}

func (s *Server) models(context.Context, *struct{}) (*api.List[api.Model], error) {
	var list []api.Model
	for _, t := range []catalog.Type{catalog.Chat, catalog.Embedding, catalog.Reranker} {
		for m := range s.o.App.Catalog.Models(t) {
			list = append(list, modelOf(m, s.o.App.Config.Model))
		}
	}
	return api.NewList(list, ""), nil
}

func modelOf(m catalog.Model, standard string) api.Model {
	return api.Model{
		ID: m.ID(), Object: "model", OwnedBy: m.Client, Kind: string(m.Type), Default: m.ID() == standard,
		MaxInputTokens: m.MaxInputTokens, MaxOutputTokens: m.MaxOutputTokens, InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
		Vision: m.SupportsVision, Tools: m.SupportsFunctionCalling, Reasoning: m.SupportsReasoning,
	}
}
