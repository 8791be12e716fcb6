package schema

import (
	"strings"
	"testing"

	"loki/internal/base/value"
)

func TestParseReply(t *testing.T) {
	const f = "```"
	for _, tt := range []struct{ name, text, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"array", `[1,2.0]`, `[1,2.0]`},
		{"string", `"x"`, `"x"`},
		{"number", `-3`, `-3`},
		{"null", `null`, `null`},
		{"white_space", " \n\u00a0{\"a\":1}\u2003\n", `{"a":1}`},
		{"fence_json", f + "json\n{\"a\":1}\n" + f, `{"a":1}`},
		{"fence_bare", f + "\n[1]\n" + f, `[1]`},
		{"fence_one_line", f + "json {\"a\":1} " + f, `{"a":1}`},
		{"fence_never_closed", f + "json\n{\"a\":1}", `{"a":1}`},
		{"fence_never_opened", "{\"a\":1}\n" + f, `{"a":1}`},
		{"fence_in_string", `{"code":"` + f + `go"}`, `{"code":"` + f + `go"}`},
		{"prose_before", `Here you are: {"a":1}`, `{"a":1}`},
		{"prose_around", "Sure! For {name}:\n" + f + "json\n{\"a\":{\"b\":[{}]}}\n" + f + "\nAnything else?", `{"a":{"b":[{}]}}`},
		{"prose_after", `{"a":1} Anything else?`, `{"a":1}`},
		{"other_language", f + "yaml\n{\"a\":1}\n" + f, `{"a":1}`},
		{"large_integer", `18446744073709551615`, `18446744073709551615`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ParseReply(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if v.String() != tt.want {
				t.Errorf("got %s, want %s", v, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, text string }{
		{"empty", ""},
		{"only_fence", f + "json\n" + f},
		{"partial", `{"a":`},
		{"part_of_a_partial", `Here: {"a":{"b":1}, "c":`},
		{"two_in_prose", `Either {"a":1} or {"a":2}.`},
		{"list_in_prose", `See [1].`},
		{"braces_in_prose", `Use {name} here.`},
		{"two_values", `{} {}`},
		{"two_fences", f + "json\n{}\n" + f + "\n" + f + "json\n{}\n" + f},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v, err := ParseReply(tt.text); err == nil {
				t.Errorf("accepted as %s", v)
			}
		})
	}
}

func FuzzParseReply(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5,null]}`, "```json\n{\"a\":1}\n```", "```\n[]\n```", "``````", "```json", "prose {}", "\ufeff{}",
		"1e999", "\"\\ud800\"", "[[[[", "{\"a\":1}```", "` ` `",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseReply(text)
		if err != nil {
			return
		}
		for _, again := range []string{v.String(), "```json\n" + v.Lines() + "\n```"} {
			w, err := ParseReply(again)
			if err != nil {
				t.Fatalf("%q gave %s, which does not read back: %v", text, v, err)
			}
			if !value.Equal(v, w) {
				t.Fatalf("%q gave %s, which reads back as %s", text, v, w)
			}
		}
	})
}

func TestHint(t *testing.T) {
	schema := parse(t, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}`)
	hint := Hint(schema)
	for _, want := range []string{"JSON", "ONLY", "Schema:\n{\n  \"type\": \"object\",\n  \"properties\": {\n    \"b\": {"} {
		if !strings.Contains(hint, want) {
			t.Errorf("hint lacks %q:\n%s", want, hint)
		}
	}
	if list := Hint(parse(t, `{"type":"array"}`)); strings.Contains(list, "JSON object") {
		t.Errorf("asks for an object where the schema wants an array:\n%s", list)
	}
}

func TestExtractPrompt(t *testing.T) {
	system, user := ExtractPrompt(parse(t, `{"type":"object"}`), "the text")
	if want := "Schema:\n{\n  \"type\": \"object\"\n}\n\nInput:\nthe text"; user != want {
		t.Errorf("user text is\n%s\nwant\n%s", user, want)
	}
	if !strings.Contains(system, "starts with { and ends with }") {
		t.Errorf("system text does not demand an object:\n%s", system)
	}
}

func TestRepairPrompt(t *testing.T) {
	schema := parse(t, `{"type":"object"}`)
	_, user := RepairPrompt(schema, "the text", "not json", nil)
	for _, want := range []string{"previous response was not valid JSON", "Schema:\n{", "Previous response:\nnot json", "Input:\nthe text"} {
		if !strings.Contains(user, want) {
			t.Errorf("lacks %q:\n%s", want, user)
		}
	}

	_, user = RepairPrompt(schema, "[]", "[]", []Violation{{Message: "must be an object"}, {Path: "/a", Message: "is required"}})
	for _, want := range []string{"previous response", "\n- (root): must be an object\n- /a: is required\n", "Previous response:\n[]"} {
		if !strings.Contains(user, want) {
			t.Errorf("lacks %q:\n%s", want, user)
		}
	}
	if strings.Contains(user, "Input:") {
		t.Errorf("repeats the input, which is the previous response:\n%s", user)
	}
}
