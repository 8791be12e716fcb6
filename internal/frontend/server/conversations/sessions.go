package conversations

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/frontend/api"
	"loki/internal/frontend/command/export"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
)

type sessionInput struct {
	ID string `path:"id" doc:"of the session"`
}

// Of returns the id.
func (i *sessionInput) Of() string { return i.ID }

type completionInInput struct {
	ID   string `path:"id" doc:"of the session"`
	Body api.CompletionRequest
}

// completeIn answers a question in a session.
func (s *service) completeIn(ctx context.Context, in *completionInInput) (*rest.Reply, error) {
	req := &in.Body
	if len(req.Variables) > 0 {
		return nil, rest.Invalid("variables", "variables: the variables of a session are set with its agent").WithHint("POST /v1/sessions/%s/agent", in.ID)
	}
	found, err := s.mayAsk(ctx, in.ID, req)
	if err != nil {
		return nil, err
	}
	return s.inSession(ctx, found, req, func(ctx context.Context, v *visit, a *answer) error {
		if err := v.prepare(ctx, req); err != nil {
			return err
		}
		answered, q, err := s.put(ctx, v.conv, req, s.scope(a))
		if err != nil {
			if fault.CodeOf(err) == fault.Suspended {
				s.waiting.add(found.ID(), a.run())
			}
			return err
		}
		return v.conv.Record(context.WithoutCancel(ctx), q.Asked, answered)
	})
}

// mayAsk returns the session in which a request asks.
func (s *service) mayAsk(ctx context.Context, id string, req *api.CompletionRequest) (*session.Session, error) {
	if err := s.checkModel(req.Model); err != nil {
		return nil, err
	}
	found, err := s.find(ctx, id)
	if err == nil && found.Scope() != "" && !rest.Subject(ctx).Allows(auth.RunAgents) {
		err = rest.Forbidden("the session is one of agent %s, and the key lacks the scope %s", found.Scope(), auth.RunAgents)
	}
	return found, err
}

// inSession answers a request with what work does in a session, which it has to itself.
func (s *service) inSession(ctx context.Context, found *session.Session, req *api.CompletionRequest, work func(context.Context, *visit, *answer) error) (*rest.Reply, error) {
	id := string(found.ID())
	return s.reply(ctx, req, &id, func(ctx context.Context, a *answer) (err error) {
		v, err := s.enter(ctx, id, req.Model, s.scope(a))
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				v.keepModel(err)
			}
			err = errors.Join(err, v.close(ctx))
		}()
		if err := s.warnOfQuestions(ctx, found.ID(), s.scope(a)); err != nil {
			return err
		}
		if of, ok := v.conv.Agent(); ok && of.InForce.Durability == graph.DurabilityOff { // whose run is not on record
			rest.Began(ctx, "/v1/sessions/"+id)
		}
		return work(ctx, v, a)
	})
}

// regenerate answers the last question of a session again. The answer replaces the one that the session has.
func (s *service) regenerate(ctx context.Context, in *struct {
	sessionInput
	Body api.RegenerateRequest
},
) (*rest.Reply, error) {
	req := &api.CompletionRequest{Model: in.Body.Model, Stream: in.Body.Stream}
	found, err := s.mayAsk(ctx, in.ID, req)
	if err != nil {
		return nil, err
	}
	return s.inSession(ctx, found, req, func(ctx context.Context, v *visit, a *answer) error {
		if err := checkUnchanged(v.conv.Session(), in.Body.Seen); err != nil {
			return err
		}
		if mode := chat.Mode(in.Body.Mode); mode != "" {
			if err := v.conv.SetMode(mode); err != nil {
				return conflictOf(err)
			}
		}
		_, err := v.conv.Regenerate(ctx)
		if fault.CodeOf(err) == fault.Suspended {
			s.waiting.add(found.ID(), a.run())
		}
		return conflictOf(err)
	})
}

// checkUnchanged returns an error if a session does not have the messages that a caller has seen.
func checkUnchanged(of *session.Session, seen api.Seen) error {
	if seen.Version == "" || seen.Version == version(of.Messages()) {
		return nil
	}
	return rest.Conflict("session %s has changed since its messages were read", of.ID()).WithHint("GET /v1/sessions/%s has the messages and the version of now", of.ID())
}

// version is another one for other messages.
func version(messages []chat.Message) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(messages) // to memory, of what was decoded from JSON
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// prepare does what a request says of the role, the agent and the knowledge base of its session.
func (v *visit) prepare(ctx context.Context, req *api.CompletionRequest) error {
	if req.Role != v.conv.Role() {
		if err := useRole(ctx, v.s.App.ServerConversations(), v.conv, req.Role); err != nil {
			return err
		}
	}
	if of, ok := v.conv.Agent(); req.Agent != "" && (!ok || of.Name != req.Agent) {
		return rest.Conflict("session %s is not one of agent %s", v.conv.Session().Name(), req.Agent).
			WithHint("a session without messages becomes one: POST /v1/sessions/%s/agent", v.conv.Session().ID())
	}
	return v.s.useRAG(v.conv, req.RAG)
}

// create begins a session.
func (s *service) create(ctx context.Context, in *struct{ Body api.SessionRequest }) (_ *api.Session, err error) {
	req := &in.Body
	if err := s.check(&api.CompletionRequest{Model: req.Model, Role: req.Role, Agent: req.Agent, RAG: req.RAG, Variables: req.Variables}); err != nil {
		return nil, err
	}
	talks := s.App.ServerConversations()
	conv := talks.Begin(conversation.Options{View: s.view(ctx), Owner: s.owner(ctx)})
	defer func() { err = errors.Join(err, conv.Close(context.WithoutCancel(ctx))) }()
	if req.Agent != "" {
		who, err := s.findAgent(ctx, talks, req.Agent, req.Variables, conversation.Caller{})
		if err != nil {
			return nil, err
		}
		if who.Job != nil {
			return nil, rest.Conflict("agent %s is a graph, which has no sessions", who.Name).WithHint("POST /v1/agents/%s/runs", who.Name)
		}
		if _, err := who.Variables(ctx); err != nil {
			return nil, rest.Invalid("variables", "variables: %v", err)
		}
		if err := conv.UseAgent(ctx, who); err != nil {
			return nil, conflictOf(err)
		}
	}
	if err := useRole(ctx, talks, conv, req.Role); err != nil {
		return nil, err
	}
	if err := s.useRAG(conv, req.RAG); err != nil {
		return nil, err
	}
	if req.Model != "" {
		if err := conv.SetModel(ctx, req.Model); err != nil {
			return nil, err
		}
	}
	switch err := conv.CreateSession(ctx, req.Alias); {
	case errors.Is(err, session.ErrAliasInUse):
		return nil, conflictOf(err)
	case err != nil:
		return nil, err
	}
	rest.AboutNewSession(ctx, string(conv.Session().ID()))
	return s.sessionOf(ctx, conv.Session()), nil
}

// fork begins a session with the turns of another one, up to a message. Whose that is, it is, too.
func (s *service) fork(ctx context.Context, in *struct {
	sessionInput
	Body api.SessionFork
},
) (*api.Session, error) {
	found, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	leave, err := s.turn(ctx, found.ID())
	if err != nil {
		return nil, err
	}
	defer leave()
	if found, err = s.find(ctx, in.ID); err != nil { // again, as it may have changed in the meantime
		return nil, err
	}
	if err := checkUnchanged(found, in.Body.Seen); err != nil {
		return nil, err
	}
	store, err := s.App.Sessions()
	if err != nil {
		return nil, err
	}
	copied, err := store.Fork(ctx, found, "")
	if err != nil {
		return nil, err
	}
	for n := in.Body.Messages; n != nil && len(copied.Messages()) > *n; {
		if _, err := copied.Undo(ctx); err != nil {
			return nil, conflictOf(err)
		}
	}
	if err := copied.Save(ctx); err != nil {
		return nil, err
	}
	rest.AboutNewSession(ctx, string(copied.ID()))
	return s.sessionOf(ctx, copied), nil
}

// sessionOf describes a session.
func (s *service) sessionOf(ctx context.Context, of *session.Session) *api.Session {
	set := of.Settings()
	owner, _ := of.Owner(ctx) // which was looked at before
	return &api.Session{
		ID: string(of.ID()), Alias: string(of.Alias()), Title: of.Title(), Agent: string(of.Scope()), Role: set.RoleName, RAG: set.Knowledge,
		Model: set.Model, CreatedAt: of.CreationTime(), Owner: s.ownerFor(ctx, owner),
	}
}

// ownerFor returns whose a session is, for a caller who may see those of all.
func (s *service) ownerFor(ctx context.Context, owner *auth.Owner) *api.SessionOwner {
	if owner == nil || !rest.Subject(ctx).Allows(auth.AdminSessions) {
		return nil
	}
	return &api.SessionOwner{Subject: owner.Subject, KeyID: owner.KeyID}
}

type listInput struct {
	rest.Page
	Alias string `query:"alias" doc:"only the session with this name"`
	Agent string `query:"agent" doc:"only the sessions of this agent"`
}

// list lists the sessions that the caller may see, the one that was used last first.
func (s *service) list(ctx context.Context, in *listInput) (*api.List[api.SessionEntry], error) {
	all, err := s.storedSessions(ctx, in)
	if err != nil {
		return nil, err
	}
	after, err := rest.Cursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	if after != "" {
		at, id, ok := strings.Cut(after, "/")
		last, err := time.Parse(time.RFC3339Nano, at)
		if !ok || err != nil {
			return nil, rest.InvalidCursor()
		}
		place := app.StoredSession{Meta: session.Meta{ID: session.ID(id), Modified: last}}
		all = slices.DeleteFunc(all, func(m app.StoredSession) bool { return newer(m, place) <= 0 })
	}
	next := ""
	if len(all) > in.Limit {
		all = all[:in.Limit]
		last := all[len(all)-1]
		next = rest.NewCursor(last.Modified.UTC().Format(time.RFC3339Nano) + "/" + string(last.ID))
	}
	talks := s.App.ServerConversations()
	entries := make([]api.SessionEntry, len(all))
	for i, m := range all {
		sum, err := talks.Glance(ctx, m.Scope, m.Meta)
		if err != nil {
			return nil, err
		}
		entries[i] = api.SessionEntry{
			ID: string(m.ID), Alias: string(m.Alias), Agent: string(m.Scope), ModifiedAt: sum.Modified, Turns: sum.Turns, First: sum.First, Error: sum.Error,
			Owner: s.ownerFor(ctx, m.Owner),
		}
	}
	return api.NewList(entries, next), nil
}

// newer compares two sessions by when they were used last, the latest first.
func newer(a, b app.StoredSession) int {
	return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.ID, b.ID))
}

// storedSessions returns the sessions of a list, in its order.
func (s *service) storedSessions(ctx context.Context, in *listInput) ([]app.StoredSession, error) {
	all, err := s.App.StoredSessions(ctx)
	if err != nil {
		return nil, err
	}
	view := s.view(ctx)
	all = slices.DeleteFunc(all, func(m app.StoredSession) bool {
		return in.Agent != "" && in.Agent != string(m.Scope) || !view.Includes(m.Owner) || in.Alias != "" && in.Alias != string(m.Alias)
	})
	slices.SortFunc(all, newer)
	return all, nil
}

type showInput struct {
	sessionInput
	After int `query:"after" minimum:"0" doc:"how many messages to pass over"`
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"most messages of the answer"`
}

// show describes a session with a page of its messages.
func (s *service) show(ctx context.Context, in *showInput, found *session.Session) (*api.SessionDetails, error) {
	messages := append([]chat.Message{}, found.Messages()...) // never null
	d := &api.SessionDetails{
		Session: *s.sessionOf(ctx, found), Settings: found.Settings().Values(), Usage: api.NewTokenUsage(found.Usage()), Tokens: found.Tokens(),
		Count: len(messages), Messages: messages[min(in.After, len(messages)):], Version: version(messages),
	}
	turns, err := s.waitingTurns(ctx, found.ID())
	if err != nil {
		return nil, err
	}
	for _, turn := range turns {
		d.Waiting = append(d.Waiting, api.WaitingTurn{Run: turn.info.ID, Prompt: turn.info.Prompt})
	}
	if len(d.Messages) > in.Limit {
		d.Messages = d.Messages[:in.Limit]
		d.NextAfter = in.After + in.Limit
	}
	return d, nil
}

// export returns a session as a document.
func (s *service) export(ctx context.Context, in *struct {
	sessionInput
	rest.Export
}, found *session.Session,
) (*rest.Reply, error) {
	return in.Reply(export.Session(found), s.App.Hide)
}

// remove deletes a session, after the requests that came before.
func (s *service) remove(ctx context.Context, in *sessionInput) (*rest.None, error) {
	found, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	leave, err := s.turn(ctx, found.ID())
	if err != nil {
		return nil, err
	}
	defer leave()
	if found, err = s.find(ctx, in.ID); err != nil { // again, as it may have another scope by now
		return nil, err
	}
	_, err = s.App.ServerConversations().DeleteSession(ctx, found.Scope(), string(found.ID()))
	if errors.Is(err, session.ErrNotFound) {
		return nil, rest.NotFound("session", in.ID)
	}
	s.places.Delete(found.ID())
	return &rest.None{}, conflictOf(err)
}

// change has do change a session, and describes it then.
func (s *service) change(ctx context.Context, id string, do func(v *visit) error) (_ *api.Session, err error) {
	v, err := s.enter(ctx, id, "", event.Scope{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.close(ctx)) }()
	if err := do(v); err != nil {
		return nil, conflictOf(err)
	}
	return s.sessionOf(ctx, v.conv.Session()), v.conv.Session().Save(ctx)
}

// compress replaces the older turns of a session by a recap.
func (s *service) compress(ctx context.Context, in *sessionInput) (c *api.SessionCompressed, err error) {
	_, err = s.change(ctx, in.ID, func(v *visit) error {
		done, err := v.conv.Compress(ctx)
		c = &api.SessionCompressed{Messages: done.Messages, Before: done.Before, After: done.After, Recap: s.App.Hide(done.Recap)}
		return err
	})
	return c, err
}

// empty takes all messages out of a session.
func (s *service) empty(ctx context.Context, in *sessionInput) (*api.Session, error) {
	return s.change(ctx, in.ID, func(v *visit) error { return v.conv.EmptySession(ctx) })
}

// setRole gives a session a role.
func (s *service) setRole(ctx context.Context, in *struct {
	sessionInput
	Body api.RoleRequest
},
) (*api.Session, error) {
	return s.change(ctx, in.ID, func(v *visit) error {
		return useRole(ctx, s.App.ServerConversations(), v.conv, in.Body.Name)
	})
}

// unsetRole takes the role of a session away.
func (s *service) unsetRole(ctx context.Context, in *sessionInput) (*api.Session, error) {
	return s.change(ctx, in.ID, func(v *visit) error { return v.conv.ExitRole(ctx) })
}

// setAgent makes a session one of an agent.
func (s *service) setAgent(ctx context.Context, in *struct {
	sessionInput
	Body api.AgentRequest
},
) (*api.Session, error) {
	if !rest.Subject(ctx).Allows(auth.RunAgents) {
		return nil, rest.Forbidden("the key lacks the scope %s", auth.RunAgents)
	}
	rest.AboutAgent(ctx, in.Body.Name)
	return s.change(ctx, in.ID, func(v *visit) error {
		who, err := s.findAgent(ctx, s.App.ServerConversations(), in.Body.Name, in.Body.Variables, conversation.Caller{})
		if err != nil {
			return err
		}
		if _, err := who.Variables(ctx); err != nil && who.Job == nil {
			return rest.Invalid("variables", "variables: %v", err)
		}
		return v.conv.AttachAgent(ctx, in.Body.Name, in.Body.Variables)
	})
}

// unsetAgent makes a session one without an agent.
func (s *service) unsetAgent(ctx context.Context, in *sessionInput) (*api.Session, error) {
	return s.change(ctx, in.ID, func(v *visit) error { return v.conv.DetachAgent(ctx) })
}

// setRAG has a session answer from a knowledge base.
func (s *service) setRAG(ctx context.Context, in *struct {
	sessionInput
	Body api.RAGRequest
},
) (*api.Session, error) {
	return s.change(ctx, in.ID, func(v *visit) error {
		if err := s.checkRAG(in.Body.Name); err != nil {
			return err
		}
		return v.conv.KeepKnowledge(in.Body.Name)
	})
}

// unsetRAG has a session answer without a knowledge base.
func (s *service) unsetRAG(ctx context.Context, in *sessionInput) (*api.Session, error) {
	return s.change(ctx, in.ID, func(v *visit) error { return v.conv.ExitKnowledge() })
}
