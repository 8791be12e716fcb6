package conversation

import (
	"context"
	"errors"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
)

// Stored returns the id of the stored session of a scope that name means: its alias, the name
// that an older version gave it, or its id. If there is none the error is a
// [session.ErrNotFound].
func (s *Service) Stored(ctx context.Context, scope session.Scope, name string) (session.ID, error) {
	store, err := s.Sessions()
	if err != nil {
		return "", err
	}
	if id, err := session.ParseID(name); err == nil {
		list, err := store.List(ctx, scope)
		for _, m := range list {
			if m.ID == id {
				return id, nil
			}
		}
		return "", errors.Join(err, session.NotFound(id))
	}
	alias, err := session.ParseAlias(name)
	if err != nil {
		if old := oldAlias(ctx, store, scope, name); old != "" {
			alias, err = old, nil
		}
	}
	if err != nil {
		return "", err
	}
	return store.Resolve(ctx, scope, alias)
}

// DeleteSession deletes the stored session that name means, see [Service.Stored]. It is an error
// with code Usage while a question is answered in it.
func (s *Service) DeleteSession(ctx context.Context, scope session.Scope, name string) (session.ID, error) {
	id, err := s.Stored(ctx, scope, name)
	if err != nil {
		return "", err
	}
	store, err := s.Sessions()
	if err != nil {
		return "", err
	}
	if shared, ok := store.(interface {
		Busy(ctx context.Context, scope session.Scope, id session.ID) (bool, error)
	}); ok {
		if busy, err := shared.Busy(ctx, scope, id); busy || err != nil {
			return "", errors.Join(err, fault.New(fault.Usage, "a question is being answered in session %s, so it was not deleted", name).
				WithHint("wait for the answer or end that process, then try again"))
		}
	}
	return id, store.Delete(ctx, scope, id)
}

// newName returns the alias of a session that is called name from now on. It is an error with code Usage if that is
// impossible, or contains a secret: names are shown, and are names of files.
func (s *Service) newName(name string) (session.Alias, error) {
	if hide := s.Recents.Hide; hide != nil && hide(name) != name {
		return "", fault.New(fault.Usage, "%q cannot be the name of a session: it contains a secret", hide(name))
	}
	return session.ParseAlias(name)
}

// RenameSession gives the stored session that name means, see [Service.Stored], another name.
// Conversations that are in it continue under that name. It is a [session.ErrAliasInUse] if another
// session has the name.
func (s *Service) RenameSession(ctx context.Context, scope session.Scope, name, to string) error {
	alias, err := s.newName(to)
	if err != nil {
		return err
	}
	id, err := s.Stored(ctx, scope, name)
	if err != nil {
		return err
	}
	store, err := s.Sessions()
	if err != nil {
		return err
	}
	return store.Rename(ctx, scope, id, alias)
}
