package schema

import (
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// describe returns the type of v and, where that is short, the value.
func describe(v value.Value) string {
	switch v.Kind() {
	case value.Null, value.Bool:
		return v.Text()
	case value.ListKind:
		return "an array"
	case value.ObjectKind:
		return "an object"
	default:
		return "the " + v.Kind().String() + " " + brief(v)
	}
}

// brief returns v as JSON, cut to 80 characters.
func brief(v value.Value) string { return text.CutRunes(v.String(), 80) }

// choices lists up to 20 values.
func choices(list []value.Value) string {
	const most = 20
	words := make([]string, 0, most+1)
	for i, v := range list {
		if i == most {
			words = append(words, "…")
			break
		}
		words = append(words, brief(v))
	}
	return strings.Join(words, ", ")
}

func withArticle(typeName string) string {
	switch typeName {
	case "null":
		return "null"
	case "array", "integer", "object":
		return "an " + typeName
	default:
		return "a " + typeName
	}
}
