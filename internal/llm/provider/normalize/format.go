package normalize

import (
	"encoding/json"
	"slices"
	"strings"

	"loki/internal/base/value/schema"
	"loki/internal/llm/provider"
)

// FormatName is what the form of a reply is called where it has to have a name.
const FormatName = "answer"

// StrictFormat returns the schema of a format for servers that speak OpenAI's formats, with
// strict set; ok is false if there is no format, or one that they cannot take.
func StrictFormat(f *provider.Format) (shape json.RawMessage, ok bool) {
	return reduce(f, schema.Subset{
		Keywords: []string{
			"anyOf", "$defs", "definitions", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
		},
		Formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
		Closed:  true, AllRequired: true, ObjectRoot: true,
	})
}

// ClaudeFormat is [StrictFormat] for Claude, at Anthropic and on Bedrock.
func ClaudeFormat(f *provider.Format) (shape json.RawMessage, ok bool) {
	return reduce(f, schema.Subset{
		Keywords: []string{"anyOf", "const", "$defs", "definitions", "format"},
		Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
		Closed:   true, ObjectRoot: true,
	})
}

// GeminiFormat is [StrictFormat] for Gemini, which takes schemas of any type.
func GeminiFormat(f *provider.Format) (shape json.RawMessage, ok bool) {
	return reduce(f, schema.Subset{
		Keywords: []string{
			"anyOf", "oneOf", "$defs", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "additionalProperties",
		},
		Formats: []string{"date-time", "date", "time"},
	})
}

// CohereFormat is [StrictFormat] for Cohere.
func CohereFormat(f *provider.Format) (shape json.RawMessage, ok bool) {
	return reduce(f, schema.Subset{
		Keywords: []string{"anyOf", "$defs", "format"}, Formats: []string{"date-time", "date", "time", "uuid"}, ObjectRoot: true,
	})
}

func reduce(f *provider.Format, s schema.Subset) (json.RawMessage, bool) {
	if f == nil {
		return nil, false
	}
	shape, ok := s.Reduce(f.Schema)
	if !ok {
		return nil, false
	}
	return shape.AppendJSON(nil), true
}

// RefusesFormat reports whether the words of a rejection, in any case, are about the form of
// the reply: the model or the server has no structured output, or not for this schema.
func RefusesFormat(words string) bool {
	return Says(strings.ToLower(words),
		"response_format", "responseformat", "text.format", "json_schema", "json schema", "jsonschema", "output_config", "outputconfig", "output_format", "textformat",
		"structured output", "structured_output", "response_mime", "responsemime", "response mime", "json mode",
	)
}

// Says reports whether a message of a server has one of some words.
func Says(message string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(message, word) })
}
