package app

import (
	"cmp"

	"loki/internal/llm/engine/governor"
	"loki/internal/service/postgres"
)

// Database returns the database that keeps the sessions, the runs and what servers share, always the same; nil if they are in
// files. It does not connect. The error has code Config.
func (a *App) Database() (*postgres.DB, error) {
	a.databaseMu.Lock()
	defer a.databaseMu.Unlock()
	address := *cmp.Or(a.Config.Store, new(""))
	if a.database != nil || address == "" {
		return a.database, nil
	}
	address, err := a.Config.Expand("store", address)
	if err != nil {
		return nil, err
	}
	a.database, err = postgres.Open(address, postgres.Options{Setting: "store"})
	return a.database, err
}

// closeDatabase closes the database, after all that uses it.
func (a *App) closeDatabase() {
	a.databaseMu.Lock()
	defer a.databaseMu.Unlock()
	if a.database != nil {
		a.database.Close()
		a.database = nil
	}
}

// limitRows returns the limits of providers that several servers share.
func (a *App) limitRows() (governor.Rows, error) {
	db, err := a.Database()
	if err != nil {
		return nil, err
	}
	return &postgres.Documents{DB: db, Name: "limits", Topic: "limits"}, nil
}
