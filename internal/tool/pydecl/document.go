package pydecl

import (
	"strings"

	"loki/internal/tool/script/signature"
)

// document adds the descriptions of parameters from the docstring, and decides their
// types: that of the annotation, or else of the docstring, or else string.
func document(f *signature.Function) {
	docs := argsSection(f.Description)
	for i := range f.Params {
		p := &f.Params[i]
		d := docs[p.Name]
		p.Description = d.description
		optional := false
		if d.typ != "" {
			optional = strings.HasSuffix(d.typ, "?")
			if p.Type.Kind == "" {
				p.Type = wordType(d.typ)
			}
		}
		if p.Type.Kind == "" {
			p.Type = anything
		}
		if optional {
			p.Type.Optional, p.Type.Null = true, true
		}
		p.Required = !p.Default && !p.Type.Optional
	}
}

// doc is the entry of a docstring for a parameter.
type doc struct {
	typ         string // a word such as int, list[int] or int?; may be empty
	description string
}

// argsSection returns the entries after the line "Args:" of a docstring, by parameter. An
// entry is "name: description", "name type: description" or "name (type): description";
// lines with a deeper indentation continue the description of the entry before. A blank
// line ends the section, and so do a line without indentation and the next heading.
func argsSection(text string) map[string]doc {
	docs := make(map[string]doc)
	section, entry := -1, 0 // indentations, -1 for none
	last := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		depth := len(line) - len(strings.TrimLeft(line, " \t"))
		if section < 0 {
			if strings.HasPrefix(trimmed, "Args:") {
				section = depth
			}
			continue
		}
		if depth == 0 || trimmed == "" || depth <= section && heading(trimmed) {
			break
		}
		left, right, found := strings.Cut(trimmed, ":")
		if last != "" && depth > entry {
			d := docs[last]
			d.description = strings.TrimSpace(d.description + " " + trimmed)
			docs[last] = d
			continue
		}
		last, entry = "", depth
		if !found {
			continue
		}
		name, typ, _ := strings.Cut(strings.TrimSpace(left), " ")
		last = name
		docs[name] = doc{typ: docType(typ), description: strings.TrimSpace(right)}
	}
	return docs
}

// heading reports whether a line begins another section of a docstring.
func heading(line string) bool {
	switch strings.TrimSuffix(line, ":") {
	case "Returns", "Return", "Yields", "Raises", "Example", "Examples", "Note", "Notes", "See Also", "References", "Todo":
		return strings.HasSuffix(line, ":")
	}
	return false
}

// docType returns the type of an entry as a word. "(int, optional)" is int?.
func docType(typ string) string {
	typ = strings.TrimSpace(typ)
	inner, ok := strings.CutPrefix(typ, "(")
	if !ok {
		return typ
	}
	inner = strings.TrimSpace(strings.TrimSuffix(inner, ")"))
	lower := strings.ToLower(inner)
	if !strings.Contains(lower, "optional") {
		return inner
	}
	if i := strings.LastIndexByte(inner, ','); i >= 0 && strings.TrimSpace(lower[i+1:]) == "optional" {
		inner = strings.TrimSpace(inner[:i])
	}
	return strings.TrimSuffix(inner, "?") + "?"
}

// wordType returns the type that a word of a docstring means.
func wordType(s string) signature.Type {
	s = strings.TrimSuffix(s, "?")
	if members, ok := strings.CutPrefix(s, "literal:"); ok {
		t := signature.Type{Kind: signature.String}
		for member := range strings.SplitSeq(members, "|") {
			t.Literals = append(t.Literals, signature.Literal{Text: strings.Trim(strings.TrimSpace(member), `"'`)})
		}
		return t
	}
	if tokens, err := scan([]byte(s)); err == nil && len(tokens) > 1 {
		return typeOf(tokens[:len(tokens)-2]) // without the ends of line and file
	}
	return anything
}
