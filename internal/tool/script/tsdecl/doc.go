// Package tsdecl reads the exported functions of TypeScript sources without running
// them.
//
// Tokens are found as TypeScript finds them, with its templates, regular expressions and
// brackets. The parameters, types and comments of exported functions are read in full. In
// everything else only the order of tokens is checked: a reported mistake is one, but not
// every mistake is found.
package tsdecl

import (
	"slices"

	"loki/internal/tool/script/signature"
)

// Parse returns the functions of a source whose names want accepts, in their order.
// Functions are those declared, with a body, in an export statement; generators, arrow
// functions, classes and names exported in a separate statement are not included. The
// error is a *signature.Error.
func Parse(src []byte, want func(name string) bool) ([]signature.Function, error) {
	tokens, err := scan(src)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens}
	var list []signature.Function
	for p.tok().kind != end {
		t := p.tok()
		if !t.is("export") || p.at > 0 && p.tokens[p.at-1].is(".") {
			p.skip()
			continue
		}
		p.at++
		f, ok, err := p.parseExported(want)
		if err != nil {
			return nil, err
		}
		if ok {
			f.Description = document(&f, t.doc)
			list = slices.DeleteFunc(list, func(g signature.Function) bool { return g.Name == f.Name })
			list = append(list, f)
		}
	}
	return list, nil
}
