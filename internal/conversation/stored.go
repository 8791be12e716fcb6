package conversation

import (
	"context"
	"errors"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/session"
)

// StoredID returns the id of the stored session of a scope that name means: its alias, the name
// that an older version gave it, or its id. If there is none the error is a
// [session.ErrNotFound].
func (s *Service) StoredID(ctx context.Context, scope session.Scope, name string) (session.ID, error) {
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
	id, err := store.Resolve(ctx, scope, alias)
	if errors.Is(err, session.ErrNotFound) {
		if near := nearName(ctx, store, scope, name); near != "" {
			err = fault.Wrap(fault.NotFound, session.ErrNotFound, "session %q", alias).ThatMisses("session").WithHint("did you mean %s? loki --list sessions lists the sessions", near)
		}
	}
	return id, err
}

// nearName returns the name of the stored session of a scope that name is probably a misspelling of, "" for none. Names that
// differ in their numbers only are not misspelled.
func nearName(ctx context.Context, store session.Store, scope session.Scope, name string) string {
	list, _ := store.List(ctx, scope)
	var names []string
	for _, m := range list {
		if other := string(m.Alias); other != "" && strings.Trim(other, "0123456789") != strings.Trim(name, "0123456789") {
			names = append(names, other)
		}
	}
	return yamldoc.Nearest(name, names)
}

// LikelyName returns the name of a stored session that the name of the session in force, which is new, is probably
// a misspelling of, "" for none.
func (c *Conversation) LikelyName(ctx context.Context) string {
	store, err := c.service.Sessions()
	if s := c.session; err != nil || s == nil || s.Stored() || !s.Empty() || s.Alias() == "" {
		return ""
	}
	name := string(c.session.Alias())
	if near := nearName(ctx, store, c.Scope(), name); yamldoc.Misspells(name, near) {
		return near
	}
	return ""
}

// DeleteSession deletes the stored session that name means, see [Service.StoredID]. It is an error
// with code Usage while a question is answered in it.
func (s *Service) DeleteSession(ctx context.Context, scope session.Scope, name string) (session.ID, error) {
	id, err := s.StoredID(ctx, scope, name)
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

// RenameSession gives the stored session that name means, see [Service.StoredID], another name.
// Conversations that are in it continue under that name. It is a [session.ErrAliasInUse] if another
// session has the name.
func (s *Service) RenameSession(ctx context.Context, scope session.Scope, name, to string) error {
	alias, err := s.newName(to)
	if err != nil {
		return err
	}
	id, err := s.StoredID(ctx, scope, name)
	if err != nil {
		return err
	}
	store, err := s.Sessions()
	if err != nil {
		return err
	}
	return store.Rename(ctx, scope, id, alias)
}
