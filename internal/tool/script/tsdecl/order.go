package tsdecl

import (
	"strings"
	"sync"

	"loki/internal/tool/script/signature"
)

// linking are the words that may stand beside a name or a value with nothing in between,
// because they are keywords, in some place at least.
var linking = sync.OnceValue(func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`
		abstract accessor as assert asserts async await break case catch class const continue debugger declare default defer delete do
		else enum export extends finally for from function get global if implements import in infer instanceof interface
		is keyof let module namespace new object of out override package private protected public readonly require return
		satisfies set static super switch this throw try type typeof unique using var void while with yield source`) {
		m[w] = true
	}
	return m
})

// joining are the linking words that may follow a name.
var joining = map[string]bool{
	"as": true, "in": true, "is": true, "of": true, "instanceof": true, "satisfies": true, "extends": true, "implements": true,
	"from": true, "while": true, "else": true, "with": true, "assert": true,
}

// between are operators that need a value on both sides.
var between = map[string]bool{
	"===": true, "!==": true, "==": true, "!=": true, "&&": true, "||": true, "??": true, "%": true, "^": true, "**": true,
	"=": true, "=>": true, "+=": true, "-=": true, "*=": true, "/=": true, "%=": true, "&=": true, "|=": true, "^=": true,
	"&&=": true, "||=": true, "??=": true, "**=": true,
}

// after are operators that need a value after them, and perhaps none before.
var after = map[string]bool{"+": true, "-": true, "~": true, "/": true, "&": true, "|": true, "...": true, ".": true, "?.": true}

// endsValue reports whether a value may end with the token.
func endsValue(t token) bool {
	switch t.kind {
	case op:
		return t.text == ")" || t.text == "]" || t.text == "}"
	case word:
		return !beforeValue[t.text]
	}
	return t.kind != end
}

// checkOrder looks at tokens two by two: two values need something between them, and
// operators need values.
func checkOrder(tokens []token) error {
	keywords := linking()
	for i, b := range tokens {
		a := token{kind: end}
		if i > 0 {
			a = tokens[i-1]
		}
		if fits(a, b, keywords) {
			continue
		}
		what := b.text
		switch b.kind {
		case end:
			what = "end"
		case str:
			what = "string"
		}
		return signature.Errorf(b.line, "unexpected %s", what)
	}
	return nil
}

// fits reports whether b can follow a, where either may be the start or the end.
func fits(a, b token, keywords map[string]bool) bool {
	closing := b.kind == end || b.kind == op && strings.Contains(")]};,", b.text)
	switch {
	case a.kind == op && closing && (between[a.text] || after[a.text]):
		return false
	case a.is("."):
		return b.kind == word
	case a.is("?."):
		return b.kind == word || b.kind == template || b.is("(") || b.is("[") || b.is("<")
	case b.kind == op && between[b.text]:
		return !(a.kind == op && (strings.Contains("([{,;:", a.text) || between[a.text] && !b.is("=>"))) || a.is(">") || a.is("{") && b.is("=")
	case a.is("(") && b.is(","), a.is(";") && b.is("]"), a.is("<") && b.is("/") && b.glued, a.is("/") && b.is(">"):
		return false
	case b.fresh:
		return true
	case b.kind == number || b.kind == str:
		return !(a.kind == number || a.kind == str || a.is("]") || a.kind == word && !keywords[a.text])
	case b.kind == word && !keywords[b.text]:
		return !(a.kind == number || a.kind == str || a.kind == template || a.kind == regex || a.is("]") || a.kind == word && !keywords[a.text])
	case b.kind == word && !joining[b.text]:
		return !(a.kind == number || a.kind == template || a.is("]") || a.kind == word && !keywords[a.text])
	}
	return true
}
