package schema

import (
	"fmt"
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// checker walks a value along a schema and collects what violates it.
type checker struct {
	index *index
	scope []*resource // those entered on the way, outermost first
}

// finding is what becomes a [Violation].
type finding struct {
	path string
	rule string // violated keyword
	want string // what the schema demands
	got  string // what was found, may be empty
}

func (f finding) violation() Violation {
	if f.got == "" {
		return Violation{f.path, f.want, f.want}
	}
	return Violation{f.path, f.want + ", got " + f.got, f.want}
}

// report collects findings up to a limit.
type report struct {
	limit int
	list  []finding
}

func (r *report) full() bool { return len(r.list) >= r.limit }

func (r *report) add(f ...finding) {
	r.list = append(r.list, f[:min(len(f), r.limit-len(r.list))]...)
}

// findings returns up to MaxViolations findings of one schema.
func (c *checker) findings(schema, v value.Value, path string) []finding {
	r := report{limit: MaxViolations}
	c.check(schema, v, path, &r)
	return r.list
}

func (c *checker) conforms(schema, v value.Value) bool {
	r := report{limit: 1}
	c.check(schema, v, "", &r)
	return len(r.list) == 0
}

// enter records that the walk is within s until leave is called.
func (c *checker) enter(s *value.Object) (leave func()) {
	n := len(c.scope)
	in := c.index.places[s].in
	if in == nil || n > 0 && c.scope[n-1] == in {
		return func() {}
	}
	c.scope = append(c.scope, in)
	return func() { c.scope = c.scope[:n] }
}

// check adds to r how v, which stands at path, violates schema.
func (c *checker) check(schema, v value.Value, path string, r *report) {
	if allowed, ok := schema.AsBool(); ok {
		if !allowed {
			r.add(finding{path: path, rule: "false", want: "is not allowed here"})
		}
		return
	}
	s := schema.AsObject()
	defer c.enter(s)()
	before := len(r.list)
	if target, ok := c.index.reference(s); ok {
		c.check(target, v, path, r)
		if c.index.dialect == draft7 {
			return // its siblings mean nothing
		}
	}
	if !checkType(s, v, path, r) {
		return // whatever else is wrong follows from the wrong type
	}
	for keyword, arg := range s.All() {
		if r.full() {
			return
		}
		switch keyword {
		case "$dynamicRef":
			if target, ok := c.index.dynamicReference(s, c.scope); ok {
				c.check(target, v, path, r)
			}
		case "allOf":
			for _, sub := range items(arg) {
				c.check(sub, v, path, r)
			}
		case "anyOf":
			c.checkAnyOf(arg, v, path, r)
		case "oneOf":
			c.checkOneOf(arg, v, path, r)
		case "not":
			if c.conforms(arg, v) {
				r.add(finding{path, keyword, "must not match " + brief(arg), ""})
			}
		case "if":
			branch := "then"
			if !c.conforms(arg, v) {
				branch = "else"
			}
			if sub, ok := s.Get(branch); ok {
				c.check(sub, v, path, r)
			}
		default:
			c.checkScalar(keyword, arg, v, path, r)
		}
	}
	if l, ok := v.AsList(); ok {
		c.checkList(s, l, path, r)
	}
	if o := v.AsObject(); o != nil {
		c.checkObject(s, o, path, r)
	}
	if len(r.list) == before {
		c.checkUnevaluated(s, v, path, r)
	}
}

// checkAnyOf reports the violations of the alternative that v resembles most.
func (c *checker) checkAnyOf(arg, v value.Value, path string, r *report) {
	var failures [][]finding
	for _, sub := range items(arg) {
		found := c.findings(sub, v, path)
		if len(found) == 0 {
			return
		}
		failures = append(failures, found)
	}
	r.add(nearest(failures, path, "anyOf")...)
}

func (c *checker) checkOneOf(arg, v value.Value, path string, r *report) {
	var matches []string
	var failures [][]finding
	for i, sub := range items(arg) {
		if found := c.findings(sub, v, path); len(found) > 0 {
			failures = append(failures, found)
			continue
		}
		matches = append(matches, strconv.Itoa(i+1))
	}
	switch len(matches) {
	case 0:
		r.add(nearest(failures, path, "oneOf")...)
	case 1:
	default:
		r.add(finding{path, "oneOf", fmt.Sprintf("must match exactly one of the %d alternatives (oneOf), but matches number %s",
			len(items(arg)), strings.Join(matches, " and ")), ""})
	}
}

// nearest condenses the findings of alternatives of which none matched. If each demands a
// single thing of the value as a whole, one sentence lists the demands. Otherwise those of
// the alternative with the fewest findings are returned. A finding about the type of the
// value, or about a member with a fixed value, which tells kinds of objects apart, counts
// for many.
func nearest(failures [][]finding, path, rule string) []finding {
	if len(failures) == 0 {
		return []finding{{path: path, rule: rule, want: "is not allowed here"}}
	}
	var wants []string
	for _, found := range failures {
		if len(found) == 1 && found[0].path == path && found[0].got != "" {
			wants = append(wants, found[0].want)
		}
	}
	if len(wants) == len(failures) {
		return []finding{{path, rule, strings.Join(wants, " or "), failures[0][0].got}}
	}
	best, bestScore, rivals := 0, 0, 0
	for i, found := range failures {
		score := len(found)
		for _, f := range found {
			switch {
			case f.path == path && f.rule == "type":
				score += 1000
			case f.rule == "const" || f.rule == "enum":
				score += 100
			}
		}
		if score < 1000 {
			rivals++
		}
		if i == 0 || score < bestScore {
			best, bestScore = i, score
		}
	}
	if rivals <= 1 {
		return failures[best]
	}
	head := finding{path, rule, fmt.Sprintf("matches none of the %d alternatives (%s); what the nearest demands follows", len(failures), rule), ""}
	return append([]finding{head}, failures[best]...)
}

func (c *checker) checkList(s *value.Object, l value.List, path string, r *report) {
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	first, rest, hasRest := c.index.elements(s)
	for i, schema := range first {
		if i < l.Len() {
			c.check(schema, l.At(i), at(i), r)
		}
	}
	if hasRest {
		for i := len(first); i < l.Len() && !r.full(); i++ {
			c.check(rest, l.At(i), at(i), r)
		}
	}
	if schema, ok := s.Get("contains"); ok {
		n := 0
		for _, item := range l.All() {
			if c.conforms(schema, item) {
				n++
			}
		}
		least, most := 1, l.Len()
		if c.index.dialect != draft7 {
			least, most = intMember(s, "minContains", 1), intMember(s, "maxContains", l.Len())
		}
		switch {
		case n < least:
			r.add(finding{path, "contains", fmt.Sprintf("must have at least %s that match %s", text.Count(least, "element"), brief(schema)), strconv.Itoa(n)})
		case n > most:
			r.add(finding{path, "contains", fmt.Sprintf("must have at most %s that match %s", text.Count(most, "element"), brief(schema)), strconv.Itoa(n)})
		}
	}
}

func (c *checker) checkObject(s, o *value.Object, path string, r *report) {
	at := func(name string) string { return path + "/" + escape(name) }
	require := func(names value.Value, because string) {
		for _, n := range items(names) {
			name, _ := n.AsString()
			if _, ok := o.Get(name); !ok && !r.full() {
				r.add(finding{at(name), "required", "is required" + because + ", but missing", ""})
			}
		}
	}
	require(member(s, "required"), "")
	for name, names := range member(s, "dependentRequired").AsObject().All() {
		if _, ok := o.Get(name); ok && c.index.dialect != draft7 {
			require(names, fmt.Sprintf(" next to %q", name))
		}
	}
	for name, sub := range c.index.dependents(s, o) {
		if sub.Kind() == value.ListKind {
			require(sub, fmt.Sprintf(" next to %q", name))
			continue
		}
		c.check(sub, o.Value(), path, r)
	}

	properties := member(s, "properties").AsObject()
	patterns := c.index.patternSchemas(s)
	additional, hasAdditional := s.Get("additionalProperties")
	names, hasNames := s.Get("propertyNames")
	for name, v := range o.All() {
		if r.full() {
			return
		}
		known := false
		if sub, ok := properties.Get(name); ok {
			known = true
			c.check(sub, v, at(name), r)
		}
		for _, p := range patterns {
			if p.re.MatchString(name) {
				known = true
				c.check(p.schema, v, at(name), r)
			}
		}
		if hasAdditional && !known {
			c.check(additional, v, at(name), r)
		}
		if hasNames {
			for _, f := range c.findings(names, value.Of(name), "") {
				r.add(finding{at(name), "propertyNames", "has a name that " + f.want, f.got})
			}
		}
	}
}

// items returns the elements of a list, and none for other values.
func items(v value.Value) []value.Value {
	l, _ := v.AsList()
	out := make([]value.Value, l.Len())
	for i, item := range l.All() {
		out[i] = item
	}
	return out
}

func member(o *value.Object, name string) value.Value {
	v, _ := o.Get(name)
	return v
}

// intMember returns the integer member called name, or otherwise if there is none.
func intMember(o *value.Object, name string, otherwise int) int {
	f, ok := member(o, name).AsFloat()
	if !ok {
		return otherwise
	}
	return int(f)
}
