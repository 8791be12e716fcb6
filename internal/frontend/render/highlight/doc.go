// Package highlight finds the tokens of program text as it arrives, line by line.
//
// Terms. A lexer is a state machine: a state has rules, tried in order at a place in the
// text; the first whose regular expression matches there gives the text it matched one or
// several kinds and may push states on a stack or pop them. A kind says what a token is: a
// keyword, a string. Spans are the kinds of adjoining parts of a text; they cover all of
// it.
//
// The lexers are those of the chroma library (a port of Pygments), which keeps them as XML
// files. The files are embedded, see the directory lexers, which has their license, too;
// one is parsed when its language is first met, and the regular expressions of a state are
// compiled by the regexp2 library, for which they are written, when the state is first entered.
// What chroma does with them is repeated here for three reasons. Importing chroma's lexers costs
// 14 to 19 ms at every start. It compiles everything a language has before the first token. And
// it lexes a text from beginning to end, so that text which grows would be lexed again and again:
// here, the next part continues from a State. Tests compare the tokens with chroma's on its own
// examples.
package highlight

//go:generate go run generate.go
