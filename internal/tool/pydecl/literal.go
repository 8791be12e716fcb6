package pydecl

import (
	"strings"

	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

// number reads a number. A letter that follows it is another token, as in 1if x else y.
func (s *scanner) number() error {
	start := s.pos
	rest := s.src[s.pos:]
	if len(rest) > 1 && rest[0] == '0' && strings.ContainsRune("xXoObB", rune(rest[1])) {
		digits := map[byte]string{'x': lexer.Hexadecimal, 'o': "01234567", 'b': "01"}[rest[1]|0x20]
		s.pos += 2
		if n := s.digits(digits); n == 0 || s.badDigit(digits) {
			return signature.Errorf(s.line, "invalid number %s", rest[:2])
		}
		s.add(number, s.src[start:s.pos])
		return nil
	}
	s.digits(lexer.Decimal)
	whole := s.src[start:s.pos]
	real := false
	if strings.HasPrefix(s.src[s.pos:], ".") {
		real = true
		s.pos++
		s.digits(lexer.Decimal)
	}
	if rest := s.src[s.pos:]; rest != "" && rest[0]|0x20 == 'e' {
		sign := len(rest) > 1 && (rest[1] == '+' || rest[1] == '-')
		before := s.pos
		s.pos++
		if sign {
			s.pos++
		}
		if s.digits(lexer.Decimal) == 0 {
			s.pos = before // "1else" is a number and a keyword
		} else {
			real = true
		}
	}
	if rest := s.src[s.pos:]; rest != "" && rest[0]|0x20 == 'j' {
		real = true
		s.pos++
	}
	if !real && len(whole) > 1 && whole[0] == '0' && strings.Trim(whole, "0_") != "" {
		return signature.Errorf(s.line, "number %s begins with a zero", whole)
	}
	if s.src[s.pos-1] == '_' || s.badDigit("_") {
		return signature.Errorf(s.line, "invalid number %s", s.src[start:s.pos])
	}
	s.add(number, s.src[start:s.pos])
	return nil
}

// digits reads digits with single underscores between them, and returns their number of
// bytes.
func (s *scanner) digits(set string) int {
	start := s.pos
	for s.pos < len(s.src) && (strings.IndexByte(set, s.src[s.pos]) >= 0 ||
		s.src[s.pos] == '_' && s.pos+1 < len(s.src) && strings.IndexByte(set, s.src[s.pos+1]) >= 0) {
		s.pos++
	}
	return s.pos - start
}

// badDigit reports whether a character that looks like a part of a number
// follows it.
func (s *scanner) badDigit(set string) bool {
	if s.pos >= len(s.src) {
		return false
	}
	c := s.src[s.pos]
	return c == '_' || strings.IndexByte(lexer.Decimal, c) >= 0 && strings.IndexByte(set, c) < 0
}

// str reads a string behind its prefix.
func (s *scanner) str(prefix string) error {
	start, line := s.pos, s.line
	s.pos += len(prefix)
	if err := s.quoted(strings.ContainsAny(prefix, "fFtT")); err != nil {
		return err
	}
	s.tokens = append(s.tokens, token{kind: text, text: s.src[start:s.pos], line: line})
	return nil
}

// quoted reads a string, starting at its quotes. With fields it has expressions in
// braces, which may hold strings with any quotes.
func (s *scanner) quoted(fields bool) error {
	line := s.line
	quote := s.src[s.pos : s.pos+1]
	if strings.HasPrefix(s.src[s.pos:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.pos += len(quote)
	for s.pos < len(s.src) {
		rest := s.src[s.pos:]
		switch {
		case strings.HasPrefix(rest, quote):
			s.pos += len(quote)
			return nil
		case rest[0] == '\\' && len(rest) > 1 && !(fields && (rest[1] == '{' || rest[1] == '}')):
			s.skip(2)
		case rest[0] == '\n' && len(quote) == 1:
			return signature.Errorf(line, "a string does not end on its line")
		case fields && (strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}")):
			s.skip(2)
		case fields && rest[0] == '}':
			return signature.Errorf(s.line, "a single } in a formatted string")
		case fields && rest[0] == '{':
			s.skip(1)
			if err := s.field(quote, line); err != nil {
				return err
			}
		default:
			s.skip(1)
		}
	}
	return signature.Errorf(line, "a string is never closed")
}

// skip passes over n bytes.
func (s *scanner) skip(n int) {
	s.line += strings.Count(s.src[s.pos:s.pos+n], "\n")
	s.pos += n
}

// field reads an expression in braces in a formatted string, and the closing brace. The
// string is quoted with quote and begins in the given line.
func (s *scanner) field(quote string, line int) error {
	for depth := 0; s.pos < len(s.src); {
		rest := s.src[s.pos:]
		c := rest[0]
		switch {
		case c == '}' && depth == 0:
			s.skip(1)
			return nil
		case c == ':' && depth == 0:
			s.skip(1)
			return s.format(quote, line)
		case strings.IndexByte("([{", c) >= 0:
			depth++
			s.skip(1)
		case strings.IndexByte(")]}", c) >= 0:
			if depth == 0 {
				return signature.Errorf(s.line, "unmatched %c in a formatted string", c)
			}
			depth--
			s.skip(1)
		case c == '#' && len(quote) == 3:
			s.comment()
		case c == '"' || c == '\'':
			if err := s.quoted(s.formatted()); err != nil {
				return err
			}
		default:
			s.skip(1)
		}
	}
	return signature.Errorf(line, "a string is never closed")
}

// formatted reports whether the next quote belongs to a formatted string.
func (s *scanner) formatted() bool {
	i := s.pos
	for i > 0 && strings.IndexByte("rRfFtTbBuU", s.src[i-1]) >= 0 {
		i--
	}
	if i > 0 && (s.src[i-1] == '_' || s.src[i-1] >= '0' && s.src[i-1] <= '9' || s.src[i-1]|0x20 >= 'a' && s.src[i-1]|0x20 <= 'z') {
		return false
	}
	return strings.ContainsAny(s.src[i:s.pos], "fFtT")
}

// format reads the format of a field, which may have fields itself, and the closing brace.
func (s *scanner) format(quote string, line int) error {
	for s.pos < len(s.src) {
		rest := s.src[s.pos:]
		switch {
		case rest[0] == '}':
			s.skip(1)
			return nil
		case rest[0] == '{':
			s.skip(1)
			if err := s.field(quote, line); err != nil {
				return err
			}
		case strings.HasPrefix(rest, quote), rest[0] == '\n' && len(quote) == 1:
			return signature.Errorf(line, "a field of a formatted string is never closed")
		default:
			s.skip(1)
		}
	}
	return signature.Errorf(line, "a string is never closed")
}
