// Package pydecl reads the functions of Python sources without running them.
//
// Tokens are found as Python finds them, with its indentation, brackets and strings. The
// blocks of statements are recognized, and the parameters, annotations and docstrings of
// functions at the top level are read in full. In everything else only the order of tokens
// is checked: a reported mistake is one, but not every mistake is found.
package pydecl

import (
	"loki/internal/tool/script/signature"
)

// Parse returns the functions of a source whose names want accepts, in their order.
// Functions are those of the top level, with def or async def, decorated or not; methods
// are not included. If several have the same name, the last one wins, as it does in
// Python. The error is a *signature.Error.
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
