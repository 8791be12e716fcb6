package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Types returns what is known of a key of the state; defined is false if nothing can write it.
type Types func(key string) (t Type, defined bool)

// Problem is something that an expression cannot mean.
type Problem struct {
	Offset    int // bytes of the source before the place
	Msg, Hint string
	Fails     bool   // the result is never of a wanted type
	Undefined string // the key, if it is about one that nothing can write
}

// Check returns what is wrong with an expression whose result must be of one of the wanted types: operators and functions of
// wrong types, comparisons that can never hold, keys and members that cannot be there. A nil types knows nothing.
func (e *Expr) Check(types Types, want Kinds) []Problem {
	c := &checker{types: types}
	if t := c.infer(e.root); t.Kinds != 0 && t.Kinds&want == 0 {
		c.report(0, "", "the result is %s, and must be %s", t.Kinds, want)
		c.problems[len(c.problems)-1].Fails = true
	}
	return c.problems
}

type checker struct {
	types    Types
	problems []Problem
}

func (c *checker) report(at int, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Offset: at, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// infer returns what is known of the result of n.
func (c *checker) infer(n *node) Type {
	kids := make([]Type, len(n.kids))
	for i, kid := range n.kids {
		kids[i] = c.infer(kid)
	}
	switch n.op {
	case opLiteral:
		return Type{Kinds: KindOf(n.value), Enum: []value.Value{n.value}}
	case opKey:
		if c.types == nil {
			return Type{}
		}
		t, defined := c.types(n.text)
		if !defined {
			c.report(n.at, "", "nothing writes %q, so it is always null", n.text)
			c.problems[len(c.problems)-1].Undefined = n.text
			return Type{}
		}
		return t.orNull()
	case opList:
		return Type{Kinds: List, Items: union(kids)}
	case opMember:
		return c.member(n, kids[0], n.text)
	case opIndex:
		if name, ok := n.kids[1].value.AsString(); ok {
			return c.member(n, kids[0], name)
		}
		c.expect(n, kids[0], List|Object)
		if kids[0].Items != nil {
			return kids[0].Items.orNull()
		}
		return Type{}
	case opCall:
		c.expect(n, kids[0], n.call.takes)
		return Type{Kinds: n.call.gives}
	case opCondition:
		c.expect(n, kids[0], Bool)
		return *union(kids[1:])
	case "??":
		kids[0].Kinds &^= Null
		return *union(kids)
	case opNot, "&&", "||":
		for _, t := range kids {
			c.expect(n, t, Bool)
		}
		return Type{Kinds: Bool}
	case opNegate, "*", "/", "%", "-", "+":
		takes := Number
		if n.op == "+" {
			takes |= Text
		}
		for _, t := range kids {
			c.expect(n, t, takes)
		}
		return Type{Kinds: takes}
	}
	c.compare(n, kids[0], kids[1])
	return Type{Kinds: Bool}
}

// expect reports an operand that is never of one of the types.
func (c *checker) expect(n *node, t Type, want Kinds) {
	if t.Kinds != 0 && t.Kinds&want == 0 {
		name := n.op
		if n.op == opCall {
			name = n.text
		}
		c.report(n.at, "", "%s takes %s, and finds %s", strings.NewReplacer(opNegate, "-", opIndex, "[]").Replace(name), want, t.Kinds)
	}
}

func (c *checker) member(n *node, of Type, name string) Type {
	c.expect(n, of, Object)
	t, ok := of.Members[name]
	if ok {
		return t.orNull()
	}
	if of.Closed && of.Kinds&^Null == Object {
		names := slices.Sorted(maps.Keys(of.Members))
		c.report(n.at, yamldoc.OneOf(name, names), "the object has no member %q", name)
	}
	return Type{}
}

// compare reports comparisons that come to the same whatever the state is.
func (c *checker) compare(n *node, a, b Type) {
	switch n.op {
	case "<", "<=", ">", ">=":
		c.expect(n, a, Number|Text)
		c.expect(n, b, Number|Text)
	case "matches":
		c.expect(n, a, Text)
		c.expect(n, b, Text)
		return
	case "contains", "in":
		if n.op == "in" {
			a, b = b, a
		}
		c.expect(n, a, List|Object|Text)
		switch {
		case a.Kinds&^Null != List:
			c.expect(n, b, Text)
			return
		case a.Items == nil:
			return
		}
		a = *a.Items
	}
	result := map[bool]string{true: "true", false: "false"}[n.op == "!="]
	switch {
	case a.Kinds == 0 || b.Kinds == 0:
	case a.Kinds&b.Kinds == 0:
		c.report(n.at, "", "this is always %s: %s is compared with %s", result, a.Kinds&^Null, b.Kinds&^Null)
	case a.Enum != nil && b.Enum != nil && !slices.ContainsFunc(a.Enum, func(v value.Value) bool { return in(b.Enum, v) }) && binaries[n.op] == precCompare && !strings.ContainsAny(n.op, "<>"):
		some, words := a.Enum, texts(b.Enum)
		if len(a.Enum) > len(b.Enum) {
			some, words = b.Enum, texts(a.Enum)
		}
		c.report(n.at, yamldoc.OneOf(some[0].Text(), words), "this is always %s: the value is never %s", result, some[0])
	}
}

func in(list []value.Value, v value.Value) bool {
	return (&evaluation{}).contains(value.ListOf(list...).Value(), v)
}

func texts(list []value.Value) (words []string) {
	for _, v := range list {
		if !v.IsNull() {
			words = append(words, v.Text())
		}
	}
	return words
}
