package schema

import (
	"strconv"

	"loki/internal/base/value"
)

// coverage is what the keywords of a schema, and of the schemas that apply to the same
// value, have looked at: members of an object or elements of a list.
type coverage struct {
	members  map[string]bool
	elements map[int]bool
	all      bool
}

// checkUnevaluated checks the keywords for what no other keyword has looked at. v satisfies
// all the others.
func (c *checker) checkUnevaluated(s *value.Object, v value.Value, path string, r *report) {
	if rest, ok := s.Get("unevaluatedProperties"); ok && v.AsObject() != nil {
		seen := c.coverage(s, v)
		for name, m := range v.AsObject().All() {
			if !seen.all && !seen.members[name] {
				c.check(rest, m, path+"/"+escape(name), r)
			}
		}
	}
	if rest, ok := s.Get("unevaluatedItems"); ok && v.Kind() == value.ListKind {
		seen := c.coverage(s, v)
		for i, item := range items(v) {
			if !seen.all && !seen.elements[i] {
				c.check(rest, item, path+"/"+strconv.Itoa(i), r)
			}
		}
	}
}

// coverage returns what s and the schemas that it applies to v look at. v satisfies s. Its
// own unevaluatedProperties and unevaluatedItems do not count.
func (c *checker) coverage(s *value.Object, v value.Value) coverage {
	seen := coverage{members: map[string]bool{}, elements: map[int]bool{}}
	c.cover(&seen, s, v)
	return seen
}

func (c *checker) cover(seen *coverage, s *value.Object, v value.Value) {
	for _, sub := range c.appliedSchemas(s, v) {
		o := sub.AsObject() // nil for true
		leave := c.enter(o)
		c.cover(seen, o, v)
		leave()
		_, members := o.Get("unevaluatedProperties")
		_, elements := o.Get("unevaluatedItems")
		seen.all = seen.all || members && v.AsObject() != nil || elements && v.Kind() == value.ListKind
	}
	c.coverMembers(seen, s, v.AsObject())
	if l, ok := v.AsList(); ok {
		c.coverElements(seen, s, l)
	}
}

// appliedSchemas returns the schemas that s applies to v itself and that v satisfies.
func (c *checker) appliedSchemas(s *value.Object, v value.Value) []value.Value {
	var subs []value.Value
	if target, ok := c.index.reference(s); ok {
		subs = append(subs, target)
		if c.index.dialect == draft7 {
			return subs
		}
	}
	if target, ok := c.index.dynamicReference(s, c.scope); ok {
		subs = append(subs, target)
	}
	subs = append(subs, items(member(s, "allOf"))...)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for _, sub := range items(member(s, keyword)) {
			if c.conforms(sub, v) {
				subs = append(subs, sub)
			}
		}
	}
	if condition, ok := s.Get("if"); ok {
		branch := "else"
		if c.conforms(condition, v) {
			branch = "then"
			subs = append(subs, condition)
		}
		subs = append(subs, member(s, branch))
	}
	for _, sub := range c.index.dependents(s, v.AsObject()) {
		subs = append(subs, sub)
	}
	return subs
}

func (c *checker) coverMembers(seen *coverage, s, o *value.Object) {
	properties := member(s, "properties").AsObject()
	patterns := c.index.patternSchemas(s)
	_, additional := s.Get("additionalProperties")
	for name := range o.All() {
		_, known := properties.Get(name)
		known = known || additional
		for _, p := range patterns {
			known = known || p.re.MatchString(name)
		}
		if known {
			seen.members[name] = true
		}
	}
}

func (c *checker) coverElements(seen *coverage, s *value.Object, l value.List) {
	first, _, hasRest := c.index.elements(s)
	contained, hasContained := s.Get("contains")
	for i, item := range l.All() {
		if i < len(first) || hasRest || hasContained && c.conforms(contained, item) {
			seen.elements[i] = true
		}
	}
}
