package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/llm/chat"
)

func TestParseArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want, wantErr string }{
		{name: "valid", in: `{"a": [1, "x,}"]}`, want: `{"a": [1, "x,}"]}`},
		{name: "blanks_around", in: " {}\n", want: `{}`},
		{name: "nothing", in: "  ", want: `{}`},
		{name: "null", in: "null", want: `{}`},
		{name: "object_in_a_string", in: `"{\"a\": 1}"`, want: `{"a": 1}`},
		{name: "fence", in: "```json\n{\"a\": 1}\n```", want: `{"a": 1}`},
		{name: "fence_without_language", in: "```\n{\"a\": 1}\n```", want: `{"a": 1}`},
		{name: "comma_before_brace", in: `{"a": 1, }`, want: `{"a": 1 }`},
		{name: "comma_before_bracket", in: `{"a": [1, 2,]}`, want: `{"a": [1, 2]}`},
		{name: "comma_in_string", in: `{"a": ",}",}`, want: `{"a": ",}"}`},
		{name: "quote_in_string", in: `{"a": "\",}",}`, want: `{"a": "\",}"}`},
		{name: "brace_missing", in: `{"a": "x"`, want: `{"a": "x"}`},
		{name: "brackets_missing", in: `{"a": [{"b": true`, want: `{"a": [{"b": true}]}`},
		{name: "line_breaks_in_string", in: "{\"a\": \"x\n\ty\"}", want: `{"a": "x\u000a\u0009y"}`},
		{name: "several", in: "{\"a\": [\"x\ny\",]", want: `{"a": ["x\u000ay"]}`},

		{name: "array", in: `[1]`, wantErr: "JSON object"},
		{name: "number", in: `1`, wantErr: "JSON object"},
		{name: "text_in_a_string", in: `"ls"`, wantErr: "JSON object"},
		{name: "prose", in: `ls -l`, wantErr: `invalid character 'l'`},
		{name: "half_a_string", in: `{"command": "rm -rf /tmp/a`, wantErr: `unexpected end of JSON input, after "and\": \"rm -rf /tmp/a"`},
		{name: "half_an_escape", in: `{"a": "x\`, wantErr: "escape"},
		{name: "half_a_number", in: `{"lines": 12`, wantErr: "unexpected end"},
		{name: "more_to_come", in: `{"a": "x",`, wantErr: "unexpected end"},
		{name: "value_to_come", in: `{"a":`, wantErr: "unexpected end"},
		{name: "key_only", in: `{"a": 1, "b"`, wantErr: "unexpected end"},
		{name: "only_a_comma", in: `{,}`, wantErr: "invalid character ','"},
		{name: "two_commas", in: `{"a": 1,,}`, wantErr: "invalid character ','"},
		{name: "wrong_bracket", in: `{"a": [1}`, wantErr: "invalid character '}'"},
		{name: "bracket_too_many", in: `{"a": 1}}`, wantErr: "after top-level value"},
		{name: "single_quotes", in: `{'a': 'it is'}`, wantErr: `invalid character '\''`},
		{name: "bad_escape", in: `{"a": "\d+",}`, wantErr: "escape"},
		{name: "escaped_line_break", in: "{\"a\": \"x\\\ny\"}", wantErr: "escape"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := chat.ParseArguments(tt.in)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got %s and the error %v, want %q in it", got, err, tt.wantErr)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func FuzzParseArguments(f *testing.F) {
	for _, seed := range []string{
		`{"command": "ls -l"}`, `{"a": [1, 2,], }`, `{"a": "x`, `{"a": {"b": [true`, "{\"a\": \"x\ny\"}",
		"```json\n{}\n```", `"{\"a\": 1}"`, `{"a": "\`, `[`, `null`, ``, `{,}`, `"\ud800"`, `{"a": 1}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := chat.ParseArguments(text)
		if err != nil {
			if got != nil || err.Error() == "" {
				t.Fatalf("got %s with the error %q", got, err)
			}
			return
		}
		if !json.Valid(got) || got[0] != '{' {
			t.Fatalf("%q became %q, which is no JSON object", text, got)
		}
		if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) && string(got) != trimmed {
			t.Fatalf("valid %q became %q", text, got)
		}
		again, err := chat.ParseArguments(string(got))
		if err != nil || string(again) != string(got) {
			t.Fatalf("%q became %q, and that %q, %v", text, got, again, err)
		}
	})
}

func TestCleanJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"\ud83d\ude0b"}`: `{"a":"\ud83d\ude0b"}`,
		`{"a":"x\ud99c"}`:      `{"a":"x\ufffd"}`,
		`{"a":"\ude0b\ud83d"}`: `{"a":"\ufffd\ufffd"}`,
		`{"a":"\\ud83d"}`:      `{"a":"\\ud83d"}`,
		"{\"a\":\"\xff\"}":     "{\"a\":\"\uFFFD\"}",
		`{"a":"\ud8`:           `{"a":"\ud8`,
		`\ud83d\ud83d\ude0b`:   `\ufffd\ud83d\ude0b`,
	} {
		if got := chat.CleanJSON(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
