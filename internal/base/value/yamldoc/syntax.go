package yamldoc

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// syntaxProblem turns an error of the library into a problem and explains the
// mistakes that people make most.
func (d *Doc) syntaxProblem(err error) *Problem {
	type located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	var at located
	if !errors.As(err, &at) {
		return &Problem{File: d.file, Msg: err.Error()}
	}
	pos := posOf(at.GetToken())
	p := d.problem(pos, "", at.GetMessage())
	switch line := d.line(pos.Line); {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		p.Msg, p.Hint = "a tab is used for indentation", "indent with spaces"
	case startsWithBraces(line):
		p.Hint = `a text that begins with {{ needs quotes: "{{key}}"`
	case strings.HasPrefix(p.Msg, "mapping value is not allowed"):
		p.Msg = `": " is not allowed here`
		p.Hint = `check the indentation; a text that contains ": " needs quotes, or a block scalar (|)`
	case strings.HasPrefix(p.Msg, "could not find end character"):
		p.Hint = "a quote is opened here and never closed"
	case strings.HasPrefix(p.Msg, "value is not allowed in this context"), strings.HasPrefix(p.Msg, "non-map value"),
		strings.HasPrefix(p.Msg, "unexpected key name"):
		p.Hint = "check the indentation, and that a space follows each colon"
	}
	return p
}

// startsWithBraces reports whether an unquoted value in line begins with "{{".
func startsWithBraces(line string) bool {
	value := strings.TrimLeft(line, " -")
	if _, after, ok := strings.Cut(value, ": "); ok && !strings.HasPrefix(value, "{{") {
		value = strings.TrimLeft(after, " ")
	}
	return strings.HasPrefix(value, "{{")
}
