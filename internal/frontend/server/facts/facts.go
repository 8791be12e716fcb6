// Package facts serves what is remembered for later conversations, each owner their own.
package facts

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"loki/internal/agent/memory"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
)

// Options say whose facts are served.
type Options struct {
	App    *app.App
	Access auth.Access
}

const tag = "Memory"

// Register adds the endpoints.
func Register(a *rest.API, o Options) {
	at := func(method, path, summary string) rest.Operation {
		op := rest.Operation{Method: method, Path: "/v1/memory" + path, Summary: summary, Tag: tag, Scope: auth.ReadMemory}
		if method != http.MethodGet {
			op.Scope, op.Action = auth.WriteMemory, audit.MemoryUpdate
		}
		return op
	}
	rest.Register(a, at(http.MethodGet, "", "List what is remembered and proposed, or find it by words"), o.list)
	add := at(http.MethodPost, "", "Add a fact")
	add.Status, add.Idempotent = http.StatusCreated, true
	rest.Register(a, add, o.add)
	rest.Register(a, at(http.MethodGet, "/{id}", "A fact or a proposal"), o.show)
	rest.Register(a, at(http.MethodPatch, "/{id}", "Change a fact"), o.change)
	rest.Register(a, at(http.MethodDelete, "/{id}", "Forget a fact, or refuse a proposal"), o.forget)
	accept := at(http.MethodPost, "/{id}/accept", "Accept what a model proposed")
	accept.Idempotent = true
	rest.Register(a, accept, o.accept)
}

type one struct {
	ID string `path:"id" maxLength:"64" doc:"of the fact or the proposal"`
}

// store returns the facts of who asks.
func (o Options) store(ctx context.Context) (*memory.Store, error) {
	if o.App.ServerMemory() == chat.MemoryOff {
		return nil, rest.Conflict("this server remembers nothing").WithHint("api.memory: propose in its configuration turns the memory on")
	}
	return o.App.MemoryOf(o.Access.Owner(rest.Subject(ctx))), nil
}

// find returns a fact of who asks, and where it is.
func (o Options) find(ctx context.Context, id string) (*memory.Store, memory.Fact, error) {
	s, err := o.store(ctx)
	if err != nil {
		return nil, memory.Fact{}, err
	}
	f, err := s.Find(ctx, id, s.Places(ctx)...)
	return s, f, problem(err, id)
}

// problem returns the error of a request for an error of the store.
func problem(err error, id string) error {
	var same *memory.CopyError
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return rest.NotFound("fact", id)
	case errors.Is(err, memory.ErrChanged), errors.As(err, &same):
		return rest.Conflict("%v", err)
	}
	return err
}

func factOf(f memory.Fact) *api.Fact {
	a := &api.Fact{
		ID: f.ID, Scope: f.Scope, Of: f.Of, Title: f.Title, Text: f.Text, Tags: f.Tags, By: f.By, Tainted: f.Tainted, Pinned: f.Pinned, Created: f.Created, Updated: f.Updated,
		Proposed: f.Proposed, Changes: f.Changes, Forgets: f.Forgets, Version: f.Sum,
	}
	if !f.Expires.IsZero() {
		a.Expires = &f.Expires
	}
	return a
}

func (o Options) list(ctx context.Context, in *struct {
	Query    string `query:"q" maxLength:"1000" doc:"words; the facts that have any of them, best first"`
	Agent    string `query:"agent" maxLength:"256" doc:"with q: also facts of this agent"`
	Limit    int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"with q: most entries of the answer"`
	Proposed bool   `query:"proposed" doc:"only what models propose"`
},
) (*api.List[api.Fact], error) {
	s, err := o.store(ctx)
	if err != nil {
		return nil, err
	}
	list := []api.Fact{}
	if in.Query != "" {
		for _, f := range s.Search(ctx, o.App.MemoryPlace(in.Agent), "", in.Query, in.Limit) {
			list = append(list, *factOf(f))
		}
		return api.NewList(list, ""), nil
	}
	for i, p := range s.Places(ctx) {
		for _, proposals := range []bool{true, false} {
			for _, f := range s.List(ctx, p, proposals) {
				if (i == 0 || f.Scope != memory.User) && (proposals || !in.Proposed) {
					list = append(list, *factOf(f))
				}
			}
		}
	}
	return api.NewList(list, ""), nil
}

func (o Options) add(ctx context.Context, in *struct{ Body api.FactRequest }) (*api.Fact, error) {
	s, err := o.store(ctx)
	if err != nil {
		return nil, err
	}
	b := in.Body
	f := memory.Fact{Scope: memory.User, By: memory.ByUser, Title: b.Title, Text: b.Text, Tags: b.Tags, Pinned: b.Pinned}
	if f.Expires, err = memory.ParseMoment(b.Expires, time.Now()); err != nil {
		return nil, rest.Invalid("expires", "expires: %v", err)
	}
	var place memory.Place
	if b.Agent != "" {
		if _, err := o.App.Agents.Find(b.Agent); err != nil {
			return nil, rest.NotFound("agent", b.Agent)
		}
		f.Scope, place = memory.Agent, o.App.MemoryPlace(b.Agent)
	}
	f, err = s.Save(ctx, place, f)
	if err != nil {
		return nil, problem(err, "")
	}
	rest.Commit(ctx, "/v1/memory/"+f.ID)
	return factOf(f), nil
}

func (o Options) show(ctx context.Context, in *one) (*api.Fact, error) {
	_, f, err := o.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return factOf(f), nil
}

func (o Options) change(ctx context.Context, in *struct {
	one
	Body api.FactChange
},
) (*api.Fact, error) {
	s, f, err := o.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	b := in.Body
	expires := f.Expires
	if b.Expires != nil {
		if expires, err = memory.ParseMoment(*b.Expires, time.Now()); err != nil {
			return nil, rest.Invalid("expires", "expires: %v", err)
		}
	}
	f, err = s.Change(ctx, f.Place(), f.Path, cmp.Or(b.Version, f.Sum), func(now *memory.Fact) {
		now.Text, now.Title, now.Pinned, now.Expires = *cmp.Or(b.Text, &now.Text), *cmp.Or(b.Title, &now.Title), *cmp.Or(b.Pinned, &now.Pinned), expires
		if b.Tags != nil {
			now.Tags = b.Tags
		}
		if b.Text != nil && !now.Proposed { // it is what the user says now
			now.By, now.Source, now.Tainted = memory.ByUser, memory.Source{}, false
		}
	})
	if err != nil {
		return nil, problem(err, in.ID)
	}
	return factOf(f), nil
}

func (o Options) forget(ctx context.Context, in *one) (*rest.None, error) {
	s, f, err := o.find(ctx, in.ID)
	if err == nil {
		_, err = s.Forget(ctx, f.Place(), f.Path)
	}
	return &rest.None{}, problem(err, in.ID)
}

func (o Options) accept(ctx context.Context, in *one) (*api.Fact, error) {
	s, f, err := o.find(ctx, in.ID)
	if err == nil && !f.Proposed {
		return nil, rest.Conflict("fact %s is accepted already", f.ID)
	}
	if err == nil {
		f, err = s.Accept(ctx, f.Place(), f.Path)
	}
	if err != nil {
		return nil, problem(err, in.ID)
	}
	return factOf(f), nil
}
