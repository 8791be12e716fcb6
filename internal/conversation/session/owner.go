package session

import (
	"context"

	"loki/internal/service/auth"
)

// ActFor has the session belong to owner from the next change on that is written, if it has no
// owner then. If it belongs to another subject by then, the change is an [ErrNotFound] and is not
// written. A nil owner ends that. A caller that acts for an owner has the session to itself, see
// [Session.Acquire], and ends it before others get the session.
func (s *Session) ActFor(owner *auth.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = owner
}

// OwnNew gives a session that is not stored, and has no owner, to owner.
func (s *Session) OwnNew(owner *auth.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stored && s.state.Owner == nil {
		s.state.Owner = owner
	}
}

// Owner returns whose the session is, or will be once it is stored.
func (s *Session) Owner(ctx context.Context) (*auth.Owner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner(ctx)
}

func (s *Session) owner(ctx context.Context) (*auth.Owner, error) {
	switch {
	case s.stored:
		return s.log.Owner(ctx)
	case s.state.Owner == nil:
		return s.claim, nil
	}
	return s.state.Owner, nil
}

// own claims the stored session for the owner that a caller acts for. The caller holds mu.
func (s *Session) own(ctx context.Context) error {
	if s.claim == nil || !s.stored || s.state.Owner != nil {
		return nil
	}
	owner, err := s.log.Claim(ctx, *s.claim)
	if err != nil {
		return err
	}
	if owner.Subject != s.claim.Subject {
		return NotFound(s.id)
	}
	s.state.Owner = owner
	return nil
}
