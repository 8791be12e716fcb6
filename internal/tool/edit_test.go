package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

const editIt = "edit the arguments"

// remover is a tool that the user is asked about. It notes what it was called with.
type remover struct{ got []string }

func (r *remover) Declaration() chat.Tool {
	return chat.Tool{Name: "remove", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"path":{"type":"string"}},"required":["path"]}`)}
}
func (r *remover) Hints() tool.Hints { return tool.Hints{Destructive: true} }
func (r *remover) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	r.got = append(r.got, string(c.Arguments))
	return tool.Result{Output: "removed"}, nil
}

// TestEditedArguments: a call runs with the arguments that the user gave it, which rules judge and the user sees before, and
// with no others.
func TestEditedArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		rules   []permission.Rule
		answers []string
		ran     string // arguments of the only call; empty for none
		want    string // in the result
		edited  bool
	}{
		{name: "edited", answers: []string{editIt, `{"path":"b"}`, "yes"}, ran: `{"path":"b"}`, want: `They are now: {"path":"b"}`, edited: true},
		{name: "key", answers: []string{"e", `{"path":"b"}`, "y"}, ran: `{"path":"b"}`, want: "removed", edited: true},
		{name: "typed_as_declared", answers: []string{editIt, `{"path":"b","n":"3"}`, "yes"}, ran: `{"path":"b","n":3}`, want: "removed", edited: true},
		{name: "twice", answers: []string{editIt, `{"path":"b"}`, editIt, `{"path":"c"}`, "yes"}, ran: `{"path":"c"}`, want: `They are now: {"path":"c"}`, edited: true},
		{name: "refused_after", answers: []string{editIt, `{"path":"b"}`, "no"}, want: "the user did not consent", edited: true},
		{name: "unchanged_needs_a_yes", answers: []string{editIt, `{"path":"a"}`, "no"}, want: "the user did not consent"},
		{name: "unchanged_and_a_yes", answers: []string{editIt, `{"path":"a"}`, "yes"}, ran: `{"path":"a"}`, want: "removed"},
		{name: "yes_alone", answers: []string{"yes"}, ran: `{"path":"a"}`, want: "removed"},
		{name: "denied_by_a_rule", rules: []permission.Rule{{Tool: "remove", Arguments: []permission.Argument{{Name: "path", Pattern: "secret"}}, Action: permission.Deny}}, answers: []string{editIt, `{"path":"secret"}`}, want: "it is not allowed", edited: true},
		{name: "wrong", answers: []string{editIt, `{"n":1}`}, want: "not valid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &remover{}
			set, err := tool.NewSet(r)
			if err != nil {
				t.Fatal(err)
			}
			o := tool.Options{Tools: set, Asker: raw(tt.answers...)}
			if o.Judge, err = permission.New(permission.Options{Root: t.TempDir(), Rules: permission.Rules{List: tt.rules}}); err != nil {
				t.Fatal(err)
			}
			box := tool.NewBox(o)
			call := chat.ToolCall{ID: "1", Name: "remove", Arguments: `{"path":"a"}`}
			text, _, err := box.Call(t.Context(), call, steps.Steps{})
			if err != nil || strings.Join(r.got, " ") != tt.ran || !strings.Contains(text, tt.want) {
				t.Errorf("ran with %q: %s, %v; want %q: %s", r.got, text, err, tt.ran, tt.want)
			}
			_, original, edited := box.EditedArguments(call)
			if edited != tt.edited || edited && original != call.Arguments {
				t.Errorf("edited: %v, from %q", edited, original)
			}
			if edited != strings.Contains(text, "The user edited the arguments") {
				t.Errorf("the model reads %s", text)
			}
		})
	}
}

// raw answers with texts in order, whatever the questions are.
func raw(answers ...string) ask.Asker {
	return ask.Func(func(context.Context, ask.Question) (string, error) {
		if len(answers) == 0 {
			return "", errors.New("asked too often")
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	})
}

// TestEditedReplay: a call that ran with edited arguments is not made, and not asked about, again.
func TestEditedReplay(t *testing.T) {
	t.Parallel()
	r := &remover{}
	set, err := tool.NewSet(r)
	if err != nil {
		t.Fatal(err)
	}
	rec := memory{}
	var texts []string
	for _, asker := range []ask.Asker{raw(editIt, `{"path":"b"}`, "yes"), asktest.NewScripted()} {
		box := tool.NewBox(tool.Options{Tools: set, Asker: asker})
		text, failed, err := box.Call(t.Context(), chat.ToolCall{ID: "1", Name: "remove", Arguments: `{"path":"a"}`}, steps.New(rec))
		if err != nil || failed {
			t.Fatal(text, err)
		}
		texts = append(texts, text)
	}
	if texts[0] != texts[1] || len(r.got) != 1 {
		t.Errorf("%d calls, the results are %q; on record are %q", len(r.got), texts, slices.Sorted(maps.Keys(rec)))
	}
}

// memory is a recorder in memory.
type memory map[string][]byte

func (m memory) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	result, done := m[key]
	return steps.Record{Result: result, Done: done}, nil
}
func (memory) Begin(context.Context, string, steps.Step) error { return nil }
func (memory) Forget(context.Context, string) error            { return nil }
func (m memory) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	m[key] = result
	return nil
}
