package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"

	"loki/internal/frontend/server/rest"
)

// documents adds what describes the API: the OpenAPI document and a page that shows it, which loads nothing.
func (s *Server) documents() {
	document := sync.OnceValues(s.api.OpenAPI)
	page := sync.OnceValues(func() ([]byte, error) {
		d, err := document()
		if err != nil {
			return nil, err
		}
		return docsPage(d)
	})
	s.api.Handle(rest.Operation{Method: http.MethodGet, Path: "/openapi.json", Summary: "Describe the API", Public: true, Hidden: true}, func(w http.ResponseWriter, _ *http.Request) error {
		return send(w, "application/json", document)
	})
	s.api.Handle(rest.Operation{Method: http.MethodGet, Path: "/docs", Summary: "Describe the API to people", Public: true, Hidden: true}, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Security-Policy", docsPolicy())
		return send(w, "text/html; charset=utf-8", page)
	})
}

func send(w http.ResponseWriter, contentType string, text func() ([]byte, error)) error {
	body, err := text()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache")
	_, err = w.Write(body)
	return err
}

const docsStyle = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:60rem;margin:0 auto;padding:1rem}
h2{margin-top:2.5rem}
summary{padding:.4rem .2rem;cursor:pointer;overflow-wrap:anywhere}
summary b{display:inline-block;min-width:4.2rem;font-family:ui-monospace,monospace}
summary span{opacity:.75;margin-left:.6rem}
details{border-top:1px solid #8886}
details>div{padding:0 .2rem 1rem 1rem}
table{border-collapse:collapse;width:100%}
td,th{border:1px solid #8886;padding:.25rem .5rem;text-align:left;vertical-align:top}
td:first-child,code{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}
h3{font-size:1rem;margin:1rem 0 .3rem}`

// docsPolicy allows the page its own style and nothing else.
func docsPolicy() string {
	sum := sha256.Sum256([]byte(docsStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// openAPI is what the page shows of the document.
type openAPI struct {
	Info struct {
		Title, Version, Description string
	}
	Paths      map[string]map[string]operation
	Components struct {
		Schemas map[string]schema
	}
	Tags []struct{ Name string }
}

type operation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Enum        []any
	Default     any
	Minimum     *float64
	Maximum     *float64
	MaxLength   *int
	Items       *schema
	Properties  map[string]schema
	Required    []string
	AnyOf       []schema
	OneOf       []schema
}

// docsPage returns a page of HTML that shows an OpenAPI document.
func docsPage(document []byte) ([]byte, error) {
	var d openAPI
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>%s API</title><style>%s</style></head><body>\n",
		html.EscapeString(d.Info.Title), docsStyle)
	fmt.Fprintf(&b, "<h1>%s %s</h1>\n<p>%s</p>\n<p>The same for programs: <a href=\"/openapi.json\">openapi.json</a></p>\n",
		html.EscapeString(d.Info.Title), html.EscapeString(d.Info.Version), html.EscapeString(d.Info.Description))
	for _, tag := range d.Tags {
		fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(tag.Name))
		for _, path := range sortedKeys(d.Paths) {
			for _, method := range sortedKeys(d.Paths[path]) {
				if op := d.Paths[path][method]; slices.Contains(op.Tags, tag.Name) {
					op.write(&b, method, path)
				}
			}
		}
	}
	b.WriteString("<h2>Types</h2>\n")
	for _, name := range sortedKeys(d.Components.Schemas) {
		fmt.Fprintf(&b, "<details id=\"%s\"><summary><code>%[1]s</code></summary><div>\n", html.EscapeString(name))
		members(&b, d.Components.Schemas[name])
		b.WriteString("</div></details>\n")
	}
	b.WriteString("</body></html>\n")
	return []byte(b.String()), nil
}

// write writes an endpoint.
func (op operation) write(b *strings.Builder, method, path string) {
	fmt.Fprintf(b, "<details><summary><b>%s</b> <code>%s</code><span>%s</span></summary><div>\n<p>%s</p>\n",
		strings.ToUpper(method), html.EscapeString(path), html.EscapeString(op.Summary), html.EscapeString(strings.ReplaceAll(op.Description, "`", "")))
	if len(op.Parameters) > 0 {
		b.WriteString("<h3>Parameters</h3><table><tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr>\n")
		for _, p := range op.Parameters {
			fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", html.EscapeString(p.Name), html.EscapeString(p.In), p.Schema.name(), html.EscapeString(p.Description))
		}
		b.WriteString("</table>\n")
	}
	for _, kind := range sortedKeys(op.RequestBody.Content) {
		fmt.Fprintf(b, "<h3>Body</h3><p>%s</p>\n", op.RequestBody.Content[kind].Schema.name())
		members(b, op.RequestBody.Content[kind].Schema)
	}
	for _, status := range sortedKeys(op.Responses) {
		r := op.Responses[status]
		fmt.Fprintf(b, "<h3>%s</h3><p>%s</p>\n", html.EscapeString(status), html.EscapeString(r.Description))
		for _, kind := range sortedKeys(r.Content) {
			s := r.Content[kind].Schema
			fmt.Fprintf(b, "<p><code>%s</code>: %s %s</p>\n", html.EscapeString(kind), s.name(), html.EscapeString(s.Description))
		}
	}
	b.WriteString("</div></details>\n")
}

// name returns HTML that names a type.
func (s schema) name() string {
	switch {
	case s.Ref != "":
		name := html.EscapeString(s.Ref[strings.LastIndexByte(s.Ref, '/')+1:])
		return "<a href=\"#" + name + "\">" + name + "</a>"
	case s.Items != nil:
		return "list of " + s.Items.name()
	case len(s.AnyOf)+len(s.OneOf) > 0:
		var names []string
		for _, one := range append(s.AnyOf, s.OneOf...) {
			names = append(names, one.name())
		}
		return strings.Join(names, " or ")
	}
	var b strings.Builder
	switch t := s.Type.(type) {
	case string:
		b.WriteString(html.EscapeString(t))
	case []any:
		for i, name := range t {
			if i > 0 {
				b.WriteString(" or ")
			}
			b.WriteString(html.EscapeString(fmt.Sprint(name)))
		}
	default:
		b.WriteString("any JSON")
	}
	for i, v := range s.Enum {
		fmt.Fprintf(&b, "%s <code>%s</code>", map[bool]string{true: ":", false: ","}[i == 0], html.EscapeString(fmt.Sprint(v)))
	}
	if s.Minimum != nil {
		fmt.Fprintf(&b, ", at least %v", *s.Minimum)
	}
	if s.Maximum != nil {
		fmt.Fprintf(&b, ", at most %v", *s.Maximum)
	}
	if s.MaxLength != nil {
		fmt.Fprintf(&b, ", up to %d characters", *s.MaxLength)
	}
	if s.Default != nil {
		fmt.Fprintf(&b, ", default %s", html.EscapeString(fmt.Sprint(s.Default)))
	}
	return b.String()
}

// members writes the members of an object.
func members(b *strings.Builder, s schema) {
	if len(s.Properties) == 0 {
		return
	}
	b.WriteString("<table><tr><th>member</th><th>type</th><th>meaning</th></tr>\n")
	for _, name := range sortedKeys(s.Properties) {
		p := s.Properties[name]
		optional := " (optional)"
		if slices.Contains(s.Required, name) {
			optional = ""
		}
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s%s</td><td>%s</td></tr>\n", html.EscapeString(name), p.name(), optional, html.EscapeString(p.Description))
	}
	b.WriteString("</table>\n")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
