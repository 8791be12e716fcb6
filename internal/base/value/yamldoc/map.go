package yamldoc

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"loki/internal/base/value"
)

// Map reads the keys of a mapping. Its readers take a key and a destination: they
// store the value and return true, or leave the destination alone and return false
// if the key is absent, null, or of the wrong type, which is reported. A key that
// was asked for is a known key, see [Map.Done].
//
// All methods work on a nil *Map, which has no keys and reports nothing.
type Map struct {
	node  *Node
	known []string

	renamed map[string]string // old keys by the present ones, see Renamed
}

// Node returns the node of the mapping itself; nil for a nil Map.
func (m *Map) Node() *Node {
	if m == nil {
		return nil
	}
	return m.node
}

// Len returns the number of keys.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.node.raw.entries)
}

// All ranges over the entries in document order. All keys count as known.
func (m *Map) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if m == nil {
			return
		}
		m.known = append(m.known, m.node.raw.keysOf()...)
		for _, e := range m.node.entries() {
			if !yield(e) {
				return
			}
		}
	}
}

// Only reports every key that is not among keys as an error.
func (m *Map) Only(keys ...string) {
	for e := range m.All() {
		if !slices.Contains(keys, e.Key) {
			e.Node.KeyErrorf("unknown key %q", e.Key).Hint = OneOf(e.Key, keys)
		}
	}
}

func (m *Map) find(key string) (entry, bool) {
	e, ok := m.lookUp(key)
	if old := ""; !ok && m != nil {
		if old, ok = m.renamed[key]; ok {
			e, ok = m.lookUp(old)
		}
	}
	return e, ok
}

// lookUp returns the entry with precisely this key, which is known from then on.
func (m *Map) lookUp(key string) (entry, bool) {
	if m == nil {
		return entry{}, false
	}
	if !slices.Contains(m.known, key) {
		m.known = append(m.known, key)
	}
	entries := m.node.raw.entries
	if i := slices.IndexFunc(entries, func(e entry) bool { return e.key == key }); i >= 0 {
		return entries[i], true
	}
	return entry{}, false
}

// Has reports whether key is there, even if its value is null.
func (m *Map) Has(key string) bool {
	_, ok := m.find(key)
	return ok
}

// Get returns the value of key, nil if it is absent. A null is a node.
func (m *Map) Get(key string) *Node {
	e, ok := m.find(key)
	if !ok {
		return nil
	}
	return m.node.child(e)
}

// KeyPos returns where key itself stands, the zero Pos if it is absent.
func (m *Map) KeyPos(key string) Pos {
	e, _ := m.find(key)
	return e.pos
}

// present returns the value of key, nil if it is absent or null.
func (m *Map) present(key string) *Node {
	n := m.Get(key)
	if n == nil || n.Kind() == Null {
		return nil
	}
	return n
}

// Require reports each of keys that is absent or null, at the key of the mapping or
// of the null, and returns the problems, so
// that hints can be set.
func (m *Map) Require(keys ...string) []*Problem {
	if m == nil {
		return nil
	}
	var problems []*Problem
	for _, key := range keys {
		switch n := m.Get(key); {
		case n == nil:
			p := m.node.KeyErrorf("required field %q is missing", key)
			p.Key = key
			problems = append(problems, p)
		case n.Kind() == Null:
			problems = append(problems, n.KeyErrorf("required field %q has no value", key))
		}
	}
	return problems
}

// Ignore makes keys known without reading them.
func (m *Map) Ignore(keys ...string) {
	for _, key := range keys {
		m.find(key)
	}
}

// Done warns about every key that is not known and names the nearest known one, and
// returns the warnings.
func (m *Map) Done() []*Problem {
	if m == nil {
		return nil
	}
	var problems []*Problem
	for _, e := range m.node.raw.entries {
		if slices.Contains(m.known, e.key) {
			continue
		}
		p := m.node.doc.warn(e.pos, m.node.path, fmt.Sprintf("unknown key %s is ignored", quote(e.key)))
		p.Key = e.key
		if e.key == "<<" {
			p.Hint = "merge keys are not applied; repeat the keys, or use an alias for a whole value"
		} else if now := m.presentName(e.key); now != "" {
			p.Hint = fmt.Sprintf("it is called %q now", now)
		} else if near := Nearest(e.key, m.known); near != "" {
			p.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		problems = append(problems, p)
	}
	return problems
}

// read stores what a reader of key's node returns.
func read[T any](m *Map, key string, dst *T, reader func(*Node) (T, bool)) bool {
	n := m.present(key)
	if n == nil {
		return false
	}
	v, ok := reader(n)
	if ok {
		*dst = v
	}
	return ok
}

// Text reads a scalar of any kind as its literal text.
func (m *Map) Text(key string, dst *string) bool { return read(m, key, dst, (*Node).Text) }

// Str reads a string. An unquoted number or boolean is not one.
func (m *Map) Str(key string, dst *string) bool { return read(m, key, dst, (*Node).Str) }

// Bool reads a boolean.
func (m *Map) Bool(key string, dst *bool) bool { return read(m, key, dst, (*Node).Bool) }

// Int reads a whole number from least to most.
func (m *Map) Int(key string, dst *int, least, most int) bool {
	return read(m, key, dst, func(n *Node) (int, bool) {
		i, ok := n.Int(int64(least), int64(most))
		return int(i), ok
	})
}

// Uint reads a whole number that is not negative.
func (m *Map) Uint(key string, dst *int) bool { return m.Int(key, dst, 0, math.MaxInt) }

// Float reads a finite number.
func (m *Map) Float(key string, dst *float64) bool { return read(m, key, dst, (*Node).Float) }

// CheckedFloat reads a finite number, with a warning if check has an error; key is the argument of check, too.
func (m *Map) CheckedFloat(check func(key string, x float64) error) func(key string, dst *float64) bool {
	return func(key string, dst *float64) bool {
		if !m.Float(key, dst) {
			return false
		}
		if err := check(key, *dst); err != nil {
			m.Get(key).Warnf("%v", err)
		}
		return true
	}
}

// Seconds reads a time span written as a whole number of seconds, not negative.
func (m *Map) Seconds(key string, dst *time.Duration) bool {
	return read(m, key, dst, (*Node).Seconds)
}

// Span reads a time span in seconds, or with units as in "10m"; see [Node.Span].
func (m *Map) Span(key string, dst *time.Duration) bool { return read(m, key, dst, (*Node).Span) }

// Texts reads a list of texts. A list without elements is stored as such, not nil.
func (m *Map) Texts(key string, dst *[]string) bool { return read(m, key, dst, (*Node).Texts) }

// Strs reads a list of strings. A list without elements is stored as such, not nil.
func (m *Map) Strs(key string, dst *[]string) bool { return read(m, key, dst, (*Node).Strs) }

// Value reads any value but null as JSON.
func (m *Map) Value(key string, dst *value.Value) bool { return read(m, key, dst, (*Node).Value) }

// Map returns the mapping under key, nil if it is absent, null or no mapping, which
// is reported.
func (m *Map) Map(key string) *Map {
	n := m.present(key)
	if n == nil {
		return nil
	}
	return n.Map()
}

// List returns the elements of the list under key, nil if it is absent, null or no
// list, which is reported.
func (m *Map) List(key string) []*Node {
	n := m.present(key)
	if n == nil {
		return nil
	}
	items, _ := n.List()
	return items
}
