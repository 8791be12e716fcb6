// Package memstore keeps sessions in memory: a complete [session.Store] for tests and
// for services that forget.
package memstore

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/service/auth"
)

// Store is a [session.Store] in memory.
type Store struct {
	*session.Opener
	options session.Options
	data    *shelf
}

// shelf is what is stored.
type shelf struct {
	mu     sync.Mutex // guards everything below, and the data of the sessions
	stored map[key]*data
}

var _ session.Store = (*Store)(nil)

type key struct {
	scope session.Scope
	id    session.ID
}

// data is what is stored of a session.
type data struct {
	state    session.State
	log      []byte
	modified time.Time
	writing  chan struct{} // holds a token during an update
}

// New returns an empty store.
func New(o session.Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return newStore(o, &shelf{stored: make(map[key]*data)})
}

func newStore(o session.Options, d *shelf) *Store {
	st := &Store{options: o, data: d}
	st.Opener = session.NewOpener(o, session.Places{
		Log:     func(scope session.Scope, id session.ID) (session.Log, error) { return &log{st, key{scope, id}}, nil },
		Resolve: st.resolve, Move: st.move, Delete: st.delete,
	})
	return st
}

func (st *Store) resolve(_ context.Context, scope session.Scope, alias session.Alias) (session.ID, error) {
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	if id, ok := st.byAlias(scope, alias); ok {
		return id, nil
	}
	return "", session.NotFound(alias)
}

func (st *Store) move(_ context.Context, scope session.Scope, id session.ID, to session.Scope) error {
	return st.with(key{scope, id}, func(d *data) error {
		if _, taken := st.byAlias(to, d.state.Alias); taken {
			return session.AliasInUse(d.state.Alias)
		}
		delete(st.data.stored, key{scope, id})
		st.data.stored[key{to, id}] = d
		return nil
	})
}

func (st *Store) delete(_ context.Context, scope session.Scope, id session.ID) error {
	return st.with(key{scope, id}, func(*data) error {
		delete(st.data.stored, key{scope, id})
		return nil
	})
}

// List implements [session.Store].
func (st *Store) List(_ context.Context, scope session.Scope) ([]session.Meta, error) {
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	var list []session.Meta
	for k, d := range st.data.stored {
		if k.scope == scope {
			list = append(list, session.Meta{ID: k.id, Alias: d.state.Alias, Modified: d.modified, Size: int64(len(d.log)), Owner: d.state.Owner})
		}
	}
	session.SortMetas(list)
	return list, nil
}

// byAlias finds a session. The caller holds mu.
func (st *Store) byAlias(scope session.Scope, alias session.Alias) (session.ID, bool) {
	for k, d := range st.data.stored {
		if k.scope == scope && d.state.Alias == alias && alias != "" {
			return k.id, true
		}
	}
	return "", false
}

// with calls do with the data of a session while it holds mu.
func (st *Store) with(k key, do func(d *data) error) error {
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	d, ok := st.data.stored[k]
	if !ok {
		return session.NotFound(k.id)
	}
	return do(d)
}

func (st *Store) find(k key) (found *data, err error) {
	err = st.with(k, func(d *data) error {
		found = d
		return nil
	})
	return found, err
}

// log is the [session.Log] of one session.
type log struct {
	store *Store
	key   key
}

func (l *log) Create(_ context.Context, state session.State) error {
	st := l.store
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	if _, taken := st.byAlias(l.key.scope, state.Alias); taken {
		return session.AliasInUse(state.Alias)
	}
	st.data.stored[l.key] = &data{state: state, modified: st.options.Now(), writing: make(chan struct{}, 1)}
	return nil
}

func (l *log) Adopt(_ context.Context, alias session.Alias) (session.ID, error) {
	st := l.store
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	id, ok := st.byAlias(l.key.scope, alias)
	if !ok {
		return "", session.NotFound(alias)
	}
	l.key.id = id
	return id, nil
}

func (l *log) Load(context.Context) (state session.State, text []byte, err error) {
	err = l.store.with(l.key, func(d *data) error {
		state, text = d.state, slices.Clip(d.log)
		return nil
	})
	return state, text, err
}

func (l *log) Tail(ctx context.Context, offset int64) ([]byte, error) {
	_, text, err := l.Load(ctx)
	return text[min(offset, int64(len(text))):], err
}

func (l *log) Update(ctx context.Context, change func(session.Tx) error) error {
	d, err := l.store.find(l.key)
	if err != nil {
		return err
	}
	select {
	case d.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-d.writing }()
	if _, err := l.store.find(l.key); err != nil { // deleted meanwhile
		return err
	}
	return change(&tx{l.store, d})
}

func (l *log) Rename(_ context.Context, alias session.Alias) error {
	return l.store.with(l.key, func(d *data) error {
		if id, taken := l.store.byAlias(l.key.scope, alias); taken && id != l.key.id {
			return session.AliasInUse(alias)
		}
		d.state.Alias = alias
		return nil
	})
}

func (l *log) Owner(ctx context.Context) (*auth.Owner, error) {
	state, _, err := l.Load(ctx)
	return state.Owner, err
}

func (l *log) Claim(_ context.Context, owner auth.Owner) (has *auth.Owner, err error) {
	err = l.store.with(l.key, func(d *data) error {
		if d.state.Owner == nil {
			d.state.Owner = &owner
		}
		has = d.state.Owner
		return nil
	})
	return has, err
}

// tx is the [session.Tx] of an update.
type tx struct {
	store *Store
	data  *data
}

func (t *tx) Size() (int64, error) {
	t.store.data.mu.Lock()
	defer t.store.data.mu.Unlock()
	return int64(len(t.data.log)), nil
}

func (t *tx) Tail(offset int64) ([]byte, error) {
	t.store.data.mu.Lock()
	defer t.store.data.mu.Unlock()
	return slices.Clip(t.data.log[offset:]), nil
}

func (t *tx) Append(size int64, data []byte) error {
	t.store.data.mu.Lock()
	defer t.store.data.mu.Unlock()
	d := t.data
	if size < int64(len(d.log)) {
		d.log = slices.Clone(d.log[:size]) // readers may still have the old one
	}
	d.log = append(d.log, data...)
	d.modified = t.store.options.Now()
	return nil
}

func (t *tx) State() (session.State, error) {
	t.store.data.mu.Lock()
	defer t.store.data.mu.Unlock()
	return t.data.state, nil
}

func (t *tx) SetState(state session.State) error {
	t.store.data.mu.Lock()
	defer t.store.data.mu.Unlock()
	state.Alias, state.Owner = cmp.Or(state.Alias, t.data.state.Alias), t.data.state.Owner
	t.data.state = state
	t.data.modified = t.store.options.Now()
	return nil
}

// NewDraft implements [session.Log]. What is in memory does not outlive the process, so
// there is nothing to keep.
func (l *log) NewDraft(context.Context) (session.DraftFile, error) {
	if _, err := l.store.find(l.key); err != nil {
		return nil, err
	}
	return noDraft{}, nil
}

// AbandonedDrafts implements [session.Log].
func (l *log) AbandonedDrafts(context.Context) ([]session.DraftFile, error) { return nil, nil }

// Withdraw implements [session.Log].
func (l *log) Withdraw(_ context.Context, size int64) (withdrawn bool, err error) {
	st := l.store
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	if d := st.data.stored[l.key]; d == nil || int64(len(d.log)) != size {
		return false, nil
	}
	delete(st.data.stored, l.key)
	return true, nil
}

type noDraft struct{}

func (noDraft) Data() ([]byte, error) { return nil, nil }
func (noDraft) Append([]byte) error   { return nil }
func (noDraft) Remove() error         { return nil }
func (noDraft) Close() error          { return nil }
