package normalize_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
)

// refusal returns why a provider would refuse a declaration, by its documentation and its error messages; "" if it takes it.
type refusal func(t chat.Tool) string

func refusals() map[string]struct {
	dialect normalize.Dialect
	refuses refusal
} {
	type row = struct {
		dialect normalize.Dialect
		refuses refusal
	}
	return map[string]row{
		"openai":  {normalize.OpenAITools(), refusedByOpenAI},
		"claude":  {normalize.ClaudeTools(), refusedByClaude},
		"gemini":  {normalize.GeminiTools(), refusedByGemini},
		"bedrock": {normalize.ConverseTools(), refusedByNova},
		"cohere":  {normalize.CohereTools(), refusedByCohere},
	}
}

var compositions = []string{"oneOf", "anyOf", "allOf", "enum", "not"}

// walk calls see with each schema in v.
func walk(v value.Value, root bool, see func(o *value.Object, root bool)) {
	o := v.AsObject()
	if o == nil {
		return
	}
	see(o, root)
	for keyword, arg := range o.All() {
		switch keyword {
		case "properties", "$defs", "patternProperties", "dependentSchemas":
			for _, sub := range arg.AsObject().All() {
				walk(sub, false, see)
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems":
			walk(arg, false, see)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := arg.AsList()
			for _, sub := range list.All() {
				walk(sub, false, see)
			}
		}
	}
}

// common is what all providers demand: an object that compiles by draft 2020-12, with a name of letters.
func common(t chat.Tool, rule func(o *value.Object, root bool) string) string {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(t.Name) {
		return "name " + t.Name
	}
	v, err := value.ParseJSON(t.Parameters)
	if err != nil {
		return err.Error()
	}
	if _, err := schema.Compile(v); err != nil {
		return err.Error()
	}
	why := ""
	walk(v, true, func(o *value.Object, root bool) {
		typed, _ := o.Get("type")
		name, _ := typed.AsString()
		if root && name != "object" {
			why = "the root is not an object"
		}
		if items, ok := o.Get("items"); ok && items.Kind() == value.ListKind {
			why = "items is a list"
		}
		for _, keyword := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
			if limit, ok := o.Get(keyword); ok && limit.Kind() == value.Bool {
				why = keyword + " is a boolean"
			}
		}
		if r := rule(o, root); r != "" {
			why = r
		}
	})
	return why
}

func has(o *value.Object, keyword string) bool { _, ok := o.Get(keyword); return ok }

func refusedByOpenAI(t chat.Tool) string {
	return common(t, func(o *value.Object, root bool) string {
		if root && !has(o, "properties") {
			return "object schema missing properties"
		}
		if root && slices.ContainsFunc(compositions, func(k string) bool { return has(o, k) }) {
			return "composition at the root"
		}
		typed, _ := o.Get("type")
		if strings.Contains(typed.String(), `"array"`) && !has(o, "items") {
			return "array schema missing items"
		}
		return ""
	})
}

func refusedByClaude(t chat.Tool) string {
	key := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	return common(t, func(o *value.Object, root bool) string {
		if root && (has(o, "oneOf") || has(o, "anyOf") || has(o, "allOf")) {
			return "composition at the root"
		}
		properties, _ := o.Get("properties")
		for name := range properties.AsObject().All() {
			if !key.MatchString(name) {
				return "property key " + name
			}
		}
		return ""
	})
}

func refusedByGemini(t chat.Tool) string {
	takes := []string{"type", "title", "description", "properties", "required", "additionalProperties", "enum", "format", "minimum", "maximum", "items", "prefixItems", "minItems", "maxItems", "anyOf"}
	if !regexp.MustCompile(`^[a-zA-Z_]`).MatchString(t.Name) {
		return "name " + t.Name
	}
	return common(t, func(o *value.Object, _ bool) string {
		for keyword := range o.All() {
			if !slices.Contains(takes, keyword) {
				return "keyword " + keyword
			}
		}
		enum, _ := o.Get("enum")
		list, _ := enum.AsList()
		for _, item := range list.All() {
			if k := item.Kind(); k == value.Null || k == value.Bool || k == value.ObjectKind || k == value.ListKind {
				return "enum of " + k.String()
			}
		}
		properties, _ := o.Get("properties")
		required, _ := o.Get("required")
		names, _ := required.AsList()
		for _, n := range names.All() {
			name, _ := n.AsString()
			if _, ok := properties.AsObject().Get(name); !ok {
				return "required " + name + " is not described"
			}
		}
		return ""
	})
}

func refusedByNova(t chat.Tool) string {
	return common(t, func(o *value.Object, root bool) string {
		for keyword := range o.All() {
			if root && keyword != "type" && keyword != "properties" && keyword != "required" {
				return "keyword at the root: " + keyword
			}
			if keyword == "$ref" {
				return keyword
			}
		}
		return ""
	})
}

func refusedByCohere(t chat.Tool) string {
	return common(t, func(o *value.Object, _ bool) string {
		for _, keyword := range []string{"allOf", "oneOf", "not", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "uniqueItems", "patternProperties"} {
			if has(o, keyword) {
				return "keyword " + keyword
			}
		}
		return ""
	})
}

// members returns the names of the arguments that a schema has, those of its alternatives included.
func members(v value.Value, names map[string]bool) {
	properties, _ := v.AsObject().Get("properties")
	for name, sub := range properties.AsObject().All() {
		if never, ok := sub.AsBool(); !ok || never {
			names[name] = true
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		arg, _ := v.AsObject().Get(keyword)
		list, _ := arg.AsList()
		for _, sub := range list.All() {
			members(sub, names)
		}
	}
}

// declares reports what is wrong with how a tool is declared: refused by the provider, or with arguments that got lost.
func declares(d normalize.Dialect, refuses refusal, tool chat.Tool) string {
	one, ok := d.Declare(tool, map[string]bool{})
	if !ok {
		return "left out"
	}
	if why := refuses(one.Tool); why != "" {
		return fmt.Sprintf("refused: %s: %.300s", why, one.Parameters)
	}
	before, err := value.ParseJSON(tool.Parameters)
	if err != nil {
		return ""
	}
	after, _ := value.ParseJSON(one.Parameters)
	want, got := make(map[string]bool), make(map[string]bool)
	members(before, want)
	members(after, got)
	for name := range got {
		if own, ok := one.Names[name]; ok {
			got[own] = true
		}
	}
	for name := range want {
		if !got[name] {
			return fmt.Sprintf("the argument %s is lost: %.300s", name, one.Parameters)
		}
	}
	return ""
}

// TestPublicTools declares the tools of public MCP servers to each provider.
func TestPublicTools(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n, servers := 0, make(map[string]bool)
	for lines.Scan() {
		var tool struct {
			Server, Name string
			InputSchema  json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &tool); err != nil {
			t.Fatal(err)
		}
		n++
		servers[tool.Server] = true
		for provider, p := range refusals() {
			if why := declares(p.dialect, p.refuses, chat.Tool{Name: strings.ReplaceAll(tool.Name, ".", "_"), Parameters: tool.InputSchema}); why != "" {
				t.Errorf("%s: %s of %s: %s", provider, tool.Name, tool.Server, why)
			}
		}
	}
	if n < 300 || len(servers) < 20 {
		t.Errorf("only %d tools of %d servers", n, len(servers))
	}
}

// TestReportedSchemas declares what other programs were reported to stumble over.
func TestReportedSchemas(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"array_without_items":          `{"type":"object","properties":{"texts":{"type":"array","description":"words"}}}`,
		"array_among_types":            `{"type":"object","properties":{"meta":{"type":"array","items":{"type":"object","properties":{"value":{"type":["null","object","string","number","boolean","integer","array"]}}}}}}`,
		"object_without_properties":    `{"type":"object"}`,
		"reference_to_a_property":      `{"type":"object","properties":{"urls":{"type":"array","items":{"type":"string"}},"headers":{"type":"object"},"actions":{"type":"array","items":{"$ref":"#/properties/headers"}}},"required":["urls"]}`,
		"reference_beside_description": `{"type":"object","properties":{"q":{"$ref":"#/$defs/Q","description":"d","title":"t"}},"$defs":{"Q":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
		"reference_to_nothing_defined": `{"type":"object","properties":{"t":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/ContextResult"}]}}}`,
		"enum_without_type":            `{"type":"object","properties":{"c":{"type":"array","items":{"enum":["read_files"]}}}}`,
		"enum_of_numbers_and_null":     `{"type":"object","properties":{"n":{"enum":[1,2,null]},"b":{"enum":[true,false]},"s":{"type":["string","null"],"enum":["a",null]}}}`,
		"nullable_lists_of_lists":      `{"type":"object","properties":{"values":{"type":["array","null"],"items":{"type":["array","null"],"items":{}}}}}`,
		"odata_names":                  `{"type":"object","properties":{"$skip":{"type":"integer","default":0},"$top":{"type":"integer"},"skip":{"type":"integer"}},"required":["$top"]}`,
		"names_with_brackets":          `{"type":"object","properties":{"uids[]":{"type":"array","items":{"type":"string"}}}}`,
		"const_alternatives":           `{"type":"object","properties":{"format":{"anyOf":[{"const":"markdown"},{"const":"json"}]}}}`,
		"conditions":                   `{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"if":{"properties":{"a":{"const":"x"}}},"then":{"required":["b"],"properties":{"b":{"type":"string"}}}}]}`,
		"words_of_editors":             `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","properties":{"f":{"type":"string","$comment":"c","enumDescriptions":["x"],"enum":["a"]}}}`,
		"discriminator_at_the_root":    `{"type":"object","discriminator":{"propertyName":"op"},"oneOf":[{"type":"object","properties":{"op":{"const":"get"},"id":{"type":"string"}},"required":["op","id"]},{"type":"object","properties":{"op":{"const":"list"}},"required":["op"]}]}`,
		"json_values":                  `{"type":"object","properties":{"v":{"$ref":"#/$defs/J"}},"$defs":{"J":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/J"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/J"}}]}}}`,
		"required_is_null":             `{"type":"object","properties":null,"required":null}`,
	} {
		for provider, p := range refusals() {
			if why := declares(p.dialect, p.refuses, chat.Tool{Name: "t", Parameters: json.RawMessage(in)}); why != "" {
				t.Errorf("%s: %s: %s", provider, name, why)
			}
		}
	}
}
