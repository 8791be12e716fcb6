package tsdecl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

// kind is a kind of token.
type kind uint8

const (
	word kind = iota // a name or keyword
	number
	text     // a string with its quotes
	template // with its quotes, whatever is in it
	regex
	op
	end
)

// token is a piece of a source.
type token struct {
	kind kind
	text string
	line int
	// fresh is whether the token begins a line.
	fresh bool
	// glued is true if nothing separates the token from the one before.
	glued bool
	// match is the distance to the bracket that this one belongs to, 0 for other tokens.
	match int
	// doc is the documentation comment before the token, if it has one.
	doc string
}

func (t token) is(text string) bool { return (t.kind == op || t.kind == word) && t.text == text }

// scanner splits a source into tokens, as ECMAScript's lexical grammar says. Angle
// brackets are tokens of one character, since they may belong to types.
type scanner struct {
	src      string
	pos      int
	line     int
	tokens   []token
	brackets lexer.Brackets
	depth    int // of templates in templates
	fresh    bool
	doc      string
}

func scan(src []byte) ([]token, error) {
	code, err := lexer.Source(src)
	if err != nil {
		return nil, err
	}
	s := scanner{src: code, line: 1, fresh: true}
	trimmed := strings.TrimLeft(s.src, " \t\n")
	if strings.HasPrefix(trimmed, "#!") { // perhaps behind blank lines
		s.skip(len(s.src) - len(trimmed))
		s.lineComment()
	}
	if err := s.run(false); err != nil {
		return nil, err
	}
	s.add(end, 0)
	return s.tokens, checkOrder(s.tokens)
}

// run reads tokens up to the end, or in a template up to the brace that closes the
// expression, which is consumed.
func (s *scanner) run(inTemplate bool) error {
	for s.pos < len(s.src) {
		rest := s.src[s.pos:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == '\n' || r == '\u2028' || r == '\u2029':
			s.skip(size)
			s.fresh = true
		case unicode.IsSpace(r) || r == '\uFEFF':
			s.skip(size)
		case strings.HasPrefix(rest, "//"):
			s.doc = ""
			s.lineComment()
		case strings.HasPrefix(rest, "/*"):
			if err := s.blockComment(); err != nil {
				return err
			}
		case inTemplate && r == '}' && s.brackets.Open() == 0:
			s.skip(1)
			return nil
		default:
			if err := s.token(r); err != nil {
				return err
			}
		}
	}
	if err := s.brackets.End(); err != nil {
		return err
	}
	if inTemplate {
		return signature.Errorf(s.line, "a template is never closed")
	}
	return nil
}

// skip passes over n bytes.
func (s *scanner) skip(n int) {
	s.line += strings.Count(s.src[s.pos:s.pos+n], "\n")
	s.pos += n
}

// add adds the next n bytes as a token.
func (s *scanner) add(k kind, n int) {
	s.addAt(k, s.pos, s.line)
	last := &s.tokens[len(s.tokens)-1]
	s.skip(n)
	last.text = s.src[s.pos-n : s.pos]
}

// addAt adds a token that begins at a place before here and ends here.
func (s *scanner) addAt(k kind, start, line int) {
	glued := start > 0 && !unicode.IsSpace(rune(s.src[start-1])) && s.src[start-1] != '/'
	s.tokens = append(s.tokens, token{kind: k, text: s.src[start:s.pos], line: line, fresh: s.fresh, glued: glued, doc: s.doc})
	s.fresh, s.doc = false, ""
}

func (s *scanner) lineComment() {
	if i := strings.IndexByte(s.src[s.pos:], '\n'); i >= 0 {
		s.pos += i
	} else {
		s.pos = len(s.src)
	}
}

func (s *scanner) blockComment() error {
	n := strings.Index(s.src[s.pos+2:], "*/")
	if n < 0 {
		return signature.Errorf(s.line, "a comment is never closed")
	}
	comment := s.src[s.pos : s.pos+n+4]
	s.doc = ""
	if strings.HasPrefix(comment, "/**") && len(comment) > 4 {
		s.doc = comment
	}
	s.fresh = s.fresh || strings.Contains(comment, "\n")
	s.skip(len(comment))
	return nil
}

// operators of several characters, longer ones first; none that begins with an angle
// bracket.
var operators = []string{
	"...", "===", "!==", "**=", "&&=", "||=", "??=",
	"=>", "==", "!=", "++", "--", "&&", "||", "??", "?.", "**", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
}

func (s *scanner) token(r rune) error {
	rest := s.src[s.pos:]
	switch {
	case r == '"' || r == '\'':
		return s.str(byte(r))
	case r == '`':
		return s.template()
	case r >= '0' && r <= '9', r == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return s.number()
	case isNameStart(r):
		return s.name(0)
	case r == '#' && len(rest) > 1:
		return s.name(1)
	case r == '/' && s.regexAllowed():
		return s.regex()
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) && !(o == "?." && len(rest) > 2 && rest[2] >= '0' && rest[2] <= '9') {
			s.add(op, len(o))
			return nil
		}
	}
	if r >= utf8.RuneSelf || !strings.ContainsRune("+-*/%&|^~!<>()[]{}?,:.;=@", r) {
		if r == utf8.RuneError {
			return signature.Errorf(s.line, "the text is not UTF-8")
		}
		return signature.Errorf(s.line, "unexpected %q", r)
	}
	s.add(op, 1)
	return s.bracket(byte(r))
}

// bracket pairs brackets.
func (s *scanner) bracket(c byte) error {
	here := len(s.tokens) - 1
	back, err := s.brackets.Take(c, here, s.line)
	s.tokens[here-back].match, s.tokens[here].match = back, -back
	return err
}

func isNameStart(r rune) bool {
	return r == '_' || r == '$' || r == '\\' || lexer.NameStart(r)
}

// name reads a name after its first n bytes; n is 1 for a private name.
func (s *scanner) name(n int) error {
	i := s.pos + n
	for i < len(s.src) {
		r, size := utf8.DecodeRuneInString(s.src[i:])
		part := isNameStart(r) || lexer.NamePart(r) || r == '\u200c' || r == '\u200d'
		if r == utf8.RuneError && size == 1 || !part && !(r == '{' || r == '}') {
			break
		}
		if r == '\\' {
			var ok bool
			if size, ok = unicodeEscape(s.src[i:]); !ok {
				return signature.Errorf(s.line, "unexpected %q", r)
			}
		} else if !part {
			break
		}
		i += size
	}
	if i == s.pos+n {
		return signature.Errorf(s.line, "unexpected %q", s.src[s.pos])
	}
	s.add(word, i-s.pos)
	return nil
}

// unicodeEscape returns the length of an escape in a name: \u0041 or \u{41}.
func unicodeEscape(s string) (size int, ok bool) {
	if inner, found := strings.CutPrefix(s, `\u{`); found {
		n := strings.IndexByte(inner, '}')
		return n + 4, n > 0 && strings.Trim(inner[:n], lexer.Hexadecimal) == ""
	}
	return 6, len(s) >= 6 && s[1] == 'u' && strings.Trim(s[2:6], lexer.Hexadecimal) == ""
}
