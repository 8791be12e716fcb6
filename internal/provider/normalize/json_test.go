package normalize_test

import (
	"encoding/json"
	"testing"

	"loki/internal/provider/normalize"
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

func TestSchemas(t *testing.T) {
	const empty = `{"properties":{},"type":"object"}`
	for _, tt := range []struct{ name, in, properties, object string }{
		{"nothing", " ", empty, empty},
		{"null", "null", empty, empty},
		{"without_members", "{}", empty, empty},
		{"whole", ` {"type":"object", "properties":{"a":{}}}`, ` {"type":"object", "properties":{"a":{}}}`, ` {"type":"object", "properties":{"a":{}}}`},
		{"without_type", `{"title":"<", "properties":{"a":{}}}`, `{"title":"<", "properties":{"a":{}}}`, `{"properties":{"a":{}},"title":"<","type":"object"}`},
		{"without_properties", `{"type":"object","title":"<"}`, `{"properties":{},"title":"<","type":"object"}`, `{"properties":{},"title":"<","type":"object"}`},
		{"of_another_type", `{"type":["object","null"]}`, `{"properties":{},"type":["object","null"]}`, `{"properties":{},"type":["object","null"]}`},
		{"no_object", "true", "true", empty},
		{"malformed", `{"type":`, `{"type":`, empty},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := normalize.WithProperties(json.RawMessage(tt.in)); string(got) != tt.properties {
				t.Errorf("with properties %s, want %s", got, tt.properties)
			}
			if got := normalize.ObjectSchema(json.RawMessage(tt.in)); string(got) != tt.object {
				t.Errorf("as an object %s, want %s", got, tt.object)
			}
		})
	}
}

// FuzzObjectSchema checks that every text gives an object with type and properties, and
// that this one is left alone.
func FuzzObjectSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object"}`))
	f.Add([]byte(`{"properties":null}`))
	f.Add([]byte("null"))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := normalize.ObjectSchema(in)
		var members map[string]json.RawMessage
		if err := json.Unmarshal(out, &members); err != nil || members["type"] == nil || members["properties"] == nil {
			t.Fatalf("%q gives %q: %v", in, out, err)
		}
		if again := normalize.ObjectSchema(out); string(again) != string(out) {
			t.Errorf("%q gives %q", out, again)
		}
	})
}
