package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"loki/internal/base/value"
)

// Page is the parameters of an endpoint that answers with a list. I embeds it.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"most entries of the answer"`
	Cursor string `query:"cursor" maxLength:"512" doc:"next_cursor of the page before"`
}

// plan is how requests of one endpoint are read.
type plan struct {
	api      *API
	params   []param
	body     []int // index of the field Body; nil if there is none
	schema   *huma.Schema
	optional bool // the body
	lax      bool // unknown query parameters are ignored
	ignores  bool // and unknown members of the body
}

// param is a parameter of a request.
type param struct {
	in, name  string // path, query or header
	index     []int
	required  bool
	schema    *huma.Schema
	otherwise string // its value if it is absent; may be empty
}

func newPlan(a *API, t reflect.Type, op Operation) *plan {
	p := &plan{api: a, lax: op.OpenAIErrors, ignores: op.Ignores}
	p.add(t, nil, op)
	return p
}

// add adds the fields of t, which stands at index.
func (p *plan) add(t reflect.Type, index []int, op Operation) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			p.add(f.Type, at, op)
			continue
		}
		if f.Name == "Body" {
			p.body, p.optional = at, f.Type.Kind() == reflect.Pointer
			p.schema = huma.SchemaFromField(p.api.schemas, f, op.operationID()+"Body")
			continue
		}
		for _, in := range []string{"path", "query", "header"} {
			name := f.Tag.Get(in)
			if name == "" {
				continue
			}
			schema := huma.SchemaFromField(p.api.schemas, f, "")
			schema.Nullable = false
			if f.Type.Kind() == reflect.Slice {
				schema.Nullable = false
			}
			p.params = append(p.params, param{
				in: in, name: name, index: at, schema: schema, otherwise: f.Tag.Get("default"),
				required: in == "path" || f.Tag.Get("required") == "true",
			})
		}
	}
}

// decode reads a request into the struct in. It returns the body as it came.
func (p *plan) decode(w http.ResponseWriter, r *http.Request, in reflect.Value) (body []byte, err error) {
	problems := problems{ignores: p.ignores && !p.api.Limits().RefuseUnknown}
	defer func() { callOf(r.Context()).ignored = slices.Sorted(slices.Values(problems.ignored)) }()
	var query url.Values
	if r.URL.RawQuery != "" {
		if query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return nil, Invalid("", "the query cannot be read: %v", err)
		}
	}
	for _, q := range p.params {
		var values []string
		switch q.in {
		case "path":
			values = []string{r.PathValue(q.name)}
		case "query":
			values = query[q.name]
		default:
			values = r.Header.Values(q.name)
		}
		if len(values) == 0 && q.otherwise != "" {
			values = []string{q.otherwise}
		}
		switch {
		case len(values) == 0 && q.required:
			problems.add(q.name, "is missing")
		case len(values) == 0:
		case len(values) > 1 && q.schema.Type != huma.TypeArray:
			problems.add(q.name, "was given more than once")
		default:
			p.set(&problems, q, in.FieldByIndex(q.index), values)
		}
	}
	if !p.lax {
		for name := range query {
			if !slices.ContainsFunc(p.params, func(q param) bool { return q.in == "query" && q.name == name }) {
				problems.add(name, "is not a parameter of this endpoint")
			}
		}
	}
	if p.body == nil {
		if err := noBody(r); err != nil {
			return nil, err
		}
		return nil, problems.err()
	}
	body, err = readBody(r)
	if err != nil {
		return nil, err
	}
	field := in.FieldByIndex(p.body)
	if len(bytes.TrimSpace(body)) == 0 {
		if field.Kind() != reflect.Pointer {
			problems.add("", "the body is missing: a JSON object is expected")
		}
		return body, problems.err()
	}
	if err := p.decodeBody(&problems, body, field); err != nil {
		return nil, err
	}
	return body, problems.err()
}

// set sets a parameter.
func (p *plan) set(problems *problems, q param, field reflect.Value, values []string) {
	v, err := parse(field, values)
	if err != nil {
		problems.add(q.name, err.Error())
		return
	}
	p.check(problems, q.schema, q.name, v)
}

// parse sets a field to what was given as text, and returns the value as huma checks it.
func parse(field reflect.Value, values []string) (any, error) {
	s := values[0]
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	if field.Type() == reflect.TypeFor[time.Time]() {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return nil, fmt.Errorf("is not a time such as 2026-01-31T12:00:00Z: %q", s)
		}
		field.Set(reflect.ValueOf(t))
		return s, nil
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(s)
		return s, nil
	case reflect.Bool:
		if s != "true" && s != "false" && s != "1" && s != "0" {
			return nil, fmt.Errorf("is neither true nor false: %q", s)
		}
		field.SetBool(s == "true" || s == "1")
		return field.Bool(), nil
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("is not a whole number: %q", s)
		}
		field.SetInt(n)
		return n, nil
	case reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || n != n {
			return nil, fmt.Errorf("is not a number: %q", s)
		}
		field.SetFloat(n)
		return n, nil
	case reflect.Slice:
		var all []string
		for _, v := range values {
			all = append(all, strings.Split(v, ",")...)
		}
		field.Set(reflect.ValueOf(all).Convert(field.Type()))
		return all, nil
	}
	panic("rest: a parameter cannot be a " + field.Type().String())
}

// noBody refuses a body where none is expected. An empty object counts as none.
func noBody(r *http.Request) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	if text := string(bytes.TrimSpace(body)); text != "" && text != "{}" && text != "null" {
		return Invalid("", "this endpoint takes no body")
	}
	return nil
}

// readBody returns the body, which must be JSON if there is any.
func readBody(r *http.Request) ([]byte, error) {
	body := callOf(r.Context()).body
	if len(body) == 0 {
		return nil, nil
	}
	if err := checkEncoding(r.Header.Values("Content-Encoding")); err != nil {
		return nil, err
	}
	kind := r.Header.Get("Content-Type")
	if kind == "application/json" {
		return body, checkUTF8(body)
	}
	media, params, err := mime.ParseMediaType(kind)
	switch {
	case err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")):
	// What curl says of a body if nothing else is asked for, and programs that say nothing.
	case (kind == "" || err == nil && media == "application/x-www-form-urlencoded") && (beginsAsJSON(body) || json.Valid(body)):
	default:
		return nil, Invalid("", "the body has the type %q", kind).WithHint("send JSON with the header Content-Type: application/json")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return nil, unsupportedError("the body has the charset %q, and only UTF-8 is accepted", charset).WithHint("send JSON as UTF-8 with the header Content-Type: application/json")
	}
	return body, checkUTF8(body)
}

// beginsAsJSON reports whether a body is meant to be JSON, even if it is not.
func beginsAsJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// checkEncoding returns the error of a body that is compressed or otherwise encoded, by its headers Content-Encoding.
func checkEncoding(headers []string) error {
	for coding := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return unsupportedError("the body has the encoding %q, and only bodies without an encoding are accepted", coding).WithHint("send the body without the header Content-Encoding")
		}
	}
	return nil
}

// checkUTF8 returns the error of a body that is not UTF-8. The decoder would replace what is wrong.
//
// Source: RFC 8259, section 8.1.
func checkUTF8(body []byte) error {
	if utf8.Valid(body) {
		return nil
	}
	at := 0
	for r, size := utf8.DecodeRune(body); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(body[at:]) {
		at += size
	}
	return Invalid("", "the body is not UTF-8: byte %d is wrong", at+1)
}

// loneSurrogate returns where in a JSON text the first escape stands that is half of a surrogate pair, -1 if there is none. The
// decoder would replace it.
//
// Source: RFC 8259, section 8.2.
func loneSurrogate(text []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(text[i:], '\\')
		if n < 0 {
			return -1
		}
		i += n
		switch first := escapedUnit(text[i:]); {
		case first < 0:
			i += len(`\n`)
		case !utf16.IsSurrogate(first):
			i += len(`\u0000`)
		case utf16.DecodeRune(first, escapedUnit(text[i+len(`\u0000`):])) == utf8.RuneError:
			return i
		default:
			i += len(`\ud800\udc00`)
		}
	}
}

// escapedUnit returns the unit of UTF-16 whose escape, such as \u0020, a part of a JSON text begins with, -1 if it begins otherwise.
func escapedUnit(text []byte) rune {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// withCase has huma compare the names of members as they are. It knows that for the whole process only.
var withCase = sync.OnceFunc(func() { huma.ValidateStrictCasing = true })

// decodeBody reads JSON into a field and checks it. The error says that it is no JSON.
func (p *plan) decodeBody(problems *problems, body []byte, field reflect.Value) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return badJSON(body, err)
	}
	if at := loneSurrogate(body); at >= 0 {
		return Invalid("", "the body is not Unicode: the escape %s at byte %d is half of a surrogate pair", body[at:at+len(`\ud800`)], at+1)
	}
	if name, ok := value.RepeatedMember(body, v); ok {
		problems.add(name, "is there more than once")
		return nil
	}
	if v == nil && field.Kind() == reflect.Pointer {
		return nil
	}
	if p.lax {
		dropNulls(v)
	}
	if !p.check(problems, p.schema, "", v) {
		return nil
	}
	if err := json.Unmarshal(body, field.Addr().Interface()); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			problems.add(e.Field, "cannot be the "+e.Value)
			return nil
		}
		if e, ok := errors.AsType[*Error](err); ok {
			return e
		}
		return Invalid("", "the body cannot be read: %v", err)
	}
	return nil
}

// badJSON says where a text stops being JSON.
func badJSON(body []byte, err error) *Error {
	e, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return Invalid("", "the body is not JSON: %v", err)
	}
	before := body[:min(int(e.Offset), len(body))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return Invalid("", "the body is not JSON: line %d, column %d: %v", line, max(column, 1), err)
}

// check checks a value against a schema and reports whether it is all right.
func (p *plan) check(problems *problems, schema *huma.Schema, name string, v any) bool {
	var result huma.ValidateResult
	path := huma.NewPathBuffer(make([]byte, 0, 64), 0)
	if name != "" {
		path.Push(name)
	}
	huma.Validate(p.api.schemas, schema, path, huma.ModeWriteToServer, v, &result)
	fits := true
	for _, err := range result.Errors {
		d, ok := errors.AsType[*huma.ErrorDetail](err)
		switch {
		case !ok:
			problems.add(name, err.Error())
		case problems.ignore(d):
			continue
		default:
			before := len(problems.ignored)
			form := p.form(schema, strings.TrimPrefix(d.Location, name), d)
			if form == nil || p.check(problems, form, d.Location, d.Value) {
				if form != nil && len(problems.ignored) > before {
					continue // it fits but for what is ignored
				}
				problems.detail(d)
			}
		}
		fits = false
	}
	return fits
}

// form returns the schema of the form that a value has by its type, if d says that it has none of several forms; else
// nil. at is the place of the value in the type of schema.
func (p *plan) form(schema *huma.Schema, at string, d *huma.ErrorDetail) *huma.Schema {
	if d.Message != validation.MsgExpectedMatchExactlyOneSchema {
		return nil
	}
	at = strings.ReplaceAll(strings.TrimPrefix(at, "."), "[", ".[")
	for word := range strings.SplitSeq(strings.TrimPrefix(at, "."), ".") {
		if schema = p.resolve(schema); schema == nil || word == "" {
			break
		}
		if word[0] == '[' {
			schema = schema.Items
		} else {
			schema = schema.Properties[word]
		}
	}
	if schema = p.resolve(schema); schema == nil {
		return nil
	}
	kind := map[reflect.Kind]string{reflect.String: huma.TypeString, reflect.Slice: huma.TypeArray, reflect.Map: huma.TypeObject}[reflect.ValueOf(d.Value).Kind()]
	for _, one := range schema.OneOf {
		if one = p.resolve(one); one.Type == kind {
			return one
		}
	}
	return nil
}

// resolve returns the schema that a reference is to.
func (p *plan) resolve(s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = p.api.schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// dropNulls takes members that are null out of all objects in v: clients of OpenAI send them for absent ones.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			if m == nil {
				delete(v, name)
			}
			dropNulls(m)
		}
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}

// problems are what is wrong with a request.
type problems struct {
	ignores bool     // members that the endpoint does not know are no problems
	ignored []string // these members

	first string // the member that the first one is about
	texts []string
}

// add adds a problem. name is the member that it is about, or empty.
func (p *problems) add(name, text string) {
	if len(p.texts) == 0 {
		p.first = name
	}
	if name != "" {
		text = name + ": " + text
	}
	p.texts = append(p.texts, text)
}

// unexpected is what huma says of a member that is not in a schema.
const unexpected = "unexpected property"

// essential are members of other servers' requests without which the answer would be one to another question.
var essential = [...]string{"functions", "function_call", "file_id", "background", "conversation", "prompt", "audio"}

// ignore reports whether a problem that huma has found is a member that is ignored. Those of Loki's own member are not.
func (p *problems) ignore(d *huma.ErrorDetail) bool {
	name := d.Location[strings.LastIndexByte(d.Location, '.')+1:]
	if !p.ignores || d.Message != unexpected || strings.HasPrefix(d.Location, "loki.") || slices.Contains(essential[:], name) {
		return false
	}
	p.ignored = append(p.ignored, d.Location)
	return true
}

// detail adds a problem that huma has found.
func (p *problems) detail(d *huma.ErrorDetail) {
	switch missing, isMissing := strings.CutPrefix(d.Message, "expected required property "); {
	case d.Message == unexpected:
		p.add(d.Location, "is not a member that this endpoint knows")
	case isMissing:
		name := strings.TrimSuffix(missing, " to be present")
		if d.Location != "" {
			name = d.Location + "." + name
		}
		p.add(name, "is missing")
	default:
		p.add(d.Location, d.Message)
	}
}

// mostProblems is how many problems are named in an answer.
const mostProblems = 5

// err returns the problems as one error, nil if there are none.
func (p *problems) err() error {
	if len(p.texts) == 0 {
		return nil
	}
	texts := p.texts
	if len(texts) > mostProblems {
		texts = append(slices.Clone(texts[:mostProblems]), fmt.Sprintf("and %d more", len(texts)-mostProblems))
	}
	return Invalid(p.first, "%s", strings.Join(texts, "; "))
}
