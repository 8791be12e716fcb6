package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"loki/internal/base/value"
)

// Bind returns the arguments of a call in the form that the function takes, in the order
// of the call:
//
//   - null for a parameter that is not required and cannot be null is left out, because
//     models write it where they mean nothing;
//   - a parameter without default that may be null is null if it is missing;
//   - the text of a literal that is not a string, such as None, becomes its value, unless that text is a literal too.
//
// Other members of arguments, a JSON object, stay. The text of the error is for the
// model.
func (f Function) Bind(arguments json.RawMessage) (json.RawMessage, error) {
	doc, err := value.ParseJSON(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	object := doc.AsObject()
	if object == nil && doc.Kind() != value.ObjectKind {
		return nil, fmt.Errorf("the arguments have to be a JSON object, not %s", doc.Kind())
	}
	for _, p := range f.Params {
		v, given := object.Get(p.Name)
		switch {
		case !given && p.Type.Null && !p.Default:
			object = object.Merge(value.ObjectOf(value.Member{Name: p.Name}))
		case given && v.Kind() == value.Null && !p.Type.Null && !p.Required:
			object = object.Without(p.Name)
		case given:
			if v, err = p.Type.bind(v); err != nil {
				return nil, err
			}
			object = object.Merge(value.ObjectOf(value.Member{Name: p.Name, Value: v}))
		}
	}
	return object.Value().AppendJSON(nil), nil
}

// bind returns a value in the form that the function takes.
func (t Type) bind(v value.Value) (value.Value, error) {
	if list, ok := v.AsList(); ok && t.Item != nil {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			bound, err := t.Item.bind(item)
			if err != nil {
				return v, err
			}
			items = append(items, bound)
		}
		return value.ListOf(items...).Value(), nil
	}
	text, ok := v.AsString()
	if !ok {
		return v, nil
	}
	for _, l := range t.Literals {
		if slices.Contains(t.Literals, Literal{Text: text}) {
			break
		}
		if l.Text == text && l.JSON != "" {
			bound, err := value.ParseJSON([]byte(l.JSON))
			if err != nil {
				return v, errors.Join(fmt.Errorf("literal %s", l.Text), err)
			}
			return bound, nil
		}
	}
	return v, nil
}
