package openai

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/catalog"
)

// The kinds of what answers a request.
const (
	kindModel = "model"
	kindRole  = "role"
	kindAgent = "agent"
)

// target is what answers a request.
type target struct {
	kind string
	name string // of a model its id
}

// target returns what a model name means: client:model, role:NAME or agent:NAME, or a bare name of one of these if it
// is that of no other.
func (s *service) target(name string) (target, error) {
	kind, rest, ok := strings.Cut(name, ":")
	switch {
	case ok && (kind == kindRole || kind == kindAgent):
		found := target{kind, rest}
		if !s.has(found) {
			return target{}, unknown(name)
		}
		return found, nil
	case ok:
		_, err := s.app.Models.ServedModel(name, catalog.Chat)
		return target{kindModel, name}, notFound(name, err)
	}
	var found []target
	for m := range s.app.Catalog.Models(catalog.Chat) {
		if m.Name == name {
			found = append(found, target{kindModel, m.ID()})
		}
	}
	for _, kind := range []string{kindRole, kindAgent} {
		if t := (target{kind, name}); s.has(t) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return target{}, unknown(name)
	}
	var names []string
	for _, t := range found {
		names = append(names, t.String())
	}
	return target{}, invalid("model", "%q may be %s: name one of them", name, strings.Join(names, " or "))
}

// String returns a name that means t alone.
func (t target) String() string {
	if t.kind == kindModel {
		return t.name
	}
	return t.kind + ":" + t.name
}

// has reports whether there is the role or the agent t. A path is the name of none.
func (s *service) has(t target) bool {
	if t.name == "" || strings.ContainsAny(t.name, `/\`) || strings.HasPrefix(t.name, ".") {
		return false
	}
	if t.kind == kindAgent {
		known, _ := s.app.Agents.Exists(t.name)
		return known
	}
	names, err := s.app.Roles().Names()
	return err == nil && slices.Contains(names, t.name)
}

// isGraph reports whether an agent is a graph.
func (s *service) isGraph(name string) bool {
	ref, err := s.app.Agents.Find(name)
	if err != nil {
		return false
	}
	file, err := s.app.Agents.File(ref)
	return err == nil && file == ref.GraphFile()
}

// modelID returns the id of the model of a type that a name means: client:model, or a bare name that one client
// lists.
func (s *service) modelID(name string, of catalog.Type) (string, error) {
	if strings.Contains(name, ":") {
		return name, nil
	}
	var ids []string
	for m := range s.app.Catalog.Models(of) {
		if m.Name == name {
			ids = append(ids, m.ID())
		}
	}
	switch len(ids) {
	case 0:
		return name, nil // perhaps the name of a client
	case 1:
		return ids[0], nil
	}
	return "", invalid("model", "%q may be %s: name one of them", name, strings.Join(ids, " or "))
}

// notFound returns the error about a model. One that does not exist is as that of unknown.
func notFound(name string, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	e := unknown(name)
	e.Message, e.Hint = err.Error(), cmp.Or(fault.HintOf(err), e.Hint)
	return e
}

// unknown returns the error for a name that means nothing.
func unknown(name string) *rest.Error {
	return &rest.Error{
		Status: http.StatusNotFound, Code: "model_not_found", Param: "model", Message: "no model, role or agent is called " + name,
		Hint: "GET /v1/models lists them",
	}
}
