package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"loki/internal/value"
)

// explainer walks a value along a schema and notes every violation.
type explainer struct {
	index   *index
	partial bool // a keyword was met that the walk does not understand
}

// finding is a [Violation] in the making.
type finding struct {
	path string
	rule string // keyword that is violated
	want string // what is demanded
	got  string // what was found, may be empty
}

func (f finding) violation() Violation {
	if f.got == "" {
		return Violation{f.path, f.want}
	}
	return Violation{f.path, f.want + ", got " + f.got}
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

func (e *explainer) explain(schema, v value.Value) []Violation {
	r := report{limit: MaxViolations}
	e.check(schema, v, "", &r)
	out := make([]Violation, len(r.list))
	for i, f := range r.list {
		out[i] = f.violation()
	}
	return out
}

// findings returns up to MaxViolations findings of one schema.
func (e *explainer) findings(schema, v value.Value, path string) []finding {
	r := report{limit: MaxViolations}
	e.check(schema, v, path, &r)
	return r.list
}

func (e *explainer) conforms(schema, v value.Value) bool {
	r := report{limit: 1}
	e.check(schema, v, "", &r)
	return len(r.list) == 0
}

// check notes how v, which stands at path, violates schema.
func (e *explainer) check(schema, v value.Value, path string, r *report) {
	if allowed, ok := schema.AsBool(); ok {
		if !allowed {
			r.add(finding{path: path, rule: "false", want: "is not allowed here"})
		}
		return
	}
	s := schema.AsObject()
	if ref := text(s, "$ref"); ref != "" {
		target, ok := e.index.resolve(s, ref)
		if !ok {
			e.partial = true
			return
		}
		e.check(target, v, path, r)
		if e.index.dialect == draft7 {
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
		case "$dynamicRef", "unevaluatedItems", "unevaluatedProperties":
			e.partial = true
		case "allOf":
			for _, sub := range items(arg) {
				e.check(sub, v, path, r)
			}
		case "anyOf":
			e.checkAnyOf(arg, v, path, r)
		case "oneOf":
			e.checkOneOf(arg, v, path, r)
		case "not":
			if e.conforms(arg, v) {
				r.add(finding{path, keyword, "must not match " + brief(arg), ""})
			}
		case "if":
			branch := "then"
			if !e.conforms(arg, v) {
				branch = "else"
			}
			if sub, ok := s.Get(branch); ok {
				e.check(sub, v, path, r)
			}
		default:
			assertScalar(keyword, arg, v, path, r)
		}
	}
	if l, ok := v.AsList(); ok {
		e.checkList(s, l, path, r)
	}
	if o := v.AsObject(); o != nil {
		e.checkObject(s, o, path, r)
	}
}

// checkAnyOf explains by the alternative that v resembles most.
func (e *explainer) checkAnyOf(arg, v value.Value, path string, r *report) {
	var failures [][]finding
	for _, sub := range items(arg) {
		found := e.findings(sub, v, path)
		if len(found) == 0 {
			return
		}
		failures = append(failures, found)
	}
	r.add(nearest(failures, path, "anyOf")...)
}

func (e *explainer) checkOneOf(arg, v value.Value, path string, r *report) {
	var matches []string
	var failures [][]finding
	for i, sub := range items(arg) {
		if found := e.findings(sub, v, path); len(found) > 0 {
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

// nearest condenses the findings of alternatives of which none matched: all of them
// in one sentence if each demands a single thing of the value as a whole, otherwise
// those of the alternative with the least wrong. Alternatives for another type of
// value or, as a member with a fixed value tells, another kind of object count as
// far away.
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

func (e *explainer) checkList(s *value.Object, l value.List, path string, r *report) {
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	each := func(from int, schema value.Value) {
		for i := from; i < l.Len() && !r.full(); i++ {
			e.check(schema, l.At(i), at(i), r)
		}
	}
	prefix, rest := member(s, "prefixItems"), "items"
	if e.index.dialect == draft7 {
		prefix, rest = value.Value{}, "items"
		if list := member(s, "items"); list.Kind() == value.ListKind {
			prefix, rest = list, "additionalItems"
		}
	}
	heads := items(prefix)
	for i, schema := range heads {
		if i < l.Len() {
			e.check(schema, l.At(i), at(i), r)
		}
	}
	if schema, ok := s.Get(rest); ok && schema.Kind() != value.ListKind {
		each(len(heads), schema)
	}
	if schema, ok := s.Get("contains"); ok {
		n := 0
		for _, item := range l.All() {
			if e.conforms(schema, item) {
				n++
			}
		}
		least, most := 1, l.Len()
		if e.index.dialect != draft7 {
			least, most = intMember(s, "minContains", 1), intMember(s, "maxContains", l.Len())
		}
		switch {
		case n < least:
			r.add(finding{path, "contains", fmt.Sprintf("must have at least %s that match %s", count(least, "element"), brief(schema)), strconv.Itoa(n)})
		case n > most:
			r.add(finding{path, "contains", fmt.Sprintf("must have at most %s that match %s", count(most, "element"), brief(schema)), strconv.Itoa(n)})
		}
	}
}

func (e *explainer) checkObject(s, o *value.Object, path string, r *report) {
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
		if _, ok := o.Get(name); ok && e.index.dialect != draft7 {
			require(names, fmt.Sprintf(" next to %q", name))
		}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		if (keyword == "dependencies") != (e.index.dialect == draft7) {
			continue
		}
		for name, sub := range member(s, keyword).AsObject().All() {
			if _, ok := o.Get(name); !ok {
				continue
			}
			if sub.Kind() == value.ListKind {
				require(sub, fmt.Sprintf(" next to %q", name))
				continue
			}
			e.check(sub, o.Value(), path, r)
		}
	}

	properties := member(s, "properties").AsObject()
	patterns := patternsOf(s)
	additional, hasAdditional := s.Get("additionalProperties")
	names, hasNames := s.Get("propertyNames")
	for name, v := range o.All() {
		if r.full() {
			return
		}
		known := false
		if sub, ok := properties.Get(name); ok {
			known = true
			e.check(sub, v, at(name), r)
		}
		for _, p := range patterns {
			if p.re.MatchString(name) {
				known = true
				e.check(p.schema, v, at(name), r)
			}
		}
		if hasAdditional && !known {
			e.check(additional, v, at(name), r)
		}
		if hasNames {
			for _, f := range e.findings(names, value.Of(name), "") {
				r.add(finding{at(name), "propertyNames", "has a name that " + f.want, f.got})
			}
		}
	}
}

type patternSchema struct {
	re     *regexp.Regexp
	schema value.Value
}

func patternsOf(s *value.Object) []patternSchema {
	var out []patternSchema
	for pattern, schema := range member(s, "patternProperties").AsObject().All() {
		if re, err := regexp.Compile(pattern); err == nil {
			out = append(out, patternSchema{re, schema})
		}
	}
	return out
}

// items returns the elements of a list, none if v is something else.
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

// intMember returns the integer member called name, or otherwise.
func intMember(o *value.Object, name string, otherwise int) int {
	f, ok := member(o, name).AsFloat()
	if !ok {
		return otherwise
	}
	return int(f)
}
