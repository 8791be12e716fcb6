package app

import (
	"context"
	"errors"
	"path/filepath"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/migrate"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
)

// MigrateStore copies the sessions and runs that are in files into the database, see [migrate.Files.Copy].
func (a *App) MigrateStore(ctx context.Context, dry bool) (m migrate.Copied, err error) {
	db, err := a.Database()
	if err != nil {
		return m, err
	}
	if db == nil {
		return m, fault.New(fault.Usage, "there is no database to copy to").
			WithHint("name it in %s: store: postgres://USER:{{PASSWORD}}@HOST/DATABASE", a.Config.File)
	}
	pid, err := atomicfile.MarkedBy(a.servingDir())
	if err != nil {
		return m, err
	}
	if pid != "" {
		return m, fault.New(fault.Usage, "a server (process %s) works with these files, so nothing was copied", pid).WithHint("end the server first, then try again")
	}
	f := migrate.Files{StateDir: a.Paths.StateDir}
	if f.Runs, err = sqlite.Open(filepath.Join(a.Paths.StateDir, storeFile), sqlite.Options{}); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Runs.Close()) }()
	if f.Sessions, err = filestore.New(filestore.Options{Options: session.Options{Warn: event.Warn}, Dir: a.Paths.SessionsDir, AgentDir: a.agentSessions}); err != nil {
		return m, err
	}
	if f.Scopes, err = a.SessionScopes(); err != nil {
		return m, err
	}
	if m, err = f.Copy(ctx, db, dry); err != nil || dry {
		return m, err
	}
	return m, copyEntries(ctx, f.Runs, runsdb.New(db, runsdb.Options{}))
}

// copyEntries copies states of schedules, keys of starts and the like. One that is there already stays as it is.
func copyEntries(ctx context.Context, from, to run.Store) error {
	entries, err := from.Entries(ctx, "", 0)
	for _, e := range entries {
		e.Version = 0
		if err := to.Put(ctx, e); err != nil {
			if _, there := errors.AsType[*run.ConflictError](err); !there {
				return errors.Join(err, to.Close())
			}
		}
	}
	return errors.Join(err, to.Close())
}
