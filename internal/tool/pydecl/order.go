package pydecl

import (
	"loki/internal/tool/script/signature"
)

// role is what a token can be in an expression or statement.
type role uint8

const (
	operand   role = 1 << iota // a value, or the end of one
	opener                     // ( [ {
	infix                      // an operator between two values, and no prefix
	starter                    // a keyword that begins a statement
	prefix                     // a keyword or operator in front of a value
	separator                  // , : ; = and the like
	edge                       // the start or end of a line or block
)

// keywords with their roles. Soft keywords are names.
var keywords = map[string]role{
	"False": operand, "None": operand, "True": operand,
	"and": infix, "or": infix, "in": infix, "is": infix, "if": infix, "else": separator, "for": infix, "from": infix, "as": infix,
	"not": prefix, "lambda": prefix, "await": prefix, "async": prefix, "yield": prefix, "import": prefix,
	"assert": starter, "break": starter, "class": starter, "continue": starter, "def": starter, "del": starter,
	"elif": starter, "except": starter, "finally": starter, "global": starter, "nonlocal": starter, "pass": starter,
	"raise": starter, "return": starter, "try": starter, "while": starter, "with": starter,
}

func (t token) role() role {
	switch t.kind {
	case number, text:
		return operand
	case name:
		if r, ok := keywords[t.text]; ok {
			return r
		}
		return operand
	case op:
		switch t.text {
		case "(", "[", "{":
			return opener
		case ")", "]", "}", "...":
			return operand
		case "/", "%", "//", "&", "|", "^", "<<", ">>", "<", ">", "==", "!=", "<=", ">=":
			return infix
		case "+", "-", "*", "**", "~", "@":
			return prefix
		}
		return separator
	}
	return edge
}

// isName reports whether the token is a name and not a keyword.
func (t token) isName() bool {
	_, keyword := keywords[t.text]
	return t.kind == name && !keyword
}

func (t token) closes() bool { return t.is(")") || t.is("]") || t.is("}") }

// checkOrder looks at tokens two by two: two values need something between them, and
// operators need values.
func checkOrder(tokens []token) error {
	before := token{kind: newline, line: 1}
	for i, t := range tokens {
		if t.kind == end {
			break
		}
		first := i == 0 || tokens[i-1].role() == edge || tokens[i-1].is(";")
		softStart := i > 0 && isSoft(tokens[i-1]) && (i == 1 || tokens[i-2].role() == edge || tokens[i-2].is(";") || tokens[i-2].is(":"))
		if !softStart && !fits(before, t, first) {
			what := t.text
			switch t.kind {
			case newline, end:
				what = "end of the line"
			case indent:
				what = "indentation"
			case text:
				what = "string"
			}
			return signature.Errorf(t.line, "unexpected %s", what)
		}
		before = t
	}
	return nil
}

// isSoft reports whether a token can be a keyword at the start of a statement and a name
// anywhere else.
func isSoft(t token) bool { return t.is("match") || t.is("case") || t.is("type") }

// fits reports whether b can follow a. first is whether b begins a statement.
func fits(a, b token, first bool) bool {
	ra, rb := a.role(), b.role()
	switch {
	case ra == operand && (rb == operand && !b.closes() || b.is("{") || b.is("~") || b.is("lambda") || b.is("await") || b.is("yield")):
		return a.kind == text && b.kind == text && !a.closes()
	case rb == starter:
		return first || a.is(":") || a.is("async") || ra == edge
	case rb == infix:
		switch {
		case b.is("/"):
			return ra == operand || a.is(",")
		case b.is("for"):
			return ra == operand || first || a.is("async") || a.is(":") || ra == edge
		case b.is("if"), b.is("from"):
			return ra == operand || first || a.is(":") || a.is("raise") || a.is("yield") || ra == edge
		case b.is("in"):
			return ra == operand || a.is("not") || a.is(",")
		case b.is("as"):
			return ra == operand
		}
		return ra == operand
	case b.is(","), b.is("="), b.is(":="), b.is("else"):
		return ra == operand || a.is("*") || a.is("/") || b.is(",") && a.is(":") || b.is("else") && (first || ra == edge) || b.is("=") && a.is(",") || a.is("return")
	}
	// Operators that something has to follow. "*" and "/" may stand alone among parameters,
	// and so may "from" before the dots of a relative import.
	if b.closes() || rb == edge || rb == separator {
		switch {
		case a.is("/"):
			return b.is(")") || b.is(":")
		case a.is("from"):
			return b.is(".") || b.is("...")
		case ra == infix, a.is("+"), a.is("-"), a.is("~"), a.is("@"), a.is("**"), a.is("="), a.is(":="), a.is("not"), a.is("await"), a.is("->"):
			return false
		}
	}
	if a.is(".") {
		return b.isName() || b.is(".") || b.is("...") || b.is("import")
	}
	return true
}
