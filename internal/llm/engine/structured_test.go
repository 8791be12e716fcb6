package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

func TestStructured(t *testing.T) {
	t.Parallel()
	shape, err := value.ParseJSON([]byte(`{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"]}`))
	if err != nil {
		t.Fatal(err)
	}
	form, err := schema.Compile(shape)
	if err != nil {
		t.Fatal(err)
	}
	const question, good, bad, prose = "How good?", `{"score":7}`, `{"score":"seven"}`, "I would say seven."
	extractPrompt := func(text string) string { _, user := schema.ExtractPrompt(shape, text); return user }
	repairPrompt := func(text, last string) string {
		_, violations, _ := form.Read(last)
		_, user := schema.RepairPrompt(shape, text, last, violations)
		return user
	}
	for _, tt := range []struct {
		name    string
		extract bool
		replies []string // the first is checked, the others answer requests for another one
		prompts []string // of those requests
		keys    []string // of their steps
		wrong   string   // what is wrong with the last reply
	}{
		{name: "conforms", replies: []string{good}},
		{name: "conforms_without_extraction", extract: true, replies: []string{good}},
		{name: "corrected", replies: []string{bad, good}, prompts: []string{repairPrompt(question, bad)}, keys: []string{"repair/model/1"}},
		{name: "extracted", extract: true, replies: []string{prose, good}, prompts: []string{extractPrompt(prose)}, keys: []string{"extract/model/1"}},
		{
			name: "extracted_and_corrected", extract: true, replies: []string{prose, bad, good},
			prompts: []string{extractPrompt(prose), repairPrompt(prose, bad)}, keys: []string{"extract/model/1", "repair/model/1"},
		},
		{
			name: "never_conforms", replies: []string{prose, bad}, prompts: []string{repairPrompt(question, prose)}, keys: []string{"repair/model/1"},
			wrong: `/score: must be an integer, got the string "seven"`,
		},
		{
			name: "correction_fails", replies: []string{prose, ""}, prompts: []string{repairPrompt(question, prose)}, keys: []string{"repair/model/1"},
			wrong: "model c:m: the reply is empty: it has neither text nor a tool call (stop reason stop, 1 output tokens, 0 of them reasoning)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			for _, text := range tt.replies[1:] {
				f.replies = append(f.replies, says(text))
			}
			var rec record
			rc, _ := newContext()
			rc.Steps = steps.New(&rec)
			req := user(question)
			req.Form = form
			first := Reply{Text: tt.replies[0], Messages: []chat.Message{chat.Text(chat.Assistant, tt.replies[0])}, Usage: chat.Usage{InputTokens: 5}}
			v, reply, err := newEngine(t, Model{Provider: f}).StructuredValue(t.Context(), rc, req, first, tt.extract)
			if tt.wrong == "" {
				if err != nil {
					t.Fatal(err)
				}
				if v.String() != good || reply.Messages[0].Text() != tt.replies[0] {
					t.Errorf("got %s, messages %v", v, reply.Messages)
				}
			} else if err == nil || err.Error() != tt.wrong {
				t.Errorf("error is %v, want %s", err, tt.wrong)
			}
			if want := 5 + 10*(len(tt.replies)-1); reply.Usage.InputTokens != want {
				t.Errorf("%d input tokens, want %d", reply.Usage.InputTokens, want)
			}
			var prompts []string
			for _, r := range f.requests {
				if prompts = append(prompts, r.Messages[1].Text()); r.Format == nil {
					t.Error("the provider was not asked for the form")
				}
			}
			if diff := cmp.Diff(tt.prompts, prompts); diff != "" {
				t.Error("prompts", diff)
			}
			if diff := cmp.Diff(tt.keys, rec.keys()); diff != "" {
				t.Error("steps", diff)
			}
		})
	}
}

func TestFormErrorHoldsTheLastReply(t *testing.T) {
	t.Parallel()
	form, err := schema.Compile(value.Of(true))
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{replies: [][]provider.Chunk{says("still not JSON")}}
	rc, _ := newContext()
	req := user("hi")
	req.Form = form
	_, _, err = newEngine(t, Model{Provider: f}).StructuredValue(t.Context(), rc, req, Reply{Text: "not JSON"}, false)
	unfit, ok := errors.AsType[*FormError](err)
	if !ok || unfit.Last != "still not JSON" || unfit.Err == nil || unfit.Violations != nil {
		t.Errorf("error is %#v", err)
	}
}
