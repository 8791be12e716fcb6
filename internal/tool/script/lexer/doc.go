// Package lexer holds the common parts of the scanners for script languages.
//
// A source is the text of a script, and a token a piece of it that a scanner has found. The
// tokens of a source are counted from 0, its lines from 1. Errors are [*signature.Error].
package lexer
