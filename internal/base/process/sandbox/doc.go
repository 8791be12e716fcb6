// Package sandbox has the kernel hold what a child process may do.
//
// A [Level] names how much that is, from [Read], which cannot harm, to [Full], which is not confined. A
// [Declaration] says what a tool, a node, an agent or a call wants: a level, and places and hosts beyond it. A
// [Sandbox] knows the workspace and what the user's configuration adds, and makes a [Box] for each child: what
// confines that one process and all that it starts. What a box stopped is a [Refusal].
//
// # Levels
//
// At [Read] a child reads the workspace, and the programs and libraries of the system. It does not read the other
// files of the user, what keeps credentials, nor files that a rule of the user denies. It writes in a temporary
// directory of its own, which is gone afterwards. It has no network.
//
// At [Write] it writes in the workspace, too, but for what runs later: hooks of git, .envrc, tasks of editors
// and of continuous integration, environments of languages, files of Loki. What a child makes in such a place gets
// another name when it has ended, see [Withheld]. Its temporary files are kept for later children of the workspace.
//
// At [Network] it also reaches the hosts that are declared, through a proxy of this program.
//
// A place that is closed stays closed at every level below [Full]. The lists of places are data with a reason each,
// see places.go.
//
// # How it is held
//
// On Linux a child is started by a shim: this program executes itself, and before anything else of it is set
// up, the shim takes a list of system calls from the program that started it, makes them, and executes the
// command; the package shim says more. The first of them that fails ends it: a command that cannot be confined does
// not run. For macOS there is the text of a profile, which no box uses yet. On other systems [Sandbox.Support] says so, boxes
// confine nothing, and the caller decides whether it starts a child.
package sandbox
