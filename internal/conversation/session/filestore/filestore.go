// Package filestore keeps sessions in files that people can read.
//
// The sessions of a scope are below one directory:
//
//	by-id/<uuid>/state.yaml      settings and alias; replaced as a whole
//	by-id/<uuid>/messages.jsonl  the log; only appended to
//	by-id/<uuid>/draft-*.jsonl   a turn that is being answered, held by the process that does
//	by-id/<uuid>/owner.json      subject and key that own it; if there is none, the session has no owner
//	by-id/<uuid>/lock            held by the process that writes
//	by-name/<alias>              the uuid
//	lock                         held by the process that changes names
//
// A session is there if its state.yaml is. A name without a session is ignored.
//
// Sessions of older versions, <name>.yaml and _/<name>.yaml, are listed like others and
// converted when they are first opened. Their files stay as they are until the session
// is deleted. Their ids follow from their paths, so that it is known of a session
// which file it comes from, whatever it is called by now.
package filestore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/conversation/session"
	"loki/internal/service/auth"
)

// Options configure New.
type Options struct {
	session.Options

	Dir string // of the global scope; required, and made when it is needed

	// AgentDir returns the directory of an agent's sessions. nil means that there are
	// no agents.
	AgentDir func(agent string) string

	// LockTimeout bounds how long to wait for other processes; 0 means ten seconds. No
	// lock is held for longer than writing takes.
	LockTimeout time.Duration

	// NoSync leaves it to the operating system when data reaches the disk: it still
	// survives the process, but perhaps not a power cut.
	NoSync bool
}

// Store is a [session.Store] of files.
type Store struct {
	options Options
	table   session.Table
}

var _ session.Store = (*Store)(nil)

// New returns the store. It looks at no file yet.
func New(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("filestore: no directory")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(context.Context, error) {}
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 10 * time.Second
	}
	return &Store{options: o}, nil
}

// room returns where the sessions of scope are.
func (st *Store) room(scope session.Scope) (*room, error) {
	r := &room{scope: scope, dir: st.options.Dir, options: &st.options}
	if scope == "" {
		return r, nil
	}
	if !filepath.IsLocal(string(scope)) || filepath.Base(string(scope)) != string(scope) || scope == "." || st.options.AgentDir == nil {
		return nil, fault.New(fault.NotFound, "there is no agent %q", scope).ThatMisses("agent")
	}
	r.dir = st.options.AgentDir(string(scope))
	return r, nil
}

// Create implements [session.Store].
func (st *Store) Create(ctx context.Context, scope session.Scope, alias session.Alias, initial session.Settings) (*session.Session, error) {
	r, err := st.room(scope)
	if err != nil {
		return nil, err
	}
	l := &log{room: r, id: session.NewID()}
	s := session.New(scope, l.id, l, st.options.Options, session.State{Settings: initial, Alias: alias})
	if err := s.Store(ctx); err != nil {
		return nil, err
	}
	return st.table.Add(s), nil
}

// Temp implements [session.Store].
func (st *Store) Temp(scope session.Scope, initial session.Settings) *session.Session {
	l := &log{id: session.NewID()}
	l.room, l.err = st.room(scope)
	return st.table.Begin(session.NewTemp(scope, l.id, l, st.options.Options, initial))
}

// Fork implements [session.Store].
func (st *Store) Fork(ctx context.Context, s *session.Session, alias session.Alias) (*session.Session, error) {
	r, err := st.room(s.Scope())
	if err != nil {
		return nil, err
	}
	id := session.NewID()
	f, err := session.Fork(ctx, s, id, &log{room: r, id: id}, alias)
	if err != nil {
		return nil, err
	}
	return st.table.Add(f), nil
}

// Open implements [session.Store].
func (st *Store) Open(ctx context.Context, scope session.Scope, id session.ID) (*session.Session, error) {
	r, err := st.room(scope)
	if err != nil {
		return nil, err
	}
	if s := st.table.Open(scope, id); s != nil && s.Stored() {
		return s, s.Refresh(ctx)
	}
	if err := r.ensure(ctx, id); err != nil {
		return nil, err
	}
	s, err := session.Load(ctx, scope, id, &log{room: r, id: id}, st.options.Options)
	if err != nil {
		return nil, err
	}
	return st.table.Add(s), nil
}

// OpenOrCreate implements [session.Store].
func (st *Store) OpenOrCreate(ctx context.Context, scope session.Scope, alias session.Alias, initial func() (session.Settings, error)) (*session.Session, error) {
	r, err := st.room(scope)
	if err != nil {
		return nil, err
	}
	if s := st.table.PendingSession(scope, alias); s != nil {
		err := s.Refresh(ctx)
		if !errors.Is(err, session.ErrNotFound) {
			return s, err
		}
		st.table.Forget(scope, s.ID()) // another process has deleted it
	}
	switch id, err := r.resolve(ctx, alias); {
	case err == nil:
		s, err := st.Open(ctx, scope, id)
		if !errors.Is(err, session.ErrNotFound) {
			return s, err
		}
		// Meanwhile it is gone.
	case !errors.Is(err, session.ErrNotFound):
		return nil, err
	}
	settings, err := initial()
	if err != nil {
		return nil, err
	}
	l := &log{room: r, id: session.NewID()}
	return st.table.Begin(session.New(scope, l.id, l, st.options.Options, session.State{Settings: settings, Alias: alias})), nil
}

// Resolve implements [session.Store].
func (st *Store) Resolve(ctx context.Context, scope session.Scope, alias session.Alias) (session.ID, error) {
	r, err := st.room(scope)
	if err != nil {
		return "", err
	}
	return r.resolve(ctx, alias)
}

// Rename implements [session.Store].
func (st *Store) Rename(ctx context.Context, scope session.Scope, id session.ID, alias session.Alias) error {
	r, err := st.room(scope)
	if err != nil {
		return err
	}
	if err := r.ensure(ctx, id); err != nil {
		return err
	}
	if err := (&log{room: r, id: id}).Rename(ctx, alias); err != nil {
		return err
	}
	st.table.SetAlias(scope, id, alias)
	return nil
}

// Move implements [session.Store].
func (st *Store) Move(ctx context.Context, scope session.Scope, id session.ID, to session.Scope) error {
	from, err := st.room(scope)
	if err != nil {
		return err
	}
	target, err := st.room(to)
	if err != nil {
		return err
	}
	if err := from.ensure(ctx, id); err != nil {
		return err
	}
	if err := from.move(ctx, id, target); err != nil {
		return err
	}
	st.table.Forget(scope, id)
	return nil
}

// Owner implements [session.Store].
func (st *Store) Owner(ctx context.Context, scope session.Scope, id session.ID) (*auth.Owner, error) {
	r, err := st.room(scope)
	if err != nil {
		return nil, err
	}
	if !r.stored(id) {
		old, err := r.legacyByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if old != nil {
			return nil, nil
		}
	}
	return (&log{room: r, id: id}).Owner(ctx)
}

// Claim implements [session.Store].
func (st *Store) Claim(ctx context.Context, scope session.Scope, id session.ID, owner auth.Owner) (*auth.Owner, error) {
	r, err := st.room(scope)
	if err != nil {
		return nil, err
	}
	if err := r.ensure(ctx, id); err != nil {
		return nil, err
	}
	return (&log{room: r, id: id}).Claim(ctx, owner)
}

// Delete implements [session.Store]. The file of an older version that the session
// comes from goes too: otherwise it would be there again.
func (st *Store) Delete(ctx context.Context, scope session.Scope, id session.ID) error {
	r, err := st.room(scope)
	if err != nil {
		return err
	}
	if err := r.delete(ctx, id); err != nil {
		return err
	}
	st.table.Forget(scope, id)
	return nil
}

// List implements [session.Store].
func (st *Store) List(ctx context.Context, scope session.Scope) ([]session.Meta, error) {
	r, err := st.room(scope)
	if err != nil {
		return nil, err
	}
	return r.list(ctx)
}

// missing reports whether err says that a file or directory is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// exists reports whether there is something at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// StateFile returns the path of the settings of s, which a user may edit while the
// session is not in use; the messages are beside it. It is "" if s is not stored.
func (st *Store) StateFile(s *session.Session) string {
	r, err := st.room(s.Scope())
	if err != nil || !s.Stored() {
		return ""
	}
	return r.path(s.ID(), stateFile)
}

// Probe reports why sessions could not be written now, nil if they could.
func (s *Store) Probe(context.Context) error { return atomicfile.Probe(s.options.Dir) }
