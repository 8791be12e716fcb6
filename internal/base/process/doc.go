// Package process runs child programs so that nothing of them is left behind.
//
// The program that [Run] starts is the leader. The leader and everything it starts,
// directly or not, is its tree. A straggler is a process of the tree that is still
// alive when the leader has ended. The grace is the short time that stragglers get to
// finish what they are printing. To kill means SIGKILL (TerminateJobObject on
// Windows): nothing in a tree is asked to end.
//
// # How a tree is held together
//
// On Linux and macOS the leader leads a session of its own, and so a process group of
// its own, and the whole group is killed at once. A session, rather than only a group,
// because a background group of the user's terminal is stopped, and then hangs, when it
// reads from that terminal; without a controlling terminal opening /dev/tty fails at
// once, and reading an inherited standard input works. It also catches shells that
// give their jobs groups (set -m): the jobs are still in the session.
//
// The leader is not reaped before its tree is dead. A process id stays reserved while
// its owner is a zombie, so no signal can ever hit a stranger that was given the same
// number. Single processes outside the group are, on Linux, killed through a pidfd.
//
// On Windows the leader starts suspended, is put into a job object, and is resumed:
// whatever it starts is in the job.
//
// # What can still escape
//
// A process that calls setsid has left the session. On Linux and macOS it is found and
// killed if it still descends from the leader when the tree is killed; on Linux also if
// it holds one of the leader's output pipes. One that detaches completely (a new
// session, its parent gone, its output redirected: what a daemon does) survives. So
// does a process that the user may not signal, such as one that sudo started. Nothing escapes
// from a tree whose Confinement is [Namespaced].
//
// # When this program dies
//
// If this program itself is killed with SIGKILL, it cannot kill anything. On Windows the system
// closes the job object and so ends the tree. On Linux the leader has a parent-death signal.
// That signal is tied to the thread that forked, not to the process, and a Go thread may end
// early; so the goroutine that starts a leader is locked to its thread until the leader is
// reaped. That costs nothing extra, as waiting for a process occupies a thread anyway. But the
// signal reaches the leader only, and a shell's foreground command would live on. Therefore on
// Linux and macOS there is a guard: one /bin/sh in another session, which gets the id of every
// leader as soon as that is started, waits for the end of a pipe whose other end only this
// program holds, and then kills the groups of the leaders that are left, on Linux also the rest
// of their sessions. It is started with the first leader and ends with this program. On Linux a leader
// is stopped until the guard knows it, see tree.start.
package process
