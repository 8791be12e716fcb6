// Package permission decides whether a tool call may run.
//
// A [Rule] gives the calls it matches an [Action]: allow, ask or deny.
// [Rules] are those of a configuration file or of an agent. A [Judge] gives the [Verdict] on a
// [Call]. A [Grant] is a rule that the user made by answering a question with "always", and
// a [Memory] keeps grants, for a session or for an agent. The workspace is the directory
// tree in which a model may look around.
//
// # How a verdict comes about
//
// A rule that denies wins over everything. Otherwise a matching grant decides, and without one
// the most specific rule: the one whose patterns have the most literal
// characters, and the later of two that are equal. So the order of rules matters only
// where nothing else tells them apart, and a general rule never silences an exception.
// Where no rule matches, what is harmless by construction is allowed and what may
// destroy something is asked about.
//
// # Shell commands
//
// The text of a shell tool is parsed, and every command in it is judged: the ones in chains, pipes,
// loops, functions and substitutions, and the ones that other commands run, such as xargs or sh -c.
// The call is allowed only if each of them is. A file that is written by a
// redirection is judged as a path. Anything that the text alone does not show, such as a
// command whose name is a variable, is asked about; so the analysis need never be complete, only
// never too trusting.
package permission
