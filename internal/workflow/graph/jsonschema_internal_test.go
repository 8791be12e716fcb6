package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/base/value/yamldoc"
)

// wholes are definitions with one place for the layout with this name.
var wholes = map[string]string{
	"top":            `%s`,
	"settings":       `{"name":"x","start":"a","nodes":{"a":{"type":"end"}},"settings":%s}`,
	"inner-settings": `{"name":"x","start":"a","nodes":{"a":{"type":"graph","start":"a","nodes":{"a":{"type":"end"}},"settings":%s}}}`,
	"budget":         `{"name":"x","start":"a","nodes":{"a":{"type":"end"}},"settings":{"budget":%s}}`,
	"variable":       `{"name":"x","start":"a","nodes":{"a":{"type":"end"}},"variables":[%s]}`,
	"access":         `{"name":"x","start":"a","nodes":{"a":{"type":"end"}},"sandbox":%s}`,
	"hooks":          `{"name":"x","start":"a","nodes":{"a":{"type":"end"}},"hooks":%s}`,
	"hook":           `{"name":"x","start":"a","nodes":{"a":{"type":"end"}},"hooks":{"before_tool":[%s]}}`,
	"edge":           `{"name":"x","start":"a","nodes":{"a":{"type":"llm","prompt":"p","next":[%s]}}}`,
	"route":          `{"name":"x","start":"a","nodes":{"a":{"type":"llm","prompt":"p","next":{"on":"o","routes":{"r":%s}}}}}`,
	"choice":         `{"name":"x","start":"a","nodes":{"a":{"type":"llm","prompt":"p","next":%s}}}`,
	"retry":          `{"name":"x","start":"a","nodes":{"a":{"type":"script","script":"a.sh","retry":%s}}}`,
	"cache":          `{"name":"x","start":"a","nodes":{"a":{"type":"script","script":"a.sh","cache":%s}}}`,
}

// besides are fields of a layout with this name that the others go with.
var besides = map[string]string{
	"wait":     `{"signal":"s"}`,
	"access":   `{"level":"network"}`,
	"graph":    `{"start":"a","nodes":{"a":{"type":"end"}}}`,
	"approval": `{"routes":{"text":"a"},"on_other":"a"}`,
}

// values are tried as values of each field.
var values = []string{
	`"text"`, `""`, `" "`, `"a"`, `"{{key}}"`, `"10m"`, `"10/1m"`, `"80%"`, `"1.0"`, `"A=B"`, `"https://x"`, `0`, `1`, `2`, `-1`, `0.5`, `1.5`, `301`, `2000000000`, `10000000000`, `true`, `false`,
	`[]`, `["text"]`, `[""]`, `["a","b"]`, `[1]`, `[["text"]]`, `[{}]`, `[{"to":"a"}]`, `[{"when":"k","to":"a"},{"to":"a","max":2}]`, `[{"to":"a"},"b"]`, `[{"max":2}]`, `[{"command":"c"}]`, `[{"command":["c",1]}]`,
	`{}`, `{"text":"text"}`, `{"text":1}`, `{"text":{}}`, `{"text":["a","b"]}`, `{"text":"append"}`, `{"type":"string"}`, `{"type":"text"}`, `{"to":"a"}`, `{"to":"a","label":"l"}`, `{"when":"k","to":"a"}`,
	`{"on":"o","routes":{"r":"a"}}`, `{"on":"o","routes":{"r":{"to":"a","max":1}},"otherwise":"a"}`, `{"on":"o"}`, `{"routes":{}}`, `{"on":"o","routes":["a"]}`,
	`{"text":{"to":"a"}}`, `{"text":[{"when":"k","to":"a"}]}`, `{"level":"read"}`, `{"level":"network","hosts":["a.b"]}`, `{"level":"write","hosts":["a.b"]}`, `{"level":"read","write":["a"]}`, `{"hosts":["a.b"]}`,
	`{"ttl":1}`, `{"ttl":1,"key":"{{k}}"}`, `{"ttl":-1}`, `{"attempts":3}`, `{"attempts":0}`, `{"tries":0}`, `{"usd":0.5}`, `{"tokens":0}`,
	`[{"name":"n","description":"d"}]`, `[{"name":"n"}]`, `{"text":{"type":"end"}}`, `{"a":{"type":"end"}}`, `{"a":{"type":"ending"}}`, `{"a":{}}`,
}

// TestJSONSchemaIsWhatTheParserReads tries many values for each field. The parser and the JSON Schema have to agree, but for what
// a JSON Schema cannot express, which is listed.
func TestJSONSchemaIsWhatTheParserReads(t *testing.T) {
	t.Parallel()
	texts := []string{`"text"`, `""`, `" "`, `"a"`, `"{{key}}"`, `"10m"`, `"10/1m"`, `"80%"`, `"1.0"`, `"A=B"`, `"https://x"`}
	scalars := append(slices.Clone(texts), "0", "1", "2", "-1", "0.5", "1.5", "301", "2000000000", "10000000000", "true", "false")
	excepted := map[string][]string{ // by field, values that only the parser refuses
		"when": texts, "item_if": texts, "enough": texts, // the syntax of an expression
		"expires":         scalars,       // the syntax of a time
		"hook.timeout":    {`"10m"`},     // as a time, it has a maximum
		"concurrency_key": {`"{{key}}"`}, // what a template may read
		"version":         {"1"},         // 1 is 1.0 in JSON
		"id":              scalars,       // the key of the node
		"top.start":       scalars,       // which nodes there are
		"graph.start":     scalars,
		"graph.nodes":     {`{"text":{"type":"end"}}`},
		"top.nodes":       {`{"text":{"type":"end"}}`}, // start is one of them
	}
	real := map[string]bool{}
	s := jsonSchema(t)
	for _, l := range allLayouts() {
		whole := wholes[l.name]
		if node := slices.Contains(names(Types[:]), l.name); node {
			whole = `{"name":"x","start":"a","nodes":{"a":%s}}`
		}
		if whole == "" {
			t.Errorf("no place for %s", l.name)
			continue
		}
		base := l.least(t, s, whole)
		for _, name := range slices.Concat(l.required, l.optional) {
			tried := slices.Clone(values)
			for _, word := range words(fieldOf(l.name, name).holds) {
				tried = append(tried, fmt.Sprintf("%q", word))
			}
			accepted := 0
			for _, v := range tried {
				if name == "type" {
					break
				}
				fields := base
				if l.name == "wait" && (name == "for" || name == "until") {
					fields = base.Without("signal")
				}
				if l.name == "graph" && name == "file" {
					fields = base.Without("start").Without("nodes")
				}
				src := fmt.Sprintf(whole, fields.Merge(parseLayout(fmt.Sprintf("{%q:%s}", name, v)).AsObject()).Value())
				said, violations := parserSays(src), s.Validate(parseLayout(src))
				if len(violations) == 0 {
					accepted++
				}
				if (said == "") == (len(violations) == 0) {
					continue
				}
				if exception := cmp.Or(keyIn(excepted, l.name+"."+name), keyIn(excepted, name)); said != "" && slices.Contains(excepted[exception], v) {
					real[exception] = true
					continue
				}
				t.Errorf("%s.%s: %s: the parser says %q, the JSON Schema %v\n%s", l.name, name, v, said, violations, src)
			}
			if accepted == 0 && name != "type" {
				t.Errorf("%s.%s: no value conforms to the JSON Schema", l.name, name)
			}
		}
		for _, name := range l.required {
			src := fmt.Sprintf(whole, base.Without(name).Value())
			if said := parserSays(src); said == "" || s.Validate(parseLayout(src)) == nil {
				t.Errorf("%s without %s: the parser says %q", l.name, name, said)
			}
		}
		src := fmt.Sprintf(whole, base.Merge(parseLayout(`{"unheard_of":1}`).AsObject()).Value())
		if said := parserSays(src); said == "" || s.Validate(parseLayout(src)) == nil {
			t.Errorf("%s with a key that means nothing: the parser says %q", l.name, said)
		}
	}
	for field := range excepted {
		if !real[field] {
			t.Errorf("%s is excepted, but the parser and the JSON Schema agree", field)
		}
	}
}

// keyIn returns the key if it is one of m.
func keyIn[V any](m map[string]V, key string) string {
	if _, ok := m[key]; ok {
		return key
	}
	return ""
}

// least returns a mapping with the required fields, each with a value that the JSON Schema allows.
func (l layout) least(t *testing.T, s *schema.Schema, whole string) *value.Object {
	t.Helper()
	if l.name == "top" {
		return parseLayout(`{"name":"x","start":"a","nodes":{"a":{"type":"end"}}}`).AsObject()
	}
	object := value.ObjectOf()
	if extra, ok := besides[l.name]; ok {
		object = parseLayout(extra).AsObject()
	}
	for _, name := range l.required {
		if _, ok := object.Get(name); ok {
			continue
		}
		if name == "type" {
			object = object.Merge(value.ObjectOf(value.Member{Name: "type", Value: value.Of(l.name)}))
			continue
		}
		f := fieldOf(l.name, name)
		c, err := schema.Compile(value.ObjectOf(append(f.holds.members(), value.Member{Name: "$defs", Value: definitions()})...).Value())
		if err != nil {
			t.Fatal(err)
		}
		tried := append(words(f.holds), "text")
		for _, v := range slices.Concat(quoted(tried), values) {
			if c.Validate(parseLayout(v)) == nil {
				object = object.Merge(value.ObjectOf(value.Member{Name: name, Value: parseLayout(v)}))
				break
			}
		}
	}
	src := fmt.Sprintf(whole, object.Value())
	if said, violations := parserSays(src), s.Validate(parseLayout(src)); said != "" || violations != nil {
		t.Errorf("%s: the parser says %q, the JSON Schema %v", src, said, violations)
	}
	return object
}

func definitions() value.Value {
	defs, _ := parseLayout(JSONSchema()).AsObject().Get("$defs")
	return defs
}

func quoted(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = fmt.Sprintf("%q", w)
	}
	return list
}

// words returns those of an enum.
func words(s shape) (list []string) {
	enum, _ := s.value().AsObject().Get("enum")
	items, _ := enum.AsList()
	for _, item := range items.All() {
		if word, ok := item.AsString(); ok {
			list = append(list, word)
		}
	}
	return list
}

// parserSays returns the first thing that the parser finds wrong with a definition; "" for nothing.
func parserSays(src string) string {
	_, warnings, err := Read("", []byte(src), func(string) ([]byte, error) { return []byte("start: a\nnodes: {a: {type: end}}"), nil })
	for _, w := range warnings {
		if strings.HasPrefix(w.Message, "unknown key") {
			return w.Message
		}
	}
	if err != nil {
		return yamldoc.AsProblems(err)[0].Error()
	}
	return ""
}

func jsonSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(parseLayout(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
