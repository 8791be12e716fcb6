package run

import (
	"fmt"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
)

// TestSecretEvents emits what has secrets in it, with and without their values known.
func TestSecretEvents(t *testing.T) {
	g, _, err := graph.Parse("g", []byte(`
name: x
state: {token: {secret: true}, pin: {type: integer, secret: true}}
start: ask
nodes:
  ask: {type: input, question: q, state_updates: {token: "{{input}}"}, next: z}
  z: {type: end}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := secretsOf(g)
	s.add([]value.Member{{Name: "token", Value: value.ListOf(value.Of("hunter-two")).Value()}, {Name: "pin", Value: value.Of(42)}, {Name: "other", Value: value.Of("shown to all")}})
	c := new(eventtest.Collector)
	events := event.NewScope(c, event.Source{}, nil).Through(s.emitter)
	emit := func(node string, b event.Body) event.Body {
		t.Helper()
		before := len(c.Events())
		if err := events.With(func(src *event.Source) { src.Node = node }).Emit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if len(c.Events()) == before {
			return nil
		}
		return c.Events()[before].Body
	}
	if b := emit("ask", event.Answer{Text: "not known yet"}); b.(event.Answer).Text != "***" {
		t.Errorf("%+v", b)
	}
	if b := emit("ask", event.Delta{Text: "not known yet"}); b != nil {
		t.Errorf("%+v", b)
	}
	if b := emit("z", event.Reply{Text: "it is hunter-two, shown to all"}); b.(event.Reply).Text != "it is ***token***, shown to all" {
		t.Errorf("%+v", b)
	}
	values := emit("z", event.StateUpdated{Values: []value.Member{{Name: "pin", Value: value.Of(42)}, {Name: "n", Value: value.Of(42)}, {Name: "t", Value: value.Of("hunter-two")}}}).(event.StateUpdated).Values
	for i, want := range []string{`"***"`, `42`, `"***token***"`} {
		if got := values[i].Value.String(); got != want {
			t.Errorf("%s is shown as %s, want %s", values[i].Name, got, want)
		}
	}
	if r := s.result(graph.Result{Err: &graph.NodeError{Node: "a", Err: errFor("bad hunter-two")}}); r.Err.Error() != `at node "a": bad ***token***` {
		t.Error(r.Err)
	}
}

// TestShownQuestions shows questions with secrets in them, and gives answers by what is shown.
func TestShownQuestions(t *testing.T) {
	g, _, err := graph.Parse("g", []byte("name: x\nstate: {token: {secret: true}}\nstart: z\nnodes: {z: {type: end}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := secretsOf(g)
	s.add([]value.Member{{Name: "token", Value: value.ListOf(value.Of("hunter-two"), value.Of("hunter-three")).Value()}})
	var checked string
	q := s.question(ask.Question{
		Kind: ask.Choice, Text: "Take hunter-two?", Options: []string{"no", "hunter-two", "hunter-three"}, Default: "hunter-three", HasDefault: true,
		Validate: func(answer string) error { checked = answer; return nil },
	})
	if shown := fmt.Sprint(q.Text, q.Options, q.Default); shown != "Take ***token***?[no ***token*** ***token*** (2)]***token*** (2)" {
		t.Error(shown)
	}
	for answer, want := range map[string]string{"no": "no", "***token***": "hunter-two", q.Default: "hunter-three", "own": "own", "hunter-two": "hunter-two"} {
		if got := q.meaning(answer); got != want {
			t.Errorf("%q means %q, want %q", answer, got, want)
		}
		if err := q.Validate(answer); err != nil || checked != want {
			t.Errorf("%q is checked as %q, %v", answer, checked, err)
		}
	}
	q = s.question(ask.Question{Kind: ask.Multi, Options: []string{"no", "hunter-two"}})
	if got := q.meaning(`["no","***token***"]`); got != `["no","hunter-two"]` {
		t.Error(got)
	}
	q = s.question(ask.Question{Kind: ask.Text, Default: "sent by hunter-two", HasDefault: true})
	if got := q.meaning("sent by ***token***"); got != "sent by hunter-two" {
		t.Error(got)
	}
	var none *Secrets
	if q = none.question(ask.Question{Kind: ask.Multi, Options: []string{"no"}}); q.meaning(`[ "no" ]`) != `[ "no" ]` {
		t.Error(q.meaning(`[ "no" ]`))
	}
}

type errFor string

func (e errFor) Error() string { return string(e) }
