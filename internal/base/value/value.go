// Package value holds immutable JSON values.
//
// A [Value] is null, a bool, a number, a string, a list or an object. Integers and
// floats are different: 1 and 1.0 are unequal and print differently. Objects keep
// the order in which their members were first seen; the order does not matter for
// equality. Nothing reachable from a Value ever changes, so values may be shared
// freely between goroutines and between the states of a graph run, and copying one
// is free.
package value

import (
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
)

// Kind is the JSON type of a [Value].
type Kind uint8

// The kinds. Integers and floats are both JSON numbers.
const (
	Null Kind = iota
	Bool
	Int   // fits int64
	Uint  // larger than the largest int64
	Float // never NaN or infinite
	String
	ListKind
	ObjectKind
)

// String returns the JSON type name: null, bool, number, string, array or object.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "bool"
	case Int, Uint, Float:
		return "number"
	case String:
		return "string"
	case ListKind:
		return "array"
	default:
		return "object"
	}
}

// Value is one immutable JSON value. The zero Value is null.
type Value struct {
	// v is nil, bool, int64, uint64 above MaxInt64, float64, string, List or *Object.
	v any
}

// Of returns the Value of a Go scalar.
func Of[T bool | int | int64 | uint64 | float64 | string](x T) Value {
	switch x := any(x).(type) {
	case int:
		return Value{int64(x)}
	case uint64:
		if x <= math.MaxInt64 {
			return Value{int64(x)}
		}
		return Value{x}
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Value{} // JSON has no such numbers
		}
		return Value{x}
	default:
		return Value{x}
	}
}

// Kind returns the type of v.
func (v Value) Kind() Kind {
	switch v.v.(type) {
	case nil:
		return Null
	case bool:
		return Bool
	case int64:
		return Int
	case uint64:
		return Uint
	case float64:
		return Float
	case string:
		return String
	case List:
		return ListKind
	default:
		return ObjectKind
	}
}

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.v == nil }

// AsBool returns the bool v holds; ok is false if v is something else.
func (v Value) AsBool() (b, ok bool) { b, ok = v.v.(bool); return }

// AsInt returns the integer v holds; ok is false if v is something else.
func (v Value) AsInt() (n int64, ok bool) { n, ok = v.v.(int64); return }

// AsString returns the string v holds; ok is false if v is something else.
func (v Value) AsString() (s string, ok bool) { s, ok = v.v.(string); return }

// AsList returns the list v holds; ok is false if v is something else.
func (v Value) AsList() (l List, ok bool) { l, ok = v.v.(List); return }

// AsObject returns the object v holds, nil if v is something else.
func (v Value) AsObject() *Object { o, _ := v.v.(*Object); return o }

// AsFloat returns the number v holds as a float, rounded if it must be; ok is false
// if v is not a number.
func (v Value) AsFloat() (f float64, ok bool) {
	switch x := v.v.(type) {
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

// Equal reports whether a and b are the same JSON value: lists by order, objects by
// members. An integer never equals a float.
func Equal(a, b Value) bool {
	switch x := a.v.(type) {
	case List:
		y, ok := b.v.(List)
		return ok && x.equal(y)
	case *Object:
		y, ok := b.v.(*Object)
		return ok && x.equal(y)
	default:
		switch b.v.(type) {
		case List, *Object:
			return false
		}
		return a.v == b.v
	}
}

// List is an immutable list of values. The zero List is empty.
type List struct {
	items []Value
	// tail is shared by all lists over one backing array and holds how many of its
	// elements are taken. The list that ends there may grow in place; see Append.
	tail *atomic.Int64
}

// ListOf returns a list of items, which it copies.
func ListOf(items ...Value) List { return adopt(slices.Clone(items)) }

// adopt makes a list of items, which the caller must not keep.
func adopt(items []Value) List { return List{items: items} }

// Value returns l as a Value.
func (l List) Value() Value { return Value{l} }

// Len returns the number of elements.
func (l List) Len() int { return len(l.items) }

// At returns element i; it panics if i is out of range.
func (l List) At(i int) Value { return l.items[i] }

// All ranges over the elements.
func (l List) All() iter.Seq2[int, Value] { return slices.All(l.items) }

// From returns the elements from i on as a list that shares l's memory.
func (l List) From(i int) List { return List{items: l.items[i:len(l.items):len(l.items)]} }

// Append returns a list of l's elements followed by items. Growing the newest
// version of a list step by step costs amortized constant time for each element,
// as with Go slices: the first call that extends the end of the shared backing array
// uses it, later ones get a copy. l is unchanged.
func (l List) Append(items ...Value) List {
	n := int64(len(l.items))
	if l.tail != nil && cap(l.items)-len(l.items) >= len(items) && l.tail.CompareAndSwap(n, n+int64(len(items))) {
		return List{items: append(l.items, items...), tail: l.tail}
	}
	grown := make([]Value, len(l.items), max(2*len(l.items), len(l.items)+len(items), 4))
	copy(grown, l.items)
	grown = append(grown, items...)
	tail := new(atomic.Int64)
	tail.Store(int64(len(grown)))
	return List{items: grown, tail: tail}
}

// Extend returns a list of l's elements followed by m's; see [List.Append].
func (l List) Extend(m List) List { return l.Append(m.items...) }

func (l List) equal(m List) bool {
	if len(l.items) != len(m.items) {
		return false
	}
	if len(l.items) == 0 || &l.items[0] == &m.items[0] {
		return true
	}
	return slices.EqualFunc(l.items, m.items, Equal)
}

// Member is a name and value of an [Object].
type Member struct {
	Name  string
	Value Value
}

// Object is an immutable JSON object. A nil *Object is empty.
type Object struct {
	members []Member
	index   map[string]int // nil for small objects, which are searched
}

// indexFrom is the number of members from which an object has an index.
const indexFrom = 12

// ObjectOf returns an object of members. Of members with the same name the last
// value counts, at the place of the first.
func ObjectOf(members ...Member) *Object { return adoptObject(slices.Clone(members)) }

// adoptObject makes an object of members, which the caller must not keep.
func adoptObject(members []Member) *Object {
	o := &Object{members: members}
	if len(members) < indexFrom {
		for i := 1; i < len(o.members); i++ {
			if j := slices.IndexFunc(o.members[:i], func(m Member) bool { return m.Name == o.members[i].Name }); j >= 0 {
				o.members[j].Value = o.members[i].Value
				o.members = slices.Delete(o.members, i, i+1)
				i--
			}
		}
		return o
	}
	o.index = make(map[string]int, len(members))
	kept := members[:0]
	for _, m := range members {
		if i, ok := o.index[m.Name]; ok {
			kept[i].Value = m.Value
			continue
		}
		o.index[m.Name] = len(kept)
		kept = append(kept, m)
	}
	o.members = kept
	return o
}

// Value returns o as a Value; a nil o is an empty object.
func (o *Object) Value() Value {
	if o == nil {
		o = &Object{}
	}
	return Value{o}
}

// Len returns the number of members.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.members)
}

// All ranges over the members in order.
func (o *Object) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if o == nil {
			return
		}
		for _, m := range o.members {
			if !yield(m.Name, m.Value) {
				return
			}
		}
	}
}

// Get returns the value of the member called name; ok is false if there is none.
func (o *Object) Get(name string) (v Value, ok bool) {
	if o == nil {
		return Value{}, false
	}
	if o.index != nil {
		i, ok := o.index[name]
		if !ok {
			return Value{}, false
		}
		return o.members[i].Value, true
	}
	for i := range o.members {
		if o.members[i].Name == name {
			return o.members[i].Value, true
		}
	}
	return Value{}, false
}

// Merge returns the shallow union of o and p: p's values win, members of o keep
// their place and new ones follow. Neither is changed.
func (o *Object) Merge(p *Object) *Object {
	members := make([]Member, 0, o.Len()+p.Len())
	for n, v := range o.All() {
		members = append(members, Member{n, v})
	}
	for n, v := range p.All() {
		members = append(members, Member{n, v})
	}
	return adoptObject(members)
}

// Without returns o without the member called name.
func (o *Object) Without(name string) *Object {
	if _, ok := o.Get(name); !ok {
		return o
	}
	members := make([]Member, 0, o.Len())
	for n, v := range o.All() {
		if n != name {
			members = append(members, Member{n, v})
		}
	}
	return adoptObject(members)
}

func (o *Object) equal(p *Object) bool {
	if o == p {
		return true
	}
	if o.Len() != p.Len() {
		return false
	}
	for n, v := range o.All() {
		w, ok := p.Get(n)
		if !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}

// Text renders v for people and prompts: a string as it is, a number in digits,
// true, false and null by name, lists and objects as compact JSON. A float always
// shows that it is one.
func (v Value) Text() string {
	if s, ok := v.v.(string); ok {
		return s
	}
	return string(v.AppendJSON(nil))
}

// String returns v as JSON text, for messages and debugging.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// Lines renders v as JSON indented by two spaces a level, members in order.
func (v Value) Lines() string {
	var b strings.Builder
	v.writeLines(&b, "\n")
	return b.String()
}

func (v Value) writeLines(b *strings.Builder, newline string) {
	deeper := newline + "  "
	switch x := v.v.(type) {
	case List:
		if x.Len() == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteByte('[')
		for i, e := range x.All() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(deeper)
			e.writeLines(b, deeper)
		}
		b.WriteString(newline)
		b.WriteByte(']')
	case *Object:
		if x.Len() == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteByte('{')
		for i, m := range x.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(deeper)
			b.Write(appendString(nil, m.Name))
			b.WriteString(": ")
			m.Value.writeLines(b, deeper)
		}
		b.WriteString(newline)
		b.WriteByte('}')
	default:
		b.Write(v.AppendJSON(nil))
	}
}

// OrNull returns a text, or null if it is empty.
func OrNull(text string) Value {
	if text == "" {
		return Value{}
	}
	return Of(text)
}

// Optional returns what p points to, or null if it is nil.
func Optional[T bool | int | float64 | string](p *T) Value {
	if p == nil {
		return Value{}
	}
	return Of(*p)
}
