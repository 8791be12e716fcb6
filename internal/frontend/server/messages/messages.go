// Package messages serves what users say to the turn of a session, or the run of an agent, while it works.
package messages

import (
	"context"
	"net/http"
	"strconv"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// Options say whose messages are served.
type Options struct {
	Manager *manager.Manager
	Path    string // of the run or the session, with {id}
	Tag     string
	Write   auth.Scope
	Action  string // of the audit
	// Find returns the id of the run that is at work in what an id means, if the caller may change it. It is "" if nothing is.
	Find func(ctx context.Context, id string) (run string, err error)
}

type (
	one struct {
		ID string `path:"id" maxLength:"64" doc:"of the run or the session"`
	}
	message struct {
		one
		Body *api.MessageRequest
	}
	sent struct {
		one
		Message string `path:"mid" maxLength:"64" doc:"id of the message"`
	}
)

// Of returns the id of the run or the session.
func (o *one) Of() string { return o.ID }

// Register adds the endpoints.
func Register(a *rest.API, o Options) {
	path := o.Path + "/messages"
	rest.Register(a, rest.Operation{
		Method: http.MethodPost, Path: path, Summary: "Say something to the model while it works", Tag: o.Tag, Scope: o.Write, Action: o.Action,
		Status: http.StatusAccepted, Idempotent: true, Keyed: true,
	}, rest.About(o.find, o.send))
	rest.Register(a, rest.Operation{Method: http.MethodDelete, Path: path + "/{mid}", Summary: "Take a message back that the model has not read", Tag: o.Tag, Scope: o.Write, Action: o.Action}, rest.About(o.find, o.withdraw))
}

func (o Options) send(ctx context.Context, in *message, id string) (*api.SentMessage, error) {
	name := run.Next
	if in.Body.When == run.Now {
		name = run.Now
	}
	s, err := o.Manager.Send(ctx, id, name, in.Body.Text, rest.RepeatKey(ctx))
	if err != nil {
		return nil, err
	}
	rest.Commit(ctx, "/v1/runs/"+id)
	return &api.SentMessage{ID: strconv.Itoa(s.Number), Run: id, Text: in.Body.Text, When: name}, nil
}

func (o Options) withdraw(ctx context.Context, in *sent, id string) (*rest.None, error) {
	ok, err := o.Manager.Withdraw(ctx, id, in.Message)
	if err == nil && !ok {
		err = rest.NotFound("message", in.Message)
	}
	return &rest.None{}, err
}

// find is o.Find, with an error if nothing is at work.
func (o Options) find(ctx context.Context, of string) (string, error) {
	id, err := o.Find(ctx, of)
	if err == nil && id == "" {
		err = rest.Conflict("nothing is answered in %s now, so it takes no messages. Ask a new question.", of)
	}
	return id, err
}
