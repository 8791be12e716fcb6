package pydecl

import (
	"strings"

	"loki/internal/tool/script/signature"
)

// paramList reads the tokens between the brackets of a function's parameters.
type paramList struct {
	tokens []token
	at     int
}

func (l *paramList) more() bool { return l.at < len(l.tokens) }

func (l *paramList) is(text string) bool { return l.more() && l.tokens[l.at].is(text) }

// read returns the parameters. A call names its arguments, so "*args", "**kwargs" and
// positional-only parameters are errors.
func (l *paramList) read() ([]signature.Param, error) {
	var params []signature.Param
	defaults, star := false, false
	for l.more() {
		t := l.tokens[l.at]
		l.at++
		switch {
		case t.is("*") && (!l.more() || l.is(",")):
			star = true
		case t.is("*"), t.is("**"):
			return nil, signature.Errorf(t.line, "parameter %s%s: a tool cannot have a variable number of parameters", t.text, l.tokens[l.at].text)
		case t.is("/"):
			return nil, signature.Errorf(t.line, `"/": a tool cannot have parameters without names`)
		case !t.isName():
			return nil, signature.Errorf(t.line, "the name of a parameter is missing before %q", t.text)
		default:
			p := l.param(t)
			if !p.Default && defaults && !star {
				return nil, signature.Errorf(t.line, "parameter %s without default follows one that has a default", p.Name)
			}
			defaults = defaults || p.Default
			params = append(params, p)
		}
		if l.more() && !l.is(",") {
			return nil, signature.Errorf(l.tokens[l.at].line, "unexpected %s among parameters", l.tokens[l.at].text)
		}
		l.at++
	}
	return params, nil
}

// param reads a parameter behind its name. A parameter without annotation has no kind. The default may have another type
// than the annotation.
func (l *paramList) param(t token) signature.Param {
	p := signature.Param{Name: t.text}
	if l.is(":") {
		l.at++
		p.Type = typeOf(l.until())
	}
	if l.is("=") {
		l.at++
		if d, ok := defaultType(l.until()); ok && p.Type.Kind != "" {
			p.Type = p.Type.OrDefault(d)
		}
		p.Default = true
	}
	return p
}

// defaultType returns the type of a default value. ok is false if it is not written as a literal.
func defaultType(tokens []token) (t signature.Type, ok bool) {
	if len(tokens) == 0 {
		return t, false
	}
	last := tokens[len(tokens)-1]
	first := tokens[0]
	switch {
	case first.is("True"), first.is("False"):
		return signature.Type{Kind: signature.Boolean}, len(tokens) == 1
	case last.kind == number && (len(tokens) == 1 || len(tokens) == 2 && first.is("-")):
		if strings.ContainsAny(last.text, ".eEjJ") && !strings.HasPrefix(last.text, "0x") {
			return signature.Type{Kind: signature.Number}, true
		}
		return signature.Type{Kind: signature.Integer}, true
	case first.is("["), first.is("("):
		return word("list"), first.match == len(tokens)-1 && len(tokens) != 3 // not (x)
	case first.is("{"):
		return word("dict"), first.match == len(tokens)-1
	}
	l, ok := literal(tokens)
	return signature.Type{Kind: signature.String, Literals: []signature.Literal{l}}, ok && first.kind == text
}

// until passes over an expression and returns its tokens.
func (l *paramList) until() []token {
	start := l.at
	for lambdas := 0; l.more(); l.at++ {
		t := l.tokens[l.at]
		switch {
		case t.match > 0:
			l.at += t.match
		case t.is("lambda"):
			lambdas++
		case t.is(":") && lambdas > 0:
			lambdas--
		case lambdas == 0 && (t.is(",") || t.is("=")):
			return l.tokens[start:l.at]
		}
	}
	return l.tokens[start:min(l.at, len(l.tokens))]
}
