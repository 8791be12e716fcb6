package graph

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/base/value/yamldoc"
)

// StateSchema says which values the keys of a state take. It is immutable; a nil one says nothing.
type StateSchema struct {
	Strict bool       // there are no other keys
	Keys   []StateKey // in declaration order

	byName map[string]*StateKey
}

// StateKey is what a definition says of a key of the state.
type StateKey struct {
	Name    string
	Shape   value.Value  // a JSON Schema
	Default *value.Value // of the value at the start; nil for none
	Secret  bool         // the value is shown to people nowhere

	form *schema.Schema
}

// StateError says that the value of a key does not fit the schema of the state.
type StateError struct {
	Key  string
	What string // what the schema demands, where in the value, and what was found
}

func (e *StateError) Error() string { return fmt.Sprintf("wrote state key %q: %s", e.Key, e.What) }

// Key returns what is said of a key, nil for nothing.
func (s *StateSchema) Key(name string) *StateKey {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// IsSecret reports whether the value of a key is secret.
func (s *StateSchema) IsSecret(name string) bool {
	k := s.Key(name)
	return k != nil && k.Secret
}

// HasSecrets reports whether any key is secret.
func (s *StateSchema) HasSecrets() bool {
	return s != nil && slices.ContainsFunc(s.Keys, func(k StateKey) bool { return k.Secret })
}

// HasSecrets reports whether any key of the state of g, or of one of its subgraphs, is secret.
func (g *Graph) HasSecrets() bool { return g.Schema.HasSecrets() || g.HasInnerSecrets() }

// HasInnerSecrets reports whether a subgraph of g has secret keys.
func (g *Graph) HasInnerSecrets() bool {
	_, found := g.Find(func(n *Node) bool { return n.Sub != nil && n.Sub.Graph.Schema.HasSecrets() })
	return found
}

// MakesSecret reports whether the result of a node becomes the value of a secret key, or a part of it.
func (g *Graph) MakesSecret(n *Node) bool {
	if g.Schema == nil {
		return false
	}
	for name := range properties(n).All() {
		if g.Schema.IsSecret(name) {
			return true
		}
	}
	for _, u := range n.Updates {
		if g.Schema.IsSecret(u.Key) && slices.Contains(u.Template.Roots(), scopedKeys[n.Type]) {
			return true
		}
	}
	return n.Map != nil && g.Schema.IsSecret(n.Map.CollectInto)
}

// AnswerSchemas returns the JSON Schemas that the answer to a question has to fit, because its state_updates store it under keys of the
// schema as it is. Keys with a reducer are left out: what comes of the answer there is known later.
func (g *Graph) AnswerSchemas(n *Node) []value.Value {
	var shapes []value.Value
	for _, u := range n.Updates {
		k := g.Schema.Key(u.Key)
		hole, single := u.Template.single()
		if k == nil || g.Reducers[u.Key] != "" || !single || len(hole.path) != 1 || hole.path[0].name != scopedKeys[n.Type] {
			continue
		}
		shapes = append(shapes, k.Shape)
	}
	return shapes
}

// isOwnKey reports whether Loki writes a key itself.
func isOwnKey(name string) bool { return name == PromptKey || name == LastErrorKey }

// Check returns a [*StateError] if v cannot be the value of a key.
func (s *StateSchema) Check(name string, v value.Value) error {
	if s == nil {
		return nil
	}
	k := s.byName[name]
	if k == nil {
		if !s.Strict || isOwnKey(name) {
			return nil
		}
		return &StateError{name, s.unknown(name)}
	}
	found := k.form.Validate(v)
	if len(found) == 0 {
		return nil
	}
	return &StateError{name, k.describe(v, found)}
}

// CheckAll returns the error of the first key of a state that does not fit.
func (s *StateSchema) CheckAll(state State) error {
	if s == nil {
		return nil
	}
	for name, v := range state.All() {
		if err := s.Check(name, v); err != nil {
			return err
		}
	}
	return nil
}

// unknown says that there is no key of a name.
func (s *StateSchema) unknown(name string) string {
	what := "state declares no such key, and strict_state is true"
	if near := didYouMean(name, s.names()); near != "" {
		what += "; " + near
	}
	return what
}

func (s *StateSchema) names() []string {
	names := make([]string, len(s.Keys))
	for i, k := range s.Keys {
		names[i] = k.Name
	}
	return names
}

// describe says how a value differs from the schema, without the value if it is secret.
func (k *StateKey) describe(v value.Value, found []schema.Violation) string {
	first := found[0]
	what, path := first.Message, pathOf(v, first.Path)
	if k.Secret {
		what, path = first.Want+", got ***", "" // names of members may be secret, too
	}
	if path != "" {
		what = "at " + path + ": " + what
	}
	if more := len(found) - 1; more > 0 {
		what += fmt.Sprintf(" (and %d more)", more)
	}
	return what
}

// misfit returns the error of the first of a node's writes that does not fit, which keys with a reducer are not asked for: what
// they hold is known once the writes of all nodes are merged.
func (g *Graph) misfit(writes []value.Member) error {
	for _, w := range writes {
		if _, reduced := g.Reducers[w.Name]; reduced {
			continue
		}
		if err := g.Schema.Check(w.Name, w.Value); err != nil {
			return err
		}
	}
	return nil
}

// CheckDraft returns a [*StateError] if something that a branch wrote does not fit the schema of the state.
func (g *Graph) CheckDraft(d *Draft) error {
	if g.Schema == nil {
		return nil
	}
	return g.misfit(d.Writes())
}

// guard returns the error of a key whose merged value does not fit: that of the node after whose write it did not fit any more.
func (p *Plan) guard(state State, key string, merged value.Value, results []Result) error {
	err := p.graph.Schema.Check(key, merged)
	if err == nil {
		return nil
	}
	culprit, v := "", value.Value{}
	current, present := state.Get(key)
	reducer, reduced := p.graph.Reducers[key]
	for _, r := range results {
		for _, w := range r.Writes {
			if w.Name != key {
				continue
			}
			if v = w.Value; reduced {
				v, _ = reducer.Reduce(current, present, w.Value) // it was reduced before
			}
			if p.graph.Schema.Check(key, v) == nil {
				culprit = ""
			} else if culprit == "" {
				culprit = r.Node
			}
			current, present = v, true
		}
	}
	return &NodeError{Node: culprit, Err: err}
}

// stateWords are the members of an entry of state that are not of its JSON Schema.
const (
	reducerWord = "reducer"
	secretWord  = "secret"
	defaultWord = "default"
)

// keyShape is the shape of an entry of state.
func keyShape() shape {
	words := append(schema.Keywords(), reducerWord, secretWord, defaultWord)
	return `{"type":"object","$ref":"#/$defs/schema","properties":{"` + reducerWord + `":` + oneOf(ReducerNames[:]...) + `,"` + secretWord + `":` + aBool +
		`},"propertyNames":` + anyOf(oneOf(words...), `{"pattern":"^x-"}`) + `}`
}

// stateParts is what a definition says of a state.
type stateParts struct {
	schema   *StateSchema // nil for nothing
	initial  *value.Object
	reducers map[string]Reducer
}

// readState reads state, strict_state, initial_state and reducers, and completes the latter two by what the first says. What is
// wrong is reported to the document.
func readState(m *yamldoc.Map) stateParts {
	var parts stateParts
	if n := m.Map("initial_state").Node(); n != nil {
		parts.initial = n.FiniteValue().AsObject()
	}
	parts.reducers = readReducers(m.Map("reducers"))
	strict := false
	m.Bool("strict_state", &strict)
	declared := m.Map("state")
	if declared == nil && !strict {
		return parts
	}
	s := &StateSchema{Strict: strict, byName: make(map[string]*StateKey, declared.Len())}
	parts.schema = s
	for e := range declared.All() {
		if k, ok := readStateKey(e, &parts); ok {
			s.Keys = append(s.Keys, k)
		}
	}
	for i := range s.Keys {
		s.byName[s.Keys[i].Name] = &s.Keys[i]
	}
	s.fit(m, parts)
	var missing []value.Member
	for _, k := range s.Keys {
		if _, given := parts.initial.Get(k.Name); k.Default != nil && !given {
			missing = append(missing, value.Member{Name: k.Name, Value: *k.Default})
		}
	}
	if missing != nil {
		parts.initial = parts.initial.Merge(value.ObjectOf(missing...))
	}
	return parts
}

// fit compares the values and names that stand beside the schema with it.
func (s *StateSchema) fit(m *yamldoc.Map, parts stateParts) {
	initial := m.Map("initial_state")
	for name, v := range parts.initial.All() {
		switch k := s.byName[name]; {
		case k != nil:
			k.reportMisfit(initial.Get(name), v, "initial_state."+name)
		case s.Strict && !isOwnKey(name):
			initial.Get(name).KeyErrorf("state key %q: %s", name, s.unknown(name))
		}
	}
	for e := range m.Map("reducers").All() {
		if s.Strict && s.byName[e.Key] == nil {
			e.Node.KeyErrorf("state key %q: %s", e.Key, s.unknown(e.Key))
		}
	}
	for _, k := range s.Keys {
		if k.Default != nil {
			k.reportMisfit(m.Map("state").Get(k.Name).Map().Get(defaultWord), *k.Default, "the default")
		}
	}
}

// reportMisfit reports a value in the definition that does not fit.
func (k *StateKey) reportMisfit(at *yamldoc.Node, v value.Value, what string) {
	if k.form == nil {
		return // reported
	}
	for _, violation := range k.form.Validate(v) {
		message := violation.Message
		if k.Secret {
			message = violation.Want
		}
		at.At(violation.Path).Errorf("%s does not fit the schema of state key %q: %s", what, k.Name, message)
	}
}

const stateHint = `write what its value may be, as in score: {type: integer, default: 0}; {} is any value`

// readStateKey reads one entry of state.
func readStateKey(e yamldoc.Entry, parts *stateParts) (k StateKey, ok bool) {
	if e.Node.Kind() != yamldoc.Mapping {
		e.Node.Errorf("expected a JSON Schema, found %s", e.Node.Describe()).Hint = stateHint
		return k, false
	}
	if e.Key == LastErrorKey || e.Key == LoopKey {
		e.Node.KeyErrorf("the state key %q is written by Loki only", e.Key).Hint = "choose another name"
		return k, false
	}
	m := e.Node.Map()
	k.Name = e.Key
	m.Bool(secretWord, &k.Secret)
	if at := m.Get(defaultWord); at != nil {
		if v, ok := at.Value(); ok {
			k.Default = &v
		}
	}
	var reducer Reducer
	if m.Has(reducerWord) {
		reducer = readReducer(m.Get(reducerWord), e.Key)
	}
	if other := parts.reducers[e.Key]; reducer != "" && other != "" && other != reducer {
		m.Get(reducerWord).Errorf("the reducer of state key %q is %s here and %s in reducers", e.Key, reducer, other).Hint = "keep one of them"
	} else if reducer != "" {
		if parts.reducers == nil {
			parts.reducers = make(map[string]Reducer)
		}
		parts.reducers[e.Key] = reducer
	}
	shape, ok := e.Node.Value()
	if !ok {
		return k, false
	}
	m.Ignore(schema.Keywords()...)
	for word := range shape.AsObject().All() {
		if strings.HasPrefix(word, "x-") {
			m.Ignore(word)
		}
	}
	m.Done()
	shape = shape.AsObject().Without(reducerWord).Without(secretWord).Without(defaultWord).Value()
	k.Shape, k.form = shape, compileAt(e.Node, shape)
	return k, k.form != nil
}

// state adds what the schema of the state says, for runs take another course with another one.
func (l *aspects) state(s *StateSchema) {
	if s == nil {
		return
	}
	if s.Strict {
		l.add("strict_state", "true")
	}
	for _, k := range s.Keys {
		shape := k.Shape.AsObject().Without("description")
		text := shape.Value().String()
		if k.Secret {
			text += " secret"
		}
		l.add("state."+k.Name, text)
	}
}

// initial adds a value of the state at the start. A secret one makes the text so long that no difference shows it.
func (l *aspects) initial(s *StateSchema, key string, v value.Value) {
	text := v.String()
	if s.IsSecret(key) {
		text = fmt.Sprintf("%*s", -longest-1, text)
	}
	l.add("initial_state."+key, text)
}
