// Package memstore keeps sessions in memory: a complete [session.Store] for tests and
// for services that forget.
package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/service/auth"
)

// Store is a [session.Store] in memory.
type Store struct {
	options session.Options
	table   session.Table
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
	return &Store{options: o, data: &shelf{stored: make(map[key]*data)}}
}

// Create implements [session.Store].
func (st *Store) Create(ctx context.Context, scope session.Scope, alias session.Alias, initial session.Settings) (*session.Session, error) {
	l := st.newLog(scope)
	s := session.New(scope, l.key.id, l, st.options, session.State{Settings: initial, Alias: alias})
	if err := s.Store(ctx); err != nil {
		return nil, err
	}
	return st.table.Add(s), nil
}

// Temp implements [session.Store].
func (st *Store) Temp(scope session.Scope, initial session.Settings) *session.Session {
	l := st.newLog(scope)
	return st.table.Begin(session.NewTemp(scope, l.key.id, l, st.options, initial))
}

// Fork implements [session.Store].
func (st *Store) Fork(ctx context.Context, s *session.Session, alias session.Alias) (*session.Session, error) {
	l := st.newLog(s.Scope())
	f, err := session.Fork(ctx, s, l.key.id, l, alias)
	if err != nil {
		return nil, err
	}
	return st.table.Add(f), nil
}

// Open implements [session.Store].
func (st *Store) Open(ctx context.Context, scope session.Scope, id session.ID) (*session.Session, error) {
	if _, err := st.find(key{scope, id}); err != nil {
		return nil, err
	}
	if s := st.table.Open(scope, id); s != nil {
		return s, s.Refresh(ctx)
	}
	s, err := session.Load(ctx, scope, id, &log{store: st, key: key{scope, id}}, st.options)
	if err != nil {
		return nil, err
	}
	return st.table.Add(s), nil
}

// OpenOrCreate implements [session.Store].
func (st *Store) OpenOrCreate(ctx context.Context, scope session.Scope, alias session.Alias, initial func() (session.Settings, error)) (*session.Session, error) {
	if s := st.table.PendingSession(scope, alias); s != nil {
		err := s.Refresh(ctx)
		if !errors.Is(err, session.ErrNotFound) {
			return s, err
		}
		st.table.Forget(scope, s.ID()) // deleted through another store
	}
	if id, err := st.Resolve(ctx, scope, alias); err == nil {
		return st.Open(ctx, scope, id)
	}
	settings, err := initial()
	if err != nil {
		return nil, err
	}
	l := st.newLog(scope)
	return st.table.Begin(session.New(scope, l.key.id, l, st.options, session.State{Settings: settings, Alias: alias})), nil
}

// Resolve implements [session.Store].
func (st *Store) Resolve(_ context.Context, scope session.Scope, alias session.Alias) (session.ID, error) {
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	if id, ok := st.byAlias(scope, alias); ok {
		return id, nil
	}
	return "", session.NotFound(alias)
}

// Rename implements [session.Store].
func (st *Store) Rename(ctx context.Context, scope session.Scope, id session.ID, alias session.Alias) error {
	if err := (&log{store: st, key: key{scope, id}}).Rename(ctx, alias); err != nil {
		return err
	}
	st.table.SetAlias(scope, id, alias)
	return nil
}

// Move implements [session.Store].
func (st *Store) Move(_ context.Context, scope session.Scope, id session.ID, to session.Scope) error {
	st.data.mu.Lock()
	d, ok := st.data.stored[key{scope, id}]
	if ok {
		if _, taken := st.byAlias(to, d.state.Alias); taken {
			st.data.mu.Unlock()
			return session.AliasInUse(d.state.Alias)
		}
		delete(st.data.stored, key{scope, id})
		st.data.stored[key{to, id}] = d
	}
	st.data.mu.Unlock()
	if !ok {
		return session.NotFound(id)
	}
	st.table.Forget(scope, id)
	return nil
}

// Owner implements [session.Store].
func (st *Store) Owner(ctx context.Context, scope session.Scope, id session.ID) (*auth.Owner, error) {
	return (&log{store: st, key: key{scope, id}}).Owner(ctx)
}

// Claim implements [session.Store].
func (st *Store) Claim(ctx context.Context, scope session.Scope, id session.ID, owner auth.Owner) (*auth.Owner, error) {
	return (&log{store: st, key: key{scope, id}}).Claim(ctx, owner)
}

// Delete implements [session.Store].
func (st *Store) Delete(_ context.Context, scope session.Scope, id session.ID) error {
	st.data.mu.Lock()
	k := key{scope, id}
	_, ok := st.data.stored[k]
	delete(st.data.stored, k)
	st.data.mu.Unlock()
	if !ok {
		return session.NotFound(id)
	}
	st.table.Forget(scope, id)
	return nil
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

func (st *Store) newLog(scope session.Scope) *log {
	return &log{store: st, key: key{scope, session.NewID()}}
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

func (st *Store) find(k key) (*data, error) {
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	d, ok := st.data.stored[k]
	if !ok {
		return nil, session.NotFound(k.id)
	}
	return d, nil
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

func (l *log) Load(context.Context) (session.State, []byte, error) {
	d, err := l.store.find(l.key)
	if err != nil {
		return session.State{}, nil, err
	}
	l.store.data.mu.Lock()
	defer l.store.data.mu.Unlock()
	return d.state, slices.Clip(d.log), nil
}

func (l *log) Tail(_ context.Context, offset int64) ([]byte, error) {
	d, err := l.store.find(l.key)
	if err != nil {
		return nil, err
	}
	l.store.data.mu.Lock()
	defer l.store.data.mu.Unlock()
	return slices.Clip(d.log[min(offset, int64(len(d.log))):]), nil
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
	st := l.store
	st.data.mu.Lock()
	defer st.data.mu.Unlock()
	d, ok := st.data.stored[l.key]
	if !ok {
		return session.NotFound(l.key.id)
	}
	if id, taken := st.byAlias(l.key.scope, alias); taken && id != l.key.id {
		return session.AliasInUse(alias)
	}
	d.state.Alias = alias
	return nil
}

func (l *log) Owner(context.Context) (*auth.Owner, error) {
	l.store.data.mu.Lock()
	defer l.store.data.mu.Unlock()
	d, ok := l.store.data.stored[l.key]
	if !ok {
		return nil, session.NotFound(l.key.id)
	}
	return d.state.Owner, nil
}

func (l *log) Claim(_ context.Context, owner auth.Owner) (*auth.Owner, error) {
	l.store.data.mu.Lock()
	defer l.store.data.mu.Unlock()
	d, ok := l.store.data.stored[l.key]
	if !ok {
		return nil, session.NotFound(l.key.id)
	}
	if d.state.Owner == nil {
		d.state.Owner = &owner
	}
	return d.state.Owner, nil
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
