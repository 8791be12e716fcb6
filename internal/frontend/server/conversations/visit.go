package conversations

import (
	"context"
	"errors"
	"net/http"

	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
)

// owner returns whose is what a request makes.
func (s *service) owner(ctx context.Context) *auth.Owner { return s.Access().Owner(rest.Subject(ctx)) }

// view returns what of all sessions the caller sees.
func (s *service) view(ctx context.Context) *auth.View { return s.Access().View(rest.Subject(ctx)) }

// find returns a stored session that the caller may see.
func (s *service) find(ctx context.Context, text string) (*session.Session, error) {
	none := rest.NotFound("session", text)
	id, err := session.ParseID(text)
	if err != nil {
		return nil, none
	}
	store, err := s.App.Sessions()
	if err != nil {
		return nil, err
	}
	found, err := s.look(ctx, store, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	owner, err := found.Owner(ctx)
	if errors.Is(err, session.ErrNotFound) || err == nil && !s.view(ctx).Includes(owner) {
		return nil, none
	}
	return found, err
}

// open returns a session of a scope. One that the caller may not see is not read: that could be noticed by the
// time it takes.
func (s *service) open(ctx context.Context, store session.Store, scope session.Scope, id session.ID) (*session.Session, error) {
	owner, err := store.Owner(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	if !s.view(ctx).Includes(owner) {
		return nil, session.NotFound(id)
	}
	return store.Open(ctx, scope, id)
}

// look returns the session called id, whatever its scope is.
func (s *service) look(ctx context.Context, store session.Store, id session.ID) (*session.Session, error) {
	if scope, ok := s.places.Load(id); ok {
		found, err := s.open(ctx, store, scope.(session.Scope), id)
		if !errors.Is(err, session.ErrNotFound) {
			return found, err
		}
		s.places.Delete(id)
	}
	scopes, err := s.App.SessionScopes()
	if err != nil {
		return nil, err
	}
	for _, scope := range scopes {
		found, err := s.open(ctx, store, scope, id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err == nil {
			s.places.Store(id, scope)
		}
		return found, err
	}
	return nil, session.NotFound(id)
}

// turn waits until the request has a session to itself, at all servers that share the sessions.
func (s *service) turn(ctx context.Context, id session.ID) (leave func(), err error) {
	store, err := s.App.Sessions()
	if err != nil {
		return nil, err
	}
	return s.Lanes.Enter(ctx, store, id)
}

// visit is a request in a session, which has that to itself.
type visit struct {
	s     *service
	conv  *conversation.Conversation
	model string // that the session had before
	turns int    // likewise
	leave func()
}

// enter waits until the request has a session to itself, and begins a conversation in it, of which events go to a
// scope. A model, unless it is "", becomes the session's own with the next turn. The caller closes the visit.
func (s *service) enter(ctx context.Context, text, model string, events event.Scope) (*visit, error) {
	found, err := s.find(ctx, text)
	if err != nil {
		return nil, err
	}
	leave, err := s.turn(ctx, found.ID())
	if err != nil {
		return nil, err
	}
	v := &visit{s: s, leave: leave}
	if err := v.begin(ctx, text, model, events); err != nil {
		return nil, errors.Join(err, v.close(ctx))
	}
	return v, nil
}

// begin begins the conversation of a visit.
func (v *visit) begin(ctx context.Context, text, model string, events event.Scope) error {
	found, err := v.s.find(ctx, text) // again, as it may have changed in the meantime
	if err != nil {
		if e, ok := errors.AsType[*rest.Error](err); ok && e.Status == http.StatusNotFound {
			err = rest.Conflict("session %s was deleted meanwhile", text)
		}
		return err
	}
	talks := v.s.App.ServerConversations()
	if talks.Durability == "" || talks.Durability == graph.DurabilityOff {
		talks.Durability = graph.DurabilityProcess
	}
	caller := conversation.Caller{Events: events}
	v.conv = talks.Begin(conversation.Options{
		Settings: chat.Settings{Model: model}, Caller: caller, View: v.s.view(ctx), Owner: v.s.owner(ctx),
	})
	if scope := found.Scope(); scope != "" {
		given := make(map[string]string)
		for _, variable := range found.Settings().AgentVariables {
			given[variable.Name] = variable.Value
		}
		who, err := v.s.findAgent(ctx, talks, string(scope), given, caller)
		if err != nil {
			return err
		}
		if err := v.conv.UseAgent(ctx, who); err != nil {
			return conflictOf(err)
		}
	}
	v.model = found.Settings().Model
	if err := v.conv.UseSession(ctx, string(found.ID())); err != nil {
		if errors.Is(err, session.ErrNotFound) {
			return rest.Conflict("session %s was deleted meanwhile", text)
		}
		return err
	}
	v.conv.Session().ForceSave()
	_, v.turns = v.conv.Session().Glance()
	return nil
}

// keepModel ends a turn with an error. The model that it asked for stays that of the session only if the session has the turn: one that was
// interrupted, or that waits for an answer.
func (v *visit) keepModel(err error) {
	if _, turns := v.conv.Session().Glance(); turns > v.turns || fault.CodeOf(err) == fault.Suspended {
		return
	}
	v.conv.Session().Sync(func(set *session.Settings) { set.Model = v.model })
}

// close ends a visit. What must be kept is written.
func (v *visit) close(ctx context.Context) error {
	defer v.leave()
	if v.conv == nil {
		return nil
	}
	return v.conv.Close(context.WithoutCancel(ctx))
}
