package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
)

func TestParameters(t *testing.T) {
	all := schema.All()
	all.ObjectRoot, all.Names = true, true
	few := schema.Subset{
		Keywords: []string{"description", "anyOf", "format", "additionalProperties"}, Formats: []string{"date"},
		ObjectRoot: true, Names: true, Described: true, PlainValues: true,
	}
	bare := all
	bare.BareRoot = true
	for _, tt := range []struct {
		name   string
		subset schema.Subset
		in     string
		want   string
	}{
		{
			"root_one_of", all, `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"},"k":{"const":"x"}},"required":["a","k"]},{"properties":{"b":{"type":"integer"},"k":{"const":"y"}},"required":["k","b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"k":{"enum":["x","y"]},"b":{"type":"integer"}},"required":["k"]}`,
		},
		{
			"root_any_of_required", all, `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{},"b":{}}}`,
		},
		{
			"root_all_of", all, `{"allOf":[{"$ref":"#/definitions/A"},{"properties":{"b":{"type":"string"}},"required":["b"]}],"definitions":{"A":{"properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]}`,
		},
		{
			"root_if", all, `{"type":"object","properties":{"a":{"type":"string"}},"if":{"properties":{"a":{"const":"x"}}},"then":{"properties":{"b":{}},"required":["b"]}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"const":"x"}]},"b":{}}}`,
		},
		{
			"root_ref", all, `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
		},
		{
			"lookahead", all, `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x).*$","minLength":2},"b":{"type":"string","pattern":"^x"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","minLength":2},"b":{"type":"string","pattern":"^x"}}}`,
		},
		{
			"lookahead_in_names", all, `{"type":"object","properties":{"a":{"type":"object","patternProperties":{"(?!b)":{}, "^c":{}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","patternProperties":{"^c":{}}}}}`,
		},
		{
			"no_target", all, `{"type":"object","properties":{"a":{"$ref":"#/$defs/none","description":"A"},"b":{"$ref":"https://example.com/s.json"},"c":{"type":"string"}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"description":"A"},"b":{},"c":{"type":"string"}},"required":["a"]}`,
		},
		{
			"targets", all, `{"type":"object","properties":{"a":{"$ref":"#/definitions/a%20b"},"b":{"$ref":"#/properties/a","description":"B"},"c":{"$ref":"#here"},"d":{"$ref":"x.json"},"e":{"$ref":"F"}},"definitions":{"a b":{"type":"string"},"c":{"$anchor":"here","type":"integer"},"d":{"$id":"x.json","type":"null"},"F":{"type":"number"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/a_20b"},"b":{"$ref":"#/$defs/a","description":"B"},"c":{"$ref":"#/$defs/here"},"d":{"$ref":"#/$defs/x.json"},"e":{"$ref":"#/$defs/F"}},"$defs":{"a_20b":{"type":"string"},"a":{"$ref":"#/$defs/a_20b"},"here":{"type":"integer"},"x.json":{"type":"null"},"F":{"type":"number"}}}`,
		},
		{
			"recursion", all, `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`,
		},
		{
			"recursion_inlined", few, `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"next":{"type":"object"}}}}}`,
		},
		{
			"circle", all, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{},{"type":"string"}]}}}`,
		},
		{
			"draft_4", all, `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"required":true},"b":{"type":"integer","maximum":9,"exclusiveMaximum":false},"c":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}}}`,
			`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0},"b":{"type":"integer","maximum":9},"c":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}},"required":["a"]}`,
		},
		{
			"tuple", all, `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]},"b":{"type":"array","items":[{"type":"string"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":{}},"b":{"type":"array","prefixItems":[{"type":"string"}],"items":{}}}}`,
		},
		{
			"empty_value", few, `{"type":"object","properties":{"a":{"type":"string","enum":["","x"]},"b":{"type":"string","enum":[""]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string"}}}`,
		},
		{
			"booleans", all, `{"type":"object","properties":{"a":true,"b":false,"c":{"type":"array"}},"required":["b","a"]}`,
			`{"type":"object","properties":{"a":{},"c":{"type":"array","items":{}}},"required":["a"]}`,
		},
		{
			"nulls", all, `{"type":"object","properties":null,"required":null,"description":null,"additionalProperties":null}`,
			`{"type":"object","properties":{}}`,
		},
		{
			"odd_values", all, `{"type":"object","properties":{"a":{"type":"any","enum":[],"minLength":-1,"maxLength":"3","multipleOf":0,"uniqueItems":"yes","default":null},"b":{"type":["STRING","string","null"],"enum":["x","x",null]},"c":{"type":"float","format":7}},"required":["a","a",1]}`,
			`{"type":"object","properties":{"a":{"default":null},"b":{"type":["string","null"],"enum":["x",null]},"c":{"type":"number"}},"required":["a"]}`,
		},
		{
			"nullable", all, `{"type":"object","properties":{"a":{"type":"string","nullable":true,"enum":["x"]}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]}}}`,
		},
		{
			"names", all, `{"type":"object","properties":{"user.name":{},"filter[a]":{"type":"string","description":"F"},"größe":{},"filter_a":{},"x":{"type":"object","properties":{"$top":{}},"required":["$top"]}},"required":["filter[a]"]}`,
			`{"type":"object","properties":{"user.name":{},"filter_a_2":{"type":"string","description":"\"filter[a]\": F"},"gr__e":{"description":"\"größe\""},"filter_a":{},"x":{"type":"object","properties":{"top":{"description":"\"$top\""}},"required":["top"]}},"required":["filter_a_2"]}`,
		},
		{"required_only", all, `{"type":"object","required":["a"]}`, `{"type":"object","required":["a"],"properties":{"a":{}}}`},
		{
			"few", few, `{"type":"object","title":"t","properties":{"a":{"type":"string","format":"uri","minLength":1},"b":{"const":true},"c":{"const":"x"},"d":{"oneOf":[{"type":"string","format":"date"},{"type":"null"}]},"e":{"allOf":[{"type":"string"},{"description":"E"}]},"f":{"enum":["a",null],"type":["string","null"]},"g":{"type":"object","required":["z"]}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{"enum":["x"],"type":"string"},"d":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]},"e":{"type":"string","description":"E"},"f":{"enum":["a"],"type":["string","null"]},"g":{"type":"object"}},"additionalProperties":false}`,
		},
		{
			"bare", bare, `{"type":"object","description":"d","properties":{"a":{"description":"A"}},"additionalProperties":false,"required":["a"]}`,
			`{"type":"object","properties":{"a":{"description":"A"}},"required":["a"]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, ok := tt.subset.Parameters(parse(t, tt.in))
			if got := p.Schema.String(); got != tt.want || !ok {
				t.Errorf("got  %s, %t\nwant %s", got, ok, tt.want)
			}
			if _, err := schema.Compile(p.Schema); err != nil {
				t.Error(err)
			}
			if again, _ := tt.subset.Parameters(p.Schema); again.Schema.String() != p.Schema.String() {
				t.Errorf("again %s", again.Schema)
			}
		})
	}
}

// TestParametersOfNames looks at the way back.
func TestParametersOfNames(t *testing.T) {
	t.Parallel()
	s := schema.All()
	s.Names = true
	long := strings.Repeat("n", 70)
	p, ok := s.Parameters(parse(t, fmt.Sprintf(`{"properties":{"a b":{},"a/b":{"properties":{"a b":{}}},%q:{},"":{}}}`, long)))
	want := fmt.Sprint(map[string]string{"a_b": "a b", "a_b_2": "a/b", long[:64]: long, "member": ""})
	if fmt.Sprint(p.Names) != want || !ok {
		t.Errorf("got %v, want %s", p.Names, want)
	}
}

// TestLargeParameters: every member stays, whatever the depth or size.
func TestLargeParameters(t *testing.T) {
	t.Parallel()
	all := schema.All()
	all.ObjectRoot = true
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 400) + "{}" + strings.Repeat("}}", 400)
	wide := `{"type":"object","properties":{`
	for i := range 300 {
		wide += fmt.Sprintf(`"p%d":{"type":"object","properties":{"q":{"type":"string","description":%q}}},`, i, strings.Repeat("d", 400))
	}
	wide = strings.TrimSuffix(wide, ",") + "}}"
	doubled := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 60 {
		doubled += fmt.Sprintf(`"d%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/d%d"},"r":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	doubled += `"d60":{"type":"string"}}}`
	inlined := all
	inlined.Keywords = all.Keywords[1:]
	for name, tt := range map[string]struct {
		subset  schema.Subset
		in      string
		members int
	}{"deep": {all, deep, 1}, "wide": {all, wide, 300}, "doubled": {inlined, doubled, 1}} {
		p, ok := tt.subset.Parameters(parse(t, tt.in))
		properties, _ := p.Schema.AsObject().Get("properties")
		if size := len(p.Schema.String()); !ok || size > 64<<10 || properties.AsObject().Len() != tt.members {
			t.Errorf("%s: %t, %d bytes, %d members", name, ok, size, properties.AsObject().Len())
		}
	}
	var members []value.Member
	for i := range 9000 {
		members = append(members, value.Member{Name: fmt.Sprint("member", i), Value: value.ObjectOf().Value()})
	}
	if _, ok := all.Parameters(value.ObjectOf(value.Member{Name: "properties", Value: value.ObjectOf(members...).Value()}).Value()); ok {
		t.Error("9000 members are declared")
	}
}
