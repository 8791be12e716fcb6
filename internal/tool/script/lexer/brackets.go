package lexer

import "loki/internal/tool/script/signature"

// Brackets pairs the brackets of a source: ( ), [ ] and { }. The zero value has seen none.
type Brackets struct {
	open []bracket
}

// bracket is an opening bracket.
type bracket struct {
	char  byte
	token int
	line  int
}

// Take takes the next token of one character, c, and ignores it unless it is a bracket.
// For a closing bracket, back is the distance to the token that it closes; otherwise it
// is 0. A closing bracket that does not belong to the last open one is an error.
func (b *Brackets) Take(c byte, token, line int) (back int, err error) {
	want := byte(0)
	switch c {
	case '(', '[', '{':
		b.open = append(b.open, bracket{c, token, line})
		return 0, nil
	case ')':
		want = '('
	case ']':
		want = '['
	case '}':
		want = '{'
	default:
		return 0, nil
	}
	if len(b.open) == 0 {
		return 0, signature.Errorf(line, "unmatched %c", c)
	}
	last := b.open[len(b.open)-1]
	if last.char != want {
		return 0, signature.Errorf(line, "%c does not match %c of line %d", c, last.char, last.line)
	}
	b.open = b.open[:len(b.open)-1]
	return token - last.token, nil
}

// Open returns the number of brackets that are open.
func (b *Brackets) Open() int { return len(b.open) }

// End returns an error if a bracket is open, which names the last one.
func (b *Brackets) End() error {
	if len(b.open) == 0 {
		return nil
	}
	last := b.open[len(b.open)-1]
	return signature.Errorf(last.line, "%c is never closed", last.char)
}
