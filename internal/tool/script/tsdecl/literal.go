package tsdecl

import (
	"strings"

	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

// number reads a number. Nothing that can be a part of a name may follow it.
func (s *scanner) number() error {
	src := s.src[s.pos:]
	i := 0
	digits := func(set string) {
		for i < len(src) && (strings.IndexByte(set, src[i]) >= 0 || src[i] == '_' && i > 0 && src[i-1] != '_') {
			i++
		}
	}
	if len(src) > 1 && src[0] == '0' && strings.IndexByte("xXoObB", src[1]) >= 0 {
		i = 2
		switch src[1] | 0x20 {
		case 'x':
			digits(lexer.Hexadecimal)
		case 'o':
			digits("01234567")
		default:
			digits("01")
		}
		if i == 2 {
			return signature.Errorf(s.line, "invalid number %s", src[:2])
		}
	} else {
		digits(lexer.Decimal)
		if i < len(src) && src[i] == '.' {
			i++
			digits(lexer.Decimal)
		}
		if i < len(src) && src[i]|0x20 == 'e' {
			i++
			if i < len(src) && (src[i] == '+' || src[i] == '-') {
				i++
			}
			before := i
			digits(lexer.Decimal)
			if i == before {
				return signature.Errorf(s.line, "invalid number %s", src[:i])
			}
		}
	}
	if i < len(src) && src[i] == 'n' {
		i++
	}
	if src[i-1] == '_' || i < len(src) && (isNameStart(rune(src[i])) && src[i] < 0x80 || strings.IndexByte(lexer.Decimal, src[i]) >= 0) {
		return signature.Errorf(s.line, "invalid number %s", src[:min(i+1, len(src))])
	}
	s.add(number, i)
	return nil
}

// str reads a string.
func (s *scanner) str(quote byte) error {
	start, line := s.pos, s.line
	for s.skip(1); s.pos < len(s.src); s.skip(1) {
		switch c := s.src[s.pos]; {
		case c == quote:
			s.skip(1)
			s.addAt(text, start, line)
			return nil
		case c == '\n':
			return signature.Errorf(line, "a string does not end on its line")
		case c == '\\' && s.pos+1 < len(s.src):
			s.skip(1)
		}
	}
	return signature.Errorf(line, "a string is never closed")
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
	case number, text, template, regex:
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

// regex reads a regular expression and its flags.
func (s *scanner) regex() error {
	start, line := s.pos, s.line
	class := false
	for s.skip(1); s.pos < len(s.src) && s.src[s.pos] != '\n'; s.skip(1) {
		switch c := s.src[s.pos]; {
		case c == '\\' && s.pos+1 < len(s.src) && s.src[s.pos+1] != '\n':
			s.skip(1)
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			s.skip(1)
			for s.pos < len(s.src) && (s.src[s.pos] >= 'a' && s.src[s.pos] <= 'z') {
				s.skip(1)
			}
			s.addAt(regex, start, line)
			return nil
		}
	}
	return signature.Errorf(line, "a regular expression is never closed (JSX is not read in .ts files)")
}
