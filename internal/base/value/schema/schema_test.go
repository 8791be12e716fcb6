package schema

import (
	"strings"
	"testing"

	"loki/internal/base/value"
)

func parse(t testing.TB, text string) value.Value {
	t.Helper()
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestValidate(t *testing.T) {
	const task = `{
		"type": "object",
		"properties": {
			"action": {"type": "string", "minLength": 1},
			"minutes": {"type": ["integer", "null"]},
			"items": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/item"}}
		},
		"required": ["action", "items"],
		"additionalProperties": false,
		"$defs": {"item": {
			"type": "object",
			"properties": {
				"name": {"type": "string"},
				"priority": {"enum": ["low", "medium", "high"]}
			},
			"required": ["name"]
		}}
	}`
	const shapes = `{"oneOf": [
		{"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number", "exclusiveMinimum": 0}}, "required": ["kind", "r"]},
		{"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
		{"type": "null"}
	]}`
	for _, tt := range []struct {
		name, schema, value string
		want                []string
	}{
		{"conforms", task, `{"action":"buy","minutes":null,"items":[{"name":"milk","priority":"low"}]}`, nil},
		{"missing_members", task, `{}`, []string{
			`/action: is required, but missing`,
			`/items: is required, but missing`,
		}},
		{"several_places", task, `{"action":"","minutes":"soon","items":[{"name":"milk"},{"priority":"urgent"}],"note":1}`, []string{
			`/action: must have at least 1 character, got 0`,
			`/minutes: must be an integer or null, got the string "soon"`,
			`/items/1/name: is required, but missing`,
			`/items/1/priority: must be one of "low", "medium", "high", got the string "urgent"`,
			`/note: is not allowed here`,
		}},
		{"wrong_root", task, `["buy"]`, []string{`(root): must be an object, got an array`}},
		{"too_many_items", task, `{"action":"x","items":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`, []string{
			`/items: must have at most 3 elements, got 4`,
		}},
		{"whole_float_is_integer", task, `{"action":"x","items":[],"minutes":15.0}`, nil},
		{"fraction_is_no_integer", task, `{"action":"x","items":[],"minutes":1.5}`, []string{
			`/minutes: must be an integer or null, got the number 1.5`,
		}},
		{"largest_unsigned", `{"type":"integer","maximum":18446744073709551615}`, `18446744073709551615`, nil},
		{"large_integers_are_exact", `{"type":"integer","maximum":9007199254740992}`, `9007199254740993`, []string{
			`(root): must be at most 9007199254740992, got 9007199254740993`,
		}},
		{"float_beyond_int64_is_integer", `{"type":"integer"}`, `1e20`, nil},
		{"int_equals_float_in_enum", `{"enum":[1,2.0]}`, `2`, nil},
		{"int_equals_float_in_const", `{"const":{"a":1.0}}`, `{"a":1}`, nil},
		{"decimal_multiple", `{"multipleOf":0.01}`, `19.99`, nil},
		{"decimal_no_multiple", `{"multipleOf":0.01}`, `19.999`, []string{`(root): must be a multiple of 0.01, got 19.999`}},
		{"large_multiple", `{"multipleOf":2}`, `18446744073709551615`, []string{`(root): must be a multiple of 2, got 18446744073709551615`}},
		{"large_integer_in_enum", `{"enum":[9007199254740993]}`, `9007199254740992`, []string{
			`(root): must be one of 9007199254740993, got the number 9007199254740992`,
		}},
		{"decimal_multiple_below_any_of", `{"anyOf":[{"type":"null"},{"multipleOf":0.1}]}`, `0.3`, nil},
		{"format_describes_only", `{"type":"string","format":"date"}`, `"tomorrow"`, nil},
		{"unknown_keywords_mean_nothing", `{"type":"string","nullable":true,"x-hint":{"type":3}}`, `"a"`, nil},
		{"pattern", `{"pattern":"^[a-z]+$"}`, `"A1"`, []string{`(root): must match the regular expression ^[a-z]+$, got the string "A1"`}},
		{"unique", `{"uniqueItems":true}`, `[{"a":1,"b":2},3,{"b":2.0,"a":1}]`, []string{
			`(root): must not repeat elements, but element 2 equals element 0`,
		}},
		{"draft7_tuple_without_schema_keyword", `{"items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`, `["a","b",3]`, []string{
			`/1: must be an integer, got the string "b"`,
			`/2: is not allowed here`,
		}},
		{"draft7_by_name", `{"$schema":"http://json-schema.org/draft-07/schema","dependencies":{"a":["b"]}}`, `{"a":1}`, []string{
			`/b: is required next to "a", but missing`,
		}},
		{"prefix_items", `{"prefixItems":[{"const":1}],"items":{"type":"string"}}`, `[2,3]`, []string{
			`/0: must be 1, got the number 2`,
			`/1: must be a string, got the number 3`,
		}},
		{
			"recursive", `{"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}},"$ref":"#/$defs/node"}`,
			`{"kids":[{"kids":[]},{"kids":[7]}]}`,
			[]string{`/kids/1/kids/0: must be an object, got the number 7`},
		},
		{"any_of_types", `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, `3`, []string{
			`(root): must be a string or must be an array, got the number 3`,
		}},
		{"nearest_by_type", shapes, `{"kind":"circle","r":-1}`, []string{
			`(root): matches none of the 3 alternatives (oneOf); what the nearest demands follows`,
			`/r: must be greater than 0, got -1`,
		}},
		{"optional_object", `{"anyOf":[{"type":"null"},{"type":"object","required":["a","b"]}]}`, `{"a":1}`, []string{
			`/b: is required, but missing`,
		}},
		{"two_of_one", `{"oneOf":[{"type":"number"},{"minimum":3},{"type":"null"}]}`, `5`, []string{
			`(root): must match exactly one of the 3 alternatives (oneOf), but matches number 1 and 2`,
		}},
		{"not", `{"not":{"type":"null"}}`, `null`, []string{`(root): must not match {"type":"null"}`}},
		{"conditional", `{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":2}`, []string{
			`/c: is required, but missing`,
		}},
		{"property_names", `{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, []string{`/abc: has a name that must have at most 2 characters, got 3`}},
		{"contains", `{"contains":{"const":1},"minContains":2}`, `[1,2]`, []string{`(root): must have at least 2 elements that match {"const":1}, got 1`}},
		{"escaped_names", `{"additionalProperties":{"type":"null"}}`, `{"a/b~c":1}`, []string{`/a~1b~0c: must be null, got the number 1`}},
		{"false_schema", `false`, `1`, []string{`(root): is not allowed here`}},
		{"true_schema", `true`, `1`, nil},
		{"relative_id", `{"$id":"person","$defs":{"n":{"$anchor":"name","type":"string"}},"properties":{"name":{"$ref":"#name"}}}`, `{"name":1}`, []string{
			`/name: must be a string, got the number 1`,
		}},
		{"unevaluated_members", `{"anyOf":[{"properties":{"a":true}},{"required":["x"],"properties":{"x":true,"b":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":1}`, []string{
			`/b: is not allowed here`,
		}},
		{"unevaluated_members_of_what_failed", `{"allOf":[{"properties":{"a":{"type":"null"}}}],"unevaluatedProperties":false}`, `{"a":1}`, []string{
			`/a: must be null, got the number 1`,
		}},
		{"unevaluated_elements", `{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":{"const":0}}`, `[1,"a",0,2]`, []string{
			`/3: must be 0, got the number 2`,
		}},
		{"dynamic_reference", `{"$ref":"tree","$dynamicAnchor":"node","unevaluatedProperties":false,"$defs":{"tree":{
			"$id":"tree","$dynamicAnchor":"node","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}}}`, `{"kids":[{"kid":1}]}`, []string{
			`/kids/0/kid: is not allowed here`,
		}},
		{"first_of_two_anchors", `{"$defs":{"a":{"$anchor":"x","type":"string"},"b":{"$anchor":"x"}},"$ref":"#x"}`, `1`, []string{
			`(root): must be a string, got the number 1`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile(parse(t, tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			got := s.Validate(parse(t, tt.value))
			if List(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("violations\n%s\nwant\n%s", List(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestValidateIsBounded(t *testing.T) {
	s, err := Compile(parse(t, `{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]value.Value, 500)
	got := s.Validate(value.ListOf(list...).Value())
	if len(got) != MaxViolations {
		t.Fatalf("%d violations, want %d", len(got), MaxViolations)
	}
	if want := "/9: must be a string, got null"; got[9].String() != want {
		t.Errorf("last is %q, want %q", got[9], want)
	}
}

func TestValidateQuotesLongValuesBriefly(t *testing.T) {
	s, err := Compile(parse(t, `{"enum":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Validate(value.Of(strings.Repeat("é", 5000)))
	if len(got) != 1 || len([]rune(got[0].Message)) > 140 {
		t.Errorf("got %d violations, the first of %d characters", len(got), len([]rune(got[0].Message)))
	}
}

func TestCompileErrors(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []string // fragments
	}{
		{"no_schema", `"string"`, []string{`(root): must be an object or a boolean, got the string "string"`}},
		{"list", `[]`, []string{"(root): must be an object or a boolean, got an array"}},
		{"unknown_type", `{"properties":{"a":{"type":"intger"}}}`, []string{
			"/properties/a/type", `must be one of "array", "boolean", "integer"`, `got the string "intger"`,
		}},
		{"unknown_type_in_list", `{"type":["string","nil"]}`, []string{"/type/1", `"nil"`}},
		{"required_is_no_list", `{"required":"a"}`, []string{"/required: must be an array"}},
		{"several", `{"required":"a","minLength":-1}`, []string{"/required: ", "/minLength: must be at least 0, got -1"}},
		{"null_property", `{"properties":{"a":null}}`, []string{"/properties/a: must be an object or a boolean, got null"}},
		{"missing_reference", `{"properties":{"a":{"$ref":"#/$defs/b"}}}`, []string{`/properties/a/$ref: there is no "#/$defs/b" in this schema`}},
		{"other_document", `{"$ref":"https://example.com/s.json"}`, []string{`/$ref: there is no "https://example.com/s.json"`}},
		{"endless_reference", `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, []string{"/$defs/a: this refers to itself endlessly"}},
		{"endless_through_any_of", `{"anyOf":[{"type":"string"},{"$ref":"#"}]}`, []string{"(root): this refers to itself endlessly"}},
		{"endless_through_first_anchor", `{"$anchor":"a","anyOf":[{"$ref":"#a"},{"$anchor":"a"}]}`, []string{"refers to itself endlessly"}},
		{"id_with_fragment", `{"$defs":{"a":{"$id":"x#y"}}}`, []string{"/$defs/a/$id: must not have a fragment"}},
		{"reference_to_no_schema", `{"default":{},"$ref":"#/default"}`, []string{`/$ref: there is no "#/default" in this schema`}},
		{"endless_dynamic", `{"$dynamicAnchor":"x","allOf":[{"$dynamicRef":"#x"}]}`, []string{"refers to itself endlessly"}},
		{"pattern", `{"properties":{"a":{"pattern":"(?<=x)y"}}}`, []string{"/properties/a/pattern: ", "(?<=x)y"}},
		{"pattern_property", `{"patternProperties":{"[":true}}`, []string{"/patternProperties: "}},
		{"unknown_draft", `{"$schema":"https://example.com/schema"}`, []string{`"https://example.com/schema" is not a known draft`}},
		{"old_exclusive", `{"exclusiveMinimum":true}`, []string{"/exclusiveMinimum: must be a number, got true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(parse(t, tt.schema))
			if err == nil {
				t.Fatal("compiled")
			}
			for _, want := range append(tt.want, "invalid JSON schema: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// Whatever a schema says, compiling it either fails or gives something that can judge
// any value without crashing.
func FuzzCompile(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":["integer","null"]}}}`, `{"a":1.5}`},
		{`{"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `1`},
		{`{"$dynamicAnchor":"x","items":{"$dynamicRef":"#x"}}`, `[[[1]]]`},
		{`{"items":[{"const":1}],"additionalItems":{"$ref":"#"}}`, `[1,[2]]`},
		{`{"oneOf":[{"multipleOf":0.1},{"pattern":"a+"}],"dependencies":{"a":["b"],"c":false}}`, `{"c":0.3}`},
		{`{"$id":"a","allOf":[{"$id":"b","$anchor":"c"},{"$ref":"b#c"}],"unevaluatedProperties":false}`, `{"d":1e308}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, instance string) {
		sv, err := value.ParseJSON([]byte(schema))
		if err != nil {
			return
		}
		v, err := value.ParseJSON([]byte(instance))
		if err != nil {
			return
		}
		s, err := Compile(sv)
		if err != nil {
			return
		}
		if found := s.Validate(v); len(found) > MaxViolations {
			t.Errorf("%d violations", len(found))
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	s, err := Compile(parse(b, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}},"required":["a","b"]}`))
	if err != nil {
		b.Fatal(err)
	}
	v := parse(b, `{"a":"x","b":[1,2,3,4,5,6,7,8]}`)
	b.ReportAllocs()
	for b.Loop() {
		if found := s.Validate(v); found != nil {
			b.Fatal(found)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	v := parse(b, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}},"required":["a","b"]}`)
	for b.Loop() {
		if _, err := Compile(v); err != nil {
			b.Fatal(err)
		}
	}
}
