// Package signature describes functions of scripts as their source declares them, and
// turns them into declarations for models.
//
// A [Function] is a function of a script in any language, a [Param] one of its
// parameters, a [Type] describes the values of a parameter. Other packages read the
// languages.
package signature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// Instructions is the function that an agent's script may have for the program's own use.
// Like all names with "_" in front it is not meant for models.
const Instructions = "_instructions"

// Function is a function of a script.
type Function struct {
	Name        string // in the source
	Line        int    // of the name, from 1
	Description string // trimmed; empty is an error that Declare reports
	Params      []Param
}

// Param is a parameter of a function.
type Param struct {
	Name        string
	Description string
	Type        Type
	Required    bool // a call has to have it
	Default     bool // the source has a value for calls without it
}

// Type describes the values of a parameter. Kind, Item and Literals are the simple form that models see; Any, Forms and
// Tuple say more precisely what a call may have.
type Type struct {
	Kind     Kind
	Item     *Type     // of an array
	Literals []Literal // the possible values, nil for any; of Kind String
	Optional bool      // there may be no value
	Null     bool      // and that is a value of its own, None or null

	Any   bool   // every value is accepted
	Forms []Type // the members of a union, nil for other types
	Tuple *Tuple // of an array of a fixed form, nil for others
}

// Tuple describes the elements of an array one by one.
type Tuple struct {
	Items    []Type
	Required int  // how many of Items there must be
	Open     bool // more elements of any type may follow
}

// OrDefault returns t, with the values that have the type of a default value added. Of texts only the default is added.
// Models see it as t.
func (t Type) OrDefault(d Type) Type {
	forms := t.Forms
	if forms == nil {
		forms = []Type{t}
	}
	if t.Literals != nil || slices.ContainsFunc(forms, func(f Type) bool { return f.Any || f.Kind == d.Kind || f.Kind == Number && d.Kind == Integer }) {
		return t
	}
	t.Forms = append(slices.Clone(forms), d)
	return t
}

// Literal is a value that a source names as a type.
type Literal struct {
	Text string // as models write it
	JSON string // as the function gets it; empty for Text as a string
}

// Kind is a type of JSON.
type Kind string

// The kinds.
const (
	String  Kind = "string"
	Integer Kind = "integer"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	Array   Kind = "array"
	Object  Kind = "object"
)

// Declare returns the declaration of the function under a name. Its schema has
// "required" only if a parameter is required.
func (f Function) Declare(name string) (chat.Tool, error) {
	if strings.TrimSpace(f.Description) == "" {
		return chat.Tool{}, &Error{f.Line, fmt.Sprintf("function %s has no description, and models need one", f.Name)}
	}
	var props, required []byte
	for i, p := range f.Params {
		if slices.ContainsFunc(f.Params[:i], func(q Param) bool { return q.Name == p.Name }) {
			return chat.Tool{}, &Error{f.Line, fmt.Sprintf("function %s has two parameters called %s", f.Name, p.Name)}
		}
		if i > 0 {
			props = append(props, ',')
		}
		props = p.Type.append(append(appendString(props, p.Name), ':'), p.Description)
		if p.Required {
			if required != nil {
				required = append(required, ',')
			}
			required = appendString(required, p.Name)
		}
	}
	schema := append(append([]byte(`{"type":"object","properties":{`), props...), '}')
	if required != nil {
		schema = append(append(append(schema, `,"required":[`...), required...), ']')
	}
	return chat.Tool{Name: name, Description: strings.TrimSpace(f.Description), Parameters: append(schema, '}')}, nil
}

// Accepts returns the JSON Schema of the arguments that a call may have. It differs from the declaration where a type
// cannot be described to models.
func (f Function) Accepts() []byte {
	schema := []byte(`{"type":"object","properties":{`)
	required := []string{}
	for i, p := range f.Params {
		if i > 0 {
			schema = append(schema, ',')
		}
		schema = p.Type.accepts(append(appendString(schema, p.Name), ':'))
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return append(appendValue(append(schema, `},"required":`...), required), '}')
}

// accepts appends the schema of the values that t allows.
func (t Type) accepts(dst []byte) []byte {
	var kinds []Kind
	var others [][]byte
	if !t.alternatives(&kinds, &others) {
		return append(dst, "{}"...)
	}
	var shown any = kinds
	if len(kinds) == 1 {
		shown = kinds[0]
	}
	if len(kinds) > 0 {
		others = append([][]byte{append(appendValue([]byte(`{"type":`), shown), '}')}, others...)
	}
	if len(others) == 1 {
		return append(dst, others[0]...)
	}
	return append(append(append(dst, `{"anyOf":[`...), bytes.Join(others, []byte{','})...), "]}"...)
}

// alternatives collects the types of JSON that t allows, and the schemas of all else that it does. ok is false if it allows every value.
func (t Type) alternatives(kinds *[]Kind, others *[][]byte) (ok bool) {
	add := func(k Kind) {
		if !slices.Contains(*kinds, k) {
			*kinds = append(*kinds, k)
		}
	}
	switch {
	case t.Forms != nil:
		for _, form := range t.Forms {
			if !form.alternatives(kinds, others) {
				return false
			}
		}
	case t.Any:
		return false
	case t.Literals != nil:
		*others = append(*others, t.acceptsLiterals())
		return true
	case t.Tuple != nil:
		schema := []byte(`{"type":"array","prefixItems":[`)
		for i, item := range t.Tuple.Items {
			if i > 0 {
				schema = append(schema, ',')
			}
			schema = item.accepts(schema)
		}
		schema = fmt.Appendf(schema, `],"minItems":%d`, t.Tuple.Required)
		if !t.Tuple.Open {
			schema = fmt.Appendf(schema, `,"maxItems":%d`, len(t.Tuple.Items))
		}
		*others = append(*others, append(schema, '}'))
	case t.Kind == Array && t.Item != nil:
		*others = append(*others, append(t.Item.accepts([]byte(`{"type":"array","items":`)), '}'))
	default:
		add(t.Kind)
	}
	if t.Null {
		add("null")
	}
	return true
}

// acceptsLiterals returns the schema of values that are named one by one, as the function gets them. A text that is not the
// JSON of its value, such as None, is accepted too, because models see it.
func (t Type) acceptsLiterals() []byte {
	var list []json.RawMessage
	if t.Null && !slices.ContainsFunc(t.Literals, func(l Literal) bool { return l.JSON == "null" }) {
		list = append(list, json.RawMessage("null"))
	}
	for _, l := range t.Literals {
		if l.JSON != "" {
			list = append(list, json.RawMessage(l.JSON))
		}
		if l.JSON == "" || !strings.EqualFold(l.JSON, l.Text) {
			list = append(list, appendString(nil, l.Text))
		}
	}
	return append(appendValue([]byte(`{"enum":`), list), '}')
}

// append appends the schema of t, as models see it.
func (t Type) append(dst []byte, description string) []byte {
	dst = appendString(append(dst, `{"type":`...), string(t.Kind))
	if description != "" {
		dst = appendString(append(dst, `,"description":`...), description)
	}
	if t.Kind == Array {
		item := Type{Kind: String}
		if t.Item != nil {
			item = *t.Item
		}
		dst = item.append(append(dst, `,"items":`...), "")
	}
	var texts []string
	for _, l := range t.Literals {
		if !slices.Contains(texts, l.Text) {
			texts = append(texts, l.Text)
		}
	}
	if len(texts) > 0 {
		dst = appendValue(append(dst, `,"enum":`...), texts)
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte { return appendValue(dst, s) }

// appendValue appends strings and lists as JSON without escapes for HTML, which would cost tokens.
func appendValue(dst []byte, v any) []byte {
	dst, err := value.AppendJSON(dst, v)
	if err != nil {
		panic(err) // they have a JSON form
	}
	return dst
}

// Error is a mistake in a source.
type Error struct {
	Line int // from 1
	Msg  string
}

// Errorf returns an [*Error] for a line, counted from 1, with a message as [fmt.Sprintf]
// makes it.
func Errorf(line int, format string, args ...any) error {
	return &Error{Line: line, Msg: fmt.Sprintf(format, args...)}
}

// Error returns the place and the message.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Normal returns a name as models see it: in lower case, with one "_" in place of other
// characters than ASCII letters and digits, and without "_" at the ends.
func Normal(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		default:
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

// Public reports whether a function of an agent's script is one of its tools, or
// [Instructions].
func Public(name string) bool { return name == Instructions || !strings.HasPrefix(name, "_") }
