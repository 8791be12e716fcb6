package normalize

import (
	"encoding/json"
	"strconv"
	"strings"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
)

// Dialect is what of the declaration of a tool a provider takes.
type Dialect struct {
	Schema schema.Subset
	// Lettered says that the name of a tool begins with a letter or "_".
	Lettered bool
}

// OpenAITools is the [Dialect] of servers that speak OpenAI's formats, without strict.
func OpenAITools() Dialect {
	all := schema.All()
	all.ObjectRoot, all.Names = true, true
	return Dialect{Schema: all}
}

// ClaudeTools is the [Dialect] of Claude, at Anthropic, on Vertex AI and on Bedrock.
func ClaudeTools() Dialect { return OpenAITools() }

// GeminiTools is the [Dialect] of Gemini, whose documentation lists the keywords. References may not lead in circles
// through required members, so all are replaced by what they lead to.
func GeminiTools() Dialect {
	return Dialect{Lettered: true, Schema: schema.Subset{
		Keywords: []string{
			"title", "description", "anyOf", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "additionalProperties",
		},
		Formats:    []string{"date-time", "date", "time"},
		ObjectRoot: true, Names: true, Described: true, PlainValues: true,
	}}
}

// ConverseTools is the [Dialect] of models on Bedrock other than Claude. Nova takes three keywords at the root only.
func ConverseTools() Dialect {
	d := OpenAITools()
	d.Schema.Keywords = d.Schema.Keywords[1:] // without references, whose targets stand at the root
	d.Schema.BareRoot = true
	return d
}

// CohereTools is the [Dialect] of Cohere.
func CohereTools() Dialect {
	return Dialect{Schema: schema.Subset{
		Keywords:   []string{"$ref", "title", "description", "default", "const", "anyOf", "format", "pattern", "additionalProperties"},
		Formats:    []string{"date-time", "date", "time", "uuid"},
		ObjectRoot: true, Names: true,
	}}
}

// Declared is a tool in the words of a [Dialect].
type Declared struct {
	chat.Tool
	Own   string            // the name of the tool
	Names map[string]string // of members, from the declared ones to the tool's own
}

// Declare returns t in the words of d, with a name that taken does not have. ok is false if it cannot be declared.
func (d Dialect) Declare(t chat.Tool, taken map[string]bool) (declared Declared, ok bool) {
	declared = Declared{Tool: t, Own: t.Name}
	shape, err := value.ParseJSON(t.Parameters)
	if err != nil {
		shape = value.Value{} // anything
	}
	p, ok := d.Schema.Parameters(shape)
	if !ok {
		return declared, false
	}
	if !value.Equal(p.Schema, shape) {
		declared.Parameters = p.Schema.AppendJSON(nil)
	}
	declared.Names = p.Names
	if first := t.Name[:min(1, len(t.Name))]; d.Lettered && strings.ContainsAny(first, "0123456789-") {
		base := "_" + t.Name
		name := base[:min(len(base), maxToolName)]
		for n := 2; taken[name]; n++ {
			suffix := "_" + strconv.Itoa(n)
			name = base[:min(len(base), maxToolName-len(suffix))] + suffix
		}
		declared.Name = name
	}
	return declared, true
}

// maxToolName is the longest name of a tool that all providers take.
const maxToolName = 64

// Rename returns JSON text in which the names of members are changed, at every depth. Text that is not JSON, or in which
// nothing changes, is returned as it is.
func Rename(text string, names map[string]string) string {
	if len(names) == 0 {
		return text
	}
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		return text
	}
	renamed, changed := rename(v, names)
	if !changed {
		return text
	}
	return string(renamed.AppendJSON(nil))
}

func rename(v value.Value, names map[string]string) (renamed value.Value, changed bool) {
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			item, other := rename(item, names)
			items, changed = append(items, item), changed || other
		}
		return value.ListOf(items...).Value(), changed
	}
	o := v.AsObject()
	if o == nil {
		return v, false
	}
	members := make([]value.Member, 0, o.Len())
	for name, m := range o.All() {
		m, other := rename(m, names)
		if own, ok := names[name]; ok {
			name, other = own, true
		}
		members, changed = append(members, value.Member{Name: name, Value: m}), changed || other
	}
	return value.ObjectOf(members...).Value(), changed
}

// HasMembers reports whether the schema of a declared tool describes a member, or allows any.
func HasMembers(parameters json.RawMessage) bool {
	v, err := value.ParseJSON(parameters)
	if err != nil {
		return false
	}
	properties, _ := v.AsObject().Get("properties")
	more, ok := v.AsObject().Get("additionalProperties")
	allowed, isBool := more.AsBool()
	return properties.AsObject().Len() > 0 || ok && (!isBool || allowed)
}
