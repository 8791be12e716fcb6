package tsdecl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"
	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

// kind is a kind of token.
type kind uint8

const (
	word kind = iota // a name or keyword
	number
	str      // with its quotes
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

var (
	// operator matches an operator; those that begin with an angle bracket have one character.
	operator = text.Regexp(`^(?:\.\.\.|===|!==|\*\*=|&&=|\|\|=|\?\?=|=>|==|!=|\+\+|--|&&|\|\||\?\?|\*\*|[-+*/%&|^]=|[-+*/%&|^~!<>()\[\]{}?,:.;=@])`)
	// optional matches the operator ?. where it is not a part of a choice such as a?.5:1.
	optional = text.Regexp(`^\?\.(?:[^0-9]|$)`)

	nameStart = `(?:[\p{L}\p{Nl}\x{1885}\x{1886}\x{2118}\x{212E}\x{309B}\x{309C}_$]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})`
	name      = text.Regexp(`^#?` + nameStart + `(?:` + nameStart + `|[\p{Nd}\p{Mn}\p{Mc}\p{Pc}\x{B7}\x{387}\x{1369}-\x{1371}\x{19DA}\x{200C}\x{200D}])*`)
)

func (s *scanner) token(r rune) error {
	rest := s.src[s.pos:]
	if n := len(name().FindString(rest)); n > 0 {
		s.add(word, n)
		return nil
	}
	switch {
	case r == '"' || r == '\'':
		return s.str()
	case r == '`':
		return s.template()
	case r >= '0' && r <= '9', r == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return s.number()
	case r == '/' && s.regexAllowed():
		return s.regex()
	case optional().MatchString(rest):
		s.add(op, len("?."))
		return nil
	case r == utf8.RuneError:
		return signature.Errorf(s.line, "the text is not UTF-8")
	}
	n := len(operator().FindString(rest))
	if n == 0 {
		return signature.Errorf(s.line, "unexpected %q", r)
	}
	s.add(op, n)
	if n > 1 {
		return nil
	}
	return s.bracket(byte(r))
}

// bracket pairs brackets.
func (s *scanner) bracket(c byte) error {
	here := len(s.tokens) - 1
	back, err := s.brackets.Take(c, here, s.line)
	s.tokens[here-back].match, s.tokens[here].match = back, -back
	return err
}
