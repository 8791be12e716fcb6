package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/llm/event/redact"
	"loki/internal/workflow/graph"
)

// hidden is shown in place of a secret value.
var hidden = value.Of("***")

// Secrets keep the values of the secret keys of a state out of what is shown of a run. A nil one hides nothing. Its methods may be called
// from several goroutines.
type Secrets struct {
	graph  *graph.Graph
	known  *redact.Secrets
	within string // the name of the node that the graph is a subgraph of, empty for none

	mu    sync.Mutex
	inner map[string]bool // secret keys of nested graphs, by what is on record of them; guarded by mu
}

// secretsOf returns the secrets of a graph and its subgraphs, nil if there are none.
func secretsOf(g *graph.Graph) *Secrets {
	if !g.HasSecrets() {
		return nil
	}
	return &Secrets{graph: g, known: new(redact.Secrets)}
}

// hide keeps the secrets of a graph out of the events of the run, and so out of its record of them. known are the ones that are known from
// the record, or those of the graph that this one is a subgraph of; nil for none. A subgraph shares what it knows with the graph around it.
func (f *Frame) hide(w Work, known *Secrets) {
	if around, ok := w.(Wrapper); ok {
		w = around.Inner()
	}
	g, ok := w.(Graph)
	if !ok {
		return
	}
	own := secretsOf(g.Plan.Graph())
	if f.secrets = own; known != nil {
		if own == nil {
			f.secrets = &Secrets{graph: g.Plan.Graph()}
		}
		f.secrets.known = known.known
	}
	if own == nil {
		return
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

// learn makes the secret values of a checkpoint known: those of its state, and the ones that its compensations see, which the state may
// not have any more.
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

// member returns a key of the state as it is shown.
func (s *Secrets) member(m value.Member) value.Member {
	if s.graph.Schema.IsSecret(m.Name) {
		m.Value = hidden
	}
	return value.Member{Name: m.Name, Value: s.without(m.Value, s.graph.Schema.IsSecret)}
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
// with the name of a secret key, also of a nested graph.
func (s *Secrets) Value(v value.Value) value.Value {
	if s == nil {
		return v
	}
	return s.without(v, func(key string) bool {
		if s.graph.Schema.IsSecret(key) {
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.inner[key]
	})
}

// without returns a value without the secrets; secret reports whether a key is one.
func (s *Secrets) without(v value.Value, secret func(key string) bool) value.Value {
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, e := range list.All() {
			items = append(items, s.without(e, secret))
		}
		return value.ListOf(items...).Value()
	}
	if o := v.AsObject(); o != nil {
		members := make([]value.Member, 0, o.Len())
		for name, m := range o.All() {
			if secret(name) {
				m = hidden
			}
			members = append(members, value.Member{Name: name, Value: s.without(m, secret)})
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
	g, err := i.RecordedGraph()
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
	if err := cmp.Or(s.recall(ctx, store, info.ID, last.Step-1), s.recallInner(ctx, store, info.ID, math.MaxInt)); err != nil {
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
			err = cmp.Or(s.recall(ctx, store, id, until), s.recallInner(ctx, store, id, until))
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

// secretsKey is the note of secret values of a nested graph: the ones that it began with, or that a node of it wrote.
const secretsKey = "secrets"

// HoldsSecrets reports whether the step with a key is a note of secret values, see [Secrets.LearnNote].
func HoldsSecrets(key string, kind steps.Kind) bool {
	return kind == steps.Note && (key == secretsKey || strings.HasSuffix(key, "/"+secretsKey))
}

// keepSecrets notes the secret ones of values of the state of a nested graph in a part of its record: who looks at the run later does not
// have that state.
func (f *Frame) keepSecrets(ctx context.Context, s steps.Steps, members []value.Member) error {
	if f.secrets == nil || !s.Recording() {
		return nil
	}
	var secret []value.Member
	for _, m := range members {
		if f.secrets.graph.Schema.IsSecret(m.Name) {
			secret = append(secret, m)
		}
	}
	if len(secret) == 0 {
		return nil
	}
	return steps.WriteNote(ctx, s, secretsKey, value.ObjectOf(secret...).Value())
}

// LearnNote makes the secret values of a nested graph known that a note has in JSON.
func (s *Secrets) LearnNote(note []byte) error {
	v, err := value.ParseJSON(note)
	if err != nil {
		return err
	}
	for name, m := range v.AsObject().All() {
		s.mu.Lock()
		if s.inner == nil {
			s.inner = make(map[string]bool)
		}
		s.inner[name] = true
		s.mu.Unlock()
		s.addValue(name, m)
	}
	return nil
}

// recallInner makes the values known that secret keys of subgraphs had in a run up to a super-step.
func (s *Secrets) recallInner(ctx context.Context, store Store, id string, last int) error {
	if !s.graph.HasInnerSecrets() {
		return nil
	}
	h, err := store.History(ctx, id)
	if err != nil {
		return err
	}
	for _, r := range h.Steps {
		if r.Step > last || !r.Done || !HoldsSecrets(r.Key, r.Kind) {
			continue
		}
		note, err := store.Step(ctx, id, r.Number)
		if err == nil {
			err = s.LearnNote(note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Signal returns a signal as it is shown to people: nothing of a value that a node stores under a secret key, also if that has not run yet.
func (s *Secrets) Signal(sig Signal) (Signal, error) {
	if s == nil {
		return sig, nil
	}
	for m := range s.graph.All() {
		if m.Wait != nil && m.Wait.Signal == sig.Name && m.Graph.MakesSecret(m.Node) {
			sig.Value = hidden.AppendJSON(nil)
			return sig, nil
		}
	}
	var err error
	sig.Value, err = s.JSON(sig.Value)
	return sig, err
}

// State returns a state as it is shown to people: without the values of its secret keys, which only the record has.
func (s *Secrets) State(state graph.State) graph.State {
	if s == nil {
		return state
	}
	return graph.NewState(s.without(state.Object().Value(), s.graph.Schema.IsSecret).AsObject())
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
