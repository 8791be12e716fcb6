// Package pydecl reads the functions of Python sources, and runs nothing of them.
//
// Tokens are found as Python finds them, with its indentation, brackets and strings.
// Statements are told apart as far as their blocks go, and the parameters, annotations and
// docstrings of functions at the top level are read in full. Of everything else only the
// order of tokens is looked at: what is reported as a mistake is one, but not every
// mistake of Python is found.
package pydecl

import (
	"loki/internal/tool/script/signature"
)

// Parse returns the functions of a source for which want, given their names, is true, in
// their order. Functions are those of the top level, with def or async def, decorated or
// not; methods are not. Where a name is given to several, the last one counts, as it does
// in Python. The error is a *signature.Error.
func Parse(src []byte, want func(name string) bool) ([]signature.Function, error) {
	tokens, err := scan(src)
	if err != nil {
		return nil, err
	}
	if err := checkOrder(tokens); err != nil {
		return nil, err
	}
	p := parser{tokens: tokens, want: want}
	if err := p.file(); err != nil {
		return nil, err
	}
	return p.functions, nil
}
