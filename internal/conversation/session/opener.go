package session

import (
	"context"
	"errors"

	"loki/internal/service/auth"
)

// Opener makes and opens the sessions of a store: it is the part of a [Store] that does not depend on where sessions are. It is for
// stores.
type Opener struct {
	options Options
	places  Places
	table   Table
}

// Places say where the sessions of a store are.
type Places struct {
	// Log returns where a session is, or will be. With an error, which is about the scope, it is a log that cannot be stored.
	Log func(scope Scope, id ID) (Log, error)

	// Convert makes a session of an older version one of this version, before it is opened or changed. It may be nil.
	Convert func(ctx context.Context, scope Scope, id ID) error

	// Resolve, Move and Delete are those of the [Store], regardless of which sessions are open.
	Resolve func(ctx context.Context, scope Scope, alias Alias) (ID, error)
	Move    func(ctx context.Context, scope Scope, id ID, to Scope) error
	Delete  func(ctx context.Context, scope Scope, id ID) error
}

// NewOpener returns what makes and opens sessions in places.
func NewOpener(o Options, p Places) *Opener {
	if p.Convert == nil {
		p.Convert = func(context.Context, Scope, ID) error { return nil }
	}
	return &Opener{options: o, places: p}
}

// Create implements [Store].
func (o *Opener) Create(ctx context.Context, scope Scope, alias Alias, initial Settings) (*Session, error) {
	id := NewID()
	log, err := o.places.Log(scope, id)
	if err != nil {
		return nil, err
	}
	s := New(scope, id, log, o.options, State{Settings: initial, Alias: alias})
	if err := s.Store(ctx); err != nil {
		return nil, err
	}
	return o.table.Add(s), nil
}

// Temp implements [Store].
func (o *Opener) Temp(scope Scope, initial Settings) *Session {
	id := NewID()
	log, _ := o.places.Log(scope, id) // storing it fails then
	return o.table.Begin(NewTemp(scope, id, log, o.options, initial))
}

// Fork implements [Store].
func (o *Opener) Fork(ctx context.Context, s *Session, alias Alias) (*Session, error) {
	id := NewID()
	log, err := o.places.Log(s.Scope(), id)
	if err != nil {
		return nil, err
	}
	f, err := Fork(ctx, s, id, log, alias)
	if err != nil {
		return nil, err
	}
	return o.table.Add(f), nil
}

// Open implements [Store].
func (o *Opener) Open(ctx context.Context, scope Scope, id ID) (*Session, error) {
	if s := o.table.Open(scope, id); s != nil && s.Stored() {
		return s, s.Refresh(ctx)
	}
	log, err := o.current(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	s, err := Load(ctx, scope, id, log, o.options)
	if err != nil {
		return nil, err
	}
	return o.table.Add(s), nil
}

// current returns the log of a stored session, which is one of this version.
func (o *Opener) current(ctx context.Context, scope Scope, id ID) (Log, error) {
	log, err := o.places.Log(scope, id)
	if err != nil {
		return nil, err
	}
	return log, o.places.Convert(ctx, scope, id)
}

// OpenOrCreate implements [Store].
func (o *Opener) OpenOrCreate(ctx context.Context, scope Scope, alias Alias, initial func() (Settings, error)) (*Session, error) {
	if s := o.table.PendingSession(scope, alias); s != nil {
		err := s.Refresh(ctx)
		if !errors.Is(err, ErrNotFound) {
			return s, err
		}
		o.table.Forget(scope, s.ID()) // another process has deleted it
	}
	id, err := o.places.Resolve(ctx, scope, alias)
	if err == nil {
		var s *Session
		if s, err = o.Open(ctx, scope, id); err == nil {
			return s, nil
		}
	}
	if !errors.Is(err, ErrNotFound) { // else there is none, or it is gone meanwhile
		return nil, err
	}
	settings, err := initial()
	if err != nil {
		return nil, err
	}
	id = NewID()
	log, err := o.places.Log(scope, id)
	if err != nil {
		return nil, err
	}
	return o.table.Begin(New(scope, id, log, o.options, State{Settings: settings, Alias: alias})), nil
}

// Resolve implements [Store].
func (o *Opener) Resolve(ctx context.Context, scope Scope, alias Alias) (ID, error) {
	return o.places.Resolve(ctx, scope, alias)
}

// Rename implements [Store].
func (o *Opener) Rename(ctx context.Context, scope Scope, id ID, alias Alias) error {
	log, err := o.current(ctx, scope, id)
	if err == nil {
		err = log.Rename(ctx, alias)
	}
	if err == nil {
		o.table.SetAlias(scope, id, alias)
	}
	return err
}

// Move implements [Store].
func (o *Opener) Move(ctx context.Context, scope Scope, id ID, to Scope) error {
	err := o.places.Move(ctx, scope, id, to)
	if err == nil {
		o.table.Forget(scope, id)
	}
	return err
}

// Owner implements [Store].
func (o *Opener) Owner(ctx context.Context, scope Scope, id ID) (*auth.Owner, error) {
	log, err := o.places.Log(scope, id)
	if err != nil {
		return nil, err
	}
	return log.Owner(ctx)
}

// Claim implements [Store].
func (o *Opener) Claim(ctx context.Context, scope Scope, id ID, owner auth.Owner) (*auth.Owner, error) {
	log, err := o.current(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	return log.Claim(ctx, owner)
}

// Delete implements [Store].
func (o *Opener) Delete(ctx context.Context, scope Scope, id ID) error {
	err := o.places.Delete(ctx, scope, id)
	if err == nil {
		o.table.Forget(scope, id)
	}
	return err
}

// Log returns the log of a session from offset on, without locking or changing anything: it may end within a group that is being
// written. One of an older version is not converted; its log is that which it would have.
func (o *Opener) Log(ctx context.Context, scope Scope, id ID, offset int64) ([]byte, error) {
	log, err := o.places.Log(scope, id)
	if err != nil {
		return nil, err
	}
	return log.Tail(ctx, offset)
}

// Glance returns what a session is about, without converting one of an older version: the text of the first question and the
// number of turns.
func (o *Opener) Glance(ctx context.Context, scope Scope, id ID) (first string, turns int, err error) {
	log, err := o.places.Log(scope, id)
	if err != nil {
		return "", 0, err
	}
	s, err := Load(ctx, scope, id, log, Options{})
	if err != nil {
		return "", 0, err
	}
	first, turns = s.Glance()
	return first, turns, nil
}
