package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
)

// probeEvery is how long what a probe of the stores found stays true. Probes need no key, so they must not cost much.
// probePatience is how long the stores may take.
const (
	probeEvery    = 2 * time.Second
	probePatience = 2 * time.Second
)

// errSilent says that a store gave no answer to a probe.
var errSilent = errors.New("a store gives no answer")

// stores remembers whether the stores of the server can be written to.
type stores struct {
	background sync.WaitGroup // the look that is under way

	mu      sync.Mutex // guards what follows
	looking *look      // nil for none
	last    *look      // that has ended; nil for none
}

// look is one time that the stores are looked at.
type look struct {
	began time.Time
	done  chan struct{}
	err   error // set before done is closed
}

// probe returns what is wrong with the stores, as one look found it that all requests of this time share. None waits longer than
// probePatience: stores that do not answer are an error, whatever was found before.
func (s *stores) probe(ctx context.Context, find func(context.Context) error) error {
	s.mu.Lock()
	if s.looking == nil && s.last != nil && time.Since(s.last.began) < probeEvery {
		defer s.mu.Unlock()
		return s.last.err
	}
	l := s.looking
	if l == nil {
		l = &look{began: time.Now(), done: make(chan struct{})}
		s.looking = l
		s.background.Go(func() { s.find(context.WithoutCancel(ctx), l, find) }) // ends with the look
	}
	s.mu.Unlock()
	late := time.NewTimer(time.Until(l.began.Add(probePatience)))
	defer late.Stop()
	select {
	case <-l.done:
		return l.err
	case <-late.C:
		return errSilent
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// find looks.
func (s *stores) find(ctx context.Context, l *look, find func(context.Context) error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probePatience, errSilent)
	defer cancel()
	l.err = find(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking, s.last = nil, l
	close(l.done)
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
	if !s.o.App.MCP.Pool().Alive {
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
