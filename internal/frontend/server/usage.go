package server

import (
	"context"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
)

// usage answers what was used in a period. A subject sees its own calls, unless it sees the runs of others.
func (s *Server) usage(ctx context.Context, in *struct {
	By    string `query:"by" enum:"subject,key,agent,schedule" default:"subject" doc:"what the calls are added up by"`
	From  string `query:"from" maxLength:"64" doc:"the first day, in UTC, such as 2026-12-01; by default that of the month"`
	Until string `query:"until" maxLength:"64" doc:"the last day; by default today"`
},
) (*api.List[api.Usage], error) {
	until := time.Now().UTC()
	from := time.Date(until.Year(), until.Month(), 1, 0, 0, 0, 0, time.UTC)
	for name, day := range map[string]*time.Time{"from": &from, "until": &until} {
		text := map[string]string{"from": in.From, "until": in.Until}[name]
		if text == "" {
			continue
		}
		var err error
		if *day, err = time.Parse(time.DateOnly, text); err != nil {
			return nil, rest.Invalid(name, "%q is not a day such as 2026-12-24", text)
		}
	}
	var of *string
	if v := (auth.Access{}).View(rest.Subject(ctx)); v != nil {
		of = &v.Subject
	}
	sums, err := s.hosted.Spending.Usage(ctx, in.By, from, until, of)
	list := make([]api.Usage, len(sums))
	for i, n := range sums {
		list[i] = api.Usage{
			Name: n.Name, Calls: n.Calls, InputTokens: n.Usage.InputTokens, CachedInputTokens: n.Usage.CachedInputTokens, OutputTokens: n.Usage.OutputTokens,
			ReasoningTokens: n.Usage.ReasoningTokens, CostUSD: n.Usage.Cost, CostUnknown: n.Usage.CostUnknown,
		}
	}
	return api.NewList(list, ""), err
}
