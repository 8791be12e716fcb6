// Package argc is the language of comment tags in which bash tools describe their
// command line.
//
// A tag is a comment line of the form "# @name text". Tags say what a [Command] is for
// (@describe, @cmd), which parameters it has and how it behaves (@meta). A parameter, a
// [Param], is a flag (a switch), an option (named values), an argument (positional
// values) or an environment variable. A choice is a value that a parameter may have. A
// script without @cmd is one command, the root; with it, each tagged function is a
// subcommand, and a function a::b is command b below a.
//
// [Parse] reads the tags and runs nothing. [Build] puts into a script the block of plain
// bash that parses the script's command line, so that it can be run without any other
// program. [Eval] returns the same block for given words, to be evaluated by a script
// that holds the line
//
//	eval "$(loki --argc-eval "$0" "$@")"
//
// # The generated code
//
// It needs bash 3.2 and no other program, works under set -euo pipefail, depends on no
// IFS, and calls builtins as builtins, so that a script may have a function called exit
// or export. Words of the command line are data to it and never evaluated. It sets
//
//	argc_NAME           value of a parameter: a scalar, or an array if there may be several
//	argc__args          the script's name without .sh, then all words
//	argc__positionals   the positional words
//	argc__fn            the function that is run
//
// where NAME is the long name of the parameter, or else its letter, with "_" in place of
// what is neither letter nor digit. Parameters that were not given and have no default are
// unset. None of these variables is exported; variables of @env are.
package argc
