package pydecl

import (
	"slices"
	"strconv"
	"strings"

	"loki/internal/tool/script/signature"
)

// anything is the type of values that the schemas for models cannot describe. All are accepted.
var anything = signature.Type{Kind: signature.String, Any: true}

// typeOf returns the type of an annotation. Of names from modules, such as typing.List,
// only the last part counts, and a string stands for its contents.
func typeOf(tokens []token) signature.Type {
	members := split(tokens, "|")
	if len(members) > 1 {
		return union(members)
	}
	for len(tokens) > 2 && tokens[0].is("(") && tokens[0].match == len(tokens)-1 {
		return typeOf(tokens[1 : len(tokens)-1])
	}
	if len(tokens) == 1 && tokens[0].kind == text {
		return quoted(tokens[0])
	}
	for len(tokens) > 2 && tokens[0].kind == name && tokens[1].is(".") {
		tokens = tokens[2:]
	}
	switch {
	case len(tokens) == 1 && tokens[0].kind == name:
		return word(tokens[0].text)
	case len(tokens) > 3 && tokens[0].kind == name && tokens[1].is("[") && tokens[1].match == len(tokens)-2:
		return generic(tokens[0].text, split(tokens[2:len(tokens)-1], ","))
	}
	return anything
}

// split splits tokens at the separators outside of brackets.
func split(tokens []token, separator string) [][]token {
	var parts [][]token
	start := 0
	for i := 0; i < len(tokens); i++ {
		if tokens[i].is(separator) {
			parts = append(parts, tokens[start:i])
			start = i + 1
		}
		i += max(tokens[i].match, 0)
	}
	if start < len(tokens) || separator != "," {
		parts = append(parts, tokens[start:])
	}
	return parts
}

// word returns the type that a name means.
func word(name string) signature.Type {
	switch name {
	case "str", "LiteralString", "AnyStr":
		return signature.Type{Kind: signature.String}
	case "bool":
		return signature.Type{Kind: signature.Boolean}
	case "int":
		return signature.Type{Kind: signature.Integer}
	case "float":
		return signature.Type{Kind: signature.Number}
	case "list", "List", "set", "Set", "frozenset", "FrozenSet", "tuple", "Tuple", "Sequence", "MutableSequence", "Iterable", "Collection":
		return signature.Type{Kind: signature.Array, Item: &anything}
	case "dict", "Dict", "Mapping", "MutableMapping":
		return signature.Type{Kind: signature.Object}
	case "None", "NoneType":
		return signature.Type{Kind: signature.String, Optional: true, Null: true}
	}
	return anything
}

// generic returns the type that name[args] means.
func generic(name string, args [][]token) signature.Type {
	switch name {
	case "Optional":
		t := typeOf(args[0])
		t.Optional, t.Null = true, true
		return t
	case "Union":
		return union(args)
	case "Literal":
		return literals(args)
	case "Annotated", "Required", "NotRequired", "ReadOnly", "Final":
		return typeOf(args[0])
	case "tuple", "Tuple":
		return tuple(args)
	}
	t := word(name)
	if t.Kind == signature.Array {
		item := typeOf(args[0])
		t.Item = &item
	}
	return t
}

// tuple returns the type of tuple[args]. Models see the type of the items if all have the same.
func tuple(args [][]token) signature.Type {
	if len(args) == 2 && len(args[1]) == 1 && args[1][0].is("...") {
		item := typeOf(args[0])
		return signature.Type{Kind: signature.Array, Item: &item}
	}
	t := signature.Type{Kind: signature.Array, Tuple: &signature.Tuple{Required: len(args)}}
	for _, arg := range args {
		if len(arg) == 0 || arg[0].is("*") || arg[0].is("(") {
			return word("tuple") // the items of another tuple, or none
		}
		item := typeOf(arg)
		if t.Tuple.Items = append(t.Tuple.Items, item); t.Item == nil {
			t.Item = &item
		} else if t.Item.Kind != item.Kind {
			t.Item = &anything
		}
	}
	return t
}

// union returns the type of values that have one of several types. Models see different types as
// a string, except for numbers, and for literals, which are collected. None is not a type of its own.
func union(members [][]token) signature.Type {
	var list []signature.Type
	null := false
	for _, m := range members {
		if len(m) == 1 && (m[0].is("None") || m[0].is("NoneType")) {
			null = true
			continue
		}
		t := typeOf(m)
		null = null || t.Null
		list = append(list, t)
	}
	merged := anything
	for i, t := range list {
		if i == 0 {
			merged = t
			continue
		}
		merged = either(merged, t)
	}
	if len(list) > 1 && merged.Literals == nil {
		merged.Forms = list
	}
	merged.Optional, merged.Null = null, null
	return merged
}

// either returns the type that models see for values that have one of two types.
func either(a, b signature.Type) signature.Type {
	switch {
	case a.Literals != nil && b.Literals != nil:
		return signature.Type{Kind: signature.String, Literals: append(slices.Clone(a.Literals), b.Literals...)}
	case a.Literals != nil || b.Literals != nil:
		return anything
	case isNumber(a.Kind) && isNumber(b.Kind) && a.Kind != b.Kind:
		return signature.Type{Kind: signature.Number}
	case a.Kind != b.Kind:
		return anything
	case a.Kind == signature.Array && a.Item.Kind != b.Item.Kind:
		return word("list")
	}
	return a
}

func isNumber(k signature.Kind) bool { return k == signature.Integer || k == signature.Number }

// literals returns the type that Literal[...] means.
func literals(args [][]token) signature.Type {
	t := signature.Type{Kind: signature.String}
	for _, arg := range args {
		l, ok := literal(arg)
		if !ok {
			return anything
		}
		if l.JSON == "null" {
			t.Null = true
		}
		if !slices.Contains(t.Literals, l) {
			t.Literals = append(t.Literals, l)
		}
	}
	return t
}

// literal returns a value as it is written. Names are those of enumerations; the
// function gets them as text.
func literal(tokens []token) (signature.Literal, bool) {
	sign := ""
	if len(tokens) == 2 && tokens[0].is("-") && tokens[1].kind == number {
		sign, tokens = "-", tokens[1:]
	}
	if len(tokens) == 0 {
		return signature.Literal{}, false
	}
	t := tokens[0]
	switch {
	case t.kind == text:
		s := ""
		for _, part := range tokens {
			value, ok := unquote(part.text)
			if !ok || part.kind != text {
				return signature.Literal{}, false
			}
			s += value
		}
		return signature.Literal{Text: s}, true
	case t.kind == number && len(tokens) == 1:
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			return signature.Literal{}, false // Literal takes no other numbers
		}
		return signature.Literal{Text: sign + t.text, JSON: sign + strconv.FormatInt(n, 10)}, true
	case t.is("True"), t.is("False"):
		return signature.Literal{Text: t.text, JSON: strings.ToLower(t.text)}, len(tokens) == 1
	case t.is("None"):
		return signature.Literal{Text: t.text, JSON: "null"}, len(tokens) == 1
	case t.kind != name:
		return signature.Literal{}, false
	}
	var b strings.Builder
	for _, part := range tokens {
		if part.kind != name && !part.is(".") {
			return signature.Literal{}, false
		}
		b.WriteString(part.text)
	}
	return signature.Literal{Text: b.String()}, true
}

// unquote returns the value of a string that has no fields and no escapes other than the
// common ones.
func unquote(s string) (string, bool) {
	start := strings.IndexAny(s, `"'`)
	if start < 0 || strings.ContainsAny(s[:start], "fFtT") {
		return "", false
	}
	raw := strings.ContainsAny(s[:start], "rR")
	quotes := 1
	if len(s)-start >= 6 && s[start+1] == s[start] && s[start+2] == s[start] {
		quotes = 3
	}
	s = s[start+quotes : len(s)-quotes]
	if raw {
		return s, true
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\n`, "\n", `\t`, "\t", "\\\n", "").Replace(s), true
}

// quoted returns the type of an annotation that is a string.
func quoted(t token) signature.Type {
	s, ok := unquote(t.text)
	if !ok || strings.ContainsAny(s, "\n\\") {
		return anything
	}
	tokens, err := scan([]byte(s))
	if err != nil {
		return anything
	}
	tokens = slices.DeleteFunc(tokens, func(t token) bool { return t.role() == edge })
	if len(tokens) == 1 && tokens[0].kind == text {
		return anything // a string in a string, and so on
	}
	return typeOf(tokens)
}
