package run

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/redact"
	"loki/internal/value"
)

// hidden stands for what is shown in place of a secret value.
var hidden = value.Of("***")

// Secrets keep the values of the secret keys of a state out of what is shown of a run. A nil one hides nothing. Its methods may be called
// from several goroutines.
type Secrets struct {
	graph  *graph.Graph
	known  *redact.Secrets
	within string // the name of the node that the graph is a subgraph of, empty for none
}

// secretsOf returns the secrets of a graph, nil if it has none.
func secretsOf(g *graph.Graph) *Secrets {
	if !g.Schema.HasSecrets() {
		return nil
	}
	return &Secrets{graph: g, known: new(redact.Secrets)}
}

// hide keeps the secrets of a graph out of the events of the run, and so out of its record of them. known are those that are known from the
// record, nil for none.
func (f *Frame) hide(w Work, known *Secrets) {
	if around, ok := w.(Wrapper); ok {
		w = around.Inner()
	}
	g, ok := w.(Graph)
	if !ok {
		return
	}
	if f.secrets = secretsOf(g.Plan.Graph()); f.secrets == nil {
		return
	}
	if known != nil {
		f.secrets.known = known.known
	}
	f.secrets.within = f.within()
	f.secrets.learn(g.Start)
	for _, t := range g.Tasks {
		f.secrets.add(t.Result.Writes)
	}
	f.Events = f.Events.Through(f.secrets.emitter)
}

// add makes the secret ones of values of the state known.
func (s *Secrets) add(members []value.Member) {
	if s == nil {
		return
	}
	for _, m := range members {
		if s.graph.Schema.IsSecret(m.Name) {
			s.addValue(m.Name, m.Value)
		}
	}
}

// learn makes the secret values of a checkpoint known: those of its state, and those that its compensations see, which the state may not
// have any more.
func (s *Secrets) learn(c Checkpoint) {
	s.Learn(c.State)
	for _, e := range c.Effects {
		for name, v := range e.Writes.AsObject().All() {
			s.add([]value.Member{{Name: name, Value: v}})
		}
	}
}

// addValue makes a value known: all texts and numbers in it, and its JSON.
func (s *Secrets) addValue(key string, v value.Value) {
	if list, ok := v.AsList(); ok {
		for _, e := range list.All() {
			s.addValue(key, e)
		}
	}
	for _, m := range v.AsObject().All() {
		s.addValue(key, m)
	}
	s.known.Add(key, v.Text())
}

// Text returns a text without the secrets.
func (s *Secrets) Text(text string) string {
	if s == nil {
		return text
	}
	return s.known.Text(text)
}

// hiding returns Text as a function, nil for no secrets.
func (s *Secrets) hiding() func(string) string {
	if s == nil {
		return nil
	}
	return s.Text
}

// makes reports whether what a node with a name does becomes the value of a secret key, because the result of the node does, or that of the
// subgraph that it is in.
func (s *Secrets) makes(name string) bool {
	for _, n := range s.graph.Nodes {
		own := graph.InnerName(s.within, n.ID)
		if rest, ok := strings.CutPrefix(name, own); ok && (rest == "" || rest[0] == '/' || rest[0] == '#') && s.graph.MakesSecret(n) {
			return true
		}
	}
	return false
}

// hiding returns what hides the secrets of the state from texts, also those of the graph that this one is a subgraph of; nil for none.
func (d *driver) hiding() func(string) string {
	own := d.secrets.hiding()
	switch {
	case d.nested == nil || d.nested.Hide == nil:
		return own
	case own == nil:
		return d.nested.Hide
	}
	return func(text string) string { return d.nested.Hide(own(text)) }
}

// member returns a key of the state as it is shown.
func (s *Secrets) member(m value.Member) value.Member {
	if s.graph.Schema.IsSecret(m.Name) {
		m.Value = hidden
	}
	return value.Member{Name: m.Name, Value: s.Value(m.Value)}
}

// members returns keys of the state as they are shown.
func (s *Secrets) members(list []value.Member) []value.Member {
	shown := make([]value.Member, len(list))
	for i, m := range list {
		shown[i] = s.member(m)
	}
	return shown
}

// result returns the result of a node without secrets in what it says.
func (s *Secrets) result(r graph.Result) graph.Result {
	r.Output = s.Text(r.Output)
	if r.Failure != nil {
		f := *r.Failure
		f.Message = s.Text(f.Message)
		r.Failure = &f
	}
	if r.Err != nil && s.Text(r.Err.Error()) != r.Err.Error() {
		r.Err = s.failure(r.Err)
	}
	return r
}

// failure returns an error without the secrets that it has. What it was caused by would have them, too.
func (s *Secrets) failure(err error) error {
	safe := fault.New(fault.CodeOf(err), "%s", s.Text(err.Error()))
	if e, ok := errors.AsType[*fault.Error](err); ok {
		safe = safe.WithHint("%s", s.Text(e.Hint))
	}
	return safe
}

// emitter returns an emitter that passes events on without the secrets.
func (s *Secrets) emitter(next event.Emitter) event.Emitter {
	return &secretEmitter{s, s.known.Emitter(next)}
}

type secretEmitter struct {
	secrets *Secrets
	next    event.Emitter
}

// Emit implements [event.Emitter].
func (e *secretEmitter) Emit(ctx context.Context, ev event.Event) error {
	switch b := ev.Body.(type) {
	case event.Started:
		b.State = e.secrets.members(b.State)
		ev.Body = b
	case event.StateUpdated:
		b.Values = e.secrets.members(b.Values)
		ev.Body = b
	}
	if e.secrets.makes(ev.Node) {
		switch b := ev.Body.(type) {
		case event.Delta, event.Reasoning, event.ToolOutput:
			return nil // it becomes secret when the node is done
		case event.Reply:
			b.Text = hidden.Text()
			ev.Body = b
		case event.ToolResult:
			b.Text = hidden.Text()
			ev.Body = b
		case event.Answer:
			b.Text = hidden.Text()
			ev.Body = b
		case event.Signal:
			b.Value = hidden
			ev.Body = b
		}
	}
	return e.next.Emit(ctx, ev)
}

// Value returns a value, such as what is on record of a step, without the secrets: neither texts and numbers that are known, nor members
// with the name of a secret key.
func (s *Secrets) Value(v value.Value) value.Value {
	if s == nil {
		return v
	}
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, e := range list.All() {
			items = append(items, s.Value(e))
		}
		return value.ListOf(items...).Value()
	}
	if o := v.AsObject(); o != nil {
		members := make([]value.Member, 0, o.Len())
		for name, m := range o.All() {
			members = append(members, s.member(value.Member{Name: name, Value: m}))
		}
		return value.ObjectOf(members...).Value()
	}
	if text := s.known.Text(v.Text()); text != v.Text() {
		return value.Of(text)
	}
	return v
}

// Learn makes the secret values of a state known.
func (s *Secrets) Learn(state graph.State) { s.add(graph.State{}.Changes(state)) }

// Secrets returns those of states of a run; nil if there are none.
func (i Info) Secrets(states ...graph.State) *Secrets {
	if i.Kind != GraphRun {
		return nil
	}
	g, err := i.Recorded()
	if err != nil {
		return nil
	}
	s := secretsOf(g)
	for _, state := range states {
		s.Learn(state)
	}
	return s
}

// SecretsOf returns the secrets of a run with its definition: the values that its secret keys had after each super-step on record. Those of a
// fork include the values that the run had that it began from. It is nil without an error if there are no secret keys.
func SecretsOf(ctx context.Context, store Store, info Info) (*Secrets, error) {
	s := info.Secrets()
	if s == nil {
		return nil, nil
	}
	last, err := store.Checkpoint(ctx, info.ID, -1)
	if err != nil {
		return nil, err
	}
	s.learn(last)
	if err := s.recall(ctx, store, info.ID, last.Step-1); err != nil {
		return nil, err
	}
	// What the user set in a fork replaced a value that other texts of its state may have.
	for parent := info.Parent; ; {
		id, step, forked := strings.Cut(parent, "@")
		until, err := strconv.Atoi(step)
		if !forked || err != nil {
			return s, nil
		}
		origin, err := store.Info(ctx, id)
		if fault.CodeOf(err) == fault.NotFound { // it is forgotten
			return s, nil
		}
		if err == nil {
			err = s.recall(ctx, store, id, until)
		}
		if err != nil {
			return nil, err
		}
		parent = origin.Parent
	}
}

// recall makes the values known that a run had up to a super-step. Those before the first one on record, where a fork begins, are left out.
func (s *Secrets) recall(ctx context.Context, store Store, id string, last int) error {
	for step := range last + 1 {
		c, err := store.Checkpoint(ctx, id, step)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		s.learn(c)
	}
	return nil
}

// State returns a state as it is shown to people: without the values of its secret keys, which only the record has.
func (s *Secrets) State(state graph.State) graph.State {
	if s == nil {
		return state
	}
	return graph.NewState(s.Value(state.Object().Value()).AsObject())
}

// JSON returns what is on record of a step as it is shown to people.
func (s *Secrets) JSON(data []byte) ([]byte, error) {
	if s == nil {
		return data, nil
	}
	v, err := value.ParseJSON(data)
	if err != nil {
		return nil, err
	}
	return s.Value(v).AppendJSON(nil), nil
}
