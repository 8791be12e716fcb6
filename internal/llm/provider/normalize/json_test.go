package normalize_test

import (
	"encoding/json"
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
)

func TestArguments(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"object", " {\"b\": 1, \"a\": \"<\"}\n", `{"b": 1, "a": "<"}`},
		{"nothing", " \n", "{}"},
		{"null", " null ", "{}"},
		{"cut_off", `{"a":`, `{"malformed_arguments":"{\"a\":"}`},
		{"text_behind", `{} x`, `{"malformed_arguments":"{} x"}`},
		{"list", `["<"]`, `{"malformed_arguments":"[\"<\"]"}`},
		{"text", ` a`, `{"malformed_arguments":" a"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := normalize.Arguments(tt.in); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzArguments checks that every text gives an object.
func FuzzArguments(f *testing.F) {
	f.Add(`{"a":1}`)
	f.Add(`{"a":`)
	f.Add("null")
	f.Add("\xff")
	f.Add("{\"a\":\"\xff\"}")
	f.Fuzz(func(t *testing.T, in string) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(normalize.Arguments(in), &members); err != nil || members == nil {
			t.Errorf("%q gives %q: %v", in, normalize.Arguments(in), err)
		}
	})
}

func TestDeclare(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", " ", `{"type":"object","properties":{}}`},
		{"null", "null", `{"type":"object","properties":{}}`},
		{"without_members", "{}", `{"type":"object","properties":{}}`},
		{"whole", ` {"type":"object", "properties":{"a":{}}}`, ` {"type":"object", "properties":{"a":{}}}`},
		{"without_type", `{"title":"<", "properties":{"a":{}}}`, `{"type":"object","title":"<","properties":{"a":{}}}`},
		{"without_properties", `{"type":"object","title":"<"}`, `{"type":"object","title":"<","properties":{}}`},
		{"of_another_type", `{"type":["object","null"]}`, `{"type":"object","properties":{}}`},
		{"no_object", "true", `{"type":"object","properties":{}}`},
		{"malformed", `{"type":`, `{"type":"object","properties":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := normalize.OpenAITools().Declare(chat.Tool{Name: "t", Parameters: json.RawMessage(tt.in)}, nil)
			if string(got.Parameters) != tt.want || !ok {
				t.Errorf("got %s, %t, want %s", got.Parameters, ok, tt.want)
			}
		})
	}
}

// FuzzDeclare checks that every text gives an object with type and properties that compiles, and
// that this one is left alone.
func FuzzDeclare(f *testing.F) {
	f.Add([]byte(`{"type":"object"}`))
	f.Add([]byte(`{"properties":null}`))
	f.Add([]byte("null"))
	f.Add([]byte(`[`))
	f.Add([]byte(`{"oneOf":[{"properties":{"a b":{"const":1},"c":{"items":[true]}},"required":["a b"]},{"$ref":"#/$defs/x"}],"$defs":{"x":{"properties":{"a b":{"const":2},"r":{"$ref":"#"}}}}}`))
	f.Add([]byte(`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"anyOf":[{"$ref":"#/properties/a"},{"required":true}]}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, d := range []normalize.Dialect{normalize.OpenAITools(), normalize.GeminiTools(), normalize.ConverseTools(), normalize.CohereTools()} {
			one, ok := d.Declare(chat.Tool{Name: "t", Parameters: in}, nil)
			if !ok {
				continue
			}
			v, err := value.ParseJSON(one.Parameters)
			if err != nil {
				t.Fatalf("%q gives %q: %v", in, one.Parameters, err)
			}
			if properties, _ := v.AsObject().Get("properties"); properties.AsObject() == nil {
				t.Fatalf("%q gives %q", in, one.Parameters)
			}
			if _, err := schema.Compile(v); err != nil {
				t.Fatalf("%q gives %q: %v", in, one.Parameters, err)
			}
			if again, _ := d.Declare(one.Tool, nil); string(again.Parameters) != string(one.Parameters) {
				t.Errorf("%q gives %q, and that %q", in, one.Parameters, again.Parameters)
			}
		}
	})
}
