package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"loki/internal/base/value"
)

// Lookup finds keys of the state.
type Lookup interface {
	Get(key string) (v value.Value, ok bool)
}

// Env is what an evaluation may know besides the state. In the zero Env there is no time, and now_is_past comes to null.
type Env struct{ Now time.Time }

// Eval returns what the expression comes to.
func (e *Expr) Eval(state Lookup) value.Value { return e.EvalWith(state, Env{}) }

// EvalWith is [Expr.Eval] in an environment.
func (e *Expr) EvalWith(state Lookup, env Env) value.Value {
	x := evaluation{state: state, env: env}
	return x.result(e.root)
}

// Bool returns what a condition comes to. The error says why it is neither true nor false.
func (e *Expr) Bool(state Lookup) (bool, error) { return e.BoolWith(state, Env{}) }

// BoolWith is [Expr.Bool] in an environment.
func (e *Expr) BoolWith(state Lookup, env Env) (bool, error) {
	x := evaluation{state: state, env: env}
	v := x.result(e.root)
	if b, ok := v.AsBool(); ok {
		return b, nil
	}
	switch {
	case x.work > MaxWork:
		return false, fmt.Errorf("the condition %s takes too long: what it looks at is too large", e.Source)
	case v.IsNull() && x.missing != "":
		return false, fmt.Errorf("the condition %s comes to null, neither true nor false: the state has no %q (for a default, write %s ?? false)", e.Source, x.missing, x.missing)
	}
	return false, fmt.Errorf("the condition %s comes to a value of type %s, neither true nor false", e.Source, v.Kind())
}

// evaluation is an expression being evaluated.
type evaluation struct {
	state   Lookup
	env     Env
	work    int    // once it is over MaxWork, everything comes to null
	missing string // the first key that the state did not have
}

// charge counts work, and reports whether it is too much.
func (x *evaluation) charge(work int) bool {
	x.work += work
	return x.work > MaxWork
}

// text returns the text that v is, and counts the work of going through it.
func (x *evaluation) text(v value.Value) (s string, ok bool) {
	s, ok = v.AsString()
	return s, ok && !x.charge(len(s)/64)
}

var null value.Value

func (x *evaluation) result(n *node) value.Value {
	v := x.eval(n)
	if x.work > MaxWork {
		return null
	}
	return v
}

func (x *evaluation) eval(n *node) value.Value {
	if x.charge(1) {
		return null
	}
	switch n.op {
	case opLiteral:
		return n.value
	case opKey:
		v, ok := x.state.Get(n.text)
		if !ok && x.missing == "" {
			x.missing = n.text
		}
		return v
	case opList, opCall:
		args := make([]value.Value, len(n.kids))
		for i, kid := range n.kids {
			args[i] = x.eval(kid)
		}
		if n.op == opCall {
			return n.call.call(x, args)
		}
		return value.ListOf(args...).Value()
	}
	left := x.eval(n.kids[0])
	truth, isBool := left.AsBool()
	switch n.op {
	case opMember:
		v, _ := left.AsObject().Get(n.text)
		return v
	case opNot:
		if !isBool {
			return null
		}
		return value.Of(!truth)
	case opNegate:
		return negative(left)
	case "??":
		if left.IsNull() {
			return x.eval(n.kids[1])
		}
		return left
	case "&&", "||":
		return x.logic(left, n.op == "||", n.kids[1])
	case opCondition:
		switch {
		case !isBool:
			return null
		case truth:
			return x.eval(n.kids[1])
		}
		return x.eval(n.kids[2])
	}
	return x.binary(n, left, x.eval(n.kids[1]))
}

// logic returns the result of && or ||, which is decides if one side is.
func (x *evaluation) logic(left value.Value, decides bool, other *node) value.Value {
	a, aOK := left.AsBool()
	if aOK && a == decides {
		return left
	}
	right := x.eval(other)
	if b, ok := right.AsBool(); aOK && ok || ok && b == decides {
		return right
	}
	return null
}

// binary returns the result of an operator that needs both operands.
func (x *evaluation) binary(n *node, left, right value.Value) value.Value {
	switch n.op {
	case opIndex:
		return element(left, right)
	case "==", "!=":
		return value.Of(x.equal(left, right) == (n.op == "=="))
	case "in":
		return value.Of(x.contains(right, left))
	case "contains":
		return value.Of(x.contains(left, right))
	case "matches":
		return value.Of(x.matches(n.pattern, left, right))
	case "+":
		if s, ok := x.text(left); ok {
			if t, ok := x.text(right); ok {
				return value.Of(s + t)
			}
		}
	}
	if c, ok := x.compare(left, right); binaries[n.op] == precCompare {
		return value.Of(ok && (c < 0 && n.op[0] == '<' || c > 0 && n.op[0] == '>' || c == 0 && len(n.op) == 2))
	}
	return calculate(n.op, left, right)
}

// element returns a member of an object, or an element of a list, from the end if the index is negative.
func element(of, index value.Value) value.Value {
	if name, ok := index.AsString(); ok {
		v, _ := of.AsObject().Get(name)
		return v
	}
	list, _ := of.AsList()
	i, ok := index.AsInt()
	if i < 0 {
		i += int64(list.Len())
	}
	if !ok || i < 0 || i >= int64(list.Len()) {
		return null
	}
	return list.At(int(i))
}

// equal compares any two values, numbers by value.
func (x *evaluation) equal(a, b value.Value) bool {
	switch {
	case x.charge(1):
		return false
	case isNumber(a) && isNumber(b):
		return compareNumbers(a, b) == 0
	case a.Kind() != b.Kind():
		return false
	}
	switch a.Kind() {
	case value.ListKind:
		l, _ := a.AsList()
		m, _ := b.AsList()
		same := l.Len() == m.Len()
		for i := 0; same && i < l.Len(); i++ {
			same = x.equal(l.At(i), m.At(i))
		}
		return same
	case value.ObjectKind:
		o, p := a.AsObject(), b.AsObject()
		same := o.Len() == p.Len()
		for name, v := range o.All() {
			w, ok := p.Get(name)
			if same = same && ok && x.equal(v, w); !same {
				break
			}
		}
		return same
	}
	x.text(a)
	return value.Equal(a, b)
}

// compare orders two numbers or two texts; ok is false for other values.
func (x *evaluation) compare(a, b value.Value) (c int, ok bool) {
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b), true
	}
	s, isText := x.text(a)
	t, bothText := b.AsString()
	return strings.Compare(s, t), isText && bothText
}

// contains reports whether a list has an element, an object a member of that name, or a text a part.
func (x *evaluation) contains(whole, part value.Value) bool {
	list, _ := whole.AsList()
	for _, v := range list.All() {
		if x.charge(1) || x.equal(v, part) {
			return true // if it is too much work, the result does not matter
		}
	}
	name, isText := part.AsString()
	if s, ok := x.text(whole); ok {
		return isText && strings.Contains(s, name)
	}
	_, has := whole.AsObject().Get(name)
	return isText && has
}

// pattern is a regular expression with the number of instructions that it was compiled to.
type pattern struct {
	*regexp.Regexp
	size int
}

func compile(source string) (*pattern, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(source)
	return &pattern{re, len(program.Inst)}, err
}

// matches reports whether p, or else the pattern in source, matches anywhere in a text. What is not a pattern matches nothing.
func (x *evaluation) matches(p *pattern, in, source value.Value) bool {
	s, isText := in.AsString()
	t, ok := source.AsString()
	if !isText || !ok || len(t) > MaxSource {
		return false
	}
	if p == nil {
		var err error
		if p, err = compile(t); err != nil || x.charge(p.size) {
			return false
		}
	}
	return !x.charge(len(s)*p.size/16) && p.MatchString(s)
}
