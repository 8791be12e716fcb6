// Package render shows the events of package event to users and programs.
//
// A [Screen] is the stream that users watch, standard error as a rule. On a terminal it has
// two parts: finished lines, which scroll, and below them the live area, which is drawn
// again in place and says what is running now. Anywhere else there are only finished
// lines. Everything that users see goes through the one Screen of a program, so that
// nothing is drawn across anything else. The Screen also has the sink that draws an answer on the same terminal.
//
// The emitters are [Narrator], which shows on the Screen a graph run and child agents;
// [Answer], which writes a model's answer to standard output while it arrives; [NDJSON],
// which writes each event as a line of JSON; and [Report], which writes one JSON object at
// the end. What the agents of a run did is a [Tree], which is made of its events.
// [Error] and [Findings] print what went wrong.
//
// On a terminal an answer is drawn as Markdown: what is final of it scrolls like any
// other line, and its unfinished block is drawn again in place. Package markdown says what
// the rows are, package highlight finds the tokens of code, and package theme has the
// colors.
//
// No text of a model, a script or a server reaches a terminal with control characters
// in it.
package render
