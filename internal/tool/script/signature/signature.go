// Package signature describes functions of scripts as their source declares them, and
// turns them into declarations for models.
//
// A [Function] is a function of a script in any language, a [Param] one of its
// parameters, a [Type] describes the values of a parameter. Other packages read the
// languages.
package signature

import (
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
	var properties []value.Member
	var required []string
	for i, p := range f.Params {
		if slices.ContainsFunc(f.Params[:i], func(q Param) bool { return q.Name == p.Name }) {
			return chat.Tool{}, &Error{f.Line, fmt.Sprintf("function %s has two parameters called %s", f.Name, p.Name)}
		}
		properties = append(properties, member(p.Name, p.Type.Schema(p.Description)))
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return chat.Tool{Name: name, Description: strings.TrimSpace(f.Description), Parameters: ObjectSchema(properties, required)}, nil
}

// ObjectSchema returns the JSON Schema of an object. It has "required" unless that is nil.
func ObjectSchema(properties []value.Member, required []string) []byte {
	members := []value.Member{member("type", value.Of("object")), member("properties", object(properties...))}
	if required != nil {
		members = append(members, member("required", texts(required)))
	}
	return object(members...).AppendJSON(nil)
}

func member(name string, v value.Value) value.Member { return value.Member{Name: name, Value: v} }

func object(members ...value.Member) value.Value { return value.ObjectOf(members...).Value() }

func texts[T ~string](list []T) value.Value {
	items := make([]value.Value, len(list))
	for i, s := range list {
		items[i] = value.Of(string(s))
	}
	return value.ListOf(items...).Value()
}

// Accepts returns the JSON Schema of the arguments that a call may have. It differs from the declaration where a type
// cannot be described to models.
func (f Function) Accepts() []byte {
	var properties []value.Member
	required := []string{}
	for _, p := range f.Params {
		properties = append(properties, member(p.Name, p.Type.accepts()))
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return ObjectSchema(properties, required)
}

// accepts returns the schema of the values that t allows.
func (t Type) accepts() value.Value {
	var kinds []Kind
	var others []value.Value
	if !t.alternatives(&kinds, &others) {
		return object()
	}
	switch len(kinds) {
	case 0:
	case 1:
		others = slices.Insert(others, 0, object(member("type", value.Of(string(kinds[0])))))
	default:
		others = slices.Insert(others, 0, object(member("type", texts(kinds))))
	}
	if len(others) == 1 {
		return others[0]
	}
	return object(member("anyOf", value.ListOf(others...).Value()))
}

// alternatives collects the types of JSON that t allows, and the schemas of all else that it does. ok is false if it allows every value.
func (t Type) alternatives(kinds *[]Kind, others *[]value.Value) (ok bool) {
	add := func(k Kind) {
		if !slices.Contains(*kinds, k) {
			*kinds = append(*kinds, k)
		}
	}
	isArray := member("type", value.Of("array"))
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
		items := make([]value.Value, len(t.Tuple.Items))
		for i, item := range t.Tuple.Items {
			items[i] = item.accepts()
		}
		members := []value.Member{isArray, member("prefixItems", value.ListOf(items...).Value()), member("minItems", value.Of(t.Tuple.Required))}
		if !t.Tuple.Open {
			members = append(members, member("maxItems", value.Of(len(items))))
		}
		*others = append(*others, object(members...))
	case t.Kind == Array && t.Item != nil:
		*others = append(*others, object(isArray, member("items", t.Item.accepts())))
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
func (t Type) acceptsLiterals() value.Value {
	var list []value.Value
	if t.Null && !slices.ContainsFunc(t.Literals, func(l Literal) bool { return l.JSON == "null" }) {
		list = append(list, value.Value{})
	}
	for _, l := range t.Literals {
		if v, err := value.ParseJSON([]byte(l.JSON)); err == nil {
			list = append(list, v)
		}
		if l.JSON == "" || !strings.EqualFold(l.JSON, l.Text) {
			list = append(list, value.Of(l.Text))
		}
	}
	return object(member("enum", value.ListOf(list...).Value()))
}

// Schema returns the JSON Schema of t, as models see it.
func (t Type) Schema(description string) value.Value {
	members := []value.Member{member("type", value.Of(string(t.Kind)))}
	if description != "" {
		members = append(members, member("description", value.Of(description)))
	}
	if t.Kind == Array {
		item := Type{Kind: String}
		if t.Item != nil {
			item = *t.Item
		}
		members = append(members, member("items", item.Schema("")))
	}
	var choices []string
	for _, l := range t.Literals {
		if !slices.Contains(choices, l.Text) {
			choices = append(choices, l.Text)
		}
	}
	if len(choices) > 0 {
		members = append(members, member("enum", texts(choices)))
	}
	return object(members...)
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
	words := strings.FieldsFunc(strings.Map(lower, name), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
	return strings.Join(words, "_")
}

// lower returns an ASCII letter in lower case.
func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// Public reports whether a function of an agent's script is one of its tools, or
// [Instructions].
func Public(name string) bool { return name == Instructions || !strings.HasPrefix(name, "_") }
