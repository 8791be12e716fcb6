package graph

import (
	"cmp"
	"iter"
	"slices"

	"loki/internal/base/value"
)

// State is the immutable shared memory of a run: JSON values by key, ascending. A
// changed State shares all values with the one it came from. The zero State is
// empty.
type State struct {
	entries []value.Member // ascending by name, each once; never changed
}

// NewState returns the state of an object's members; nil is the empty state.
func NewState(o *value.Object) State {
	entries := make([]value.Member, 0, o.Len())
	for name, v := range o.All() {
		entries = append(entries, value.Member{Name: name, Value: v})
	}
	slices.SortFunc(entries, byName)
	return State{entries}
}

func byName(a, b value.Member) int { return cmp.Compare(a.Name, b.Name) }

// Len returns the number of keys.
func (s State) Len() int { return len(s.entries) }

// Get returns the value of key. A key that holds null is there.
func (s State) Get(key string) (v value.Value, ok bool) {
	i, ok := s.find(key)
	if !ok {
		return value.Value{}, false
	}
	return s.entries[i].Value, true
}

func (s State) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s.entries, key, func(m value.Member, key string) int { return cmp.Compare(m.Name, key) })
}

// All ranges over keys and values, ascending.
func (s State) All() iter.Seq2[string, value.Value] {
	return func(yield func(string, value.Value) bool) {
		for _, e := range s.entries {
			if !yield(e.Name, e.Value) {
				return
			}
		}
	}
}

// Object returns the state as one object, keys ascending.
func (s State) Object() *value.Object { return value.ObjectOf(s.entries...) }

// MarshalJSON returns the state as an object.
func (s State) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// UnmarshalJSON reads an object.
func (s *State) UnmarshalJSON(data []byte) error {
	var v value.Value
	err := v.UnmarshalJSON(data)
	*s = NewState(v.AsObject())
	return err
}

// AppendJSON appends the state as a compact JSON object, keys ascending.
func (s State) AppendJSON(dst []byte) []byte { return s.Object().Value().AppendJSON(dst) }

// With returns s with the writes applied, of which each key is given once. It costs
// one copy of the key table, whatever the size of the values.
func (s State) With(writes ...value.Member) State {
	if len(writes) == 0 {
		return s
	}
	entries := slices.Clone(s.entries)
	for _, w := range writes {
		if i, ok := s.find(w.Name); ok {
			entries[i].Value = w.Value
		} else {
			entries = append(entries, w)
		}
	}
	slices.SortFunc(entries, byName)
	return State{entries}
}

// Changes returns the keys of next whose values are new or differ from s's, with the
// values they have in next, ascending. Values that both share are compared at no
// cost, because a run changes state only by replacing values.
func (s State) Changes(next State) []value.Member {
	var changes []value.Member
	i := 0
	for _, e := range next.entries {
		for i < len(s.entries) && s.entries[i].Name < e.Name {
			i++
		}
		if i < len(s.entries) && s.entries[i].Name == e.Name && value.Equal(s.entries[i].Value, e.Value) {
			continue
		}
		changes = append(changes, e)
	}
	return changes
}

// Draft is one branch's view of the state during a super-step: the shared state and
// the branch's own writes over it. No other branch sees the writes. A Draft belongs to
// one goroutine; the state below it may be shared.
type Draft struct {
	base   State
	writes []value.Member // in order of first write, each key once
	loop   *Loop          // answers LoopKey if the state does not; may be nil
}

// NewDraft returns a draft over s without writes.
func NewDraft(s State) *Draft { return &Draft{base: s} }

// WithLoop makes what a run has counted a part of what the branch sees. It returns d.
func (d *Draft) WithLoop(l *Loop) *Draft {
	d.loop = l
	return d
}

// Get returns the value of key as the branch sees it.
func (d *Draft) Get(key string) (v value.Value, ok bool) {
	if i := d.find(key); i >= 0 {
		return d.writes[i].Value, true
	}
	if v, ok = d.base.Get(key); !ok && d.loop != nil && key == LoopKey {
		return d.loop.visitCounts(), true
	}
	return v, ok
}

// find returns the index of the write of key, -1 for none.
func (d *Draft) find(key string) int {
	return slices.IndexFunc(d.writes, func(w value.Member) bool { return w.Name == key })
}

// Set writes key.
func (d *Draft) Set(key string, v value.Value) {
	if i := d.find(key); i >= 0 {
		d.writes[i].Value = v
		return
	}
	d.writes = append(d.writes, value.Member{Name: key, Value: v})
}

// Merge writes the members of the output of a script, which was given the state that d has now. Members that have the values that
// the script was given are no writes. Of keys whose reducer adds to what is there they are, unless the output has all keys of
// that state: a script that prints the state it read adds nothing.
func (d *Draft) Merge(output *value.Object, reducers map[string]Reducer) {
	given := d.State()
	echo := !slices.ContainsFunc(given.entries, func(e value.Member) bool {
		_, ok := output.Get(e.Name)
		return !ok
	})
	for name, v := range output.All() {
		old, ok := given.Get(name)
		if !ok || !value.Equal(old, v) || !echo && reducers[name].adds() {
			d.Set(name, v)
		}
	}
}

// DropUnchanged takes back the writes of values that the shared state has.
func (d *Draft) DropUnchanged() {
	d.writes = slices.DeleteFunc(d.writes, func(w value.Member) bool {
		old, ok := d.base.Get(w.Name)
		return ok && value.Equal(old, w.Value)
	})
}

// Discard takes back all writes.
func (d *Draft) Discard() { d.writes = nil }

// State returns what the branch sees as a state of its own.
func (d *Draft) State() State { return d.base.With(d.writes...) }

// Writes returns the keys that were written with their final values, ascending. A key counts
// also if its value is the one that the shared state has.
func (d *Draft) Writes() []value.Member {
	return slices.SortedFunc(slices.Values(d.writes), byName)
}

// ApplyUpdates renders updates in order against d and stores the results in it, a
// later entry seeing what earlier ones stored. While they are rendered, the key
// scoped (unless empty) holds result; an entry that writes to that key is seen by
// later entries only. It returns what the entry for want rendered to, ok being
// false if there is none.
func (d *Draft) ApplyUpdates(updates []Update, scoped string, result value.Value, want string) (v value.Value, ok bool) {
	view := Overlay{Lookup: d, Key: scoped, Value: result}
	for _, u := range updates {
		rendered := u.Template.Update(view)
		if u.Key == want {
			v, ok = rendered, true
		}
		if u.Key == scoped && scoped != "" {
			view.Value = rendered
			continue
		}
		d.Set(u.Key, rendered)
	}
	return v, ok
}

// Overlay is a state with one more key in front, unless that is empty.
type Overlay struct {
	Lookup
	Key   string
	Value value.Value
}

// Get implements [Lookup].
func (o Overlay) Get(key string) (value.Value, bool) {
	if key == o.Key && key != "" {
		return o.Value, true
	}
	return o.Lookup.Get(key)
}
