package schema

import (
	"strings"

	"loki/internal/base/value"
)

// Hint returns the paragraph that asks a model to answer in the form of schema. It stands
// at the end of a prompt.
func Hint(schema value.Value) string {
	return "Answer with " + kind(schema) + " that conforms to the schema below. " +
		"Output ONLY the JSON: no words before or after it and no Markdown fences.\n\n" +
		"Schema:\n" + schema.Lines()
}

// ExtractPrompt returns the system and the user text that ask a model to turn text into
// the form of schema.
func ExtractPrompt(schema value.Value, text string) (system, user string) {
	return extractor(schema), "Schema:\n" + schema.Lines() + "\n\nInput:\n" + text
}

// RepairPrompt returns the system and the user text that ask a model to correct previous,
// its last reply for text. No violations means that previous was not JSON.
func RepairPrompt(schema value.Value, text, previous string, violations []Violation) (system, user string) {
	var b strings.Builder
	if len(violations) == 0 {
		b.WriteString("Your previous response was not valid JSON.")
	} else {
		b.WriteString("Your previous response was valid JSON, but it does not conform to the schema:\n")
		b.WriteString("- " + List(violations, "\n- "))
		if len(violations) == MaxViolations {
			b.WriteString("\n- perhaps more")
		}
		b.WriteString("\nChange what is wrong and keep the rest.")
	}
	b.WriteString(" Output ONLY " + kind(schema) + " that conforms to the schema.\n\n")
	b.WriteString("Schema:\n" + schema.Lines())
	b.WriteString("\n\nPrevious response:\n" + previous)
	if text != previous {
		b.WriteString("\n\nInput:\n" + text)
	}
	return extractor(schema), b.String()
}

func extractor(schema value.Value) string {
	shape := "starts with { and ends with }"
	if !isObjectSchema(schema) {
		shape = "holds the JSON value and nothing else"
	}
	return `You turn text into data. The user gives you a JSON schema and an input; you reply with ` + kind(schema) + ` that holds what the input says and strictly conforms to the schema.

- The reply ` + shape + `: no words around it, no Markdown fences, no reasoning.
- Every required member is there, and every value has the type the schema gives it.
- Take values from the input. Where it does not settle one, use null if the schema allows null, otherwise your best guess.
- Invent no members that the schema does not describe.
- If the input already is JSON that conforms, return it unchanged.`
}

func kind(schema value.Value) string {
	if isObjectSchema(schema) {
		return "a JSON object"
	}
	return "a JSON value"
}

// isObjectSchema reports whether schema plainly asks for an object.
func isObjectSchema(schema value.Value) bool {
	o := schema.AsObject()
	if t, ok := o.Get("type"); ok {
		name, _ := t.AsString()
		return name == "object"
	}
	_, ok := o.Get("properties")
	return ok
}
