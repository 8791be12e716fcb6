package schema

import (
	"iter"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"loki/internal/base/value"
)

// baseURI is the address of a schema that names none, so that relative references
// can be resolved.
const baseURI = "schema:///"

// index holds the sub-schemas of a schema, and where its references lead. Sub-schemas
// are identified by the address of their object.
type index struct {
	dialect   dialect
	places    map[*value.Object]place
	order     []*value.Object      // the keys of places in document order
	resources map[string]*resource // by URI without fragment
	patterns  map[string]*regexp.Regexp
}

// place is where a sub-schema stands.
type place struct {
	path string // JSON Pointer from the root
	in   *resource
}

// resource is a part of the schema with a URI of its own: the root and every
// sub-schema with an $id.
type resource struct {
	root    value.Value
	uri     *url.URL
	anchors map[string]anchor
}

// anchor is a sub-schema with a name.
type anchor struct {
	schema  value.Value
	dynamic bool // a $dynamicRef finds it from other resources
}

// name adds an anchor. Of two with one name the first counts.
func (r *resource) name(name string, a anchor) {
	if _, taken := r.anchors[name]; name != "" && !taken {
		r.anchors[name] = a
	}
}

func newIndex(root value.Value, d dialect) (*index, error) {
	base, err := url.Parse(baseURI)
	if err != nil {
		return nil, err
	}
	ix := &index{dialect: d, places: map[*value.Object]place{}, resources: map[string]*resource{}, patterns: map[string]*regexp.Regexp{}}
	r := &resource{root: root, uri: base, anchors: map[string]anchor{}}
	ix.resources[base.String()] = r
	if err := ix.add(root, "", r); err != nil {
		return nil, err
	}
	if err := ix.checkReferences(); err != nil {
		return nil, err
	}
	return ix, ix.checkLoops()
}

// add adds s, which stands at path within r, and everything below it.
func (ix *index) add(s value.Value, path string, r *resource) error {
	o := s.AsObject()
	if o == nil {
		return nil
	}
	if id := stringIn(o, "$id"); id != "" && (ix.dialect != draft7 || stringIn(o, "$ref") == "") {
		u, err := url.Parse(id)
		if err != nil {
			return invalid(path+"/$id", "%v", err)
		}
		switch {
		case u.Fragment == "":
			r = &resource{root: s, uri: r.uri.ResolveReference(u), anchors: map[string]anchor{}}
			ix.resources[r.uri.String()] = r
		case ix.dialect == draft7:
			r.name(u.Fragment, anchor{schema: s})
		default:
			return invalid(path+"/$id", "must not have a fragment; $anchor names a place")
		}
	}
	if ix.dialect != draft7 {
		r.name(stringIn(o, "$anchor"), anchor{schema: s})
		r.name(stringIn(o, "$dynamicAnchor"), anchor{schema: s, dynamic: true})
	}
	ix.places[o] = place{path, r}
	ix.order = append(ix.order, o)
	if err := ix.addPatterns(o, path); err != nil {
		return err
	}
	for step, sub := range children(s) {
		if err := ix.add(sub, path+step, r); err != nil {
			return err
		}
	}
	return nil
}

// addPatterns compiles the regular expressions of one schema.
func (ix *index) addPatterns(o *value.Object, path string) error {
	add := func(pattern, keyword string) error {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return invalid(path+keyword, "%v", err)
		}
		ix.patterns[pattern] = re
		return nil
	}
	if err := add(stringIn(o, "pattern"), "/pattern"); err != nil {
		return err
	}
	for pattern := range member(o, "patternProperties").AsObject().All() {
		if err := add(pattern, "/patternProperties"); err != nil {
			return err
		}
	}
	return nil
}

// reference returns the schema that the $ref of o leads to.
func (ix *index) reference(o *value.Object) (target value.Value, ok bool) {
	ref := stringIn(o, "$ref")
	if ref == "" {
		return value.Value{}, false
	}
	_, _, target, ok = ix.resolve(o, ref)
	return target, ok
}

// dynamicReference returns the schema that the $dynamicRef of o leads to: the dynamic
// anchor of the outermost resource in scope that has one of this name. If the reference
// leads to something else than a dynamic anchor it is one like $ref.
func (ix *index) dynamicReference(o *value.Object, scope []*resource) (target value.Value, ok bool) {
	ref := stringIn(o, "$dynamicRef")
	if ref == "" {
		return value.Value{}, false
	}
	r, name, target, ok := ix.resolve(o, ref)
	if !ok {
		return target, false
	}
	if r.anchors[name].dynamic {
		for _, outer := range scope {
			if a := outer.anchors[name]; a.dynamic {
				return a.schema, true
			}
		}
	}
	return target, true
}

// resolve returns the sub-schema that ref, a reference in sub-schema o, leads to, and the
// resource and the fragment that it names.
func (ix *index) resolve(o *value.Object, ref string) (r *resource, fragment string, target value.Value, ok bool) {
	from, known := ix.places[o]
	u, err := url.Parse(ref)
	if err != nil || !known {
		return nil, "", value.Value{}, false
	}
	u = from.in.uri.ResolveReference(u)
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	if r, ok = ix.resources[u.String()]; !ok {
		return nil, "", value.Value{}, false
	}
	if fragment != "" && fragment[0] != '/' {
		target = r.anchors[fragment].schema
	} else {
		target, _ = dereference(r.root, fragment)
	}
	if o := target.AsObject(); o != nil {
		_, ok = ix.places[o] // else it stands where no schema does
	} else {
		_, ok = target.AsBool()
	}
	return r, fragment, target, ok
}

// dereference follows a JSON Pointer.
func dereference(v value.Value, pointer string) (value.Value, bool) {
	for pointer != "" {
		step, rest, more := strings.Cut(pointer[1:], "/")
		pointer = ""
		if more {
			pointer = "/" + rest
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if l, ok := v.AsList(); ok {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= l.Len() {
				return value.Value{}, false
			}
			v = l.At(i)
			continue
		}
		member, ok := v.AsObject().Get(step)
		if !ok {
			return value.Value{}, false
		}
		v = member
	}
	return v, true
}

func (ix *index) checkReferences() error {
	for _, o := range ix.order {
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			ref := stringIn(o, keyword)
			if ref == "" {
				continue
			}
			if _, _, _, ok := ix.resolve(o, ref); !ok {
				return invalid(ix.places[o].path+"/"+keyword, "there is no %q in this schema", ref)
			}
		}
	}
	return nil
}

// checkLoops refuses a schema that applies itself to the same value: checking it would
// never end.
func (ix *index) checkLoops() error {
	const active, done = 1, 2
	state := make(map[*value.Object]int, len(ix.places))
	var visit func(o *value.Object) error
	visit = func(o *value.Object) error {
		switch state[o] {
		case active:
			return invalid(ix.places[o].path, "this refers to itself endlessly")
		case done:
			return nil
		}
		state[o] = active
		for _, next := range ix.inPlace(o) {
			if err := visit(next); err != nil {
				return err
			}
		}
		state[o] = done
		return nil
	}
	for _, o := range ix.order {
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// inPlace returns the sub-schemas that o applies to the same value.
func (ix *index) inPlace(o *value.Object) []*value.Object {
	var out []*value.Object
	add := func(s value.Value) {
		if next := s.AsObject(); next != nil {
			out = append(out, next)
		}
	}
	if target, ok := ix.reference(o); ok {
		add(target)
		if ix.dialect == draft7 {
			return out
		}
	}
	if _, name, target, ok := ix.resolve(o, stringIn(o, "$dynamicRef")); ok && stringIn(o, "$dynamicRef") != "" {
		// It leads to the anchor of this name in the outermost resource, which is known only
		// when a value is checked; any of them might close a loop.
		add(target)
		for _, r := range ix.resources {
			if a := r.anchors[name]; a.dynamic {
				add(a.schema)
			}
		}
	}
	for keyword, v := range o.All() {
		switch keyword {
		case "not", "if", "then", "else":
			add(v)
		case "allOf", "anyOf", "oneOf":
			l, _ := v.AsList()
			for _, s := range l.All() {
				add(s)
			}
		case "dependentSchemas", "dependencies":
			for _, s := range v.AsObject().All() {
				add(s)
			}
		}
	}
	return out
}

// elements returns the schemas of the first elements of a list, and that of the rest.
func (ix *index) elements(s *value.Object) (first []value.Value, rest value.Value, hasRest bool) {
	heads, tail := "prefixItems", "items"
	if ix.dialect == draft7 {
		heads = "items"
		if member(s, "items").Kind() == value.ListKind {
			tail = "additionalItems"
		}
	}
	rest, hasRest = s.Get(tail)
	return items(member(s, heads)), rest, hasRest && rest.Kind() != value.ListKind
}

// dependents ranges over what s demands because of members that o has, by their names: a
// schema for o or, in draft-07, a list of the members that are required.
func (ix *index) dependents(s, o *value.Object) iter.Seq2[string, value.Value] {
	keyword := "dependentSchemas"
	if ix.dialect == draft7 {
		keyword = "dependencies"
	}
	return func(yield func(string, value.Value) bool) {
		for name, sub := range member(s, keyword).AsObject().All() {
			if _, ok := o.Get(name); ok && !yield(name, sub) {
				return
			}
		}
	}
}

// patternSchema is the schema for the members whose names match an expression.
type patternSchema struct {
	re     *regexp.Regexp
	schema value.Value
}

func (ix *index) patternSchemas(s *value.Object) []patternSchema {
	patterns := member(s, "patternProperties").AsObject()
	out := make([]patternSchema, 0, patterns.Len())
	for pattern, schema := range patterns.All() {
		out = append(out, patternSchema{ix.patterns[pattern], schema})
	}
	return out
}

// children ranges over the sub-schemas directly in s, each with the JSON Pointer that
// leads there from s.
func children(s value.Value) iter.Seq2[string, value.Value] {
	return func(yield func(string, value.Value) bool) {
		for keyword, v := range s.AsObject().All() {
			switch keyword {
			case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not",
				"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties":
				if !yield("/"+keyword, v) {
					return
				}
			case "items", "allOf", "anyOf", "oneOf", "prefixItems":
				l, isList := v.AsList()
				if !isList && !yield("/"+keyword, v) {
					return
				}
				for i, item := range l.All() {
					if !yield("/"+keyword+"/"+strconv.Itoa(i), item) {
						return
					}
				}
			case "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties":
				for name, member := range v.AsObject().All() {
					if !yield("/"+keyword+"/"+escape(name), member) {
						return
					}
				}
			}
		}
	}
}

// escape returns name as a step of a JSON Pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// stringIn returns the string member of o called name, "" if there is none.
func stringIn(o *value.Object, name string) string {
	v, _ := o.Get(name)
	s, _ := v.AsString()
	return s
}
