package graph

import (
	"fmt"
	"maps"
	"slices"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph/expr"
)

// undefinedSeverity is how bad it is to read a key that nothing writes. Of a strict state all keys are known.
func (v *validator) undefinedSeverity() Severity {
	if v.g.Schema != nil && v.g.Schema.Strict {
		return SeverityError
	}
	return SeverityWarning
}

// stateType returns what the schema of the state says of a key.
func (v *validator) stateType(key string) expr.Type {
	if k := v.g.Schema.Key(key); k != nil {
		return expr.TypeOf(k.Shape)
	}
	return expr.Type{}
}

// typesAfter returns what is known of the state after the work of n.
func (v *validator) typesAfter(n *Node) expr.Types {
	return func(key string) (expr.Type, bool) { return v.keyType(n, key) }
}

// typesWith returns what is known of the state that n finds, with one more key in front.
func (v *validator) typesWith(n *Node, key string, t expr.Type) expr.Types {
	after := v.typesAfter(n)
	return func(k string) (expr.Type, bool) {
		if k == key {
			return t, true
		}
		return after(k)
	}
}

// conditions ranges over the conditions of a map, each with the key that is there besides the state.
func (m *Map) conditions(yield func(path string, c mapCondition) bool) {
	if m.ItemIf != nil && !yield("item_if", mapCondition{m.ItemIf, m.As}) {
		return
	}
	if m.Enough != nil {
		yield("enough", mapCondition{m.Enough, ResultsKey})
	}
}

type mapCondition struct {
	expr *expr.Expr
	key  string
}

// overType returns what is known of what a map goes over.
func (v *validator) overType(n *Node) expr.Type {
	hole, ok := n.Map.Over.single()
	if !ok || len(hole.path) == 0 {
		return expr.Type{}
	}
	t := v.stateType(hole.path[0].name)
	for _, s := range hole.path[1:] {
		t, _ = member(t, s)
	}
	return t
}

// itemType returns what is known of an item of a map.
func (v *validator) itemType(n *Node) expr.Type {
	t := v.overType(n)
	switch {
	case t.Kinds&^expr.Null == expr.Object:
		return expr.Type{Kinds: expr.Object, Closed: true, Members: map[string]expr.Type{"key": {Kinds: expr.Text}, "value": {}}}
	case t.Kinds&^expr.Null == expr.List && t.Items != nil:
		return *t.Items
	}
	return expr.Type{}
}

// over reports a map over what is never a list or an object.
func (v *validator) over(n *Node) {
	if kinds := v.overType(n).Kinds; kinds != 0 && kinds&(expr.List|expr.Object) == 0 {
		v.err(RuleItems, n, "over", "", "over: %s is %s, and neither a list nor an object, so the map always fails", n.Map.Over.Source, kinds)
	}
}

// member returns what is known of what one step of a path leads to; known is false if nothing is.
func member(t expr.Type, s step) (of expr.Type, known bool) {
	if s.isIndex {
		if t.Items == nil {
			return of, false
		}
		return *t.Items, true
	}
	of, known = t.Members[s.name]
	return of, known
}

// readType returns what is known of a key that a template of n reads.
func (v *validator) readType(n *Node, use use, key string) expr.Type {
	switch maps := v.branchOf[n.ID]; {
	case key == use.scoped && key != "":
		return resultType(n)
	case len(maps) == 1 && maps[0].Map.As == key && maps[0].Map.Batch == 0:
		return v.itemType(maps[0])
	case slices.ContainsFunc(maps, func(m *Node) bool { return m.Map.As == key }):
		return expr.Type{}
	}
	return v.stateType(key)
}

// resultType returns what is known of the result of n that its state_updates see.
func resultType(n *Node) expr.Type {
	if s := outputSchema(n); s != nil {
		t := expr.TypeOf(*s)
		if n.Type == LLMNode && t.Kinds != 0 {
			t.Kinds |= expr.Text // of a failure
			t.Enum = nil
		}
		return t
	}
	switch n.Type {
	case LLMNode, AgentNode, ApprovalNode, InputNode:
		return expr.Type{Kinds: expr.Text}
	case RAGNode:
		return expr.Type{Kinds: expr.Object, Closed: true, Members: map[string]expr.Type{"context": {Kinds: expr.Text}, "sources": {Kinds: expr.List}}}
	}
	return expr.Type{}
}

// members reports placeholders of members that a schema excludes, or that are not in it and look like one that is.
func (v *validator) members(n *Node) {
	for _, use := range templatesOf(n) {
		for _, p := range use.template.parts {
			if len(p.path) > 1 {
				v.path(n, use, p)
			}
		}
	}
}

func (v *validator) path(n *Node, use use, p part) {
	t := v.readType(n, use, p.path[0].name)
	severity := SeverityError
	if p.path[0].name == use.scoped {
		severity = SeverityWarning // a failed node has a text as its result
	}
	report := func(severity Severity, hint, what string, args ...any) {
		v.add(severity, RuleUnknownMember, n, use.path, hint, fmt.Sprintf("{{%s}}: ", p.text)+fmt.Sprintf(what, args...))
	}
	at := p.path[0].name
	for _, s := range p.path[1:] {
		want, name := expr.Object, s.name
		if s.isIndex {
			want, name = expr.List, fmt.Sprint(s.index)
		}
		if kinds := t.Kinds &^ expr.Null; t.Kinds != 0 && kinds&want == 0 {
			report(severity, "", "%s is %s, and has no %s, so %s", at, t.Kinds, map[bool]string{true: "element " + name, false: "member " + name}[s.isIndex], use.effect())
			return
		}
		of, known := member(t, s)
		if !known && !s.isIndex {
			names := slices.Sorted(maps.Keys(t.Members))
			hint := didYouMean(name, names)
			switch {
			case t.Closed:
				report(severity, yamldoc.OneOf(name, names), "%s has no member %q, so %s", at, name, use.effect())
			case hint != "":
				report(SeverityWarning, hint, "the schema of %s has no member %q", at, name)
			}
		}
		if !known {
			return
		}
		t, at = of, name
	}
}

// stateWrites reports writes that never fit the schema of the state.
func (v *validator) stateWrites() {
	if v.g.Schema == nil {
		return
	}
	for _, n := range v.g.Nodes {
		if len(v.branchOf[n.ID]) > 0 {
			continue // a branch writes to a state of its own
		}
		for name, shape := range properties(n).All() {
			if !n.updates(name) {
				v.write(n, "output_schema.properties."+name, name, expr.TypeOf(shape), "the output_schema gives")
			}
		}
		for _, u := range n.Updates {
			if u.Key != scopedKeys[n.Type] {
				v.update(n, u)
			}
		}
		if n.Map != nil {
			v.write(n, "collect_into", n.Map.CollectInto, expr.Type{Kinds: expr.List}, "a map collects")
		}
	}
}

// update reports an entry of state_updates that never fits.
func (v *validator) update(n *Node, u Update) {
	path, k := "state_updates."+u.Key, v.g.Schema.Key(u.Key)
	hole, one := u.Template.single()
	switch {
	case one && len(hole.path) > 0:
		t := v.readType(n, use{scoped: scopedKeys[n.Type]}, hole.path[0].name)
		for _, s := range hole.path[1:] {
			t, _ = member(t, s)
		}
		if t.Kinds != 0 && (len(hole.path) > 1 || hole.path[0].name != scopedKeys[n.Type]) {
			t = t.Or(expr.Type{Kinds: expr.Text, Enum: []value.Value{value.Of("")}}) // what is missing is the empty text
		}
		if n.Approval == nil || len(hole.path) > 1 || hole.path[0].name != scopedKeys[n.Type] || !v.options(n, u.Key) {
			v.write(n, path, u.Key, t, u.Template.Source+" is")
		}
	case len(u.Template.Roots()) > 0:
		v.write(n, path, u.Key, expr.Type{Kinds: expr.Text}, "a template of more than one placeholder is")
	case k != nil && v.g.Reducers[u.Key] == "":
		constant := value.Of(u.Template.Source)
		if found := k.form.Validate(constant); len(found) > 0 {
			v.err(RuleStateType, n, path, "", "%q never fits the schema of the state: %s", u.Key, k.describe(constant, found))
		}
	default:
		v.write(n, path, u.Key, expr.Type{Kinds: expr.Text}, "a text without placeholders is")
	}
}

// options reports the options of an approval that the key to which the answer is written does not take. It returns false without looking
// at them if the key takes no text at all, or has a reducer.
func (v *validator) options(n *Node, key string) bool {
	k := v.g.Schema.Key(key)
	if k == nil || !(expr.Type{Kinds: expr.Text}).Overlaps(expr.Type{Kinds: expr.TypeOf(k.Shape).Kinds}) || v.g.Reducers[key] != "" && v.g.Reducers[key] != ReduceOverwrite {
		return false
	}
	for i, option := range n.Approval.Options {
		answer := value.Of(option)
		if found := k.form.Validate(answer); len(found) > 0 {
			v.err(RuleStateType, n, fmt.Sprintf("options[%d]", i), "write the option as the schema has it, or add it there",
				"state_updates write the answer to %q, whose schema the option %q does not fit: %s", key, option, k.describe(answer, found))
		}
	}
	return true
}

// write reports a value of type t that never fits a key.
func (v *validator) write(n *Node, path, key string, t expr.Type, what string) {
	k := v.g.Schema.Key(key)
	if k == nil {
		if v.g.Schema.Strict && !isOwnKey(key) {
			v.err(RuleUnknownStateKey, n, path, didYouMean(key, v.g.Schema.names()), "%q is written, but state declares no such key, and strict_state is true", key)
		}
		return
	}
	want := expr.TypeOf(k.Shape)
	switch reducer := v.g.Reducers[key]; reducer {
	case "", ReduceOverwrite:
	case ReduceAppend: // an element
		if want.Items == nil {
			return
		}
		want = *want.Items
	default:
		want = expr.Type{Kinds: want.Kinds}
	}
	if t.Overlaps(want) {
		return
	}
	if t.Kinds&want.Kinds == 0 && want.Kinds != 0 {
		v.err(RuleStateType, n, path, "", "%q never fits the schema of the state: it must be %s, and %s %s", key, want.Kinds, what, t.Kinds)
		return
	}
	v.err(RuleStateType, n, path, "", "%q never fits the schema of the state: %s none of the values that it may have", key, what)
}

// updates reports whether the state_updates of n write a key.
func (n *Node) updates(key string) bool {
	return slices.ContainsFunc(n.Updates, func(u Update) bool { return u.Key == key })
}
