package schema

import (
	"cmp"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/value"
)

// Parameters are the parameters of a tool in the words of a [Subset].
type Parameters struct {
	Schema value.Value
	// Names are the names of members that the subset does not take: from those in Schema to the tool's own.
	Names map[string]string
}

// maxParameters is how long the schema of one tool may be, in bytes. In a longer one the deeper levels are open.
const maxParameters = 64 << 10

// maxLevels is how deep schemas are kept; what is deeper has a type only.
const maxLevels = 24

// Parameters returns the schema of a tool's parameters in the words of s, keyword by keyword: keywords that s lacks, and
// those whose values no draft of JSON Schema allows, are left out, so that the result allows more, but every member
// stays. Older drafts and the habits of OpenAPI are read as what they mean. With s.ObjectRoot alternatives at the root are
// folded into one object that has the members of all. ok is false if the result is too large at every depth.
func (s Subset) Parameters(shape value.Value) (p Parameters, ok bool) {
	for _, levels := range []int{maxLevels, maxLevels / 2, maxLevels / 4, 3, 2, 1, 0} {
		r := &reducer{s: s, root: shape, levels: levels, open: make(map[*value.Object]bool)}
		r.readIDs(shape, 0)
		schema := r.whole()
		if r.nodes > maxParameters/2 || len(schema.AppendJSON(nil)) > maxParameters {
			continue
		}
		if _, err := compile(schema); err != nil && s.knows("$ref") { // references that lead in circles
			s.Keywords = slices.DeleteFunc(slices.Clone(s.Keywords), func(k string) bool { return k == "$ref" })
			return s.Parameters(shape)
		}
		return Parameters{schema, r.names()}, true
	}
	return Parameters{}, false
}

// All returns the subset that is all of JSON Schema that [Compile] can check. References that lead nowhere, look-around in
// patterns and the like are not in it.
func All() Subset {
	return Subset{Keywords: []string{
		"$ref", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
		"const", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "format", "pattern", "minLength", "maxLength",
		"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems",
		"additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
		"dependentRequired", "dependentSchemas", "unevaluatedProperties",
	}}
}

// reducer reduces one schema.
type reducer struct {
	s      Subset
	root   value.Value
	levels int
	nodes  int // schemas so far

	ids    map[string]value.Value // schemas by $id, id and $anchor
	open   map[*value.Object]bool // references that are being inlined
	defs   []definition
	own    map[string]string // names of members as s takes them, by the tool's own
	taken  map[string]bool   // the values of own, and the tool's own names
	listed bool              // taken is complete
}

// definition is a schema that references lead to.
type definition struct {
	target *value.Object
	name   string
	schema value.Value
}

// names returns the names of members that were changed.
func (r *reducer) names() map[string]string {
	if len(r.own) == 0 {
		return nil
	}
	names := make(map[string]string, len(r.own))
	for own, name := range r.own {
		names[name] = own
	}
	return names
}

// readIDs collects the schemas that have names.
func (r *reducer) readIDs(v value.Value, depth int) {
	o := v.AsObject()
	if depth > maxNested {
		return
	}
	for _, keyword := range []string{"$id", "id", "$anchor", "$dynamicAnchor"} {
		name := strings.TrimPrefix(stringIn(o, keyword), "#")
		if _, known := r.ids[name]; name == "" || known {
			continue
		}
		if r.ids == nil {
			r.ids = make(map[string]value.Value)
		}
		r.ids[strings.TrimSuffix(name, "#")] = v
	}
	for _, sub := range children(v) {
		r.readIDs(sub, depth+1)
	}
}

// lookup returns what a reference leads to.
func (r *reducer) lookup(ref string) (value.Value, bool) {
	base, fragment, _ := strings.Cut(ref, "#")
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	from, ok := r.root, true
	if base != "" {
		if from, ok = r.ids[base]; !ok {
			from, ok = dereference(r.root, "/$defs/"+escape(base))
		}
		if !ok {
			from, ok = dereference(r.root, "/definitions/"+escape(base))
		}
	}
	switch {
	case !ok || fragment == "":
	case fragment[0] == '/':
		from, ok = dereference(from, fragment)
	default:
		from, ok = r.ids[fragment]
	}
	return from, ok && (from.AsObject() != nil || from.Kind() == value.Bool)
}

// refOf returns the reference in o, empty if there is none.
func refOf(o *value.Object) string {
	return cmp.Or(stringIn(o, "$ref"), stringIn(o, "$dynamicRef"), stringIn(o, "$recursiveRef"))
}

// whole returns the reduced root.
func (r *reducer) whole() value.Value {
	root := r.root
	if r.s.ObjectRoot {
		root = r.fold(root, 0)
	}
	reduced := r.reduce(root, 0).AsObject()
	if r.s.BareRoot {
		bare := []value.Member{{Name: "type", Value: value.Of("object")}}
		for _, keyword := range []string{"properties", "required"} {
			if v, ok := reduced.Get(keyword); ok {
				bare = append(bare, value.Member{Name: keyword, Value: v})
			}
		}
		return value.ObjectOf(bare...).Value()
	}
	if len(r.defs) == 0 {
		return reduced.Value()
	}
	for i := 0; i < len(r.defs); i++ { // the list grows
		r.defs[i].schema = r.reduce(r.defs[i].target.Value(), 1)
	}
	defs := make([]value.Member, len(r.defs))
	for i, d := range r.defs {
		defs[i] = value.Member{Name: d.name, Value: d.schema}
	}
	return reduced.Merge(value.ObjectOf(value.Member{Name: "$defs", Value: value.ObjectOf(defs...).Value()})).Value()
}

// reference returns the name of the definition that a reference to target has.
func (r *reducer) reference(ref string, target *value.Object) string {
	for _, d := range r.defs {
		if d.target == target {
			return d.name
		}
	}
	base := ref[strings.LastIndexAny(ref, "/#")+1:]
	base = legalName(cmp.Or(base, "schema"))
	name := base
	for n := 2; slices.ContainsFunc(r.defs, func(d definition) bool { return d.name == name }); n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	r.defs = append(r.defs, definition{target: target, name: name})
	return name
}

// reduce returns the schema v, which stands at a depth.
func (r *reducer) reduce(v value.Value, depth int) value.Value {
	if r.nodes++; r.nodes > maxParameters/2 { // each takes two bytes or more
		return object()
	}
	if allowed, ok := v.AsBool(); ok && !allowed && r.s.knows("not") {
		return object("not", object())
	}
	o := v.AsObject()
	if ref := refOf(o); ref != "" {
		target, ok := r.lookup(ref)
		rest := o.Without("$ref").Without("$dynamicRef").Without("$recursiveRef")
		next := target.AsObject()
		switch {
		case !ok || next == nil:
			return r.reduce(rest.Value(), depth)
		case r.s.knows("$ref") && (annotates(rest) || r.open[next]):
			out := object("$ref", value.Of("#/$defs/"+r.reference(ref, next)))
			if d, ok := rest.Get("description"); ok && d.Kind() == value.String {
				out = out.AsObject().Merge(object("description", d).AsObject()).Value()
			}
			return out
		case r.open[next]:
			return r.outline(next.Merge(rest))
		}
		r.open[next] = true
		defer delete(r.open, next)
		return r.reduce(next.Merge(rest).Value(), depth)
	}
	if depth > r.levels {
		return r.outline(o)
	}
	return r.keywords(o, depth)
}

// annotates reports whether a schema constrains nothing.
func annotates(o *value.Object) bool {
	for name := range o.All() {
		switch name {
		case "description", "title", "default", "examples", "deprecated", "$comment", "readOnly", "writeOnly":
		default:
			return false
		}
	}
	return true
}

// outline returns only the type and description of a schema.
func (r *reducer) outline(o *value.Object) value.Value {
	b := builder{}
	b.addType(o)
	if d, ok := o.Get("description"); ok && d.Kind() == value.String {
		b.add("description", d)
	}
	if namesType(b.get("type"), "array") {
		b.add("items", object())
	}
	return b.value()
}

// object returns an object of names and values in turn.
func object(members ...any) value.Value {
	var list []value.Member
	for i := 0; i+1 < len(members); i += 2 {
		list = append(list, value.Member{Name: members[i].(string), Value: members[i+1].(value.Value)})
	}
	return value.ObjectOf(list...).Value()
}

// builder collects the members of a schema.
type builder struct{ members []value.Member }

func (b *builder) add(name string, v value.Value) {
	b.members = append(b.members, value.Member{Name: name, Value: v})
}

func (b *builder) get(name string) value.Value {
	if i := b.find(name); i >= 0 {
		return b.members[i].Value
	}
	return value.Value{}
}

// find returns the place of a member, or -1.
func (b *builder) find(name string) int {
	return slices.IndexFunc(b.members, func(m value.Member) bool { return m.Name == name })
}

func (b *builder) value() value.Value { return value.ObjectOf(b.members...).Value() }

// types are the names of types, and what they are called elsewhere.
var types = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "object": "object", "array": "array", "null": "null",
	"str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number", "bool": "boolean",
	"dict": "object", "map": "object", "list": "array", "none": "null", "date": "string",
}

// addType adds the type that o has.
func (b *builder) addType(o *value.Object) {
	arg, ok := o.Get("type")
	if !ok {
		return
	}
	named := items(arg)
	if arg.Kind() == value.String {
		named = []value.Value{arg}
	}
	var list []value.Value
	seen := make(map[string]bool)
	for _, n := range named {
		word, _ := n.AsString()
		name, known := types[strings.ToLower(word)]
		if !known { // such as any: every type
			return
		}
		if !seen[name] {
			seen[name], list = true, append(list, value.Of(name))
		}
	}
	if nullable, _ := member(o, "nullable").AsBool(); nullable && !seen["null"] && len(list) > 0 {
		list = append(list, value.Of("null"))
	}
	if len(list) == 1 {
		b.add("type", list[0])
	} else if len(list) > 1 {
		b.add("type", value.ListOf(list...).Value())
	}
}

// keywords reduces the members of a schema without a reference.
func (r *reducer) keywords(o *value.Object, depth int) value.Value {
	b := &builder{}
	for name, v := range o.All() {
		switch name {
		case "type":
			b.addType(o)
		case "enum", "const":
			r.addValues(b, o, name, v)
		case "properties":
			r.addMembers(b, o, v, depth)
		case "required":
			r.addRequired(b, o)
		case "items", "prefixItems", "additionalItems":
			if b.get("items").AsObject() == nil && b.get("prefixItems").Kind() != value.ListKind {
				r.addItems(b, o, depth)
			}
		case "anyOf", "oneOf", "allOf":
			r.addAlternatives(b, name, v, depth)
		case "description", "title", "$comment":
			if v.Kind() == value.String && r.s.knows(name) {
				b.add(name, v)
			}
		case "default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType":
			if r.s.knows(name) && wellFormed(name, v) {
				b.add(name, v)
			}
		default:
			r.addConstraint(b, o, name, v, depth)
		}
	}
	if _, named := o.Get("required"); !named {
		r.addRequired(b, o)
	}
	if t, missing := typeOfValues(b.value().AsObject()); missing && r.s.PlainValues && b.get("enum").Kind() == value.ListKind {
		b.add("type", t)
	}
	if namesType(b.get("type"), "array") && b.get("items").AsObject() == nil && b.get("items").Kind() != value.Bool {
		b.add("items", object())
	}
	return b.value()
}

// addConstraint adds the keywords that only some subsets have.
func (r *reducer) addConstraint(b *builder, o *value.Object, name string, v value.Value, depth int) {
	if !r.s.knows(name) {
		return
	}
	switch name {
	case "exclusiveMinimum", "exclusiveMaximum":
		if strict, isBool := v.AsBool(); isBool { // draft 4
			limit := member(o, map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[name])
			if !strict || !isNumber(limit) {
				return
			}
			v = limit
		}
		if isNumber(v) {
			b.add(name, v)
		}
	case "minimum", "maximum":
		strict, _ := member(o, "exclusiveM"+name[1:]).AsBool()
		if isNumber(v) && !(strict && r.s.knows("exclusiveM"+name[1:])) {
			b.add(name, v)
		}
	case "format":
		if format, ok := v.AsString(); ok && (r.s.Formats == nil || slices.Contains(r.s.Formats, format)) {
			b.add(name, v)
		}
	case "additionalProperties", "unevaluatedProperties", "unevaluatedItems":
		if v.Kind() == value.Bool {
			b.add(name, v)
		} else if v.AsObject() != nil {
			b.add(name, r.reduce(v, depth+1))
		}
	case "contains", "not", "if", "then", "else", "propertyNames":
		if v.AsObject() != nil || v.Kind() == value.Bool {
			b.add(name, r.reduce(v, depth+1))
		}
	case "patternProperties", "dependentSchemas":
		var members []value.Member
		for key, sub := range v.AsObject().All() {
			if name == "patternProperties" && !compiles(key) {
				continue // and so are these members open
			}
			members = append(members, value.Member{Name: key, Value: r.reduce(sub, depth+1)})
		}
		if len(members) > 0 {
			b.add(name, value.ObjectOf(members...).Value())
		}
	default:
		if wellFormed(name, v) {
			b.add(name, v)
		}
	}
}

// wellFormed reports whether the value of a keyword without schemas is one that it may have.
func wellFormed(name string, v value.Value) bool {
	switch name {
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		f, ok := v.AsFloat()
		return ok && f >= 0 && f == math.Trunc(f)
	case "multipleOf":
		f, ok := v.AsFloat()
		return ok && f > 0
	case "dependentRequired":
		for _, names := range v.AsObject().All() {
			if names.Kind() != value.ListKind {
				return false
			}
		}
		return v.AsObject() != nil
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return v.Kind() == value.Bool
	case "examples":
		return v.Kind() == value.ListKind
	case "pattern":
		pattern, ok := v.AsString()
		return ok && compiles(pattern)
	case "contentEncoding", "contentMediaType":
		return v.Kind() == value.String
	}
	return name == "default"
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// addValues adds the values that a schema lists.
func (r *reducer) addValues(b *builder, o *value.Object, name string, v value.Value) {
	if name == "const" && r.s.knows(name) {
		b.add(name, v)
		return
	}
	listed := items(v)
	if name == "const" {
		if _, both := o.Get("enum"); both {
			return
		}
		listed = []value.Value{v}
	} else if nullable, _ := member(o, "nullable").AsBool(); nullable && len(listed) > 0 {
		listed = append(listed, value.Value{})
	}
	var kept []value.Value
	seen := make(map[string]bool)
	for _, item := range listed {
		key := canonical(item)
		if r.s.PlainValues && item.Kind() != value.String && !isNumber(item) {
			if item.IsNull() { // the type allows it
				continue
			}
			return
		}
		if text, _ := item.AsString(); r.s.PlainValues && item.Kind() == value.String && text == "" {
			continue // to mean it, a caller leaves the member out
		}
		if !seen[key] {
			seen[key], kept = true, append(kept, item)
		}
	}
	if len(kept) > 0 {
		b.add("enum", value.ListOf(kept...).Value())
	}
}

// addMembers adds the members of an object.
func (r *reducer) addMembers(b *builder, o *value.Object, v value.Value, depth int) {
	if v.AsObject() == nil {
		return
	}
	var members []value.Member
	for name, sub := range v.AsObject().All() {
		if never, ok := sub.AsBool(); ok && !never {
			continue // it must be absent
		}
		reduced := r.reduce(sub, depth+1)
		if own := name; r.s.Names {
			if name = r.name(own); name != own {
				reduced = describeMember(reduced, own)
			}
		}
		members = append(members, value.Member{Name: name, Value: reduced})
	}
	for _, name := range r.requiredNames(o) { // the ones that are required and not described
		if _, known := v.AsObject().Get(name); !known && depth == 0 {
			members = append(members, value.Member{Name: r.name(name), Value: object()})
		}
	}
	b.add("properties", value.ObjectOf(members...).Value())
}

// describeMember returns the schema of a member with the tool's own name in the description.
func describeMember(schema value.Value, own string) value.Value {
	note := strconv.Quote(own)
	if text := stringIn(schema.AsObject(), "description"); text != "" {
		note += ": " + text
	}
	return schema.AsObject().Merge(object("description", value.Of(note)).AsObject()).Value()
}

// requiredNames returns the names of the members that are required, those by drafts before the fourth included.
func (r *reducer) requiredNames(o *value.Object) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, n := range items(member(o, "required")) {
		name, _ := n.AsString()
		add(name)
	}
	for name, sub := range member(o, "properties").AsObject().All() {
		if required, _ := member(sub.AsObject(), "required").AsBool(); required {
			add(name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		sub, known := member(o, "properties").AsObject().Get(name)
		allowed, isBool := sub.AsBool()
		return isBool && !allowed || !known && r.s.Described
	})
}

func (r *reducer) addRequired(b *builder, o *value.Object) {
	var list []value.Value
	for _, name := range r.requiredNames(o) {
		list = append(list, value.Of(r.name(name)))
	}
	if len(list) > 0 || member(o, "required").Kind() == value.ListKind && items(member(o, "required")) == nil {
		b.add("required", value.ListOf(list...).Value())
	}
}

// addItems adds the elements of a list, whose first may be described one by one.
func (r *reducer) addItems(b *builder, o *value.Object, depth int) {
	heads, rest := member(o, "prefixItems"), member(o, "items")
	if rest.Kind() == value.ListKind { // before 2020-12
		heads, rest = rest, member(o, "additionalItems")
	}
	var first []value.Value
	for _, head := range items(heads) {
		first = append(first, r.reduce(head, depth+1))
	}
	if len(first) > 0 && r.s.knows("prefixItems") {
		b.add("prefixItems", value.ListOf(first...).Value())
		first = nil
	}
	switch never, isBool := rest.AsBool(); {
	case len(first) > 0:
		b.add("items", either(first, r.s.knows("anyOf")))
	case isBool && !never && r.s.knows("not") && b.get("prefixItems").Kind() == value.ListKind:
		b.add("items", rest)
	case rest.AsObject() != nil:
		b.add("items", r.reduce(rest, depth+1))
	}
}

// either returns a schema that allows what one of several does.
func either(schemas []value.Value, anyOf bool) value.Value {
	distinct := union(nil, schemas)
	switch {
	case len(distinct) == 1:
		return distinct[0]
	case !anyOf:
		return object()
	}
	return object("anyOf", value.ListOf(distinct...).Value())
}

// addAlternatives adds schemas that are combined.
func (r *reducer) addAlternatives(b *builder, name string, v value.Value, depth int) {
	var list []value.Value
	open := true
	for _, item := range items(v) {
		reduced := r.reduce(item, depth+1)
		open = open && reduced.AsObject().Len() == 0
		list = append(list, reduced)
	}
	if name == "oneOf" && !r.s.knows(name) {
		name = "anyOf"
	}
	switch {
	case open: // nothing is left of it
	case r.s.knows(name) && b.get(name).Kind() != value.ListKind:
		b.add(name, value.ListOf(list...).Value())
	case name == "allOf":
		for _, part := range list {
			b.merge(part.AsObject())
		}
	}
}

// merge adds the members of a schema that constrains the same value.
func (b *builder) merge(o *value.Object) {
	for name, v := range o.All() {
		i := b.find(name)
		switch {
		case i < 0:
			b.add(name, v)
		case name == "properties":
			b.members[i].Value = v.AsObject().Merge(b.members[i].Value.AsObject()).Value()
		case name == "required":
			b.members[i].Value = value.ListOf(union(items(b.members[i].Value), items(v))...).Value()
		}
	}
}

// union returns list with those of more that do not equal one before.
func union(list, more []value.Value) []value.Value {
	for _, item := range more {
		if !slices.ContainsFunc(list, func(v value.Value) bool { return equal(v, item) }) {
			list = append(list, item)
		}
	}
	return list
}

// fold returns the schema of an object without alternatives: it has the members of all, and requires what all
// require.
func (r *reducer) fold(v value.Value, depth int) value.Value {
	o := v.AsObject()
	if ref := refOf(o); ref != "" {
		rest := o.Without("$ref").Without("$dynamicRef").Without("$recursiveRef")
		target, ok := r.lookup(ref)
		if next := target.AsObject(); ok && next != nil && !r.open[next] && depth < maxAlternatives*4 {
			r.open[next] = true
			defer delete(r.open, next)
			return r.fold(next.Merge(rest).Value(), depth+1)
		}
		o = rest
	}
	var b builder
	for name, v := range o.All() {
		switch name {
		case "type":
			b.add("type", value.Of("object"))
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "dependentSchemas", "dependencies", "dependentRequired",
			"nullable", "$defs", "definitions":
		case "required":
			if v.Kind() == value.ListKind {
				b.add(name, v)
			}
		case "properties":
			if v.AsObject() != nil {
				b.add(name, v)
			}
		default:
			b.add(name, v)
		}
	}
	if b.get("type").IsNull() {
		b.members = append([]value.Member{{Name: "type", Value: value.Of("object")}}, b.members...)
	}
	if b.get("properties").IsNull() {
		b.add("properties", object())
	}
	if depth >= maxAlternatives*4 {
		return b.value()
	}
	for _, part := range items(member(o, "allOf")) {
		b.join(r.fold(part, depth+1).AsObject())
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var parts []*value.Object
		for _, part := range items(member(o, keyword)) {
			if part.AsObject() != nil && stringIn(part.AsObject(), "type") != "null" {
				parts = append(parts, r.fold(part, depth+1).AsObject())
			}
		}
		b.join(alternatives(parts))
	}
	var optional []value.Value
	for _, keyword := range []string{"if", "then", "else"} {
		optional = append(optional, member(o, keyword))
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		for _, sub := range member(o, keyword).AsObject().All() {
			optional = append(optional, sub)
		}
	}
	for _, sub := range optional {
		if sub.AsObject() != nil {
			b.join(r.fold(sub, depth+1).AsObject().Without("required").Without("additionalProperties"))
		}
	}
	return b.value()
}

// alternatives returns the members of several objects, each allowing what one of them does, and what all of
// them require.
func alternatives(parts []*value.Object) *value.Object {
	var b builder
	var required []value.Value
	for i, part := range parts {
		b.join(part.Without("required").Without("description").Without("title"))
		names := items(member(part, "required"))
		if i == 0 {
			required = names
		}
		required = slices.DeleteFunc(required, func(v value.Value) bool {
			return !slices.ContainsFunc(names, func(n value.Value) bool { return canonical(n) == canonical(v) })
		})
	}
	if len(required) > 0 {
		b.add("required", value.ListOf(required...).Value())
	}
	return b.value().AsObject()
}

// join adds what another part of the same object describes.
func (b *builder) join(o *value.Object) {
	for name, v := range o.All() {
		i := b.find(name)
		switch {
		case i < 0 && name != "additionalProperties":
			b.add(name, v)
		case i < 0 || name == "type":
		case name == "properties":
			both := b.members[i].Value.AsObject()
			for key, sub := range v.AsObject().All() {
				if old, known := both.Get(key); known {
					sub = eitherValue(old, sub)
				}
				both = both.Merge(object(key, sub).AsObject())
			}
			b.members[i].Value = both.Value()
		case name == "required":
			b.members[i].Value = value.ListOf(union(items(b.members[i].Value), items(v))...).Value()
		case name == "additionalProperties" && canonical(v) != canonical(b.members[i].Value):
			b.members[i].Value = value.Of(true)
		}
	}
}

// eitherValue returns a schema for a member that two parts describe: of listed values it allows all.
func eitherValue(a, b value.Value) value.Value {
	if annotates(b.AsObject()) {
		return a
	}
	if annotates(a.AsObject()) {
		return b
	}
	listed := func(v value.Value) []value.Value {
		if c, ok := v.AsObject().Get("const"); ok {
			return []value.Value{c}
		}
		return items(member(v.AsObject(), "enum"))
	}
	if first, second := listed(a), listed(b); len(first) > 0 && len(second) > 0 {
		all := value.ListOf(union(first, second)...).Value()
		return a.AsObject().Without("const").Merge(object("enum", all).AsObject()).Value()
	}
	parts := items(member(a.AsObject(), "anyOf"))
	if len(parts) == 0 || a.AsObject().Len() > 1 {
		parts = []value.Value{a}
	}
	return either(append(parts, b), true)
}

// name returns the name of a member as the subset takes it.
func (r *reducer) name(own string) string {
	if !r.s.Names || own == legalName(own) && own != "" {
		return own
	}
	if name, known := r.own[own]; known {
		return name
	}
	if !r.listed {
		r.listed, r.own, r.taken = true, make(map[string]string), make(map[string]bool)
		r.takeNames(r.root, 0)
	}
	base := cmp.Or(strings.Trim(legalName(own), "_"), "member")
	name := base
	for n := 2; r.taken[name]; n++ {
		suffix := "_" + strconv.Itoa(n)
		name = base[:min(len(base), maxName-len(suffix))] + suffix
	}
	r.own[own], r.taken[name] = name, true
	return name
}

// takeNames collects the names of members.
func (r *reducer) takeNames(v value.Value, depth int) {
	if depth > maxNested {
		return
	}
	for name := range member(v.AsObject(), "properties").AsObject().All() {
		r.taken[name] = true
	}
	for _, sub := range children(v) {
		r.takeNames(sub, depth+1)
	}
}

// maxName is the longest name of a member that all makers take, in letters.
const maxName = 64

// legalName returns s in letters, digits, "_", "." and "-" of ASCII, up to 64 of them.
func legalName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-' {
			return c
		}
		return '_'
	}, s)
	return s[:min(len(s), maxName)]
}

// CompileLoosely is [Compile] for a schema that others wrote: keywords that cannot be checked are left out.
func CompileLoosely(v value.Value) (*Schema, error) {
	p, ok := All().Parameters(v)
	if !ok {
		return Compile(value.ObjectOf().Value())
	}
	return Compile(p.Schema)
}
