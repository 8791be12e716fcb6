package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Limits of what [Parse] accepts and [Expr.Eval] does.
const (
	MaxSource = 4096    // bytes of an expression
	MaxDepth  = 64      // levels of nesting
	MaxWork   = 1 << 22 // operators, elements and parts of texts that are looked at; what needs more is null
)

// Expr is an expression. It is immutable and may be used by several goroutines.
type Expr struct {
	Source string
	root   *node
	roots  []string
	clock  bool
}

// Roots returns the keys of the state that the expression reads, each once, in order of first appearance.
func (e *Expr) Roots() []string { return slices.Clone(e.roots) }

// UsesClock reports whether the result depends on the time.
func (e *Expr) UsesClock() bool { return e.clock }

// node is a node of the tree of an expression. Its op is an operator of two operands, or one of these:
const (
	opLiteral   = "literal" // value
	opKey       = "key"     // of the state: text
	opList      = "[]"      // kids
	opMember    = "."       // text of kid 0
	opIndex     = "index"   // kid 1 of kid 0
	opCall      = "call"    // call of kids, called text
	opNot       = "!"
	opNegate    = "negate"
	opCondition = "?" // kid 0 ? kid 1 : kid 2
)

type node struct {
	op      string
	at      int // offset of the operator, or of what begins it
	text    string
	value   value.Value
	kids    []*node
	call    *function
	pattern *pattern // of matches with a literal on the right
}

// How tight operators bind.
const (
	precCondition = iota + 1
	precOr
	precAnd
	precCompare
	precAdd
	precMultiply
	precUnary
	precCoalesce
	precPrimary
)

// binaries are the operators of two operands.
var binaries = map[string]int{
	"??": precCoalesce, "*": precMultiply, "/": precMultiply, "%": precMultiply, "+": precAdd, "-": precAdd,
	"==": precCompare, "!=": precCompare, "<": precCompare, "<=": precCompare, ">": precCompare, ">=": precCompare,
	"in": precCompare, "contains": precCompare, "matches": precCompare, "&&": precAnd, "||": precOr,
}

// wordHints are for the words of other languages.
var wordHints = map[string]string{
	"and": "and is &&", "or": "or is ||", "not": "not is !, as in !(a in b)", "is": "equality is ==", "if": "a choice is written a ? b : c",
}

// Parse reads an expression. An error is a [*SyntaxError].
func Parse(source string) (*Expr, error) {
	p := &parser{source: source, expr: &Expr{Source: source}}
	switch {
	case len(source) > MaxSource:
		p.fail(MaxSource, "let a script decide, and write the result to the state", "an expression has at most %d bytes", MaxSource)
	case !utf8.ValidString(source):
		p.fail(0, "", "the expression is not UTF-8")
	}
	p.advance()
	p.expr.root = p.parse(precCondition)
	if p.token.kind != tokenEnd {
		p.unexpectedError("an operator or the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.expr, nil
}

// parser parses by precedence (Pratt, Top Down Operator Precedence, POPL 1973). After an error all tokens are the end.
type parser struct {
	source string
	token  token  // the next one
	last   string // text of the one before
	depth  int
	expr   *Expr
	err    error // the first one
}

func (p *parser) advance() token {
	t := p.token
	following, err := lex(p.source, t.at+len(t.text))
	switch {
	case p.err != nil:
	case err != nil:
		p.fail(err.Offset, err.Hint, "%s", err.Msg)
	default:
		p.token, p.last = following, t.text
	}
	return t
}

func (p *parser) fail(at int, hint, format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{at, fmt.Sprintf(format, args...), hint}
	}
	p.token = token{at: at}
}

func (p *parser) unexpectedError(want string) {
	found := fmt.Sprintf("%q", p.token.text)
	if p.token.kind == tokenEnd {
		found = "the end"
	}
	p.fail(p.token.at, cmp.Or(wordHints[p.token.text], wordHints[p.last]), "expected %s, found %s", want, found)
}

func (p *parser) accept(sign string) bool {
	if p.token.kind != tokenSign || p.token.text != sign {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(sign string) {
	if !p.accept(sign) {
		p.unexpectedError(fmt.Sprintf("%q", sign))
	}
}

// parse reads an expression of operators that bind at least as tight as least.
func (p *parser) parse(least int) *node {
	if p.depth++; p.depth > MaxDepth {
		p.fail(p.token.at, "", "nested deeper than %d levels", MaxDepth)
	}
	defer func() { p.depth-- }()
	left := p.postfix(p.prefix())
	for {
		t := p.token
		prec := binaries[t.text]
		switch {
		case least <= precCondition && p.accept("?"):
			then := p.parse(precCondition)
			p.expect(":")
			return &node{op: opCondition, at: t.at, kids: []*node{left, then, p.parse(precCondition)}}
		case prec == 0 || prec < least:
			return left
		}
		p.advance()
		right := prec + 1
		if prec == precCoalesce {
			right = prec
		}
		left = &node{op: t.text, at: t.at, kids: []*node{left, p.parse(right)}}
		if prec == precCompare && binaries[p.token.text] == prec {
			p.fail(p.token.at, "join comparisons with &&", "comparisons do not chain")
		}
		p.pattern(left)
	}
}

// pattern compiles the pattern of a matches if it is a literal.
func (p *parser) pattern(n *node) {
	if n.op != "matches" || n.kids[1].op != opLiteral || p.err != nil {
		return
	}
	source, _ := n.kids[1].value.AsString()
	var err error
	if n.pattern, err = compile(source); err != nil {
		p.fail(n.kids[1].at, "the syntax is that of RE2: https://github.com/google/re2/wiki/Syntax", "%v", err)
	}
}

// prefix reads a literal, a key, a call, a group, or a sign with its operand.
func (p *parser) prefix() *node {
	t := p.token
	switch {
	case t.kind == tokenLiteral:
		p.advance()
		return &node{op: opLiteral, at: t.at, value: t.value}
	case t.kind == tokenWord && binaries[t.text] == 0:
		return p.word()
	case p.accept("("):
		n := p.parse(precCondition)
		p.expect(")")
		return n
	case p.accept("["):
		return &node{op: opList, at: t.at, kids: p.list("]")}
	case p.accept("!"):
		return &node{op: opNot, at: t.at, kids: []*node{p.parse(precUnary)}}
	case p.accept("-"):
		operand := p.parse(precUnary)
		if operand.op == opLiteral && isNumber(operand.value) {
			return &node{op: opLiteral, at: t.at, value: negative(operand.value)}
		}
		return &node{op: opNegate, at: t.at, kids: []*node{operand}}
	}
	p.unexpectedError("a value")
	return &node{op: opLiteral}
}

// list reads expressions up to the closing sign.
func (p *parser) list(end string) (kids []*node) {
	for !p.accept(end) && p.err == nil {
		if len(kids) > 0 {
			p.expect(",")
		}
		kids = append(kids, p.parse(precCondition))
	}
	return kids
}

func (p *parser) word() *node {
	t := p.advance()
	switch {
	case t.text == "true", t.text == "false":
		return &node{op: opLiteral, at: t.at, value: value.Of(t.text == "true")}
	case t.text == "null":
		return &node{op: opLiteral, at: t.at}
	case p.accept("("):
		n := &node{op: opCall, at: t.at, text: t.text, kids: p.list(")"), call: functions[t.text]}
		p.arguments(n)
		return n
	case !slices.Contains(p.expr.roots, t.text):
		p.expr.roots = append(p.expr.roots, t.text)
	}
	return &node{op: opKey, at: t.at, text: t.text}
}

// arguments checks a call.
func (p *parser) arguments(n *node) {
	switch {
	case n.call == nil:
		hint := "the functions: loki --docs graph#expressions"
		if near := yamldoc.Nearest(n.text, slices.Sorted(maps.Keys(functions))); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		p.fail(n.at, hint, "there is no function %q", n.text)
	case len(n.kids) < n.call.least || len(n.kids) > n.call.most:
		p.fail(n.at, "write "+n.call.usage, "%s is called with %d arguments", n.text, len(n.kids))
	}
	p.expr.clock = p.expr.clock || n.text == "now_is_past"
}

// postfix reads the members and elements of n.
func (p *parser) postfix(n *node) *node {
	for {
		at := p.token.at
		switch {
		case p.accept("["):
			n = &node{op: opIndex, at: at, kids: []*node{n, p.parse(precCondition)}}
			p.expect("]")
		case p.accept("."), p.accept("?."):
			if p.token.kind != tokenWord {
				p.unexpectedError("the name of a member")
			}
			n = &node{op: opMember, at: at, text: p.advance().text, kids: []*node{n}}
		default:
			return n
		}
	}
}
