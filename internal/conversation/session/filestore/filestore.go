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
	*session.Opener
	options Options
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
	st := &Store{options: o}
	st.Opener = session.NewOpener(o.Options, session.Places{Log: st.log, Convert: st.convert, Resolve: st.resolve, Move: st.move, Delete: st.delete})
	return st, nil
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

func (st *Store) log(scope session.Scope, id session.ID) (session.Log, error) {
	r, err := st.room(scope)
	return &log{room: r, id: id, err: err}, err
}

func (st *Store) convert(ctx context.Context, scope session.Scope, id session.ID) error {
	r, err := st.room(scope)
	if err != nil {
		return err
	}
	return r.ensure(ctx, id)
}

func (st *Store) resolve(ctx context.Context, scope session.Scope, alias session.Alias) (session.ID, error) {
	r, err := st.room(scope)
	if err != nil {
		return "", err
	}
	return r.resolve(ctx, alias)
}

func (st *Store) move(ctx context.Context, scope session.Scope, id session.ID, to session.Scope) error {
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
	return from.move(ctx, id, target)
}

func (st *Store) delete(ctx context.Context, scope session.Scope, id session.ID) error {
	r, err := st.room(scope)
	if err != nil {
		return err
	}
	return r.delete(ctx, id)
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
