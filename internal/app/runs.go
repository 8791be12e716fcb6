package app

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/search"
	"loki/internal/llm/event"
	"loki/internal/llm/event/redact"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/live"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
)

// storeFile is the name of the file that holds the runs, in the state directory.
const storeFile = "runs.db"

// Runs returns the verbs of runs. Where they go on with a record, marks in it become the
// secrets again.
func (a *App) Runs() *run.Service {
	s := a.liveRuns()
	s.Unrecorded = a.DryRun() && !a.Taped()
	return s
}

// liveRuns is Runs for work of which not all is a dry run.
func (a *App) liveRuns() *run.Service {
	if a.Taped() {
		return &run.Service{Open: a.openTaped, Recall: a.recall, Always: true, Volatile: a.Player != nil}
	}
	if a.host != nil {
		return &run.Service{Open: a.hostedRuns, Recall: a.recall, Enter: a.host.manager.Enter, Spending: a.host.spending}
	}
	return &run.Service{
		Open:   func(d graph.Durability) (run.Store, error) { return a.openRuns(d, a.sealedSecret) },
		Recall: a.recall,
		Beside: a.Worktrees().Beside,
		Live: func(id string) (event.Emitter, func()) {
			watchers, end := live.Share(a.LiveDir(), id)
			return a.used.Emitter(watchers), end
		},
	}
}

// ManyRuns is Runs for many runs at once. Their stores stay open until end is called.
func (a *App) ManyRuns() (s *run.Service, end func() error) {
	var mu sync.Mutex
	stores := make(map[graph.Durability]run.Store)
	s = a.Runs()
	open := s.Open
	s.Open = func(d graph.Durability) (run.Store, error) {
		mu.Lock()
		defer mu.Unlock()
		if stores[d] == nil {
			store, err := open(d)
			if err != nil {
				return nil, err
			}
			stores[d] = store
		}
		return keptOpen{stores[d]}, nil
	}
	return s, func() (err error) {
		for _, store := range stores {
			err = errors.Join(err, store.Close())
		}
		return err
	}
}

// LiveDir is the directory of the sockets at which runs can be watched, see package live.
func (a *App) LiveDir() string { return filepath.Join(a.Paths.StateDir, "live") }

// Events returns the scope of a request whose events go to e, without secrets.
func (a *App) Events(e event.Emitter) event.Scope {
	return event.NewScope(a.used.Emitter(e), event.Source{}, nil)
}

// OpenRuns opens the store of runs for people to read: secrets in the records stay marks. The
// caller closes it.
func (a *App) OpenRuns() (run.Store, error) { return a.openRuns(graph.DurabilityProcess, nil) }

func (a *App) openRuns(durability graph.Durability, look func(string) (string, bool)) (run.Store, error) {
	unseal := func(text string) string { return redact.Unseal(text, look) }
	db, err := a.Database()
	if err != nil {
		return nil, err
	}
	if db != nil {
		o := runsdb.Options{Seal: a.used.Seal, Unseal: unseal}
		if a.host != nil {
			o.EventDelay, o.Wrote = eventDelay, a.host.manager.Wrote
		}
		return runsdb.New(db, o), nil
	}
	o := sqlite.Options{Durability: sqlite.Durability(durability), Seal: a.used.Seal, Unseal: unseal}
	if a.host != nil {
		o.EventDelay, o.Wrote = eventDelay, a.host.manager.Wrote
	}
	return sqlite.Open(filepath.Join(a.Paths.StateDir, storeFile), o)
}

// ClaimUnowned gives all sessions and runs that have no owner to a subject, and returns how many of each these were.
func (a *App) ClaimUnowned(ctx context.Context, subject string) (sessions, runs int, err error) {
	owner := auth.Owner{Subject: subject}
	of, err := a.Sessions()
	if err != nil {
		return 0, 0, err
	}
	scopes, err := a.SessionScopes()
	if err != nil {
		return 0, 0, err
	}
	if sessions, err = session.ClaimUnowned(ctx, of, scopes, owner); err != nil {
		return sessions, 0, err
	}
	store, err := a.OpenRuns()
	if err != nil {
		return sessions, 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	runs, err = run.ClaimUnowned(ctx, store, owner)
	return sessions, runs, err
}

// Search returns what finds sessions and runs by their texts.
func (a *App) Search() *search.Finder {
	return &search.Finder{Path: filepath.Join(a.Paths.CacheDir, "search.db"), Sessions: a.Sessions, Scopes: a.SessionScopes, Runs: a.OpenRuns}
}
