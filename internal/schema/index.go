package schema

import (
	"iter"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"loki/internal/value"
)

// baseURI is the address of a schema that names none, so that relative references
// can be resolved.
const baseURI = "schema:///"

// index knows the sub-schemas of a schema and where its references lead. Sub-schemas
// are told apart by the address of their object.
type index struct {
	dialect   dialect
	places    map[*value.Object]place
	order     []*value.Object      // the keys of places in document order
	resources map[string]*resource // by URI without fragment
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
	anchors map[string]value.Value
}

func newIndex(root value.Value, d dialect) (*index, error) {
	base, err := url.Parse(baseURI)
	if err != nil {
		return nil, err
	}
	ix := &index{dialect: d, places: map[*value.Object]place{}, resources: map[string]*resource{}}
	r := &resource{root: root, uri: base, anchors: map[string]value.Value{}}
	ix.resources[base.String()] = r
	if err := ix.add(root, "", r); err != nil {
		return nil, err
	}
	if err := ix.checkReferences(); err != nil {
		return nil, err
	}
	return ix, ix.checkLoops()
}

// add enters s, which stands at path within r, and everything below it.
func (ix *index) add(s value.Value, path string, r *resource) error {
	o := s.AsObject()
	if o == nil {
		return nil
	}
	if id := text(o, "$id"); id != "" && (ix.dialect != draft7 || text(o, "$ref") == "") {
		u, err := url.Parse(id)
		if err != nil {
			return invalid(path+"/$id", "%v", err)
		}
		if u.Fragment == "" {
			r = &resource{root: s, uri: r.uri.ResolveReference(u), anchors: map[string]value.Value{}}
			ix.resources[r.uri.String()] = r
		} else {
			r.anchors[u.Fragment] = s // how draft-07 spells an anchor
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name := text(o, keyword); name != "" {
			r.anchors[name] = s
		}
	}
	ix.places[o] = place{path, r}
	ix.order = append(ix.order, o)
	if err := checkPatterns(o, path); err != nil {
		return err
	}
	for step, sub := range children(s) {
		if err := ix.add(sub, path+step, r); err != nil {
			return err
		}
	}
	return nil
}

func checkPatterns(o *value.Object, path string) error {
	if pattern := text(o, "pattern"); pattern != "" {
		if _, err := regexp.Compile(pattern); err != nil {
			return invalid(path+"/pattern", "%v", err)
		}
	}
	patterns, _ := o.Get("patternProperties")
	for pattern := range patterns.AsObject().All() {
		if _, err := regexp.Compile(pattern); err != nil {
			return invalid(path+"/patternProperties", "%v", err)
		}
	}
	return nil
}

// resolve returns what ref, a $ref of sub-schema o, leads to.
func (ix *index) resolve(o *value.Object, ref string) (value.Value, bool) {
	u, err := url.Parse(ref)
	if err != nil {
		return value.Value{}, false
	}
	from, ok := ix.places[o]
	if !ok {
		return value.Value{}, false
	}
	u = from.in.uri.ResolveReference(u)
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	r, ok := ix.resources[u.String()]
	if !ok {
		return value.Value{}, false
	}
	if fragment != "" && fragment[0] != '/' {
		target, ok := r.anchors[fragment]
		return target, ok
	}
	return dereference(r.root, fragment)
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
			ref := text(o, keyword)
			if ref == "" {
				continue
			}
			if _, ok := ix.resolve(o, ref); !ok {
				return invalid(ix.places[o].path+"/"+keyword, "there is no %q in this schema", ref)
			}
		}
	}
	return nil
}

// checkLoops refuses schemas that apply to a value only if they apply to the same
// value: checking one would never end.
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

// inPlace returns the sub-schemas that apply to the same value as o does.
func (ix *index) inPlace(o *value.Object) []*value.Object {
	var out []*value.Object
	add := func(s value.Value) {
		if next := s.AsObject(); next != nil {
			out = append(out, next)
		}
	}
	if ref := text(o, "$ref"); ref != "" {
		target, _ := ix.resolve(o, ref)
		add(target)
		if ix.dialect == draft7 {
			return out
		}
	}
	if ref := text(o, "$dynamicRef"); ref != "" {
		// It leads to the anchor of this name in whichever resource comes first at run
		// time; any of them might close a loop.
		target, _ := ix.resolve(o, ref)
		add(target)
		if _, anchor, ok := strings.Cut(ref, "#"); ok {
			for _, r := range ix.resources {
				add(r.anchors[anchor])
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

// children ranges over the sub-schemas that stand directly in s, each with the JSON
// Pointer that leads there from s.
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

// text returns the string member of o called name, "" if there is none.
func text(o *value.Object, name string) string {
	v, _ := o.Get(name)
	s, _ := v.AsString()
	return s
}
