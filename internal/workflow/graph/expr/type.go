package expr

import (
	"slices"
	"strings"

	"loki/internal/base/value"
)

// Kinds is a set of the types that a value may have.
type Kinds uint8

// The types. No type at all means that nothing is known.
const (
	Null Kinds = 1 << iota
	Bool
	Number
	Text
	List
	Object
	Any = Null | Bool | Number | Text | List | Object
)

// String returns the types as a user calls them.
func (k Kinds) String() string {
	var names []string
	for i, name := range [...]string{"null", "a boolean", "a number", "a text", "a list", "an object"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// KindOf returns the type of a value.
func KindOf(v value.Value) Kinds {
	return [...]Kinds{Null, Bool, Number, Number, Number, Text, List, Object}[v.Kind()]
}

// Type is what is known of a value. The zero Type is anything.
type Type struct {
	Kinds   Kinds
	Enum    []value.Value   // the only values it can have; nil for all
	Members map[string]Type // of an object
	Closed  bool            // it has no other members
	Items   *Type           // of a list; nil for any
}

// TypeOf returns the type that a JSON Schema describes, as far as type, enum, const, properties, additionalProperties and items do.
func TypeOf(schema value.Value) (t Type) {
	get := func(key string) value.Value { v, _ := schema.AsObject().Get(key); return v }
	for _, v := range listOf(get("type")) {
		name, _ := v.AsString()
		t.Kinds |= map[string]Kinds{"null": Null, "boolean": Bool, "number": Number, "integer": Number, "string": Text, "array": List, "object": Object}[name]
	}
	t.Enum = listOf(get("enum"))
	if v, ok := schema.AsObject().Get("const"); ok {
		t.Enum = []value.Value{v}
	}
	if t.Kinds == 0 {
		for _, v := range t.Enum {
			t.Kinds |= KindOf(v)
		}
	}
	for name, property := range get("properties").AsObject().All() {
		if t.Members == nil {
			t.Members = make(map[string]Type)
		}
		t.Members[name] = TypeOf(property)
	}
	open, ok := get("additionalProperties").AsBool()
	t.Closed = ok && !open && get("patternProperties").IsNull()
	if items := get("items"); items.AsObject() != nil && get("prefixItems").IsNull() {
		item := TypeOf(items)
		t.Items = &item
	}
	return t
}

// listOf returns the elements of a list, nothing for null, and else v.
func listOf(v value.Value) (list []value.Value) {
	if l, ok := v.AsList(); ok {
		for _, e := range l.All() {
			list = append(list, e)
		}
		return list
	}
	if v.IsNull() {
		return nil
	}
	return []value.Value{v}
}

// And returns what is known of a value that is of both types; those of t count for what it holds.
func (t Type) And(u Type) Type {
	switch {
	case t.Kinds == 0:
		t.Kinds = u.Kinds
	case u.Kinds != 0:
		t.Kinds &= u.Kinds
	}
	switch {
	case t.Enum == nil:
		t.Enum = u.Enum
	case u.Enum != nil:
		t.Enum = slices.DeleteFunc(slices.Clone(t.Enum), func(v value.Value) bool { return !in(u.Enum, v) })
	}
	if t.Members == nil {
		t.Members, t.Closed = u.Members, u.Closed
	}
	if t.Items == nil {
		t.Items = u.Items
	}
	return t
}

// Or returns what is known of a value that is of one of both types.
func (t Type) Or(u Type) Type { return *union([]Type{t, u}) }

// Overlaps reports whether a value may be of both types.
func (t Type) Overlaps(u Type) bool {
	if t.Kinds != 0 && u.Kinds != 0 && t.Kinds&u.Kinds == 0 {
		return false
	}
	return t.Enum == nil || u.Enum == nil || slices.ContainsFunc(t.Enum, func(v value.Value) bool { return in(u.Enum, v) })
}

// orNull is t for something that may be missing.
func (t Type) orNull() Type {
	if t.Kinds != 0 {
		t.Kinds |= Null
	}
	if t.Enum != nil {
		t.Enum = append(t.Enum[:len(t.Enum):len(t.Enum)], null)
	}
	return t
}

// union returns what is known of a value that is of one of the types.
func union(types []Type) *Type {
	u := Type{Enum: []value.Value{}}
	for _, t := range types {
		if t.Kinds == 0 {
			return &Type{}
		}
		u.Kinds |= t.Kinds
		if u.Enum = append(u.Enum, t.Enum...); t.Enum == nil {
			u.Enum = nil
		}
	}
	return &u
}
