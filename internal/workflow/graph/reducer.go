package graph

import (
	"fmt"
	"math"

	"loki/internal/base/value"
	"loki/internal/workflow/graph/expr"
)

// Reducer names a way to combine the current value of a state key with an incoming
// one.
type Reducer string

// The reducers.
const (
	ReduceAppend    Reducer = "append"    // add incoming to a list as one element
	ReduceExtend    Reducer = "extend"    // concatenate two lists
	ReduceConcat    Reducer = "concat"    // join two strings by a line feed
	ReduceSum       Reducer = "sum"       // add two numbers
	ReduceMax       Reducer = "max"       // the larger number
	ReduceMin       Reducer = "min"       // the smaller number
	ReduceMerge     Reducer = "merge"     // shallow union of two objects, incoming wins
	ReduceOverwrite Reducer = "overwrite" // incoming
)

// ReducerNames lists the reducers in the order in which messages show them.
var ReducerNames = [...]Reducer{ReduceAppend, ReduceExtend, ReduceConcat, ReduceSum, ReduceMax, ReduceMin, ReduceMerge, ReduceOverwrite}

// adds reports whether r, applied again to the same incoming value, gives another result.
func (r Reducer) adds() bool {
	switch r {
	case ReduceAppend, ReduceExtend, ReduceConcat, ReduceSum:
		return true
	}
	return false
}

// operands are the values that reducers combine, and what messages call them.
var operands = map[Reducer]struct {
	kind expr.Kinds
	name string
}{
	ReduceAppend: {expr.List, "an array"},
	ReduceExtend: {expr.List, "an array"},
	ReduceConcat: {expr.Text, "a string"},
	ReduceSum:    {expr.Number, "a number"},
	ReduceMax:    {expr.Number, "a number"},
	ReduceMin:    {expr.Number, "a number"},
	ReduceMerge:  {expr.Object, "an object"},
}

// Reduce combines current, which exists only if present is true, with incoming. A
// null is a value, and of the wrong type for every reducer but overwrite and, as an
// incoming element, append. The error names the reducer, the side and the type.
//
// Numbers are added and compared as 64-bit floats. A result without a fraction that
// fits an int64 becomes an integer; one that is not finite becomes null.
func (r Reducer) Reduce(current value.Value, present bool, incoming value.Value) (value.Value, error) {
	operand, known := operands[r]
	wrong := func(side string, v value.Value) error {
		return fmt.Errorf("reducer %q needs %s as %s value, got %s", string(r), operand.name, side, v.Kind())
	}
	switch {
	case r == ReduceOverwrite:
		return incoming, nil
	case !known:
		return value.Value{}, fmt.Errorf("unknown reducer %q", string(r))
	case present && expr.KindOf(current) != operand.kind:
		return value.Value{}, wrong("current", current)
	case r == ReduceAppend && !present:
		return value.ListOf(incoming).Value(), nil
	case r != ReduceAppend && expr.KindOf(incoming) != operand.kind:
		return value.Value{}, wrong("incoming", incoming)
	case !present && operand.kind == expr.Number:
		number, _ := incoming.AsFloat()
		return normalNumber(number), nil
	case !present:
		return incoming, nil
	}
	return r.combine(current, incoming), nil
}

// combine is Reduce for two values of the right types.
func (r Reducer) combine(current, incoming value.Value) value.Value {
	list, _ := current.AsList()
	text, _ := current.AsString()
	a, _ := current.AsFloat()
	b, _ := incoming.AsFloat()
	switch r {
	case ReduceAppend:
		return list.Append(incoming).Value()
	case ReduceExtend:
		more, _ := incoming.AsList()
		return list.Extend(more).Value()
	case ReduceMerge:
		return current.AsObject().Merge(incoming.AsObject()).Value()
	case ReduceConcat:
		if text == "" {
			return incoming
		}
		return value.Of(text + "\n" + incoming.Text())
	case ReduceMax:
		return normalNumber(max(a, b))
	case ReduceMin:
		return normalNumber(min(a, b))
	}
	return normalNumber(a + b)
}

func normalNumber(f float64) value.Value {
	// 1<<63 itself does not fit an int64.
	if f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63 {
		return value.Of(int64(f))
	}
	return value.Of(f)
}
