package process

import (
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// DefaultMaxStdout is the limit for a [Command] that sets no MaxStdout, in bytes.
	DefaultMaxStdout int64 = 64 << 20
	// DefaultMaxStderr is the same for MaxStderr.
	DefaultMaxStderr int64 = 64 << 10
	// Grace is how long stragglers may keep a leader's output open after its end.
	Grace = 250 * time.Millisecond
)

// Command is one program to run. Only Path is required.
type Command struct {
	// Path is the program. A name without a separator is looked up on the PATH of
	// Env, or on this process's PATH if Env has none (on Windows always on the
	// latter). A relative path with a separator is relative to Dir.
	Path string
	// Args are the arguments, without the program's own name.
	Args []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Env is the complete environment as KEY=value; nothing is inherited, so nil is
	// an empty one (Windows always gets SYSTEMROOT). See environ.Merge.
	Env []string

	// Stdin is the program's input; nil means none, /dev/null. An *os.File is handed
	// to the program itself. Anything else is copied by a goroutine and should not
	// block: a Read still pending when the program has ended is waited for during
	// [Grace] only, since nothing can interrupt it.
	Stdin io.Reader

	// Timeout, if HasTimeout is set, is the longest the program may run. Zero or
	// less expires at once: the program is not started.
	Timeout    time.Duration
	HasTimeout bool

	// MaxStdout is how many bytes the program may print on stdout; one more and it is
	// killed. Zero or less means [DefaultMaxStdout].
	MaxStdout int64
	// MaxStderr is how many bytes of stderr are kept: of a longer text the first and
	// the last half. More is no failure. Zero or less means [DefaultMaxStderr].
	MaxStderr int64

	// OnStdout and OnStderr, if set, see each line while the program runs, without
	// its line end, invalid UTF-8 replaced by U+FFFD, and one longer than 64 KiB in
	// pieces. Calls for one stream never overlap and come in order; the two streams
	// have a goroutine each. No call is made after Run has returned. A slow observer
	// slows the program down, and one that does not return blocks Run.
	OnStdout func(line string)
	OnStderr func(line string)

	// Echo, if set, gets what the program prints on both streams, as it comes, so that a user
	// sees a question that does not end its line. Calls do not overlap, and their errors are
	// ignored.
	Echo io.Writer

	// Confinement, if set, has the kernel limit what the program and its tree can do.
	Confinement Confinement

	// Terminal lets the program talk to the user through /dev/tty: it stays in this
	// process's session and group, and Ctrl-C and Ctrl-Z reach both. The price is
	// that only the leader and what can be shown to descend from it are killed, not a
	// group. Without it the program has no terminal at all.
	Terminal bool
}

// program is the name by which messages call the command. Arguments are left out of
// messages, as they may hold secrets.
func (c *Command) program() string { return filepath.Base(c.Path) }

// Result describes a program after [Run], also when Run failed.
type Result struct {
	// Stdout is what was printed, at most MaxStdout bytes, as it came.
	Stdout []byte
	// Stderr is what was printed there, at most MaxStderr bytes and a line that says
	// how many are missing; invalid UTF-8 is replaced by U+FFFD.
	Stderr string
	// ExitCode is the exit status; -1 if the program was ended by a signal, was not
	// started, or is unknown.
	ExitCode int
	// Signal names the signal that ended the program ("SIGKILL"), or is empty. A
	// program killed by Run has SIGKILL, on Windows an ExitCode of 1.
	Signal string
	// Duration is the time from the call of Run to its return.
	Duration time.Duration
	// StdoutTruncated is true if the program printed more than Stdout holds.
	StdoutTruncated bool
	// StderrOmitted is the number of bytes missing in the middle of Stderr.
	StderrOmitted int64
	// Held is true if stragglers still had the output open at the end of the grace.
	Held bool
}

// Confinement has the kernel limit what a tree can do. It serves one start.
type Confinement interface {
	// Prepare changes cmd, which has its path, arguments, directory, environment, standard files and attributes, so
	// that what it starts waits for Release and is confined then. waits is false if cmd stays what it is, as there is
	// nothing to hold.
	Prepare(cmd *exec.Cmd) (waits bool, err error)
	// Release lets the leader begin, which has been started and is held together with its tree. An error says that it
	// could not be confined, or, if it wraps a [syscall.Errno], executed; the program has not run then.
	Release() error
	// End gives back what Prepare took. It is called once, when the tree is dead or was not started, whatever the
	// other methods returned.
	End()
}

// Namespaced is a Confinement whose leader may be in a process namespace.
type Namespaced interface {
	// Namespace returns, after Release, the first process of the namespace, with which all others in it end, and the command, which is the leader
	// from then on. Both are children of this process. They are 0 if there is no namespace.
	Namespace() (first, command int)
}
