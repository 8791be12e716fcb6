package sqlite

import (
	"iter"
	"maps"
	"math"
	"strings"

	"loki/internal/chat"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/value"
)

// place is where the value of a key is on record: the rows of state under key from step full
// to step at. The last one was written at step at. What the state calls the key may be another
// name, because key is stored without secrets.
type place struct {
	key      string
	full, at int
}

// snapshot is a checkpoint with the places of its values.
type snapshot struct {
	run.Checkpoint
	places map[string]place
}

// progress is the document of a checkpoint: all but the state.
type progress struct {
	Frontier []string       `json:"frontier,omitempty"`
	Waiting  []string       `json:"waiting,omitempty"`
	Visits   map[string]int `json:"visits,omitempty"` // those that changed; 0 for one that is gone
	Failures int            `json:"failures,omitempty"`
	Done     bool           `json:"done,omitempty"`
	Output   string         `json:"output,omitempty"`
	Usage    chat.Usage     `json:"usage"`
}

// visitDoc is a visit as it is stored: with its duration.
type visitDoc struct {
	run.Visit
	Nanoseconds int64 `json:"ns,omitempty"`
}

// change is a row of state that a checkpoint writes.
type change struct {
	key  string
	full int
	doc  document // no data if the key is gone
}

// encodedCheckpoint is what a checkpoint writes.
type encodedCheckpoint struct {
	step    int
	doc     document
	visits  document
	changes []change
	places  map[string]place // after it
	visited map[string]int   // visits that it changes, 0 for a node that is gone
}

// encodeCheckpoint encodes what c changes of the checkpoint before, which is nil for
// the first one of a run.
func (f sealer) encodeCheckpoint(before *snapshot, c run.Checkpoint, visits []run.Visit) (e encodedCheckpoint, err error) {
	if before == nil {
		before = &snapshot{}
	}
	e.step = c.Step
	p := progress{
		Frontier: c.Frontier, Waiting: c.Waiting, Failures: c.Failures, Done: c.Done, Output: c.Output, Usage: c.Usage,
		Visits: changedVisits(before.Visits, c.Visits, visits),
	}
	e.visited = p.Visits
	if e.doc, err = f.encode(p); err != nil {
		return e, err
	}
	docs := make([]visitDoc, len(visits))
	for i, v := range visits {
		docs[i] = visitDoc{v, int64(v.Duration)}
	}
	if e.visits, err = f.encode(docs); err != nil {
		return e, err
	}
	e.places = maps.Clone(before.places)
	if e.places == nil {
		e.places = make(map[string]place)
	}
	for _, m := range before.State.Changes(c.State) {
		old, _ := before.State.Get(m.Name)
		where, known := e.places[m.Name]
		added, grown := addition(old, m.Value)
		if !known {
			where.key = f.text(m.Name)
		}
		if !known || !grown {
			added, where.full = m.Value, c.Step
		}
		where.at = c.Step
		e.places[m.Name] = where
		e.changes = append(e.changes, change{where.key, where.full, f.encodeValue(added)})
	}
	for key := range before.State.All() {
		if _, ok := c.State.Get(key); !ok {
			e.changes = append(e.changes, change{key: e.places[key].key, full: c.Step})
			delete(e.places, key)
		}
	}
	return e, nil
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

// addVisits makes the visits of a checkpoint those of the next one, which changes some.
func addVisits(visits, changed map[string]int) {
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

// write writes the checkpoint of a run.
func (e *encodedCheckpoint) write(c *conn, blobs *blobKeeper, at int64) error {
	if err := blobs.put(c, e.doc, e.visits); err != nil {
		return err
	}
	for _, ch := range e.changes {
		if err := blobs.put(c, ch.doc); err != nil {
			return err
		}
		if _, err := c.exec("INSERT INTO state (run, key, step, full, doc) VALUES (?, ?, ?, ?, ?)", blobs.run, ch.key, e.step, ch.full, ch.doc.data); err != nil {
			return err
		}
	}
	_, err := c.exec("INSERT INTO checkpoints (run, step, at, doc, visits) VALUES (?, ?, ?, ?, ?)", blobs.run, e.step, at, e.doc.data, e.visits.data)
	return err
}

// readCheckpoint returns the checkpoint of a run after a super-step that it has.
func readCheckpoint(c *conn, blobs blobReader, id int64, step int) (snapshot, error) {
	s := snapshot{Checkpoint: run.Checkpoint{Step: step, Visits: make(map[string]int)}, places: make(map[string]place)}
	var data []byte
	err := c.rows("SELECT doc FROM checkpoints WHERE run = ? AND step <= ? ORDER BY step", []any{id, step}, []any{&data}, func() error {
		var p progress
		if err := decode(data, blobs, &p); err != nil {
			return err
		}
		addVisits(s.Visits, p.Visits)
		s.Frontier, s.Waiting, s.Failures, s.Done, s.Output, s.Usage = p.Frontier, p.Waiting, p.Failures, p.Done, p.Output, p.Usage
		return nil
	})
	if err != nil {
		return s, err
	}
	if s.places, err = readPlaces(c, blobs, id, step); err != nil {
		return s, err
	}
	var members []value.Member
	for key, where := range s.places {
		v, err := readValue(c, blobs, id, where)
		if err != nil {
			return s, err
		}
		members = append(members, value.Member{Name: key, Value: v})
	}
	s.State = graph.NewState(value.ObjectOf(members...))
	return s, nil
}

// readPlaces returns where the values of all keys after a super-step are. It skips
// from key to key, so that it costs nothing that a key has changed often.
func readPlaces(c *conn, blobs blobReader, id int64, step int) (map[string]place, error) {
	places := make(map[string]place)
	var where place
	var gone bool
	err := c.rows(`
		WITH RECURSIVE keys (key) AS (
			SELECT min(key) FROM state WHERE run = ?1
			UNION ALL
			SELECT (SELECT min(key) FROM state WHERE run = ?1 AND key > keys.key) FROM keys WHERE key IS NOT NULL
		)
		SELECT s.key, s.step, s.full, s.doc IS NULL FROM keys k JOIN state s
		ON s.run = ?1 AND s.key = k.key AND s.step = (SELECT max(step) FROM state WHERE run = ?1 AND key = k.key AND step <= ?2)`,
		[]any{id, step}, []any{&where.key, &where.at, &where.full, &gone}, func() error {
			if !gone {
				places[blobs.text(where.key)] = where
			}
			return nil
		})
	return places, err
}

// readValue returns the value at a place.
func readValue(c *conn, blobs blobReader, id int64, where place) (value.Value, error) {
	var docs [][]byte
	var data []byte
	err := c.rows("SELECT doc FROM state WHERE run = ? AND key = ? AND step BETWEEN ? AND ? ORDER BY step",
		[]any{id, where.key, where.full, where.at}, []any{&data}, func() error {
			docs = append(docs, data)
			data = nil
			return nil
		})
	if err != nil {
		return value.Value{}, err
	}
	if len(docs) == 0 {
		return value.Value{}, errDamaged
	}
	whole, err := decodeValue(docs[0], blobs)
	if err != nil || len(docs) == 1 {
		return whole, err
	}
	list, isList := whole.AsList()
	text, _ := whole.AsString()
	var b strings.Builder
	b.WriteString(text)
	for _, doc := range docs[1:] {
		added, err := decodeValue(doc, blobs)
		if err != nil {
			return value.Value{}, err
		}
		if isList {
			more, ok := added.AsList()
			if !ok {
				return value.Value{}, errDamaged
			}
			list = list.Extend(more)
			continue
		}
		more, ok := added.AsString()
		if !ok {
			return value.Value{}, errDamaged
		}
		b.WriteString(more)
	}
	if isList {
		return list.Value(), nil
	}
	return value.Of(b.String()), nil
}
