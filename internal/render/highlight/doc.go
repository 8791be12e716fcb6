// Package highlight finds the tokens of program text as it arrives, line by line.
//
// Terms. A lexer is a state machine: a state has rules, tried in order at a place in the
// text; the first whose regular expression matches there gives the text it matched one or
// several kinds and may push states on a stack or pop them. A kind says what a token is: a
// keyword, a string. Spans are the kinds of adjoining parts of a text; they cover all of
// it. A program is a compiled regular expression, and a matcher runs it.
//
// The lexers are those of the chroma library (a port of Pygments), which keeps them as XML
// files. The files are embedded, see the directory lexers, which has their license, too;
// one is parsed when its language is first met, and the regular expressions of a state are
// compiled when the state is first entered. The engine is our own for three reasons. Importing
// chroma's lexers costs 14 to 19 ms at every start. Its engine compiles everything a language has
// before the first token. And it lexes a text from beginning to end, so that text which grows
// would be lexed again and again: here, what comes next continues from a State.
//
// The regular expressions are parsed by the regexp2 library, for which they are written, and run
// by a matcher of our own, which is ten times as fast: it works on bytes, allocates nothing, tries
// the rules only that can match at the next byte, decides between many words by one byte after the
// other, and counts instructions instead of reading the clock, so that the result for a text is
// always the same. Tests compare tokens with chroma's on its own examples, and matches of
// all patterns with regexp2's.
package highlight

//go:generate go run generate.go
