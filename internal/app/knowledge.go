package app

import (
	"strconv"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/conversation/knowledge"
)

// Knowledge returns what builds, opens and describes knowledge bases.
func (a *App) Knowledge() *knowledge.Service {
	tries, err := strconv.Atoi(a.Env.Get("LOKI_EMBEDDINGS_RETRY_LIMIT"))
	if err != nil || tries < 1 {
		tries = 2
	}
	return &knowledge.Service{
		Config: a.Config, Paths: a.Paths, Catalog: a.Catalog, Models: a.Models, Loader: a.Loader, Hide: a.Hide, Trusted: a.Trust.Trusts,
		Retry:   retry.Policy{Attempts: tries, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute},
		StandIn: a.Models.StandIn != "", Playing: a.Player != nil, Pool: &a.bases,
	}
}
