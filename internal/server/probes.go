package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"loki/internal/api"
	"loki/internal/server/rest"
)

// probeEvery is how long what a probe of the stores found stays true. Probes need no key, so they must not cost much.
const probeEvery = 2 * time.Second

// stores remembers whether the stores of the server can be written to.
type stores struct {
	looking sync.Mutex // held by the request that looks

	mu     sync.Mutex // guards what follows
	looked time.Time
	err    error
}

// probe returns what is wrong with the stores. While another request looks, it is what that found before.
func (s *stores) probe(ctx context.Context, look func(context.Context) error) error {
	if s.looking.TryLock() {
		defer s.looking.Unlock()
		s.mu.Lock()
		old := time.Since(s.looked) >= probeEvery
		s.mu.Unlock()
		if old {
			err := look(ctx)
			s.mu.Lock()
			s.looked, s.err = time.Now(), err
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

const stoppingReason = "the server is shutting down"

// health answers a probe. No reasons are good ones.
func health(reasons ...string) *rest.Reply {
	if len(reasons) > 0 {
		return rest.JSON(http.StatusServiceUnavailable, api.Health{Status: "unavailable", Reason: strings.Join(reasons, "; ")})
	}
	return rest.JSON(0, api.Health{Status: "ok"})
}

// live says that the process works, until it shuts down.
func (s *Server) live(context.Context, *struct{}) (*rest.Reply, error) {
	if s.api.Draining() {
		return health(stoppingReason), nil
	}
	return health(), nil
}

// probeStores looks whether the stores can be written to, and logs why not.
func (s *Server) probeStores(ctx context.Context) error {
	err := s.o.App.ProbeStores(ctx)
	if err != nil {
		s.o.Log.Warn("a store cannot be written", "error", err)
	}
	return err
}

// ready says whether the server should get requests.
func (s *Server) ready(ctx context.Context, _ *struct{}) (*rest.Reply, error) {
	if s.api.Draining() {
		return health(stoppingReason), nil
	}
	var reasons []string
	if most := s.api.Limits().Requests; (most-s.api.Busy())*10 < most {
		reasons = append(reasons, "fewer than a tenth of the slots for requests are free")
	}
	if s.stores.probe(ctx, s.probeStores) != nil {
		reasons = append(reasons, "a store cannot be written; the log of the server says why")
	}
	if !s.o.App.ServerPool().Alive {
		reasons = append(reasons, "MCP servers cannot be started any more")
	}
	if log := s.audit.Load(); log != nil && log.Err() != nil {
		reasons = append(reasons, "the audit record cannot be written; the log of the server says why")
	}
	if keys := s.settings.Load().published; keys != nil && !keys.Known() {
		reasons = append(reasons, "the keys of the issuer of tokens are not known yet; the log of the server says why")
	}
	return health(reasons...), nil
}
