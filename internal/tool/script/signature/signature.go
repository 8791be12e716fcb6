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

	"loki/internal/chat"
	"loki/internal/value"
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

// Type describes the values of a parameter.
type Type struct {
	Kind     Kind
	Item     *Type     // of an array
	Literals []Literal // the possible values, nil for any; of Kind String
	Optional bool      // there may be no value
	Null     bool      // and that is a value of its own, None or null
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

// append appends the schema of t.
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
	for i, l := range t.Literals {
		if i == 0 {
			dst = append(dst, `,"enum":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendString(dst, l.Text)
	}
	if len(t.Literals) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendString appends a string of JSON without escapes for HTML, which would cost tokens.
func appendString(dst []byte, s string) []byte {
	dst, err := value.AppendJSON(dst, s)
	if err != nil {
		panic(err) // every string has a JSON form
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
