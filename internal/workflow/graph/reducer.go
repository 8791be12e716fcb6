package graph

import (
	"fmt"
	"math"

	"loki/internal/base/value"
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

// Reduce combines current, which exists only if present is true, with incoming. A
// null is a value, and of the wrong type for every reducer but overwrite and, as an
// incoming element, append. The error names the reducer, the side and the type.
//
// Numbers are added and compared as 64-bit floats. A result without a fraction that
// fits an int64 becomes an integer; one that is not finite becomes null.
func (r Reducer) Reduce(current value.Value, present bool, incoming value.Value) (value.Value, error) {
	switch r {
	case ReduceOverwrite:
		return incoming, nil
	case ReduceAppend:
		list, err := r.list("current", current, present)
		if err != nil {
			return value.Value{}, err
		}
		return list.Append(incoming).Value(), nil
	case ReduceExtend:
		list, err := r.list("current", current, present)
		if err != nil {
			return value.Value{}, err
		}
		more, err := r.list("incoming", incoming, true)
		if err != nil {
			return value.Value{}, err
		}
		if !present {
			return incoming, nil
		}
		return list.Extend(more).Value(), nil
	case ReduceConcat:
		return r.concat(current, present, incoming)
	case ReduceSum, ReduceMax, ReduceMin:
		return r.number(current, present, incoming)
	case ReduceMerge:
		if present && current.Kind() != value.ObjectKind {
			return value.Value{}, r.mismatch("current", current, "an object")
		}
		if incoming.Kind() != value.ObjectKind {
			return value.Value{}, r.mismatch("incoming", incoming, "an object")
		}
		if !present {
			return incoming, nil
		}
		return current.AsObject().Merge(incoming.AsObject()).Value(), nil
	}
	return value.Value{}, fmt.Errorf("unknown reducer %q", string(r))
}

func (r Reducer) mismatch(side string, v value.Value, want string) error {
	return fmt.Errorf("reducer %q needs %s as %s value, got %s", string(r), want, side, v.Kind())
}

func (r Reducer) list(side string, v value.Value, present bool) (value.List, error) {
	if !present {
		return value.List{}, nil
	}
	list, ok := v.AsList()
	if !ok {
		return value.List{}, r.mismatch(side, v, "an array")
	}
	return list, nil
}

func (r Reducer) concat(current value.Value, present bool, incoming value.Value) (value.Value, error) {
	more, ok := incoming.AsString()
	if !ok {
		return value.Value{}, r.mismatch("incoming", incoming, "a string")
	}
	if !present {
		return incoming, nil
	}
	text, ok := current.AsString()
	if !ok {
		return value.Value{}, r.mismatch("current", current, "a string")
	}
	if text == "" {
		return incoming, nil
	}
	return value.Of(text + "\n" + more), nil
}

func (r Reducer) number(current value.Value, present bool, incoming value.Value) (value.Value, error) {
	in, ok := incoming.AsFloat()
	if !ok {
		return value.Value{}, r.mismatch("incoming", incoming, "a number")
	}
	if !present {
		return normalNumber(in), nil
	}
	cur, ok := current.AsFloat()
	if !ok {
		return value.Value{}, r.mismatch("current", current, "a number")
	}
	switch r {
	case ReduceSum:
		return normalNumber(cur + in), nil
	case ReduceMax:
		return normalNumber(max(cur, in)), nil
	default:
		return normalNumber(min(cur, in)), nil
	}
}

func normalNumber(f float64) value.Value {
	// 1<<63 itself does not fit an int64.
	if f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63 {
		return value.Of(int64(f))
	}
	return value.Of(f)
}
