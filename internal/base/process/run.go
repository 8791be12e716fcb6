package process

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"loki/internal/base/process/awake"
	"loki/internal/base/process/identity"
)

// timing holds the delays of a run; tests shorten them.
type timing struct {
	grace     time.Duration // see Grace
	holders   time.Duration // from the kill until holders of the output are looked for
	drain     time.Duration // from then until the output is given up
	unguarded bool          // leaders get no guard
	giveUp    time.Duration // how long a killed leader may take to end
}

func standardTiming() timing {
	return timing{
		grace:   Grace,
		holders: 100 * time.Millisecond,
		drain:   time.Second,
		giveUp:  5 * time.Second,
	}
}

// Run runs c and returns when it and its tree have ended; the package documentation
// says what a tree is and what can escape from it. The Result holds what is known,
// whatever the error:
//
//   - *StartError: the program could not be started;
//   - an error that wraps ctx's: ctx ended, and the tree was killed;
//   - *TimeoutError: the time limit passed, and the tree was killed;
//   - *OutputError: more than MaxStdout bytes came on stdout, and the tree was killed;
//   - *ExitError: the program ended with a status other than 0 or by a signal;
//   - the error of Stdin, if reading it failed and the program succeeded all the same.
//
// When the leader has ended by itself, stragglers have [Grace] to close its output, and
// then are killed; they do not change its outcome, except that they too can print too
// much. The end of ctx or of the time limit cuts the grace short but is no error then.
//
// Every goroutine of Run has ended when it returns, with two exceptions: the pending
// Read of a Stdin that blocks, and the wait for a leader that is still there five
// seconds after it was killed (one in an uninterruptible system call, or owned by
// another user); the error then says so.
//
// Run may be called from several goroutines at once.
func Run(ctx context.Context, c Command) (Result, error) {
	return run(ctx, c, standardTiming())
}

func run(ctx context.Context, c Command, t timing) (Result, error) {
	began := time.Now()
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, stopError(ctx, c.program())
	}
	if c.HasTimeout && c.Timeout <= 0 {
		return Result{ExitCode: -1}, &TimeoutError{Program: c.program(), Limit: c.Timeout}
	}
	p, err := launch(&c, t.unguarded)
	if err != nil {
		return Result{ExitCode: -1, Duration: time.Since(began)}, err
	}
	var expired chan struct{} // nil for no limit
	if c.HasTimeout {
		expired = make(chan struct{})
		timer := awake.AfterFunc(c.Timeout-time.Since(began), func() { close(expired) })
		defer timer.Stop()
	}
	res, err := p.supervise(ctx, expired, t)
	res.Duration = time.Since(began)
	return res, err
}

// supervise sees the child through to its end.
func (p *child) supervise(ctx context.Context, expired <-chan struct{}, t timing) (Result, error) {
	cause := p.watch(ctx, expired)
	held := cause == nil && p.grace(ctx, expired, t.grace)
	res, err := p.finish(cause, cause == nil || p.kill(t), t)
	res.Held = held
	return res, err
}

// kill kills the tree and reports whether its leader has ended then.
func (p *child) kill(t timing) bool {
	p.tree.kill()
	return within(t.giveUp, p.exited)
}

// finish leaves nothing of the tree behind, which was stopped for cause, or for none. A leader that is not dead although it was
// killed is given up: the goroutine that waits for it continues to wait and releases what is left.
func (p *child) finish(cause error, dead bool, t timing) (Result, error) {
	if dead {
		p.tree.sweep()
		p.finishOutput(t)
	} else {
		closeAll(p.outputs)
		<-p.outputDone
		t.grace = 0
	}
	stdinErr := p.finishStdin(t.grace)
	p.stopGuard()
	close(p.release)
	if !dead {
		return p.outputSoFar(), fmt.Errorf("%w; process %d could not be killed", cause, p.pid)
	}
	<-p.reaped
	res := p.result()
	return res, p.outcome(cause, res, stdinErr)
}

// watch waits for the end of the leader, and returns nil, or for a reason to kill it,
// and returns that.
func (p *child) watch(ctx context.Context, expired <-chan struct{}) (cause error) {
	select {
	case <-p.exited:
		return nil
	case <-p.flooded:
		cause = p.outputError()
	case <-ctx.Done():
		cause = stopError(ctx, p.cmd.program())
	case <-expired:
		cause = &TimeoutError{Program: p.cmd.program(), Limit: p.cmd.Timeout}
	}
	if within(0, p.exited) {
		return nil // it made it all the same
	}
	if _, alive := identity.Born(p.pid); !alive && within(time.Second, p.exited) {
		return nil // the system knew it before the goroutine that waits
	}
	return cause
}

// grace waits for the output to be closed and reports whether it was still held when
// the time for that was over.
func (p *child) grace(ctx context.Context, expired <-chan struct{}, grace time.Duration) (held bool) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.outputDone:
	case <-p.flooded:
	case <-timer.C:
		held = true
	case <-ctx.Done():
		held = true
	case <-expired:
		held = true
	}
	return held
}

// finishOutput waits until the output has been read. No known process holds it any
// more; a process that does is searched and killed; if that is not possible the
// reading is ended.
func (p *child) finishOutput(t timing) {
	if !within(t.holders, p.outputDone) {
		p.tree.killHolders(p.outputs)
		within(t.drain, p.outputDone)
	}
	closeAll(p.outputs)
	<-p.outputDone
}

// finishStdin ends the copying of Stdin and returns the error of its Read, if any.
func (p *child) finishStdin(grace time.Duration) error {
	if p.stdin == nil {
		return nil
	}
	p.stdin.pipe.Close()
	if !within(grace, p.stdin.done) {
		return nil
	}
	return p.stdin.err
}

// outputSoFar returns the result as far as the output shows.
func (p *child) outputSoFar() Result {
	res := Result{
		Stdout:          p.stdout.text,
		StdoutTruncated: p.stdout.over,
		ExitCode:        -1,
	}
	res.Stderr, res.StderrOmitted = p.stderr.text()
	return res
}

// result returns the result of a child that has been reaped.
func (p *child) result() Result {
	res := p.outputSoFar()
	if p.state != nil {
		res.ExitCode = p.state.ExitCode()
		res.Signal = signalName(p.state)
	}
	return res
}

// outcome returns the error of a run that was stopped for cause, or for none.
func (p *child) outcome(cause error, res Result, stdinErr error) error {
	program := p.cmd.program()
	switch {
	case cause != nil:
		return cause
	case res.StdoutTruncated:
		return p.outputError()
	case res.ExitCode != 0:
		return &ExitError{
			Program: program,
			Code:    res.ExitCode,
			Signal:  res.Signal,
			Stderr:  strings.TrimSpace(res.Stderr),
		}
	case stdinErr != nil:
		return fmt.Errorf("standard input of %s: %w", program, stdinErr)
	}
	return nil
}

func (p *child) outputError() error {
	return &OutputError{Program: p.cmd.program(), Limit: p.stdout.max}
}

// within waits at most d for done and reports whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
