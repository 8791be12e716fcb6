package hooks

import (
	"context"
	"net/http"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/webhook"
)

// RegisterAlerts adds the endpoint of alerts.
func RegisterAlerts(a *rest.API, alerts *alert.Service, desk *webhook.Desk) {
	op := rest.Operation{Method: http.MethodGet, Path: "/v1/alerts", Summary: "List the last 100 alerts, newest first", Tag: "Triggers", Scope: auth.AdminSessions}
	rest.Register(a, op, func(ctx context.Context, _ *struct{}) (*api.List[api.Alert], error) {
		sent, err := alerts.List(ctx)
		if err != nil {
			return nil, err
		}
		list := make([]api.Alert, len(sent))
		for i, s := range sent {
			list[i] = api.Alert{ID: s.ID, At: s.At, Rule: s.Rule, Kind: string(s.Kind), Agent: s.Agent, RunID: s.Run, Thing: s.Thing, Reason: s.Reason, Count: s.Count}
			deliveries, err := desk.Deliveries(s.ID)
			if err != nil {
				return nil, err
			}
			for _, d := range deliveries {
				one := api.Notice{Event: d.Type, URL: d.Host, Tries: d.Attempts, At: d.At, Status: d.Status, Error: d.Error}
				if !d.Again.IsZero() {
					one.Again = &d.Again
				}
				list[i].Notices = append(list[i].Notices, one)
			}
		}
		return api.NewList(list, ""), nil
	})
}
