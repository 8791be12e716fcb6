package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"loki/internal/agent/memory"
	"loki/internal/agent/team/job"
	"loki/internal/base/file/atomicfile"
	"loki/internal/service/postgres"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/spending"
	"loki/internal/workflow/run/webhook"
)

// eventDelay is how soon events of a server's runs are on record.
const eventDelay = 10 * time.Millisecond

// host is what an app has that is a server's.
type host struct {
	manager *manager.Manager
	store   run.Store // for reading
	links   *webhook.Links
	desk    *webhook.Desk
	end     func() // of work with the files, see [atomicfile.Mark]

	jobs job.Registry

	spending *spending.Service

	mu     sync.Mutex
	stores map[graph.Durability]run.Store // that its runs are recorded in; guarded by mu
	facts  map[string]*memory.Store       // of subjects; guarded by mu
	db     *postgres.DB                   // that several servers share; nil for none
}

// Hosted is what a server has of its app, see [App.Host].
type Hosted struct {
	Runs  *manager.Manager
	Desk  *webhook.Desk
	Links *webhook.Links // to questions
	Store run.Store      // for reading
	DB    *postgres.DB   // that several servers share; nil for none
	Jobs  *job.Registry  // of its conversations and runs

	Spending *spending.Service // what all runs use and may use

	Close func() error // closes the stores, after the manager was shut down
}

// Host makes the app that of a server at an address, a URL without a path, "" for none; o says the rest about its runs.
// These, those of conversations too, are known to the manager, share stores, and stay in the directory of
// the process. Host is called once, before anything else runs; ctx ends the sending of notices.
func (a *App) Host(ctx context.Context, address string, o manager.Options) (Hosted, error) {
	store, err := a.OpenRuns()
	if err != nil {
		return Hosted{}, err
	}
	db, err := a.Database()
	if err != nil {
		return Hosted{}, errors.Join(err, store.Close())
	}
	h := &host{store: store, end: func() {}, stores: make(map[graph.Durability]run.Store), facts: make(map[string]*memory.Store), db: db}
	if db == nil {
		if h.end, err = atomicfile.Mark(ctx, a.servingDir()); err != nil {
			return Hosted{}, errors.Join(fmt.Errorf("marking the files as those of a server: %w", err), store.Close())
		}
	}
	if h.desk, err = a.openDesk(ctx, h, address, db); err != nil {
		h.end()
		return Hosted{}, errors.Join(err, store.Close())
	}
	o.Store, o.Runs, o.Events = store, a.liveRuns, a.Events
	o.Began, o.Rested = a.began, h.desk.Look
	h.manager = manager.New(o)
	var limits spending.Limits
	if a.Config.API != nil {
		limits = a.Config.API.Spending
	}
	h.spending = spending.Start(ctx, store, limits, o.Now)
	a.host = h
	return Hosted{Runs: h.manager, Desk: h.desk, Links: h.links, Store: store, DB: db, Jobs: &h.jobs, Spending: h.spending, Close: h.close}, nil
}

// servingDir has a file for each server that works with the files of the directory of state.
func (a *App) servingDir() string { return filepath.Join(a.Paths.StateDir, "serving") }

// close closes the desk and the stores.
func (h *host) close() error {
	defer h.end()
	h.desk.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spending.Close()
	errs := []error{h.store.Close()}
	for _, store := range h.stores {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}

// hostedRuns returns the store of a server's runs, which stays open.
func (a *App) hostedRuns(d graph.Durability) (run.Store, error) {
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	store := a.host.stores[d]
	if store == nil {
		var err error
		if store, err = a.openRuns(d, a.sealedSecret); err != nil {
			return nil, err
		}
		a.host.stores[d] = store
	}
	return keptOpen{store}, nil
}

// keptOpen is a store that others use too.
type keptOpen struct{ run.Store }

// Close does nothing.
func (keptOpen) Close() error { return nil }

// prober is a store that can say whether it can be written to.
type prober interface {
	Probe(ctx context.Context) error
}

// ProbeStores reports which store of a server cannot be written to now, nil if all can, or do not know.
func (a *App) ProbeStores(ctx context.Context) error {
	sessions, err := a.Sessions()
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name  string
		store any
	}{{"runs", a.host.store}, {"sessions", sessions}} {
		if p, ok := of.store.(prober); ok {
			if err := p.Probe(ctx); err != nil {
				return fmt.Errorf("%s cannot be written: %w", of.name, err)
			}
		}
	}
	return nil
}
