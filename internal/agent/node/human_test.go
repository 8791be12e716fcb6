package node_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

func TestApprovalRoutes(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"route", "accept", "accepted accept"},
		{"other_option", "reject", "rejected reject"},
		{"own_answer", "shorter, please", "other shorter, please"},
		{"other_case_is_another_answer", "Accept", "other Accept"},
		{"nothing", "", "other "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := ask.Question{}
			w := world{asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
				asked = q
				return tt.answer, nil
			})}
			out, c, err := w.drive(t.Context(), t, `
initial_state: {draft: a text, choice: before}
start: review
nodes:
  review:
    type: approval
    question: "Publish {{draft}}?"
    options: [accept, reject]
    routes: {accept: accepted, reject: rejected}
    on_other: other
    state_updates: {wish: "{{choice}}"}
  accepted: {type: end, output: "accepted {{wish}}"}
  rejected: {type: end, output: "rejected {{wish}}"}
  other: {type: end, output: "other {{wish}}"}
`)
			if err != nil || out.Output != tt.want {
				t.Errorf("output %q, %v, want %q", out.Output, err, tt.want)
			}
			if asked.Text != "Publish a text?" || !slices.Equal(asked.Options, []string{"accept", "reject"}) || asked.Node != "review" || asked.Kind != ask.Choice {
				t.Errorf("asked %+v", asked)
			}
			if got := state(out, "choice"); got != `"before"` {
				t.Errorf("the scoped variable left %s behind", got)
			}
			question, answer := eventtest.Bodies[event.Question](c)[0], eventtest.Bodies[event.Answer](c)[0]
			if question.Text != "Publish a text?" || answer.Text != tt.answer || question.ID != answer.ID || question.ID == "" {
				t.Errorf("events %+v, %+v", question, answer)
			}
		})
	}
}

func TestInputRules(t *testing.T) {
	for _, tt := range []struct {
		name, fields, answer string
		want                 string
		err                  string
	}{
		{name: "text", answer: "Ada", want: "Ada"},
		{name: "nothing", answer: "", want: ""},
		{name: "default", fields: "default: 'you, {{name}}', ", answer: "", want: "you, Bob"},
		{name: "valid", fields: "validation: len(input) >= 3, ", answer: "Ada", want: "Ada"},
		{name: "invalid", fields: "validation: len(input) >= 3, ", answer: "Al", err: "len(input) >= 3"},
		{name: "counted_in_characters", fields: "validation: len(input) <= 3, ", answer: "äöü", want: "äöü"},
		{name: "default_is_not_validated", fields: "default: x, validation: len(input) >= 3, ", answer: "", want: "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
				if q.Text != "Hello Bob, who are you?" || q.Kind != ask.Text {
					t.Errorf("asked %+v", q)
				}
				return tt.answer, nil
			})}
			out, _, err := w.drive(t.Context(), t, `
initial_state: {name: Bob}
start: who
nodes:
  who: {type: input, question: "Hello {{name}}, who are you?", `+tt.fields+`state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "{{who}}"}
`)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if out.Output != tt.want {
				t.Errorf("output %q, want %q", out.Output, tt.want)
			}
		})
	}
}

func TestQuestionsWithoutAHuman(t *testing.T) {
	for _, tt := range []struct {
		name  string
		asker ask.Asker
		code  fault.Code
		parts []string
	}{
		{"unavailable", nil, fault.Suspended, []string{`"who"`, "Your name?"}},
		{"end_of_the_pipe", ask.NewPiped(strings.NewReader("")), fault.Suspended, []string{`"who"`, "Your name?"}},
		{"interrupted", ask.Func(func(context.Context, ask.Question) (string, error) { return "", context.Canceled }), fault.Canceled, []string{"input interaction failed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, c, err := world{asker: tt.asker}.drive(t.Context(), t, `
start: who
nodes:
  who: {type: input, question: "Your name?", next: done}
  done: {type: end, output: ""}
`)
			if fault.CodeOf(err) != tt.code {
				t.Errorf("error %v with code %s, want %s", err, fault.CodeOf(err), tt.code)
			}
			for _, part := range tt.parts {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v lacks %q", err, part)
				}
			}
			if len(eventtest.Bodies[event.Question](c)) != 1 || len(eventtest.Bodies[event.Answer](c)) != 0 {
				t.Errorf("events %v", c.Events())
			}
		})
	}
}

func TestQuestionOfWhatIsMissing(t *testing.T) {
	_, c, err := world{asker: asktest.NewScripted("yes")}.drive(t.Context(), t, `
start: review
nodes:
  review: {type: approval, question: "About {{nothing}}?", options: [yes], routes: {yes: done}, on_other: done}
  done: {type: end, output: ""}
`)
	if err == nil || !strings.Contains(err.Error(), "question: ") || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("error %v", err)
	}
	if len(eventtest.Bodies[event.Question](c)) != 0 {
		t.Error("it was asked")
	}
}
