package pydecl

import (
	"strings"
	"unicode/utf8"

	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

// kind is a kind of token.
type kind uint8

const (
	name kind = iota // keywords too
	number
	text // a string with its prefix and quotes
	op
	newline // the end of a logical line
	indent
	dedent
	end
)

// token is a piece of a source.
type token struct {
	kind kind
	text string
	line int
	// match is the distance to the bracket that this one belongs to, 0 for other tokens.
	match int
}

func (t token) is(text string) bool { return (t.kind == op || t.kind == name) && t.text == text }

// scanner splits a source into tokens, as The Python Language Reference, chapter 2, says.
type scanner struct {
	src      string
	pos      int
	line     int
	tokens   []token
	brackets lexer.Brackets
	indents  []indention // that of the file first
}

// indention is the width of white space at the start of a line, counted twice: with
// tabs up to the next multiple of eight, and with tabs as one. If the two disagree,
// Python refuses the source.
type indention struct{ wide, narrow int }

func scan(src []byte) ([]token, error) {
	code, err := lexer.Source(src)
	if err != nil {
		return nil, err
	}
	s := scanner{src: code, line: 1, indents: []indention{{}}}
	if err := s.scan(); err != nil {
		return nil, err
	}
	return s.tokens, nil
}

func (s *scanner) scan() error {
	for fresh := true; s.pos < len(s.src); {
		if fresh {
			fresh = false
			if blank, err := s.indentation(); err != nil {
				return err
			} else if blank {
				fresh = true
				continue
			}
		}
		switch c := s.src[s.pos]; {
		case c == '\n':
			if s.brackets.Open() == 0 {
				s.add(newline, "\n")
				fresh = true
			}
			s.pos++
			s.line++
		case c == ' ' || c == '\t' || c == '\f':
			s.pos++
		case c == '#':
			s.comment()
		case c == '\\':
			if !strings.HasPrefix(s.src[s.pos:], "\\\n") {
				return signature.Errorf(s.line, "unexpected character after a line continuation")
			}
			s.pos += 2
			s.line++
			if s.pos == len(s.src) {
				return signature.Errorf(s.line, "the file ends in a line continuation")
			}
		default:
			if err := s.token(); err != nil {
				return err
			}
		}
	}
	return s.finish()
}

// finish ends the last line and all blocks.
func (s *scanner) finish() error {
	if err := s.brackets.End(); err != nil {
		return err
	}
	if n := len(s.tokens); n > 0 && s.tokens[n-1].kind != newline && s.tokens[n-1].kind != dedent {
		s.add(newline, "\n")
	}
	for range s.indents[1:] {
		s.add(dedent, "")
	}
	s.add(end, "")
	return nil
}

func (s *scanner) add(k kind, text string) {
	s.tokens = append(s.tokens, token{kind: k, text: text, line: s.line})
}

func (s *scanner) comment() {
	for s.pos < len(s.src) && s.src[s.pos] != '\n' {
		s.pos++
	}
}

// indentation reads the white space at the start of a line. A blank line is consumed.
func (s *scanner) indentation() (blank bool, err error) {
	var here indention
	for ; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case ' ':
			here.wide++
			here.narrow++
			continue
		case '\t':
			here.wide = here.wide/8*8 + 8
			here.narrow++
			continue
		case '\f':
			here = indention{}
			continue
		case '#':
			s.comment()
		}
		break
	}
	if s.pos == len(s.src) {
		return true, nil
	}
	if s.src[s.pos] == '\n' {
		s.pos++
		s.line++
		return true, nil
	}
	top := s.indents[len(s.indents)-1]
	if here.wide > top.wide && here.narrow > top.narrow {
		s.indents = append(s.indents, here)
		s.add(indent, "")
		return false, nil
	}
	for here.wide < top.wide {
		s.indents = s.indents[:len(s.indents)-1]
		top = s.indents[len(s.indents)-1]
		s.add(dedent, "")
		if here.wide > top.wide {
			return false, signature.Errorf(s.line, "the indentation fits no outer block")
		}
	}
	if here != top {
		return false, signature.Errorf(s.line, "tabs and blanks are mixed in the indentation")
	}
	return false, nil
}

// operators of several characters, longer ones first.
var operators = []string{
	"**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "**", "//", "<<", ">>",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=",
}

func (s *scanner) token() error {
	rest := s.src[s.pos:]
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		return s.str("")
	case c >= '0' && c <= '9', c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return s.number()
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf:
		return s.name()
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			s.pos += len(o)
			s.add(op, o)
			return nil
		}
	}
	if !strings.ContainsRune("+-*/%@&|^~<>()[]{},:.;=", rune(c)) {
		return signature.Errorf(s.line, "unexpected %q", rune(c))
	}
	s.pos++
	s.add(op, rest[:1])
	return s.bracket(c)
}

// bracket pairs brackets.
func (s *scanner) bracket(c byte) error {
	here := len(s.tokens) - 1
	back, err := s.brackets.Take(c, here, s.line)
	s.tokens[here-back].match, s.tokens[here].match = back, -back
	return err
}

func (s *scanner) name() error {
	start := s.pos
	for s.pos < len(s.src) {
		r, size := utf8.DecodeRuneInString(s.src[s.pos:])
		if r == utf8.RuneError && size == 1 {
			return signature.Errorf(s.line, "the text is not UTF-8")
		}
		if r != '_' && !lexer.NameStart(r) && (s.pos == start || !lexer.NamePart(r)) {
			break
		}
		s.pos += size
	}
	if s.pos == start {
		r, _ := utf8.DecodeRuneInString(s.src[s.pos:])
		return signature.Errorf(s.line, "unexpected %q", r)
	}
	if s.pos < len(s.src) && (s.src[s.pos] == '"' || s.src[s.pos] == '\'') {
		switch prefix := strings.ToLower(s.src[start:s.pos]); prefix {
		case "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
			s.pos = start
			return s.str(s.src[start : start+len(prefix)])
		}
	}
	s.add(name, s.src[start:s.pos])
	return nil
}
