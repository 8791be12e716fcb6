package record

import (
	"iter"
	"maps"
	"math"
	"strings"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Place is where the value of a key is on record: the documents under Key from step Full
// to step At. The last one was written at step At. What the state calls the key may be another
// name, because Key is stored without secrets.
type Place struct {
	Key      string
	Full, At int
}

// Snapshot is a checkpoint with the places of its values.
type Snapshot struct {
	run.Checkpoint
	Places map[string]Place
}

// progress is the document of a checkpoint: all but the state. Visits and Taken are the changed ones, 0 for one that is gone.
type progress struct {
	run.Position

	Same    int            `json:"same_effects,omitempty"` // how many of the effects before, from the first on, are still there
	Effects []graph.Effect `json:"effects,omitempty"`      // behind them
	Undoing *graph.Undoing `json:"undoing,omitempty"`
}

// visitDoc is a visit as it is stored: with its duration.
type visitDoc struct {
	run.Visit
	Nanoseconds int64 `json:"ns,omitempty"`
}

// Change is what a checkpoint writes of a key of the state.
type Change struct {
	Key  string
	Full int      // the step that wrote the whole value; this one adds to it if it is another
	Doc  Document // the value or what was added; no data if the key is gone
}

// Checkpoint is what is written of a checkpoint.
type Checkpoint struct {
	Step    int
	Doc     Document // all but the state
	Visits  Document
	Changes []Change
	Places  map[string]Place // after it
	Visited map[string]int   // visits that it changes, 0 for a node that is gone
}

// Checkpoint encodes what c changes of the checkpoint before, which is nil for
// the first one of a run.
func (f Sealer) Checkpoint(before *Snapshot, c run.Checkpoint, visits []run.Visit) (e Checkpoint, err error) {
	if before == nil {
		before = &Snapshot{}
	}
	e.Step = c.Step
	p := progress{Position: c.Position, Undoing: c.Undoing}
	p.Visits, p.Taken = changedVisits(before.Visits, c.Visits, visits), changedVisits(before.Taken, c.Taken, nil)
	for p.Same < min(len(before.Effects), len(c.Effects)) && sameEffect(before.Effects[p.Same], c.Effects[p.Same]) {
		p.Same++
	}
	p.Effects = c.Effects[p.Same:]
	e.Visited = p.Visits
	if e.Doc, err = f.Encode(p); err != nil {
		return e, err
	}
	docs := make([]visitDoc, len(visits))
	for i, v := range visits {
		docs[i] = visitDoc{v, int64(v.Duration)}
	}
	if e.Visits, err = f.Encode(docs); err != nil {
		return e, err
	}
	e.Places = maps.Clone(before.Places)
	if e.Places == nil {
		e.Places = make(map[string]Place)
	}
	for _, m := range before.State.Changes(c.State) {
		old, _ := before.State.Get(m.Name)
		where, known := e.Places[m.Name]
		added, grown := addition(old, m.Value)
		if !known {
			where.Key = f.Text(m.Name)
		}
		if !known || !grown || where.At == c.Step { // of which there is one document
			added, where.Full = m.Value, c.Step
		}
		where.At = c.Step
		e.Places[m.Name] = where
		e.Changes = append(e.Changes, Change{where.Key, where.Full, f.EncodeValue(added)})
	}
	for key := range before.State.All() {
		if _, ok := c.State.Get(key); !ok {
			e.Changes = append(e.Changes, Change{Key: e.Places[key].Key, Full: c.Step})
			delete(e.Places, key)
		}
	}
	return e, nil
}

// SetState encodes what a state changes of that of the last checkpoint. Of what it returns only Changes and Places are to be used.
func (f Sealer) SetState(last *Snapshot, state graph.State) (Checkpoint, error) {
	c := last.Checkpoint
	c.State = state
	return f.Checkpoint(last, c, nil)
}

// sameEffect reports whether a and b are the same visit.
func sameEffect(a, b graph.Effect) bool {
	return a.Node == b.Node && a.Step == b.Step && a.Visit == b.Visit
}

// changedVisits returns the visits of after that are not those of before, with 0 for a node
// that is gone. With visits given it looks at their nodes only, as long as that is all that
// can have changed, so that a super-step of a long graph takes as long as one of a short graph.
func changedVisits(before, after map[string]int, visits []run.Visit) map[string]int {
	changed := make(map[string]int, len(visits))
	added := 0
	for _, v := range visits {
		n := after[v.Node]
		old, known := before[v.Node]
		if !known {
			added++
		}
		if n != old {
			changed[v.Node] = n
		}
	}
	if len(visits) > 0 && len(after) == len(before)+added {
		return changed
	}
	for node, n := range after {
		if before[node] != n {
			changed[node] = n
		}
	}
	for node := range before {
		if _, ok := after[node]; !ok {
			changed[node] = 0
		}
	}
	return changed
}

// AddVisits makes the visits of a checkpoint those of the next one, which changes some.
func AddVisits(visits, changed map[string]int) {
	for node, n := range changed {
		if n == 0 {
			delete(visits, node)
			continue
		}
		visits[node] = n
	}
}

// addition returns what was added to the end of old to get v, if that is what
// happened.
func addition(old, v value.Value) (added value.Value, ok bool) {
	if l, ok := v.AsList(); ok {
		p, ok := old.AsList()
		if !ok || p.Len() == 0 || !prefixOf(p, l) {
			return value.Value{}, false
		}
		return l.From(p.Len()).Value(), true
	}
	s, ok := v.AsString()
	p, wasString := old.AsString()
	if !ok || !wasString || p == "" || !strings.HasPrefix(s, p) {
		return value.Value{}, false
	}
	return value.Of(s[len(p):]), true
}

// prefixOf reports whether l begins with exactly the elements of p.
func prefixOf(p, l value.List) bool {
	if p.Len() > l.Len() {
		return false
	}
	for i, v := range p.All() {
		if !identical(v, l.At(i)) {
			return false
		}
	}
	return true
}

// identical reports whether a and b are equal to the bit and in the order of all
// members, which [value.Equal] ignores. That costs little where a value was taken over
// from another one: strings and objects then share their memory.
func identical(a, b value.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case value.ListKind:
		l, _ := a.AsList()
		m, _ := b.AsList()
		return l.Len() == m.Len() && prefixOf(l, m)
	case value.ObjectKind:
		o, p := a.AsObject(), b.AsObject()
		if o == p {
			return true
		}
		if o.Len() != p.Len() {
			return false
		}
		next, stop := iter.Pull2(p.All())
		defer stop()
		for name, v := range o.All() {
			other, w, _ := next()
			if name != other || !identical(v, w) {
				return false
			}
		}
		return true
	case value.Float:
		f, _ := a.AsFloat()
		g, _ := b.AsFloat()
		return math.Float64bits(f) == math.Float64bits(g)
	}
	return value.Equal(a, b)
}

// Advance makes s the snapshot after the checkpoint whose document data is, which follows it, except for the
// state.
func (s *Snapshot) Advance(r Reader, data []byte) error {
	var p progress
	if err := r.Decode(data, &p); err != nil {
		return err
	}
	AddVisits(s.Visits, p.Visits)
	p.Visits = s.Visits
	changed := p.Taken
	p.Taken = s.Taken
	if len(changed) > 0 { // the map before may be that of another checkpoint
		p.Taken = maps.Clone(s.Taken)
		if p.Taken == nil {
			p.Taken = make(map[string]int)
		}
		AddVisits(p.Taken, changed)
	}
	if p.Same > len(s.Effects) {
		return ErrDamaged
	}
	if s.Effects = append(s.Effects[:p.Same:p.Same], p.Effects...); len(s.Effects) == 0 {
		s.Effects = nil
	}
	s.Position, s.Undoing = p.Position, p.Undoing
	return nil
}

// Whole returns the value of a key from its last full document and the ones that add to it.
func (r Reader) Whole(docs [][]byte) (value.Value, error) {
	if len(docs) == 0 {
		return value.Value{}, ErrDamaged
	}
	whole, err := r.Value(docs[0])
	if err != nil || len(docs) == 1 {
		return whole, err
	}
	list, isList := whole.AsList()
	text, _ := whole.AsString()
	var b strings.Builder
	b.WriteString(text)
	for _, doc := range docs[1:] {
		added, err := r.Value(doc)
		if err != nil {
			return value.Value{}, err
		}
		if isList {
			more, ok := added.AsList()
			if !ok {
				return value.Value{}, ErrDamaged
			}
			list = list.Extend(more)
			continue
		}
		more, ok := added.AsString()
		if !ok {
			return value.Value{}, ErrDamaged
		}
		b.WriteString(more)
	}
	if isList {
		return list.Value(), nil
	}
	return value.Of(b.String()), nil
}
