// Package lexer is what the scanners of all languages of scripts have in common.
//
// A source is the text of a script, and a token a piece of it that a scanner has found. The
// tokens of a source are counted from 0, its lines from 1. Errors are [*signature.Error].
package lexer
