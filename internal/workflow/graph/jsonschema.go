package graph

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/hook"
)

// shape is the JSON Schema of the value of a field, as JSON.
type shape string

// The shapes of many fields.
const (
	aText    shape = `{"type":["string","number","boolean"]}` // any scalar, as it is written
	aString  shape = `{"type":"string"}`
	aNumber  shape = `{"type":["number","null"]}` // null for none
	aCount   shape = `{"type":"integer","minimum":0}`
	aBool    shape = `{"type":"boolean"}`
	aMapping shape = `{"type":"object"}`
	above0   shape = `{"type":"number","exclusiveMinimum":0}`
	aSeconds shape = `{"type":"integer","minimum":0,"maximum":9223372036}` // of a time.Duration
	aTime    shape = `{"type":"number","minimum":0,"maximum":1000000000}`
	aSpan    shape = `{"type":["number","string"],"minimum":0,"maximum":1000000000,"pattern":"` + spanPattern + `"}`
	places   shape = `{"type":"array","items":{"type":["string","number","boolean"],"minLength":1}}`

	spanPattern = `^\\+?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$`
)

// ref is the shape of a layout.
func ref(layout string) shape { return shape(`{"$ref":"#/$defs/` + layout + `"}`) }

// mapOf is the shape of a mapping with any keys.
func mapOf(values shape) shape { return `{"type":"object","additionalProperties":` + values + `}` }

// listOf is the shape of a list.
func listOf(items shape) shape { return `{"type":"array","items":` + items + `}` }

// oneOf is the shape of a few words.
func oneOf[T ~string](words ...T) shape {
	return shape(`{"enum":["` + strings.Join(names(words), `","`) + `"]}`)
}

// anyOf is the shape of what has one of several.
func anyOf(shapes ...shape) shape {
	return shape(`{"anyOf":[` + strings.Join(names(shapes), ",") + `]}`)
}

func (s shape) value() value.Value { return parseLayout(string(s)) }

// members returns the keywords of a shape.
func (s shape) members() (list []value.Member) {
	for name, member := range s.value().AsObject().All() {
		list = append(list, value.Member{Name: name, Value: member})
	}
	return list
}

// parseLayout returns JSON that is layout of the program.
func parseLayout[T string | []byte](text T) value.Value {
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

// layout is a mapping in a definition with fields of its own.
type layout struct {
	name, meaning      string
	required, optional []string
	rules              shape            // what its fields have to do with each other; "" for nothing
	own                map[string]field // such that mean something else here than [fieldOf] says
}

// layouts are the mappings with fields of their own, but for the whole and its nodes.
var layouts = []layout{
	{name: "settings", optional: settingFields},
	{name: "inner-settings", optional: innerSettings},
	{name: "budget", optional: []string{"usd", "tokens", "duration", "seconds"}},
	{name: "variable", required: []string{"name", "description"}, optional: []string{"default"}},
	{name: "edge", required: []string{"to"}, optional: []string{"when", "max"}, meaning: "an edge; of a list of them the first that holds is taken"},
	{name: "route", required: []string{"to"}, optional: []string{"max"}, meaning: "an edge that is taken for a value"},
	{name: "choice", required: []string{"on", "routes"}, optional: []string{"otherwise"}, meaning: "edges by a value"},
	{name: "retry", optional: []string{"attempts", "backoff", "factor", "max_backoff", "jitter"}},
	{name: "cache", required: []string{"ttl"}, optional: []string{"key"}},
	{name: "access", required: []string{"level"}, optional: []string{"hosts", "read", "write"}, rules: `{"allOf":[
		{"if":{"required":["hosts"],"properties":{"hosts":{"minItems":1}}},"then":{"properties":{"level":{"const":"network"}}}},
		{"if":{"required":["write"],"properties":{"write":{"minItems":1}}},"then":{"properties":{"level":{"enum":["write","network","full"]}}}}]}`},
	{name: "hooks", optional: names(hook.AgentKinds())},
	{name: "hook", required: []string{"command"}, optional: []string{"name", "match", "timeout", "on_failure"}},
}

// root is the layout of a definition.
var root = layout{name: "top", required: topRequired, optional: topFields, meaning: "a workflow of Loki, which runs its nodes from start on"}

// nodeRules are what fields of nodes of a type have to do with each other.
var nodeRules = map[Type]shape{
	ApprovalNode: `{"dependentSchemas":{"assignee":{"properties":{"assignees":false}}}}`,
	InputNode:    `{"dependentSchemas":{"assignee":{"properties":{"assignees":false}}}}`,
	MapNode:      `{"dependentSchemas":{"concurrency":{"properties":{"max_concurrency":false}}}}`,
	GraphNode: `{"anyOf":[{"required":["file"]},{"required":["start","nodes"]}],
		"dependentSchemas":{"file":{"properties":{"start":false,"nodes":false,"state":false,"strict_state":false,"initial_state":false,"reducers":false,"settings":false,"model":false,"temperature":false,"top_p":false,"reasoning_effort":false}}}}`,
	WaitNode: `{"anyOf":[{"required":["for"]},{"required":["until"]},{"required":["signal"]}],
		"dependentSchemas":{"for":{"properties":{"until":false,"signal":false}},"until":{"properties":{"signal":false}}},
		"dependentRequired":{"default":["signal"],"schema":["signal"]}}`,
}

// JSONSchema returns the JSON Schema of a definition, for editors, as indented JSON. A definition does not conform to it if
// the parser reports an error or an unknown key, but for what a JSON Schema cannot express: the syntax of texts, and what
// nodes have to do with each other. It does not allow an empty value, which the parser takes for an absent field.
func JSONSchema() []byte {
	defs := []value.Member{
		{Name: "node", Value: anyNode()},
		{Name: "exit", Value: anyOf(aString, listOf(aString), listOf(ref("edge")), ref("edge"), ref("choice")).value()},
		{Name: "way", Value: anyOf(aString, ref("route")).value()},
		{Name: "sandbox", Value: anyOf(oneOf(sandbox.Levels()...), ref("access")).value()},
		{Name: "schema", Value: shape(schema.Meta("#/$defs/schema")).value()},
		{Name: "key", Value: keyShape().value()},
	}
	for _, t := range Types {
		defs = append(defs, value.Member{Name: "node-" + string(t), Value: nodeOf(t).schema()})
	}
	for _, l := range layouts {
		defs = append(defs, value.Member{Name: l.name, Value: l.schema()})
	}
	whole := slices.Concat(
		shape(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"graph.yaml of Loki"}`).members(), root.members(),
		[]value.Member{{Name: "$defs", Value: value.ObjectOf(defs...).Value()}})
	var b bytes.Buffer
	_ = json.Indent(&b, value.ObjectOf(whole...).Value().AppendJSON(nil), "", "  ") // it is JSON
	b.WriteByte('\n')
	return b.Bytes()
}

// nodeOf returns the layout that nodes of a type are. An approval that a map runs has no routes, and a JSON Schema cannot see which
// it is.
func nodeOf(t Type) layout {
	l := layout{
		name: string(t), rules: nodeRules[t], own: map[string]field{"type": {oneOf(t), nil, purposes[t]}},
		required: append([]string{"type"}, requiredFields[t]...), optional: slices.Concat(optionalFields[t], commonFields),
	}
	if t == ApprovalNode {
		l.required, l.optional = []string{"type", "question", "options"}, slices.Concat([]string{"routes", "on_other"}, l.optional)
	}
	return l
}

// anyNode returns the schema of a node, which is that of its type.
func anyNode() value.Value {
	var byType []value.Value
	for _, t := range Types {
		is := shape(`{"required":["type"],"properties":{"type":{"const":"` + string(t) + `"}}}`).value()
		byType = append(byType, value.ObjectOf(value.Member{Name: "if", Value: is}, value.Member{Name: "then", Value: ref("node-" + string(t)).value()}).Value())
	}
	kinds := fields["type"]
	for _, t := range Types {
		kinds.meaning += "\n\n" + string(t) + ": " + purposes[t]
	}
	common := layout{required: []string{"type"}, optional: commonFields, own: map[string]field{"type": kinds}}.members()
	common = slices.DeleteFunc(common, func(m value.Member) bool { return m.Name == "additionalProperties" }) // the type says which there are
	return value.ObjectOf(append(common, value.Member{Name: "allOf", Value: value.ListOf(byType...).Value()})...).Value()
}

func (l layout) schema() value.Value { return value.ObjectOf(l.members()...).Value() }

// members returns the keywords of the schema of a layout.
func (l layout) members() (list []value.Member) {
	if l.meaning != "" {
		list = append(list, value.Member{Name: "description", Value: value.Of(l.meaning)})
	}
	list = append(list, shape(`{"type":"object"}`).members()...)
	if l.required != nil {
		var required []value.Value
		for _, name := range l.required {
			required = append(required, value.Of(name))
		}
		list = append(list, value.Member{Name: "required", Value: value.ListOf(required...).Value()})
	}
	var properties []value.Member
	for _, name := range slices.Concat(l.required, l.optional) {
		if !slices.ContainsFunc(properties, func(m value.Member) bool { return m.Name == name }) {
			f, ok := l.own[name]
			if !ok {
				f = fieldOf(l.name, name)
			}
			properties = append(properties, value.Member{Name: name, Value: f.schema()})
		}
	}
	list = append(list, value.Member{Name: "properties", Value: value.ObjectOf(properties...).Value()}, value.Member{Name: "additionalProperties", Value: value.Of(false)})
	if l.rules != "" {
		list = append(list, l.rules.members()...)
	}
	return list
}

// schema returns the schema of a field: its shape, with what it means.
func (f field) schema() value.Value {
	list := append([]value.Member{{Name: "description", Value: value.Of(f.meaning)}}, f.holds.members()...)
	if f.unset != nil {
		data, _ := value.Marshal(f.unsetValue()) // words, numbers and booleans
		list = append(list, value.Member{Name: "default", Value: parseLayout(data)})
	}
	return value.ObjectOf(list...).Value()
}

// unsetValue returns what holds without the field as it is written.
func (f field) unsetValue() any {
	if d, ok := f.unset.(time.Duration); ok {
		return d.Seconds()
	}
	return f.unset
}
