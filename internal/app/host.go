package app

import (
	"errors"
	"sync"
	"time"

	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/run/manager"
)

// eventDelay is how soon events of a server's runs are on record.
const eventDelay = 10 * time.Millisecond

// host is what an app has that is a server's.
type host struct {
	manager *manager.Manager

	mu     sync.Mutex
	stores map[graph.Durability]run.Store // that its runs are recorded in; guarded by mu
}

// Host makes the app that of a server and returns the manager of its runs; o says the rest about that.
// Runs, those of conversations too, are known to the manager, share stores, and stay in the directory of
// the process. Host is called once, before anything else runs. The caller shuts the manager down, and then
// calls closeStores.
func (a *App) Host(o manager.Options) (m *manager.Manager, closeStores func() error, err error) {
	if o.Store, err = a.OpenRuns(); err != nil {
		return nil, nil, err
	}
	o.Runs, o.Events = a.liveRuns, a.Events
	h := &host{manager: manager.New(o), stores: make(map[graph.Durability]run.Store)}
	a.host = h
	return h.manager, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		errs := []error{o.Store.Close()}
		for _, store := range h.stores {
			errs = append(errs, store.Close())
		}
		return errors.Join(errs...)
	}, nil
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
