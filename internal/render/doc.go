// Package render tells people and programs what happens, from the events of
// package event.
//
// A [Screen] is the stream people watch, standard error as a rule. On a terminal it has
// two parts: finished lines, which scroll, and below them the live area, which is drawn
// again in place and says what is running now. Anywhere else there are only finished
// lines. Whatever is shown to people goes through the one Screen of a program, so that
// nothing is drawn across anything else.
//
// The emitters are [Narrator], which tells a graph run on the Screen; [Answer], which
// brings a model's answer to standard output while it arrives; [NDJSON], which writes
// each event as a line of JSON; and [Report], which writes one JSON object at the end.
// [Error] and [Findings] print what went wrong.
//
// On a terminal an answer is drawn as Markdown: what is final of it scrolls like any
// other line, and its unfinished block is drawn again in place. Package markdown says what
// the rows are, package highlight finds the tokens of code, and package theme has the
// colours.
//
// No text of a model, a script or a server reaches a terminal with control characters
// in it.
package render
