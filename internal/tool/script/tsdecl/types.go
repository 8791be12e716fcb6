package tsdecl

import (
	"slices"
	"strconv"
	"strings"

	"loki/internal/tool/script/signature"
)

// anything is the type of values that the schemas for models cannot describe. All are accepted.
var anything = signature.Type{Kind: signature.String, Any: true}

// maxTypes is how deep types may be nested.
const maxTypes = 100

// typ reads a type.
func (p *parser) typ() (signature.Type, error) {
	if p.depth++; p.depth > maxTypes {
		return anything, p.errorf(p.tok(), "too many types in a type")
	}
	defer func() { p.depth-- }()
	t, err := p.union()
	if err != nil || !p.is("extends") || p.tok().fresh {
		return t, err
	}
	p.at++
	if _, err := p.union(); err != nil {
		return t, err
	}
	if !p.accept("?") {
		return anything, nil
	}
	if _, err := p.typ(); err != nil {
		return t, err
	}
	if !p.accept(":") {
		return t, p.unexpectedError()
	}
	_, err = p.typ()
	return anything, err
}

// nothing marks the types null, undefined and void within a union.
const nothing signature.Kind = "nothing"

// union reads types with | between them. Models see the first type, or all literals if there are only such. Null is not a
// type of its own.
func (p *parser) union() (signature.Type, error) {
	members, err := p.members("|", func() (signature.Type, error) {
		parts, err := p.members("&", p.operand)
		if len(parts) == 1 {
			return parts[0], err
		}
		return anything, err
	})
	if err != nil {
		return anything, err
	}
	merged := signature.Type{}
	var forms []signature.Type
	optional, null := false, false
	for _, t := range members {
		optional, null = optional || t.Optional, null || t.Null
		if t.Kind != nothing {
			forms = append(forms, t)
		}
		switch {
		case t.Kind == nothing:
		case merged.Kind == "":
			merged = t
		case merged.Literals != nil && t.Literals != nil:
			merged.Literals = unite(merged.Literals, t.Literals)
		case merged.Literals != nil && merged.Kind == signature.String:
			merged = t
		}
	}
	if merged.Kind == "" {
		merged = anything
		if len(members) == 1 {
			merged.Kind = nothing
		}
	}
	if len(forms) > 1 && merged.Literals == nil {
		merged.Forms = forms
	}
	merged.Optional, merged.Null = optional, null
	return merged, nil
}

// unite returns the literals of both, each once.
func unite(a, b []signature.Literal) []signature.Literal {
	a = slices.Clone(a)
	for _, l := range b {
		if !slices.Contains(a, l) {
			a = append(a, l)
		}
	}
	return a
}

// members reads the types between separators; a separator may also come first.
func (p *parser) members(separator string, read func() (signature.Type, error)) ([]signature.Type, error) {
	p.accept(separator)
	var list []signature.Type
	for {
		t, err := read()
		if err != nil {
			return nil, err
		}
		list = append(list, t)
		if !p.accept(separator) {
			return list, nil
		}
	}
}

// operand reads a type without operators between types.
func (p *parser) operand() (signature.Type, error) {
	if p.depth++; p.depth > maxTypes {
		return anything, p.errorf(p.tok(), "too many types in a type")
	}
	defer func() { p.depth-- }()
	t := p.tok()
	next := p.tokens[min(p.at+1, len(p.tokens)-1)]
	switch {
	case (t.is("keyof") || t.is("unique") || t.is("infer") || t.is("asserts")) && next.kind == word:
		p.at++
		_, err := p.operand()
		return anything, err
	case t.is("keyof"):
		p.at++
		_, err := p.operand()
		return anything, err
	case t.is("readonly"):
		p.at++
		return p.operand()
	case t.is("abstract") && next.is("new"):
		p.at++
		return p.operand()
	case t.is("new"), t.is("<"), t.is("(") && p.arrowFollows():
		p.accept("new")
		return anything, p.function()
	}
	typ, err := p.primary()
	for err == nil && p.is("[") && !p.tok().fresh {
		if p.tok().match > 1 {
			typ = anything // the type of a property
		} else {
			item := typ
			typ = signature.Type{Kind: signature.Array, Item: &item}
		}
		p.skip()
	}
	return typ, err
}

// arrowFollows reports whether the bracket here begins the type of a function.
func (p *parser) arrowFollows() bool { return p.tokens[p.at+p.tok().match+1].is("=>") }

// function reads the type of a function.
func (p *parser) function() error {
	if p.is("<") && !p.typeArgs() || !p.is("(") {
		return p.unexpectedError()
	}
	p.skip()
	if !p.accept("=>") {
		return p.unexpectedError()
	}
	_, err := p.typ()
	return err
}

// primary reads a type that is not composed of others with operators.
func (p *parser) primary() (signature.Type, error) {
	t := p.tok()
	switch t.kind {
	case str:
		p.at++
		s, ok := unquote(t.text)
		if !ok {
			return anything, nil
		}
		return literal(s, ""), nil
	case number:
		p.at++
		return numberType("", t.text), nil
	case template:
		p.at++
		return signature.Type{Kind: signature.String}, nil
	case word:
		p.at++
		return p.parseNamedType(t)
	}
	switch t.text {
	case "-":
		if n := p.tokens[p.at+1]; n.kind == number {
			p.at += 2
			return numberType("-", n.text), nil
		}
	case "(":
		p.at++
		inner, err := p.typ()
		if err == nil && !p.accept(")") {
			err = p.unexpectedError()
		}
		return inner, err
	case "[":
		return p.tuple(), nil
	case "{":
		p.skip()
		return signature.Type{Kind: signature.Object}, nil
	}
	return anything, p.unexpectedError()
}

// tuple reads the types of elements in square brackets.
func (p *parser) tuple() signature.Type {
	t := signature.Type{Kind: signature.Array, Item: &anything, Tuple: &signature.Tuple{}}
	closing := p.at + p.tok().match
	for p.at++; p.at < closing; {
		if t.Tuple.Open = p.accept("..."); t.Tuple.Open {
			break
		}
		next := p.tokens[p.at+1]
		optional := next.is("?") && p.tokens[p.at+2].is(":")
		if optional {
			p.at += 3
		} else if next.is(":") {
			p.at += 2
		}
		item, err := p.typ()
		if optional = p.accept("?") || optional; err != nil || p.at != closing && !p.accept(",") {
			t.Tuple = nil
			break
		}
		if item.Kind == nothing {
			item = anything
		}
		if t.Tuple.Items = append(t.Tuple.Items, item); !optional {
			t.Tuple.Required = len(t.Tuple.Items)
		}
	}
	p.at = closing + 1
	return t
}

// parseNamedType reads a type behind its first word.
func (p *parser) parseNamedType(first token) (signature.Type, error) {
	switch first.text {
	case "string":
		return signature.Type{Kind: signature.String}, nil
	case "number":
		return signature.Type{Kind: signature.Number}, nil
	case "boolean":
		return signature.Type{Kind: signature.Boolean}, nil
	case "object":
		return signature.Type{Kind: signature.Object}, nil
	case "true", "false":
		return literal(first.text, first.text), nil
	case "null":
		return signature.Type{Kind: nothing, Optional: true, Null: true}, nil
	case "undefined", "void":
		return signature.Type{Kind: nothing, Optional: true}, nil
	}
	if first.is("typeof") {
		if p.tok().kind != word {
			return anything, p.unexpectedError()
		}
		first = p.tok()
		p.at++
	}
	if first.is("import") {
		if !p.is("(") {
			return anything, p.unexpectedError()
		}
		p.skip()
	}
	for p.is(".") {
		p.at += 2
	}
	if p.is("is") && !p.tok().fresh {
		p.at++
		_, err := p.typ()
		return anything, err
	}
	if !p.is("<") || p.tok().fresh {
		return anything, nil
	}
	item, ok := p.arguments()
	switch {
	case !ok:
		return anything, p.unexpectedError()
	case first.is("Array"), first.is("ReadonlyArray"):
		return signature.Type{Kind: signature.Array, Item: &item}, nil
	case first.is("Record"):
		return signature.Type{Kind: signature.Object}, nil
	}
	return anything, nil
}

// typeArgs passes over types, or names of types, in angle brackets.
func (p *parser) typeArgs() bool {
	_, ok := p.arguments()
	return ok
}

// arguments reads types in angle brackets and returns the first. The modifiers of type
// parameters, as in <const T extends string = "a">, are skipped.
func (p *parser) arguments() (first signature.Type, ok bool) {
	p.at++
	for n := 0; !p.is(">"); n++ {
		for (p.is("const") || p.is("in") || p.is("out")) && p.tokens[p.at+1].kind == word {
			p.at++
		}
		t, err := p.typ()
		if err != nil {
			return first, false
		}
		if n == 0 {
			first = t
		}
		if p.accept("=") {
			if _, err := p.typ(); err != nil {
				return first, false
			}
		}
		if !p.accept(",") && !p.is(">") {
			return first, false
		}
	}
	p.at++
	return first, true
}

func literal(text, json string) signature.Type {
	return signature.Type{Kind: signature.String, Literals: []signature.Literal{{Text: text, JSON: json}}}
}

// numberType returns the type of a number that is a literal.
func numberType(sign, text string) signature.Type {
	plain := strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return literal(sign+text, sign+strconv.FormatInt(n, 10))
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil {
		return literal(sign+text, sign+strconv.FormatFloat(f, 'f', -1, 64))
	}
	return anything
}

// unquote returns the value of a string with no other than the common escapes.
func unquote(s string) (string, bool) {
	s = s[1 : len(s)-1]
	if !strings.Contains(s, `\`) {
		return s, true
	}
	if strings.Contains(s, `\u`) || strings.Contains(s, `\x`) {
		return "", false
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\n`, "\n", `\t`, "\t", "\\\n", "").Replace(s), true
}
