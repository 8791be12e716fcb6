package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/tool"
)

// TestFit brings arguments into the declared types, or says what is wrong.
func TestFit(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},
		"l":{"type":"array","items":{"type":"integer"}},"o":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},
		"e":{"type":"string","enum":["1","two"]},"u":{"anyOf":[{"type":"integer"},{"type":"null"}]},"t":{"type":["string","null"]},
		"r":{"$ref":"#/$defs/r"},"any":{},"null":{"type":"string","nullable":true},
		"p":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2},"m":{"enum":[true,"a",1,null]},
		"w":{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"string"}}]},"id":{"type":"string"},"ID":{"type":"integer"}},"required":["s"],"$defs":{"r":{"type":"boolean"}}}`
	for _, tt := range []struct{ name, in, want, wrong string }{
		{"as_it_is", `{"s": "a",  "i":1, "other": 1.10}`, `{"s": "a",  "i":1, "other": 1.10}`, ""},
		{"empty_text", `{"s":""}`, `{"s":""}`, ""},
		{"integer", `{"s":"","i":"3"}`, `{"s":"","i":3}`, ""},
		{"large_integer", `{"s":"","i":"9007199254740993"}`, `{"s":"","i":9007199254740993}`, ""},
		{"integer_with_fraction", `{"s":"","i":5.0}`, `{"s":"","i":5}`, ""},
		{"number", `{"s":"","n":"-1.5"}`, `{"s":"","n":-1.5}`, ""},
		{"boolean", `{"s":"","b":"false"}`, `{"s":"","b":false}`, ""},
		{"list_in_text", `{"s":"","l":"[1, \"2\"]"}`, `{"s":"","l":[1,2]}`, ""},
		{"object_in_text", `{"s":"","o":"{\"x\":\"1\"}"}`, `{"s":"","o":{"x":1}}`, ""},
		{"number_for_enum", `{"s":"","e":1}`, `{"s":"","e":"1"}`, ""},
		{"union", `{"s":"","u":"7"}`, `{"s":"","u":7}`, ""},
		{"null_of_union", `{"s":"","u":null,"t":null,"any":null}`, `{"s":"","u":null,"t":null,"any":null}`, ""},
		{"null_means_nothing", `{"s":"","i":null}`, `{"s":""}`, ""},
		{"nullable", `{"s":"","null":null}`, `{"s":"","null":null}`, ""},
		{"tuple", `{"s":"","p":["1","a"]}`, `{"s":"","p":[1,"a"]}`, ""},
		{"tuple_element", `{"s":"","p":[1,2]}`, "", `argument "p[1]" must be of type string, not the number 2`},
		{"tuple_short", `{"s":"","p":[1]}`, "", `argument "p" must have at least 2 elements, not 1`},
		{"tuple_long", `{"s":"","p":[1,"a",1]}`, "", `argument "p" must have at most 2 elements, not 3`},
		{"mixed_enum", `{"s":"","m":null}`, `{"s":"","m":null}`, ""},
		{"text_for_enum", `{"s":"","m":"True"}`, `{"s":"","m":true}`, ""},
		{"element_of_a_form", `{"s":"","w":[1]}`, "", `wrong: argument "w[0]" must be of type string, not the number 1`},
		{"case_of_names", `{"s":"","id":"x","ID":"5"}`, `{"s":"","id":"x","ID":5}`, ""},
		{"reference", `{"s":"","r":"true"}`, `{"s":"","r":true}`, ""},
		{"number_for_text", `{"s":1.10}`, "", `argument "s" must be of type string, not the number 1.1`},
		{"boolean_for_text", `{"s":true}`, "", `argument "s" must be of type string, not the boolean true`},
		{"missing", `{}`, "", `argument "s" is missing`},
		{"null_for_required", `{"s":null}`, "", `argument "s" must be of type string, not null`},
		{"words_for_boolean", `{"s":"","b":"no"}`, "", `argument "b" must be of type boolean, not the string "no"`},
		{"python_boolean", `{"s":"","b":"False"}`, "", `argument "b"`},
		{"number_for_boolean", `{"s":"","b":0}`, "", `argument "b" must be of type boolean, not the number 0`},
		{"words_for_integer", `{"s":"","i":"abc"}`, "", `argument "i" must be of type integer`},
		{"leading_zero", `{"s":"","i":"007"}`, "", `argument "i"`},
		{"fraction_for_integer", `{"s":"","i":1.5}`, "", `argument "i"`},
		{"too_large_for_integer", `{"s":"","i":"123456789012345678901234567890"}`, "", `argument "i"`},
		{"text_for_list", `{"s":"","l":"a,b"}`, "", `argument "l" must be of type array`},
		{"element", `{"s":"","l":[1,"x"]}`, "", `argument "l[1]" must be of type integer`},
		{"member", `{"s":"","o":{}}`, "", `argument "o.x" is missing`},
		{"list_for_text", `{"s":["a"]}`, "", `argument "s" must be of type string, not an array`},
		{"not_in_enum", `{"s":"","e":"three"}`, "", `argument "e" must be one of "1", "two"`},
		{"no_form", `{"s":"","u":"x"}`, "", `of type integer, not the string "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tool.Fit(json.RawMessage(schema), json.RawMessage(tt.in), tool.FitOptions{})
			if tt.wrong != "" {
				if err == nil || !strings.Contains("wrong: "+err.Error(), tt.wrong) {
					t.Errorf("got %s, error %v, want %s", got, err, tt.wrong)
				}
			} else if err != nil || string(got) != tt.want {
				t.Errorf("got %s, error %v, want %s", got, err, tt.want)
			}
		})
	}
	for _, s := range []string{``, `true`, `{"type":"object","properties":{"i":{"type":"any"}},"required":true}`, `{"$ref":"https://other.test/s"}`, `{"$ref":"#"}`} {
		if got, err := tool.Fit(json.RawMessage(s), json.RawMessage(`{"i":"x"}`), tool.FitOptions{}); err != nil || string(got) != `{"i":"x"}` {
			t.Errorf("schema %s: got %s, error %v", s, got, err)
		}
	}
	known, words := tool.FitOptions{Known: true}, tool.FitOptions{Words: true}
	if _, err := tool.Fit(json.RawMessage(schema), json.RawMessage(`{"s":"","x":1}`), known); err == nil || !strings.Contains(err.Error(), `argument "x" is not known; known: s, i, n`) {
		t.Errorf("unknown argument: %v", err)
	}
	if got, err := tool.Fit(json.RawMessage(schema), json.RawMessage(`{"s":{"a":1.10},"l":"7","t":1.10}`), words); err != nil || string(got) != `{"s":"{\"a\":1.10}","l":"7","t":"1.10"}` {
		t.Errorf("words: got %s, error %v", got, err)
	}
}
