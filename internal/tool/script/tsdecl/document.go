package tsdecl

import (
	"strings"

	"loki/internal/tool/script/signature"
)

// document returns the description in a comment, the text before the first tag, and sets
// those of the parameters. It also replaces types that have no values.
func document(f *signature.Function, comment string) string {
	comment = strings.TrimSuffix(strings.TrimPrefix(comment, "/**"), "*/")
	var text []string
	tags := false
	docs := make(map[string]string)
	for line := range strings.SplitSeq(comment, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "*"))
		tags = tags || strings.HasPrefix(line, "@")
		if !tags {
			text = append(text, line)
		}
		if name, description, ok := paramTag(line); ok {
			docs[name] = description
		}
	}
	for i := range f.Params {
		p := &f.Params[i]
		p.Description = docs[p.Name]
		settle(&p.Type)
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}

// settle replaces a type that is only null with one that models see as a string.
func settle(t *signature.Type) {
	if t.Kind == nothing {
		t.Kind, t.Any = signature.String, true
	}
	if t.Item != nil {
		settle(t.Item)
	}
}

// paramTag reads "@param {type} name - description", of which the type and the hyphen are
// optional.
func paramTag(line string) (name, description string, ok bool) {
	rest, ok := strings.CutPrefix(line, "@param")
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' && rest[0] != '{' {
		return "", "", false
	}
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, "{") {
		_, behind, found := strings.Cut(rest, "}")
		if !found {
			return "", "", false
		}
		rest = strings.TrimSpace(behind)
	}
	end := strings.IndexAny(rest, " \t")
	if end < 0 {
		end = len(rest)
	}
	name, rest = strings.TrimSuffix(rest[:end], "?"), strings.TrimSpace(rest[end:])
	return name, strings.TrimSpace(strings.TrimPrefix(rest, "-")), true
}
