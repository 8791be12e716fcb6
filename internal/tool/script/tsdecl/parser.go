package tsdecl

import (
	"fmt"

	"loki/internal/tool/script/signature"
)

// parser reads exported functions. Its place is at the top level.
type parser struct {
	tokens []token
	at     int
	depth  int // of types in types
}

func (p *parser) tok() token { return p.tokens[min(p.at, len(p.tokens)-1)] }

func (p *parser) is(text string) bool { return p.tok().is(text) }

// accept passes over the token if it is text.
func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.at++
		return true
	}
	return false
}

// skip skips a token; if it is a bracket, up to the closing one.
func (p *parser) skip() { p.at = min(p.at+max(p.tok().match, 0)+1, len(p.tokens)-1) }

func (p *parser) errorf(t token, format string, args ...any) error {
	return signature.Errorf(t.line, format, args...)
}

// unexpectedError returns the error for the token here.
func (p *parser) unexpectedError() error {
	if p.tok().kind == end {
		return p.errorf(p.tok(), "unexpected end of the file")
	}
	return p.errorf(p.tok(), "unexpected %s", p.tok().text)
}

// parseExported reads a function after the word export. ok is false if something else is
// exported, or a function that want does not accept.
func (p *parser) parseExported(want func(string) bool) (f signature.Function, ok bool, err error) {
	p.accept("default")
	if p.is("async") && !p.tokens[p.at+1].fresh {
		p.at++
	}
	if !p.accept("function") || p.tok().kind != word {
		return f, false, nil // not a function, a generator, or without a name
	}
	f.Name, f.Line = p.tok().text, p.tok().line
	p.at++
	if p.is("<") && !p.typeArgs() {
		return f, false, p.unexpectedError()
	}
	if !p.is("(") {
		return f, false, p.errorf(p.tok(), "( is missing after the name of function %s", f.Name)
	}
	open := p.at
	p.skip()
	if p.accept(":") {
		if _, err := p.typ(); err != nil {
			return f, false, fmt.Errorf("the type of function %s: %w", f.Name, err)
		}
	}
	if !p.is("{") {
		if p.is(";") || p.tok().fresh || p.tok().kind == end {
			return f, false, nil // one of several signatures
		}
		return f, false, p.unexpectedError()
	}
	p.skip()
	if !want(f.Name) {
		return f, false, nil
	}
	body := p.at
	p.at = open + 1
	if f.Params, err = p.params(open + p.tokens[open].match); err != nil {
		return f, false, fmt.Errorf("function %s: %w", f.Name, err)
	}
	p.at = body
	return f, true, nil
}

// params reads the parameters up to the bracket at close.
func (p *parser) params(closing int) ([]signature.Param, error) {
	var list []signature.Param
	for p.at < closing {
		param, err := p.param(closing)
		if err != nil {
			return nil, err
		}
		list = append(list, param)
		if p.at < closing && !p.accept(",") {
			return nil, p.unexpectedError()
		}
	}
	return list, nil
}

// param reads a parameter. A call names its arguments, so every parameter needs a name.
func (p *parser) param(closing int) (signature.Param, error) {
	for p.is("public") || p.is("private") || p.is("protected") || p.is("readonly") || p.is("override") {
		if next := p.tokens[p.at+1]; next.kind != word {
			break
		}
		p.at++
	}
	t := p.tok()
	switch {
	case t.is("..."):
		return signature.Param{}, p.errorf(t, "parameter ...%s: a tool cannot have a variable number of parameters", p.tokens[p.at+1].text)
	case t.is("{"), t.is("["):
		return signature.Param{}, p.errorf(t, "a tool cannot destructure its parameters; give each one a name of its own, as in run(a: string, b: number)")
	case t.is("this"):
		return signature.Param{}, p.errorf(t, "a tool cannot have a parameter called this")
	case t.kind != word:
		return signature.Param{}, p.unexpectedError()
	}
	p.at++
	param := signature.Param{Name: t.text, Type: anything}
	optional := p.accept("?")
	if p.accept(":") {
		var err error
		if param.Type, err = p.typ(); err != nil {
			return param, err
		}
	}
	if p.accept("=") {
		if p.at == closing || p.is(",") {
			return param, p.unexpectedError()
		}
		first := p.tok()
		p.value(closing)
		if d, ok := defaultType(first); ok {
			param.Type = param.Type.OrDefault(d)
		}
		param.Default = true
	}
	param.Type.Optional = param.Type.Optional || optional
	param.Required = !param.Type.Optional && !param.Default
	return param, nil
}

// defaultType returns the type of a default value that is one token. ok is false if it is not written as a literal.
func defaultType(t token) (typ signature.Type, ok bool) {
	switch {
	case t.kind == str:
		s, ok := unquote(t.text)
		return literal(s, ""), ok
	case t.kind == number:
		return signature.Type{Kind: signature.Number}, true
	case t.is("true"), t.is("false"):
		return signature.Type{Kind: signature.Boolean}, true
	case t.is("["):
		return signature.Type{Kind: signature.Array}, true
	case t.is("{"):
		return signature.Type{Kind: signature.Object}, true
	}
	return typ, false
}

// value passes over an expression that ends at a comma or at closing.
func (p *parser) value(closing int) {
	for p.at < closing && !p.is(",") {
		if p.is("<") {
			// Commas between types end nothing: new Map<string, number>().
			before := p.at
			if p.typeArgs() && (p.at >= closing || p.is("(") || p.is(",") || p.is(".") || p.tok().kind == template) {
				continue
			}
			p.at = before
		}
		p.skip()
	}
}
