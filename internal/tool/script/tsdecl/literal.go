package tsdecl

import (
	"strings"

	"loki/internal/base/text"
	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

var (
	numeral = text.Regexp(`^(?:0[xX](?:[0-9a-fA-F]_?)*[0-9a-fA-F]|0[oO](?:[0-7]_?)*[0-7]|0[bB](?:[01]_?)*[01]|` +
		`(?:(?:[0-9]_?)*[0-9])?\.?(?:(?:[0-9]_?)*[0-9])?(?:[eE][+-]?(?:[0-9]_?)*[0-9])?)n?`)
	// afterNumber is what a name could continue with, which nothing separates from a number.
	afterNumber = text.Regexp(`^[0-9A-Za-z_$\\]`)
)

// number reads a number. Nothing that can be a part of a name may follow it.
func (s *scanner) number() error {
	n := len(numeral().FindString(s.src[s.pos:]))
	if after := afterNumber().FindString(s.src[s.pos+n:]); after != "" {
		return signature.Errorf(s.line, "invalid number %s", s.src[s.pos:s.pos+n]+after)
	}
	s.add(number, n)
	return nil
}

// closedString matches a string with its quotes.
var closedString = text.Regexp(`(?s)^(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")`)

// str reads a string.
func (s *scanner) str() error {
	n := len(closedString().FindString(s.src[s.pos:]))
	switch {
	case n > 0:
		s.add(str, n)
		return nil
	case strings.Contains(s.src[s.pos:], "\n"):
		return signature.Errorf(s.line, "a string does not end on its line")
	}
	return signature.Errorf(s.line, "a string is never closed")
}

// maxTemplates is how deep templates may be nested in each other.
const maxTemplates = 50

// template reads a template as one token. The tokens of its expressions are checked and
// dropped.
func (s *scanner) template() error {
	start, line := s.pos, s.line
	fresh, doc := s.fresh, s.doc
	if s.depth++; s.depth > maxTemplates {
		return signature.Errorf(line, "too many templates in templates")
	}
	defer func() { s.depth-- }()
	for s.skip(1); s.pos < len(s.src); {
		rest := s.src[s.pos:]
		switch {
		case rest[0] == '`':
			s.skip(1)
			s.fresh, s.doc = fresh, doc
			s.addAt(template, start, line)
			return nil
		case rest[0] == '\\' && len(rest) > 1:
			s.skip(2)
		case strings.HasPrefix(rest, "${"):
			s.skip(2)
			if err := s.expression(); err != nil {
				return err
			}
		default:
			s.skip(1)
		}
	}
	return signature.Errorf(line, "a template is never closed")
}

// expression reads an expression of a template and the brace after it.
func (s *scanner) expression() error {
	tokens, brackets := s.tokens, s.brackets
	s.tokens, s.brackets, s.fresh, s.doc = nil, lexer.Brackets{}, false, ""
	if err := s.run(true); err != nil {
		return err
	}
	inner := append(s.tokens, token{kind: end, line: s.line})
	s.tokens, s.brackets = tokens, brackets
	return checkOrder(inner)
}

// regexAllowed reports whether a slash begins a regular expression, which is where a value
// is expected.
func (s *scanner) regexAllowed() bool {
	n := len(s.tokens)
	if n == 0 {
		return true
	}
	t := s.tokens[n-1]
	switch t.kind {
	case number, str, template, regex:
		return false
	case word:
		return beforeValue[t.text] && !(n > 1 && s.tokens[n-2].is("."))
	}
	switch t.text {
	case "]", "++", "--":
		return false
	case "!":
		return t.fresh || !t.glued || n < 2 || !endsValue(s.tokens[n-2]) // else it asserts that the value is not null
	case ")":
		before := n - 2 + t.match
		return before >= 0 && (s.tokens[before].is("if") || s.tokens[before].is("while") || s.tokens[before].is("for") || s.tokens[before].is("with"))
	case "}":
		return s.endsBlock(n - 1)
	}
	return true
}

// endsBlock reports whether a brace ends statements rather than an object.
func (s *scanner) endsBlock(at int) bool {
	before := at + s.tokens[at].match - 1
	if before < 0 {
		return true
	}
	t := s.tokens[before]
	switch {
	case t.kind == word:
		return t.is("else") || t.is("do") || t.is("try") || t.is("finally") || !beforeValue[t.text]
	case t.kind != op:
		return true
	}
	return t.is(")") || t.is(";") || t.is("{") || t.is("}") || t.is("=>") || t.is(">")
}

// beforeValue are the keywords that a value follows.
var beforeValue = map[string]bool{
	"return": true, "typeof": true, "case": true, "in": true, "of": true, "do": true, "else": true, "instanceof": true, "new": true,
	"delete": true, "void": true, "throw": true, "yield": true, "await": true, "default": true, "extends": true,
}

// regularExpression matches a regular expression with its flags, in which a class can have a slash.
var regularExpression = text.Regexp(`^/(?:[^\\\[/\n]|\\[^\n]|\[(?:[^\\\]\n]|\\[^\n])*\])+/[a-z]*`)

// regex reads a regular expression and its flags.
func (s *scanner) regex() error {
	n := len(regularExpression().FindString(s.src[s.pos:]))
	if n == 0 {
		return signature.Errorf(s.line, "a regular expression is never closed (JSX is not read in .ts files)")
	}
	s.add(regex, n)
	return nil
}
