package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	sessionsdb "loki/internal/conversation/session/postgres"
	"loki/internal/llm/event"
	"loki/internal/service/webhook"
	"loki/internal/workflow/run"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
)

// Migrated is what [App.MigrateStore] has copied, and what was in the database before.
type Migrated struct {
	Sessions, Runs               int
	SessionsBefore, RunsBefore   int
	SessionsWithout, RunsWithout []error // what was not copied, and why
}

// MigrateStore copies the sessions and runs that are in files into the database, with what belongs to runs: their webhooks, and
// the key of links to questions. Files stay as they are, and so does what is in the database already; a session that went on in the files
// after it was copied is one of SessionsWithout. It is an error with code Usage while a process works with the files. With dry, it only counts.
func (a *App) MigrateStore(ctx context.Context, dry bool) (m Migrated, err error) {
	db, err := a.Database()
	if err != nil {
		return m, err
	}
	if db == nil {
		return m, fault.New(fault.Usage, "there is no database to copy to").
			WithHint("name it in %s: store: postgres://USER:{{PASSWORD}}@HOST/DATABASE", a.Config.File)
	}
	pid, err := a.serving()
	if err != nil {
		return m, err
	}
	if pid != "" {
		return m, fault.New(fault.Usage, "a server (process %s) works with these files, so nothing was copied", pid).WithHint("end the server first, then try again")
	}
	old, err := sqlite.Open(filepath.Join(a.Paths.StateDir, storeFile), sqlite.Options{})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	files, err := filestore.New(filestore.Options{Options: session.Options{Warn: event.Warn}, Dir: a.Paths.SessionsDir, AgentDir: a.agentSessions})
	if err != nil {
		return m, err
	}
	runs, err := old.Runs(ctx, run.Query{})
	if err != nil {
		return m, err
	}
	for _, info := range runs {
		if info.Active {
			return m, fault.New(fault.Usage, "run %s is at work, so nothing was copied", info.ID).WithHint("end the server and all other programs that work with these files, then try again")
		}
	}
	if err := a.migrateSessions(ctx, files, sessionsdb.New(db, session.Options{}), &m, dry); err != nil {
		return m, err
	}
	// Secrets are marks in the record, and stay so.
	target := runsdb.New(db, runsdb.Options{})
	defer func() { err = errors.Join(err, target.Close()) }()
	for _, info := range slices.Backward(runs) { // the oldest one first
		if err := migrateRun(ctx, old, target, info.ID, &m, dry); err != nil {
			return m, err
		}
	}
	if dry {
		return m, nil
	}
	return m, webhook.Move(ctx, db, filepath.Join(a.Paths.StateDir, "webhooks"), filepath.Join(a.Paths.StateDir, "links.key"))
}

func (a *App) migrateSessions(ctx context.Context, files *filestore.Store, target *sessionsdb.Store, m *Migrated, dry bool) error {
	scopes, err := a.SessionScopes()
	if err != nil {
		return err
	}
	lists := make(map[session.Scope][]session.Meta)
	for _, scope := range scopes {
		if lists[scope], err = files.List(ctx, scope); err != nil {
			return err
		}
		for _, s := range lists[scope] {
			if busy, err := files.Busy(ctx, scope, s.ID); busy || err != nil {
				return errors.Join(err, fault.New(fault.Usage, "a question is being answered in session %s, so nothing was copied", s.ID).
					WithHint("end the server and all other programs that work with these files, then try again"))
			}
		}
	}
	for _, scope := range scopes {
		for _, s := range lists[scope] {
			there, err := target.Log(ctx, scope, s.ID, 0)
			if err == nil {
				newer, err := newerInFiles(ctx, files, scope, s, there)
				switch {
				case err != nil:
					return err
				case newer != nil:
					m.SessionsWithout = append(m.SessionsWithout, newer)
				default:
					m.SessionsBefore++
				}
				continue
			}
			if !errors.Is(err, session.ErrNotFound) {
				return err
			}
			if dry {
				m.Sessions++
				continue
			}
			c, err := files.Export(ctx, scope, s)
			if err == nil {
				_, err = target.Import(ctx, scope, c)
			}
			switch {
			case errors.Is(err, session.ErrAliasInUse) || fault.CodeOf(err) == fault.Config:
				m.SessionsWithout = append(m.SessionsWithout, err)
			case err != nil:
				return err
			default:
				m.Sessions++
			}
		}
	}
	return nil
}

// newerInFiles returns what to say about a session that is in the database already, with the log there, if its files have
// something that the database lacks; nil if the database has all of it, and perhaps more.
func newerInFiles(ctx context.Context, files *filestore.Store, scope session.Scope, s session.Meta, there []byte) (newer *fault.Error, err error) {
	log, err := files.Log(ctx, scope, s.ID, 0)
	if err != nil {
		return nil, err
	}
	log = session.Whole(log)
	if bytes.HasPrefix(there, log) {
		return nil, nil
	}
	name := cmp.Or(string(s.Alias), string(s.ID))
	remove := fmt.Sprintf("loki --delete-session %s", s.ID) // the database may have given its name to another one
	if scope != "" {
		remove = fmt.Sprintf("loki -a %s --delete-session %s", scope, s.ID)
		name += " of the agent " + string(scope)
	}
	elsewhere := "and the database has the older one"
	if !bytes.HasPrefix(log, session.Whole(there)) {
		elsewhere = "and in the database, too"
	}
	return fault.New(fault.Usage, "session %s went on in the files after it was copied, %s; to take that of the files, remove the other one and copy again: %s",
		name, elsewhere, remove), nil
}

func migrateRun(ctx context.Context, old *sqlite.Store, target *runsdb.Store, id string, m *Migrated, dry bool) error {
	_, err := target.Info(ctx, id)
	if err == nil {
		m.RunsBefore++
		return nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	rows, err := old.Export(ctx, id)
	if err != nil { // it is damaged
		m.RunsWithout = append(m.RunsWithout, err)
		return nil
	}
	if !dry {
		if _, err := target.Import(ctx, rows); err != nil {
			return err
		}
	}
	m.Runs++
	return nil
}
