package rest

import (
	"cmp"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/base/text"
	"loki/internal/frontend/api"
)

// schemaName names the schema of a type. Types of other packages than api have the name of theirs in front.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if of := path.Base(t.PkgPath()); t.Name() != "" && of != "api" && of != "." {
		name = strings.ToUpper(of[:1]) + of[1:] + name
	}
	return name
}

// describe begins the OpenAPI document.
func (a *API) describe() {
	a.schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	a.doc = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Loki", Version: cmp.Or(a.o.Version, "0"),
			Description: "Completions, sessions, agents and their runs. Errors have one shape, lists have pages, and every answer has the header `X-Request-Id`.",
			License:     &huma.License{Name: "MIT", Identifier: "MIT"},
		},
		Servers: []*huma.Server{{URL: "/"}},
		Components: &huma.Components{
			Schemas:         a.schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "a key that `loki --key add SUBJECT` has made"}},
		},
	}
	a.errors = a.schemas.Schema(reflect.TypeFor[api.Error](), true, "")
	a.openai = a.schemas.Schema(reflect.TypeFor[api.OpenAIError](), true, "")
}

// wildcard is a rest of a path, which OpenAPI does not know.
var wildcard = text.Regexp(`\.\.\.\}|\{\$\}`)

// document adds an endpoint to the OpenAPI document.
func (a *API) document(op Operation, p *plan, out reflect.Type) {
	if op.Hidden {
		return
	}
	d := &huma.Operation{
		OperationID: op.operationID(), Method: op.Method, Summary: op.Summary,
		Path: wildcard().ReplaceAllStringFunc(op.Path, func(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, "..."), "{$}") }),
	}
	if op.Tag != "" {
		d.Tags = []string{op.Tag}
		a.tag(op.Tag)
	}
	if !op.Public {
		d.Security = []map[string][]string{{"key": {}}}
		if op.Scope != "" {
			d.Security[0]["key"] = []string{string(op.Scope)}
			d.Description = "Needs the scope `" + string(op.Scope) + "`."
		}
	}
	for _, q := range p.params {
		d.Parameters = append(d.Parameters, &huma.Param{
			Name: q.name, In: q.in, Required: q.required, Schema: q.schema, Description: q.schema.Description,
		})
	}
	if op.Idempotent {
		d.Parameters = append(d.Parameters, &huma.Param{
			Name: idempotencyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(mostKey), MinLength: new(1)},
			Description: "A second request with the same key gets the same answer, and nothing is done again.",
		})
	}
	if p.body != nil {
		d.RequestBody = &huma.RequestBody{
			Required: p.schema != nil && !p.optional,
			Content:  map[string]*huma.MediaType{"application/json": {Schema: p.schema}},
		}
	}
	a.documentAnswers(d, op, out)
	a.doc.AddOperation(d)
}

// documentAnswers adds what an endpoint may answer.
func (a *API) documentAnswers(d *huma.Operation, op Operation, out reflect.Type) {
	success := &huma.Response{Description: "Success", Content: map[string]*huma.MediaType{}}
	if out == reflect.TypeFor[Reply]() {
		out = nil
		if op.Answer != nil {
			out = reflect.TypeOf(op.Answer)
		}
	}
	status := op.status(out)
	switch {
	case out == nil || out == reflect.TypeFor[None]():
	default:
		success.Content["application/json"] = &huma.MediaType{Schema: a.schemas.Schema(out, true, d.OperationID+"Answer")}
	}
	if len(op.Events) > 0 {
		success.Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{
			Type: huma.TypeString, Description: "Server-sent events: " + strings.Join(op.Events, ", ") + ".",
		}}
	}
	if len(success.Content) == 0 {
		success.Content = nil
	}
	schema := a.errors
	if op.OpenAIErrors {
		schema = a.openai
	}
	d.Responses = map[string]*huma.Response{
		strconv.Itoa(status): success,
		"default":            {Description: "An error", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}},
	}
}

// status returns the status of success.
func (op Operation) status(out reflect.Type) int {
	if op.Status == 0 && out == reflect.TypeFor[None]() {
		return http.StatusNoContent
	}
	return cmp.Or(op.Status, http.StatusOK)
}

// tag adds a group of endpoints to the document.
func (a *API) tag(name string) {
	for _, t := range a.doc.Tags {
		if t.Name == name {
			return
		}
	}
	a.doc.Tags = append(a.doc.Tags, &huma.Tag{Name: name})
}
