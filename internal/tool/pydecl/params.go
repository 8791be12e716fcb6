package pydecl

import (
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

// param reads a parameter behind its name. A parameter without annotation has no kind.
func (l *paramList) param(t token) signature.Param {
	p := signature.Param{Name: t.text}
	if l.is(":") {
		l.at++
		p.Type = typeOf(l.until())
	}
	if l.is("=") {
		l.at++
		l.until()
		p.Default = true
	}
	return p
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
