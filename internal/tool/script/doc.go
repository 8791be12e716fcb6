// Package script turns scripts that users write in bash, Python and TypeScript into
// tools.
//
// A tool's script is a file in the directory of tools; it gives one tool, named after the
// file (several if it is in bash and has subcommands). An agent's script belongs to one
// agent and gives a tool for each of its public functions. The packages bashdecl, pydecl
// and tsdecl read the declarations for models from the source; no script is run for that.
// The declarations are cached by the contents of the source, so that sources are not
// parsed again at every start.
//
// # A call
//
// A bash script is started with a command line that is made of the arguments. A function in
// Python or TypeScript is called by a launcher, a small program in the same language, with
// the arguments by name. What a script prints on standard output is for the user, see
// [Options]; the result for the model is what it leaves in the file that $LLM_OUTPUT names.
// Everything that a call needs is in a directory of its own, which is removed afterwards.
//
// A script says how it behaves in comments:
//
//	# @meta interactive     it talks to the user: calls run one at a time and take their time
//	# @meta read-only       it changes nothing
//	# @meta destructive     the user is asked before each call
//	# @meta timeout 90s     one call may take so long
//	# @sandbox LEVEL [HOST...]  what its program may do, see package sandbox
//
// with // in TypeScript. Between a @cmd of a bash script and its function they hold for that
// function, otherwise for the whole script. A bash script that uses LLM_PROMPT_UTILS_FILE is interactive.
//
// # Runners
//
// A runner is a program that makes one call by hand, see [Build]. Calls of models do not
// use runners.
package script
