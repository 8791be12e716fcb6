package builtin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/tooltest"
)

func askWith(t *testing.T, a ask.Asker, name, args string) (string, error) {
	t.Helper()
	set, err := tool.NewSet(builtin.UserTools(a, ask.Question{Agent: "helper"})...)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := tool.NewBox(tool.Options{Tools: set}).Call(t.Context(), chat.ToolCall{Name: name, Arguments: args}, steps.Steps{})
	return text, err
}

func TestUserTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tool, args, answer, want string
		kind                           ask.Kind
		options                        string
	}{
		{"ask", "user__ask", `{"question": "Which?", "options": ["a", "b"]}`, "b", `{"answer":"b"}`, ask.Choice, "a b"},
		{"options_as_text", "user__ask", `{"question": "Which?", "options": "[\"a\", 1, \"b\"]"}`, "own", `{"answer":"own"}`, ask.Choice, "a b"},
		{"no_options", "user__ask", `{"question": "Which?", "options": []}`, "own", `{"answer":"own"}`, ask.Text, ""},
		{"confirm", "user__confirm", `{"question": "Sure?"}`, "no", `{"answer":"no"}`, ask.Select, "yes no"},
		{"input", "user__input", `{"question": "Name?"}`, `"x"`, `{"answer":"\"x\""}`, ask.Text, ""},
		{"checkbox", "user__checkbox", `{"question": "Which?", "options": ["a", "b"]}`, `["a","b"]`, `{"answers":["a","b"]}`, ask.Multi, "a b"},
		{"checkbox_none", "user__checkbox", `{"question": "Which?", "options": ["a"]}`, `[]`, `{"answers":[]}`, ask.Multi, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := asktest.NewScripted(tt.answer)
			text, err := askWith(t, a, tt.tool, tt.args)
			if err != nil || text != tt.want {
				t.Errorf("got %s, %v; want %s", text, err, tt.want)
			}
			if asked := a.Asked(); len(asked) != 1 || asked[0].Kind != tt.kind || strings.Join(asked[0].Options, " ") != tt.options || asked[0].Agent != "helper" {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestUserToolsFail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		asker      ask.Asker
		tool, args string
		want       string
	}{
		{"nobody", ask.Unavailable{}, "user__input", `{"question": "?"}`, `{"tool_call_error":"question of helper: no user can be asked here. Use your own judgment, or continue without"}`},
		{"no_question", ask.Unavailable{}, "user__input", `{"question": " "}`, `{"tool_call_error":"argument \"question\" is missing or empty"}`},
		{"no_options", ask.Unavailable{}, "user__checkbox", `{"question": "?", "options": []}`, `{"tool_call_error":"argument \"options\" has no options"}`},
		{"options_missing", ask.Unavailable{}, "user__ask", `{"question": "?"}`, `{"tool_call_error":"argument \"options\" must be a list of strings, such as [\"yes\", \"no\"]"}`},
		{"options_no_list", ask.Unavailable{}, "user__ask", `{"question": "?", "options": "a, b"}`, `{"tool_call_error":"argument \"options\" must be a list of strings, such as [\"yes\", \"no\"]"}`},
	} {
		if text, err := askWith(t, tt.asker, tt.tool, tt.args); err != nil || text != tt.want {
			t.Errorf("%s: got %s, %v; want %s", tt.name, text, err, tt.want)
		}
	}
	suspended := ask.Func(func(context.Context, ask.Question) (string, error) { return "", fault.New(fault.Suspended, "wait") })
	if _, err := askWith(t, suspended, "user__input", `{"question": "?"}`); fault.CodeOf(err) != fault.Suspended {
		t.Errorf("got %v", err)
	}
	if _, err := askWith(t, ask.Func(func(context.Context, ask.Question) (string, error) { return "", errors.New("broken") }), "user__input", `{"question": "?"}`); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestUserToolsConform(t *testing.T) {
	a := ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		if q.Kind == ask.Multi {
			return ask.JoinAnswers(q.Options), nil
		}
		return "yes", nil
	})
	for _, subject := range builtin.UserTools(a, ask.Question{}) {
		t.Run(subject.Declaration().Name, func(t *testing.T) {
			tooltest.Run(t, tooltest.Case{New: func(testing.TB) tool.Tool { return subject }, Good: []string{`{"question": "?", "options": ["a", "b"]}`}, Bad: []string{`{"question": 1}`}})
		})
	}
}

// late is the error of an asker that knows what to do without an answer.
type late struct{}

func (late) Error() string    { return "no answer within 5 seconds" }
func (late) Fallback() string { return "use your own judgment" }

func TestUserToolReportsTheFallback(t *testing.T) {
	t.Parallel()
	a := ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		if q.ID != "call" {
			t.Errorf("the question has the id %q", q.ID)
		}
		return "", late{}
	})
	text, err := askWith(t, a, "user__checkbox", `{"question": "Which?", "options": ["a"]}`)
	if want := `{"error":"no answer within 5 seconds","fallback":"use your own judgment"}`; err != nil || text != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}
