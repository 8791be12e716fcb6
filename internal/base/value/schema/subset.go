package schema

import (
	"slices"
	"strings"

	"loki/internal/base/value"
)

// Subset is the part of JSON Schema that the maker of a model takes as the form of a reply, or as the parameters of a tool.
type Subset struct {
	// Keywords are the supported ones besides type, enum, properties, required and items, which
	// all makers support. Unsupported ones are left out, so the reduced schema allows more;
	// oneOf becomes anyOf, and const becomes enum.
	Keywords []string
	// Formats are the supported values of format; nil means all.
	Formats []string
	// Closed says that each object has to name its members: additionalProperties is false.
	Closed bool
	// AllRequired says that each member must be required. An optional one may be null
	// instead, see [WithoutNulls].
	AllRequired bool
	// ObjectRoot says that the whole must be an object.
	ObjectRoot bool

	// The rest is for [Subset.Parameters].

	// Names says that the names of members are of up to 64 letters, digits, "_", "." and "-" of ASCII.
	Names bool
	// Described says that only members that are described can be required.
	Described bool
	// PlainValues says that only strings and numbers can be listed, and no empty string.
	PlainValues bool
	// BareRoot says that the root has no keywords besides type, properties and required.
	BareRoot bool
}

// Reduce returns shape in the keywords of s, with the members of its objects in their
// order. It reports false if s cannot express shape, such as a map with keys of any name.
// A value that satisfies the result need not satisfy shape: check it.
func (s Subset) Reduce(shape value.Value) (reduced value.Value, ok bool) {
	if s.ObjectRoot && !isObjectSchema(shape) {
		return value.Value{}, false
	}
	return s.reduce(shape)
}

func (s Subset) knows(keyword string) bool { return slices.Contains(s.Keywords, keyword) }

func (s Subset) reduce(shape value.Value) (value.Value, bool) {
	o := shape.AsObject()
	if o == nil || o.Len() == 0 {
		return value.Value{}, false // true, false or {}, which few subsets can express
	}
	var members []value.Member
	add := func(name string, v value.Value) { members = append(members, value.Member{Name: name, Value: v}) }
	ok := true
	each := func(v value.Value) value.Value {
		reduced, good := s.reduce(v)
		ok = ok && good
		return reduced
	}
	for name, v := range o.All() {
		switch name {
		case "type", "enum", "$ref", "description", "title":
			add(name, v)
		case "const":
			if s.knows(name) {
				add(name, v)
			} else {
				add("enum", value.ListOf(v).Value())
			}
		case "format":
			format, _ := v.AsString()
			if s.knows(name) && (s.Formats == nil || slices.Contains(s.Formats, format)) {
				add(name, v)
			}
		case "items":
			if _, tuple := v.AsList(); tuple {
				ok = false // positions in a list, as older drafts express them
			} else {
				add(name, each(v))
			}
		case "properties", "$defs", "definitions":
			add(name, value.ObjectOf(s.members(o, name, v, each)...).Value())
		case "anyOf", "oneOf", "prefixItems":
			reduced := items(v)
			for i, item := range reduced {
				reduced[i] = each(item)
			}
			if name == "oneOf" && !s.knows(name) {
				name = "anyOf"
			}
			ok = ok && s.knows(name)
			add(name, value.ListOf(reduced...).Value())
		case "allOf":
			ok = false // its parts would have to be merged
		case "required":
			if !s.AllRequired {
				add(name, v)
			}
		case "additionalProperties":
			if !s.Closed && s.knows(name) {
				if v.AsObject() != nil {
					v = each(v)
				}
				add(name, v)
			}
		case "patternProperties", "propertyNames":
			ok = ok && !s.Closed
		default:
			if s.knows(name) {
				add(name, v)
			}
		}
	}
	if t, missing := typeOfValues(o); missing {
		add("type", t)
	}
	if !ok || isObject(o) && !s.closes(o, add) {
		return value.Value{}, false
	}
	return value.ObjectOf(members...).Value(), true
}

// members returns the schemas of the members of an object, or of its definitions.
func (s Subset) members(o *value.Object, keyword string, v value.Value, each func(value.Value) value.Value) []value.Member {
	var members []value.Member
	for name, m := range v.AsObject().All() {
		m = each(m)
		if s.AllRequired && keyword == "properties" && !requires(o, name) {
			m = orNull(m)
		}
		members = append(members, value.Member{Name: name, Value: m})
	}
	return members
}

// closes adds to the schema of an object what s demands of objects. It reports whether s
// can express the object: its members need names.
func (s Subset) closes(o *value.Object, add func(string, value.Value)) bool {
	properties, _ := o.Get("properties")
	if s.AllRequired {
		var names []value.Value
		for name := range properties.AsObject().All() {
			names = append(names, value.Of(name))
		}
		add("required", value.ListOf(names...).Value())
	}
	if s.Closed {
		add("additionalProperties", value.Of(false))
		more, _ := o.Get("additionalProperties")
		return properties.AsObject().Len() > 0 && more.AsObject() == nil
	}
	return true
}

// typeOfValues returns the type of the values that a schema lists. It reports false if the
// schema has a type already, or lists no values.
func typeOfValues(o *value.Object) (t value.Value, missing bool) {
	if _, typed := o.Get("type"); typed {
		return t, false
	}
	list := items(member(o, "enum"))
	if c, ok := o.Get("const"); ok {
		list = []value.Value{c}
	}
	var types value.List
	for _, v := range list {
		name := v.Kind().String()
		if name == "bool" {
			name = "boolean"
		}
		if !namesType(types.Value(), name) {
			types = types.Append(value.Of(name))
		}
	}
	switch types.Len() {
	case 0:
		return t, false
	case 1:
		return types.At(0), true
	}
	return types.Value(), true
}

// isObject reports whether a schema describes an object, perhaps beside other types.
func isObject(o *value.Object) bool {
	if _, ok := o.Get("properties"); ok {
		return true
	}
	t, _ := o.Get("type")
	return namesType(t, "object")
}

// namesType reports whether the value of type names one.
func namesType(t value.Value, name string) bool {
	return slices.ContainsFunc(append(items(t), t), func(v value.Value) bool {
		s, ok := v.AsString()
		return ok && s == name
	})
}

// requires reports whether an object has to have a member.
func requires(o *value.Object, name string) bool {
	required, _ := o.Get("required")
	return namesType(required, name) // a list of names, too
}

// orNull returns a schema that allows what shape does, and null.
func orNull(shape value.Value) value.Value {
	null := value.Of("null")
	o := shape.AsObject()
	t, typed := o.Get("type")
	_, constant := o.Get("const")
	if !typed || constant {
		either := value.ListOf(shape, value.ObjectOf(value.Member{Name: "type", Value: null}).Value())
		return value.ObjectOf(value.Member{Name: "anyOf", Value: either.Value()}).Value()
	}
	if namesType(t, "null") {
		return shape
	}
	types, ok := t.AsList()
	if !ok {
		types = value.ListOf(t)
	}
	var members []value.Member
	for name, v := range o.All() {
		switch list, _ := v.AsList(); name {
		case "type":
			v = types.Append(null).Value()
		case "enum":
			v = list.Append(value.Value{}).Value()
		}
		members = append(members, value.Member{Name: name, Value: v})
	}
	return value.ObjectOf(members...).Value()
}

// WithoutNulls returns v without the members that are null although shape neither requires
// them nor allows null. Models write them for absent members, and have to where
// [Subset].AllRequired is set.
func WithoutNulls(shape, v value.Value) value.Value { return withoutNulls(shape, shape, v, 0) }

// The limits of how deep WithoutNulls looks into a value, and into alternatives within
// alternatives.
const (
	maxNested       = 100
	maxAlternatives = 4
)

func withoutNulls(root, shape, v value.Value, depth int) value.Value {
	o := target(root, shape).AsObject()
	if depth > maxNested {
		return v
	}
	if v.Kind() == value.ListKind {
		cleaned := items(v)
		for i, item := range cleaned {
			cleaned[i] = withoutNulls(root, member(o, "items"), item, depth+1)
		}
		return value.ListOf(cleaned...).Value()
	}
	object := v.AsObject()
	if object == nil {
		return v
	}
	properties, _ := o.Get("properties")
	var members []value.Member
	for name, m := range object.All() {
		p, known := properties.AsObject().Get(name)
		if known && m.IsNull() && !requires(o, name) && !allowsNull(root, p, 0) {
			continue
		}
		members = append(members, value.Member{Name: name, Value: withoutNulls(root, p, m, depth+1)})
	}
	return value.ObjectOf(members...).Value()
}

// allowsNull reports whether a schema may allow null.
func allowsNull(root, shape value.Value, depth int) bool {
	o := target(root, shape).AsObject()
	if o == nil || depth > maxAlternatives {
		return true
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if alternatives, ok := o.Get(keyword); ok {
			return slices.ContainsFunc(items(alternatives), func(a value.Value) bool { return allowsNull(root, a, depth+1) })
		}
	}
	if enum, ok := o.Get("enum"); ok {
		return slices.ContainsFunc(items(enum), value.Value.IsNull)
	}
	t, typed := o.Get("type")
	return !typed || namesType(t, "null")
}

// target follows references within root.
func target(root, shape value.Value) value.Value {
	for range maxNested {
		path, local := strings.CutPrefix(stringIn(shape.AsObject(), "$ref"), "#")
		next, ok := dereference(root, path)
		if !local || !ok {
			return shape
		}
		shape = next
	}
	return shape
}
