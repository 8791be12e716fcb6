package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"loki/internal/value"
)

// MaxViolations is how many violations are reported at most. Whoever repairs a value
// learns little from a longer list.
const MaxViolations = 10

// Schema is a JSON Schema ready for use. It is immutable.
type Schema struct {
	source   value.Value
	index    *index
	resolved *jsonschema.Resolved
}

// InvalidError says that a value is no JSON Schema.
type InvalidError struct {
	Violations []Violation // at least one, each with its place in the schema
}

func (e *InvalidError) Error() string { return "invalid JSON schema: " + List(e.Violations, "; ") }

// invalid is the error for what is wrong at one place.
func invalid(path, format string, args ...any) error {
	return &InvalidError{[]Violation{{Path: path, Message: fmt.Sprintf(format, args...)}}}
}

// Compile checks that v is a JSON Schema and prepares it. The error is an
// [*InvalidError].
func Compile(v value.Value) (*Schema, error) {
	if found := meta().Validate(v); len(found) > 0 {
		return nil, &InvalidError{found}
	}
	return compile(v)
}

// compile is Compile for what is known to be well-formed.
func compile(v value.Value) (*Schema, error) {
	d, err := dialectOf(v)
	if err != nil {
		return nil, err
	}
	ix, err := newIndex(v, d)
	if err != nil {
		return nil, err
	}
	resolved, err := resolve(v, d)
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	return &Schema{source: v, index: ix, resolved: resolved}, nil
}

func resolve(v value.Value, d dialect) (*jsonschema.Resolved, error) {
	if o := v.AsObject(); o != nil {
		v = o.Merge(value.ObjectOf(value.Member{Name: "$schema", Value: value.Of(d.uri())})).Value()
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(v.AppendJSON(nil), &s); err != nil {
		return nil, err
	}
	return s.Resolve(&jsonschema.ResolveOptions{
		BaseURI: baseURI,
		Loader: func(*url.URL) (*jsonschema.Schema, error) {
			return nil, errors.New("other documents are not read")
		},
	})
}

// Value returns the schema as it was given to [Compile].
func (s *Schema) Value() value.Value { return s.source }

// Violation is one way in which a value differs from its schema.
type Violation struct {
	Path    string // JSON Pointer into the value, "" for the value itself
	Message string // what is demanded there, and what was found
}

// String returns "/items/2/priority: message".
func (v Violation) String() string {
	if v.Path == "" {
		return "(root): " + v.Message
	}
	return v.Path + ": " + v.Message
}

// List joins violations by separator.
func List(violations []Violation, separator string) string {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, separator)
}

// Validate compares v with the schema. It returns nil if v conforms, otherwise at
// most [MaxViolations] violations: of each object first the missing members, then
// those that are there, in the order in which they stand in v. It may be called from
// several goroutines.
//
// The verdict is the library's; where it refuses v, a walk of our own over schema and
// value says why and where. Numbers are the exception: the library calculates in
// binary floats and finds that 19.99 is no multiple of 0.01. The walk is exact, and
// when it covered every keyword and found nothing, v conforms.
func (s *Schema) Validate(v value.Value) []Violation {
	err := s.resolved.Validate(plain(v))
	if err == nil {
		return nil
	}
	e := explainer{index: s.index}
	found := e.explain(s.source, v)
	if len(found) == 0 && !e.partial {
		return nil
	}
	if len(found) == 0 {
		return []Violation{{Message: "does not conform to the schema: " + clip(err.Error(), 300)}}
	}
	return found
}

// plain returns v as the types encoding/json would decode it to, but integers as
// integers.
func plain(v value.Value) any {
	switch v.Kind() {
	case value.Null:
		return nil
	case value.Bool:
		b, _ := v.AsBool()
		return b
	case value.Int:
		n, _ := v.AsInt()
		return n
	case value.Uint:
		n, _ := strconv.ParseUint(v.Text(), 10, 64)
		return n
	case value.Float:
		f, _ := v.AsFloat()
		return f
	case value.String:
		s, _ := v.AsString()
		return s
	case value.ListKind:
		l, _ := v.AsList()
		list := make([]any, l.Len())
		for i, item := range l.All() {
			list[i] = plain(item)
		}
		return list
	default:
		o := v.AsObject()
		m := make(map[string]any, o.Len())
		for name, member := range o.All() {
			m[name] = plain(member)
		}
		return m
	}
}
