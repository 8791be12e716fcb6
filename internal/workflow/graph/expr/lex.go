package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"loki/internal/base/value"
)

// SyntaxError says why a text is not an expression.
type SyntaxError struct {
	Offset int // bytes of the source before the place
	Msg    string
	Hint   string // what to do about it; may be empty
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s (at character %d)", e.Msg, e.Offset+1) }

// token is a word, a sign or a literal.
type token struct {
	kind  tokenKind
	text  string // as it is written
	at    int
	value value.Value // of a literal
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenSign
	tokenLiteral
)

// signs are the operators and punctuation, those of two characters first.
var signs = strings.Fields("?? ?. == != <= >= && || < > + - * / % ! ? : . , ( ) [ ]")

// mistakes are what other languages write, with hints; longer ones first.
var mistakes = [...][2]string{
	{"{{", "write the key without braces: score >= 8"},
	{"=", "equality is =="},
	{"&", "and is &&"},
	{"|", "or is ||"},
	{"~", "a regular expression is tested with matches"},
	{"$", "write the key alone"},
	{"`", "texts need single or double quotes"},
}

// lex returns the token of source that begins at or behind offset at.
func lex(source string, at int) (token, *SyntaxError) {
	at = len(source) - len(strings.TrimLeft(source[at:], " \t\r\n"))
	rest := source[at:]
	switch {
	case rest == "":
		return token{at: at}, nil
	case isLetter(rest[0]):
		return token{kind: tokenWord, text: rest[:wordLength(rest)], at: at}, nil
	case isDigit(rest[0]):
		return lexNumber(rest, at)
	case rest[0] == '"' || rest[0] == '\'':
		return lexText(rest, at)
	}
	for _, sign := range signs {
		if strings.HasPrefix(rest, sign) {
			return token{kind: tokenSign, text: sign, at: at}, nil
		}
	}
	for _, m := range mistakes {
		if strings.HasPrefix(rest, m[0]) {
			return token{}, &SyntaxError{at, fmt.Sprintf("unexpected %q", m[0]), m[1]}
		}
	}
	_, size := utf8.DecodeRuneInString(rest)
	return token{}, &SyntaxError{at, fmt.Sprintf("unexpected %q", rest[:size]), "keys are made of the letters A to Z, digits and _"}
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// wordLength returns the number of letters and digits that text begins with.
func wordLength(text string) int {
	n := 0
	for n < len(text) && (isLetter(text[n]) || isDigit(text[n])) {
		n++
	}
	return n
}

// lexNumber reads a number in the notation of JSON, without a sign.
func lexNumber(rest string, at int) (token, *SyntaxError) {
	n := wordLength(rest)
	for n < len(rest) && (rest[n] == '.' || rest[n-1]|0x20 == 'e' && (rest[n] == '+' || rest[n] == '-')) {
		n += 1 + wordLength(rest[n+1:])
	}
	v, err := value.ParseJSON([]byte(rest[:n]))
	if err != nil {
		return token{}, &SyntaxError{at, fmt.Sprintf("%s is not a number", rest[:n]), "numbers are written as in JSON; a text needs quotes"}
	}
	return token{tokenLiteral, rest[:n], at, v}, nil
}

// lexText reads a text in quotes.
func lexText(rest string, at int) (token, *SyntaxError) {
	for end := 1; end < len(rest); end++ {
		switch c := rest[end]; {
		case c == '\\' && rest[0] == '"', c == '\'' && rest[0] == c && strings.HasPrefix(rest[end+1:], "'"):
			end++
		case c == '\'' && rest[0] == c:
			return token{tokenLiteral, rest[:end+1], at, value.Of(strings.ReplaceAll(rest[1:end], "''", "'"))}, nil
		case c == '"' && rest[0] == c:
			v, err := value.ParseJSON([]byte(rest[:end+1]))
			if err != nil {
				return token{}, &SyntaxError{at, "this is not a text of JSON", `in double quotes a backslash is \\ and a line feed \n; in single quotes all is literal`}
			}
			return token{tokenLiteral, rest[:end+1], at, v}, nil
		}
	}
	return token{}, &SyntaxError{at, "the text has no closing quote", ""}
}
