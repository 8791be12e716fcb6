package pydecl

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/tool/script/signature"
)

// parser finds the blocks of a source and reads its functions.
type parser struct {
	tokens    []token
	at        int
	want      func(string) bool
	functions []signature.Function
}

func (p *parser) tok() token { return p.tokens[p.at] }

// peek returns the token n places ahead, or the end of the file.
func (p *parser) peek(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

func (p *parser) errorf(t token, format string, args ...any) error {
	return signature.Errorf(t.line, format, args...)
}

func (p *parser) file() error {
	if err := p.statements(0); err != nil {
		return err
	}
	if t := p.tok(); t.kind != end {
		return p.errorf(t, "unexpected indentation")
	}
	return nil
}

// maxDepth is how deep blocks may be nested; Python has the same limit for indentation.
const maxDepth = 100

// clauses are the statements with blocks, each with the clauses that may precede it in
// the same block; nil for those that begin a statement.
var clauses = map[string][]string{
	"if": nil, "for": nil, "while": nil, "try": nil, "with": nil, "def": nil, "class": nil, "match": nil, "case": nil,
	"elif":    {"if", "elif"},
	"else":    {"if", "elif", "for", "while", "except"},
	"except":  {"try", "except"},
	"finally": {"try", "except", "else"},
}

// statements reads the statements of a block up to its end.
func (p *parser) statements(depth int) error {
	if depth > maxDepth {
		return p.errorf(p.tok(), "too many nested blocks")
	}
	last := "" // the clause that came before
	decorated := false
	// An else belongs to a try only if it follows except, which the clauses say; a finally
	// after an else requires the else of a try.
	for p.tok().kind != end && p.tok().kind != dedent {
		t := p.tok()
		if t.kind == indent {
			return p.errorf(t, "unexpected indentation")
		}
		word := p.clause()
		if before, ok := clauses[word]; ok && before != nil && !slices.Contains(before, last) {
			return p.errorf(t, "unexpected %s", word)
		}
		if last == "try" && word != "except" && word != "finally" {
			return p.errorf(t, "a try needs except or finally after it")
		}
		if decorated && word != "def" && word != "class" && !t.is("@") {
			return p.errorf(t, "a decorator needs a function or class after it")
		}
		decorated = t.is("@")
		if err := p.statement(word, depth); err != nil {
			return err
		}
		last = word
	}
	if last == "try" {
		return p.errorf(p.tok(), "a try needs except or finally after it")
	}
	if decorated {
		return p.errorf(p.tok(), "a decorator needs a function or class after it")
	}
	return nil
}

// clause returns the word that begins the statement here, if the statement has a block.
func (p *parser) clause() string {
	t := p.tok()
	if t.is("async") {
		t = p.peek(1)
	}
	if t.kind != name {
		return ""
	}
	if _, ok := clauses[t.text]; !ok {
		return ""
	}
	if isSoft(t) && !p.softBlock() {
		return ""
	}
	return t.text
}

// softBlock reports whether the line that starts with match or case is that statement.
func (p *parser) softBlock() bool {
	next := p.peek(1)
	if next.is(":") || next.is("=") || next.is(".") || next.is(",") || next.kind == newline {
		return false
	}
	for i := p.at + 1; ; i++ {
		t := p.tokens[i]
		switch {
		case t.kind == newline || t.kind == end:
			return false
		case t.match > 0:
			i += t.match
		case t.is("="):
			return false
		case t.is(":") && p.tokens[i+1].kind == newline:
			return true
		case t.is(":") && p.tok().is("case"):
			return true
		}
	}
}

// statement reads one statement, with its block if it is a clause.
func (p *parser) statement(word string, depth int) error {
	if word == "def" && depth == 0 {
		return p.function()
	}
	if word == "" {
		if err := p.line(); err != nil {
			return err
		}
		return nil
	}
	if err := p.header(word); err != nil {
		return err
	}
	return p.block(depth)
}

// line passes over a simple statement and its end.
func (p *parser) line() error {
	for p.tok().kind != newline {
		if p.tok().kind == end {
			return p.errorf(p.tok(), "unexpected end of the file")
		}
		p.at++
	}
	p.at++
	return nil
}

// header skips the first part of a clause, up to and including its colon.
func (p *parser) header(word string) error {
	first := p.tok()
	p.at++
	for lambdas := 0; ; p.at++ {
		t := p.tok()
		switch {
		case t.kind == newline || t.kind == end:
			return p.errorf(first, "%s needs a colon", word)
		case t.match > 0:
			p.at += t.match
		case t.is("lambda"):
			lambdas++
		case t.is(":") && lambdas > 0:
			lambdas--
		case t.is(":"):
			p.at++
			return nil
		}
	}
}

// block reads the block after the colon of a clause: the rest of the line, or
// indented lines.
func (p *parser) block(depth int) error {
	if p.tok().kind != newline {
		return p.line()
	}
	p.at++
	if p.tok().kind != indent {
		return p.errorf(p.tok(), "an indented block is missing")
	}
	p.at++
	if err := p.statements(depth + 1); err != nil {
		return err
	}
	p.at++ // dedent: nothing else ends a block
	return nil
}

// function reads a function of the top level.
func (p *parser) function() error {
	if p.tok().is("async") {
		p.at++
	}
	p.at++ // def
	f := signature.Function{Name: p.tok().text, Line: p.tok().line}
	if !p.tok().isName() {
		return p.errorf(p.tok(), "the name of a function is missing")
	}
	p.at++
	if p.tok().is("[") { // type parameters
		p.at += p.tok().match + 1
	}
	if !p.tok().is("(") {
		return p.errorf(p.tok(), "( is missing after the name of function %s", f.Name)
	}
	params := p.at
	p.at += p.tok().match
	if err := p.header("def"); err != nil {
		return err
	}
	f.Description = p.docstring()
	if err := p.block(0); err != nil {
		return err
	}
	if !p.want(f.Name) {
		return nil
	}
	list := paramList{tokens: p.tokens[params+1 : params+p.tokens[params].match]}
	var err error
	if f.Params, err = list.read(); err != nil {
		return fmt.Errorf("function %s: %w", f.Name, err)
	}
	document(&f)
	f.Description = strings.TrimSpace(f.Description)
	p.functions = slices.DeleteFunc(p.functions, func(g signature.Function) bool { return g.Name == f.Name })
	p.functions = append(p.functions, f)
	return nil
}

// docstring returns the text of the string that is the first statement of the block here;
// empty if the block begins with another statement.
func (p *parser) docstring() string {
	i := p.at
	if p.tokens[i].kind == newline && p.tokens[i+1].kind == indent {
		i += 2
	}
	t := p.tokens[i]
	if t.kind != text || p.tokens[i+1].kind != newline && !p.tokens[i+1].is(";") {
		return ""
	}
	start := strings.IndexAny(t.text, `"'`)
	if strings.ContainsAny(t.text[:start], "fFtT") {
		return ""
	}
	quotes := 1
	if strings.HasPrefix(t.text[start:], strings.Repeat(t.text[start:start+1], 3)) && len(t.text)-start >= 6 {
		quotes = 3
	}
	return t.text[start+quotes : len(t.text)-quotes]
}
