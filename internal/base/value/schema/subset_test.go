package schema_test

import (
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
)

func parse(t testing.TB, text string) value.Value {
	t.Helper()
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestReduce(t *testing.T) {
	t.Parallel()
	strict := schema.Subset{Keywords: []string{"anyOf", "minimum", "format"}, Formats: []string{"date"}, Closed: true, AllRequired: true, ObjectRoot: true}
	closed := schema.Subset{Keywords: []string{"anyOf", "const", "$defs"}, Closed: true}
	open := schema.Subset{Keywords: []string{"oneOf", "additionalProperties", "prefixItems"}}
	for _, tt := range []struct {
		name, in string
		subset   schema.Subset
		want     string // empty if the subset cannot say it
	}{
		{
			"strict", `{"$schema":"x","type":"object","properties":{"b":{"type":"integer","minimum":1,"exclusiveMaximum":9},"a":{"type":"string","default":"x","format":"date"}},"required":["b"]}`, strict,
			`{"type":"object","properties":{"b":{"type":"integer","minimum":1},"a":{"type":["string","null"],"format":"date"}},"required":["b","a"],"additionalProperties":false}`,
		},
		{"unknown_format", `{"type":"object","properties":{"a":{"type":"string","format":"iri"}},"required":["a"]}`, strict, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		{"optional_enum", `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`, strict, `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]}},"required":["a"],"additionalProperties":false}`},
		{"optional_reference", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, strict, `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`},
		{"nullable_already", `{"type":"object","properties":{"a":{"type":["null","string"]}}}`, strict, `{"type":"object","properties":{"a":{"type":["null","string"]}},"required":["a"],"additionalProperties":false}`},
		{
			"const_and_type_of_values", `{"type":"object","properties":{"a":{"const":true},"b":{"enum":["x",1]}},"required":["a","b"]}`, strict,
			`{"type":"object","properties":{"a":{"enum":[true],"type":"boolean"},"b":{"enum":["x",1],"type":["string","number"]}},"required":["a","b"],"additionalProperties":false}`,
		},
		{
			"one_of", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"]}`, strict,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"],"additionalProperties":false}`,
		},
		{
			"nested", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string","pattern":"y"}},"required":["x"],"additionalProperties":true}}},"required":["l"]}`, strict,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}}},"required":["l"],"additionalProperties":false}`,
		},
		{"optional_stays", `{"type":"object","properties":{"a":{"type":"string"},"b":{"const":1}},"required":["b"]}`, closed, `{"type":"object","properties":{"a":{"type":"string"},"b":{"const":1,"type":"number"}},"required":["b"],"additionalProperties":false}`},
		{
			"definitions", `{"$defs":{"p":{"type":"object","properties":{"x":{"type":"string"}}}},"type":"array","items":{"$ref":"#/$defs/p"}}`, closed,
			`{"$defs":{"p":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}},"type":"array","items":{"$ref":"#/$defs/p"}}`,
		},
		{"root_of_another_type", `{"type":"array","items":{"type":"string"}}`, strict, ""},
		{"map", `{"type":"object","additionalProperties":{"type":"number"}}`, strict, ""},
		{"map_beside_members", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"number"}}`, closed, ""},
		{"map_where_it_can_be_said", `{"type":"object","additionalProperties":{"type":"number","minimum":1}}`, open, `{"type":"object","additionalProperties":{"type":"number"}}`},
		{"object_without_members", `{"type":"object"}`, closed, ""},
		{"anything", `{"type":"object","properties":{"a":{}}}`, strict, ""},
		{"true", `true`, closed, ""},
		{"all_of", `{"allOf":[{"type":"string"}]}`, closed, ""},
		{"pattern_properties", `{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"x":{"type":"string"}}}`, closed, ""},
		{"any_of_not_known", `{"anyOf":[{"type":"string"}]}`, open, ""},
		{"one_of_known", `{"oneOf":[{"type":"string"}]}`, open, `{"oneOf":[{"type":"string"}]}`},
		{"old_tuple", `{"type":"array","items":[{"type":"string"}]}`, open, ""},
		{"tuple", `{"type":"array","prefixItems":[{"type":"string"}]}`, open, `{"type":"array","prefixItems":[{"type":"string"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := tt.subset.Reduce(parse(t, tt.in))
			if ok != (tt.want != "") || ok && got.String() != tt.want {
				t.Errorf("%t, got\n%s\nwant\n%s", ok, got, tt.want)
			}
		})
	}
}

func TestWithoutNulls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, shape, in, want string }{
		{"optional", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, `{"a":null,"b":null,"c":null}`, `{"b":null,"c":null}`},
		{"may_be_null", `{"properties":{"a":{"type":["string","null"]},"b":{"enum":[1,null]},"c":{},"d":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":null,"b":null,"c":null,"d":null}`, `{"a":null,"b":null,"c":null,"d":null}`},
		{"enum", `{"properties":{"a":{"enum":[1]}}}`, `{"a":null}`, `{}`},
		{"deep", `{"$defs":{"p":{"properties":{"a":{"$ref":"#/$defs/s"}}},"s":{"type":"string"}},"items":{"$ref":"#/$defs/p"}}`, `[{"a":null},{"a":"x"}]`, `[{},{"a":"x"}]`},
		{"loop", `{"$ref":"#"}`, `{"a":null}`, `{"a":null}`},
		{"lost_reference", `{"properties":{"a":{"$ref":"#/nowhere"}}}`, `{"a":null}`, `{"a":null}`},
		{"no_object", `{"type":"string"}`, `"x"`, `"x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := schema.WithoutNulls(parse(t, tt.shape), parse(t, tt.in)); got.String() != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzReduce checks that every schema that is taken is reduced to one that is taken, and that
// a reply without anything optional that satisfies the former satisfies the latter.
func FuzzReduce(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"const":1},{"$ref":"#/$defs/a"}]}}}`)
	f.Add(`{"items":[{"enum":[null,[],{}]}],"properties":3,"required":{"a":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := value.ParseJSON([]byte(text))
		if err != nil {
			return
		}
		schema.WithoutNulls(v, v)
		if _, err := schema.Compile(v); err != nil {
			return
		}
		subset := schema.Subset{Keywords: []string{"anyOf", "$defs"}, Closed: true, AllRequired: true}
		reduced, ok := subset.Reduce(v)
		if !ok {
			return
		}
		if _, err := schema.Compile(reduced); err != nil {
			t.Errorf("%s became %s: %v", v, reduced, err)
		}
	})
}
