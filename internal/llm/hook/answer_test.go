package hook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"loki/internal/llm/hook"
)

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", hook.MaxNote+1)
	for _, tt := range []struct {
		name    string
		kind    hook.Kind
		in      string
		want    string // the answer as JSON
		wantErr string
	}{
		{"nothing", hook.BeforeTool, " \n", "{}", ""},
		{"empty", hook.BeforeTool, "{}", "{}", ""},
		{"allow", hook.AfterModel, `{"action": "allow", "note": " a "}`, `{"action":"allow","note":"a"}`, ""},
		{"refuse", hook.BeforeModel, `{"action": "refuse", "reason": "no"}`, `{"action":"refuse","reason":"no"}`, ""},
		{"arguments", hook.BeforeTool, `{"arguments": {"a": [1, {"b": 2}]}}`, `{"arguments":{"a":[1,{"b":2}]}}`, ""},
		{"same_names_apart", hook.BeforeTool, `{"arguments": {"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}}`, `{"arguments":{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}}`, ""},
		{"result", hook.AfterTool, `{"result": ""}`, `{"result":""}`, ""},
		{"text", hook.BeforeTool, "all good", "", "its answer is not JSON: invalid character 'a' looking for beginning of value"},
		{"list", hook.BeforeTool, "[]", "", "its answer is not a JSON object"},
		{"null", hook.BeforeTool, "null", "", "its answer is not a JSON object"},
		{"two", hook.BeforeTool, "{}\n{}", "", "its answer is not a JSON object"},
		{"cut", hook.BeforeTool, `{"action": "all`, "", "its answer is not JSON: unexpected EOF"},
		{"binary", hook.BeforeTool, "{\"note\": \"\xff\"}", "", "its answer is not UTF-8"},
		{"action", hook.BeforeTool, `{"action": "deny"}`, "", `its action is "deny", and must be allow or refuse`},
		{"no_action", hook.BeforeTool, `{"action": null}`, "", "its action is not a text"},
		{"number", hook.BeforeTool, `{"reason": 1}`, "", "its reason is not a text"},
		{"other_tool", hook.BeforeTool, `{"tool": {"name": "execute_command"}}`, "", `its answer has the member "tool", which means nothing for before_tool`},
		{"case", hook.BeforeTool, `{"Action": "allow"}`, "", `its answer has the member "Action", which means nothing for before_tool`},
		{"repeated", hook.BeforeTool, `{"action": "refuse", "action": "allow"}`, "", `its answer has the member "action" twice`},
		{"repeated_in_case", hook.BeforeTool, `{"arguments": {"command": "ls", "Command": "rm"}}`, "", `its answer has the member "command" twice`},
		{"repeated_escaped", hook.BeforeTool, `{"arguments": {"a": 1, "\u0061": 2}}`, "", `its answer has the member "a" twice`},
		{"repeated_below", hook.BeforeTool, `{"arguments": {"x": [{"a": 1, "a": 2}]}}`, "", `its answer has the member "a" twice`},
		{"arguments_list", hook.BeforeTool, `{"arguments": []}`, "", "its arguments are not an object"},
		{"arguments_null", hook.BeforeTool, `{"arguments": null}`, "", "its arguments are not an object"},
		{"arguments_late", hook.AfterTool, `{"arguments": {}}`, "", `its answer has the member "arguments", which means nothing for after_tool`},
		{"result_early", hook.BeforeTool, `{"result": "x"}`, "", `its answer has the member "result", which means nothing for before_tool`},
		{"answer_to_a_question", hook.Question, `{"answer": "yes"}`, "", `its answer has the member "answer", which means nothing for question`},
		{"long_note", hook.BeforeTool, `{"note": "` + long + `"}`, `{"note":"` + long[:hook.MaxNote-len("…")] + `…"}`, ""},
		{"deep", hook.BeforeTool, `{"arguments": ` + strings.Repeat(`{"a":`, 20_000), "", "its answer is not JSON: unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, err := hook.ParseAnswer(tt.kind, []byte(tt.in))
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Fatalf("got the error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(a); string(got) != tt.want {
				t.Errorf("got %.200s", got)
			}
		})
	}
}

// FuzzParseAnswer checks that no answer panics, that what is accepted means one thing only, and that it stays within its
// limits.
func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"action":"refuse","reason":"x","note":"y"}`, `{"arguments":{"a":1,"A":2}}`, `{"result":"\u0000"}`, `[{}]`, `{"a":{"b":[1,{"c":{}}]}}`,
		`{"action":"allow"}{"action":"refuse"}`, "{\"note\":\"\xff\"}", `{"arguments":{"":0,"":1}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, printed string) {
		for _, kind := range hook.Kinds() {
			a, err := hook.ParseAnswer(kind, []byte(printed))
			if err != nil {
				continue
			}
			if len(a.Reason) > hook.MaxReason || len(a.Note) > hook.MaxNote || !utf8.ValidString(a.Note) {
				t.Fatalf("%s: %#v", kind, a)
			}
			if a.Arguments != nil && kind != hook.BeforeTool || a.Result != nil && kind != hook.AfterTool {
				t.Fatalf("%s: %#v", kind, a)
			}
			if a.Arguments != nil && !json.Valid(a.Arguments) {
				t.Fatalf("%s is not JSON", a.Arguments)
			}
		}
	})
}
