// Package migrate copies the sessions and runs that are in files into a database.
package migrate

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
	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
	"loki/internal/workflow/run/webhook"
)

// Files are the stores whose content is copied.
type Files struct {
	Sessions *filestore.Store
	Scopes   []session.Scope // of the sessions
	Runs     *sqlite.Store
	StateDir string // with the webhooks of runs and the key of links to questions
}

// Copied is what [Files.Copy] has copied, and what was in the database before.
type Copied struct {
	Sessions, Runs               int
	SessionsBefore, RunsBefore   int
	SessionsWithout, RunsWithout []error // what was not copied, and why
}

// Copy copies sessions and runs into the database, with what belongs to runs: their webhooks, and the key of links to questions. Files
// stay as they are, and so does what is in the database already; a session that was continued in the files after it was copied is one of
// SessionsWithout. It is an error with code Usage while a process works with the files. With dry, it only counts.
func (f Files) Copy(ctx context.Context, db *postgres.DB, dry bool) (m Copied, err error) {
	runs, err := f.Runs.Runs(ctx, run.Query{})
	if err != nil {
		return m, err
	}
	for _, info := range runs {
		if info.Active {
			return m, fault.New(fault.Usage, "run %s is at work, so nothing was copied", info.ID).WithHint("end the server and all other programs that work with these files, then try again")
		}
	}
	if err := f.sessions(ctx, sessionsdb.New(db, session.Options{}), &m, dry); err != nil {
		return m, err
	}
	// Secrets are marks in the record, and stay so.
	target := runsdb.New(db, runsdb.Options{})
	defer func() { err = errors.Join(err, target.Close()) }()
	for _, info := range slices.Backward(runs) { // the oldest one first
		if err := f.run(ctx, target, info.ID, &m, dry); err != nil {
			return m, err
		}
	}
	if dry {
		return m, nil
	}
	return m, webhook.Move(ctx, db, filepath.Join(f.StateDir, "webhooks"), filepath.Join(f.StateDir, "links.key"))
}

func (f Files) sessions(ctx context.Context, target *sessionsdb.Store, m *Copied, dry bool) error {
	var err error
	files := f.Sessions
	lists := make(map[session.Scope][]session.Meta)
	for _, scope := range f.Scopes {
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
	for _, scope := range f.Scopes {
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

func (f Files) run(ctx context.Context, target *runsdb.Store, id string, m *Copied, dry bool) error {
	_, err := target.Info(ctx, id)
	if err == nil {
		m.RunsBefore++
		return nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	rows, err := f.Runs.Export(ctx, id)
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
