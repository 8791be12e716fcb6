package process

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// child is a leader that runs, its tree, and the goroutines around it.
type child struct {
	cmd  *Command
	pid  int
	tree *tree

	exited  chan struct{} // closed when the leader has ended; it is not reaped yet
	release chan struct{} // closed by supervise to have the leader reaped
	reaped  chan struct{} // closed when state is set
	state   *os.ProcessState

	outputs    []*os.File    // our ends of stdout and stderr
	outputDone chan struct{} // closed when both readers have ended
	flooded    chan struct{} // closed when stdout has become too long
	stdout     capture       // written by its reader until outputDone
	stderr     ends          // likewise

	stdin *feed // nil if the leader reads a file or nothing

	leader    *os.Process // the one of the tree; set by own
	waits     bool        // the leader waits for the release by its confinement
	unguarded bool        // there is no guard
	stopGuard func()      // set by own if the leader was started
}

// feed is the copying of a Reader to a leader's standard input.
type feed struct {
	pipe *os.File
	done chan struct{} // closed when the copying has ended
	err  error         // of a Read; read it after done
}

// newChild returns a child for the leader of c, and what starts it.
func newChild(c *Command) (*child, *exec.Cmd, error) {
	path, err := Find(c.Path, c.Env)
	if err != nil {
		return nil, nil, err
	}
	p := &child{
		cmd:        c,
		exited:     make(chan struct{}),
		release:    make(chan struct{}),
		reaped:     make(chan struct{}),
		outputDone: make(chan struct{}),
	}
	return p, &exec.Cmd{
		Path: path,
		Args: append([]string{c.Path}, c.Args...),
		Dir:  c.Dir,
		Env:  append([]string{}, c.Env...), // exec takes nil for this process's own
	}, nil
}

// launch starts the leader of c and the goroutines that read its output, write its
// input and wait for it.
func launch(c *Command, unguarded bool) (*child, error) {
	p, cmd, err := newChild(c)
	if err != nil {
		return nil, err
	}
	p.flooded, p.unguarded = make(chan struct{}), unguarded
	p.stdout.max = positiveOr(c.MaxStdout, DefaultMaxStdout)
	p.stderr.max = positiveOr(c.MaxStderr, DefaultMaxStderr)
	var ends pipes
	defer ends.closeTheirs() // the leader has its own by then
	if err := p.connect(cmd, &ends); err != nil {
		ends.closeOurs()
		return nil, &StartError{Program: c.program(), Reason: err.Error(), Err: err}
	}
	if err := p.start(cmd, &ends); err != nil {
		return nil, err
	}
	p.read()
	if p.stdin != nil {
		go p.stdin.copy(c.Stdin) // ends when pipe is closed, or its Read returns
	}
	return p, nil
}

// start starts the leader. The error is a *StartError; nothing is left to be released then.
func (p *child) start(cmd *exec.Cmd, ends *pipes) error {
	program, confined := cmd.Path, p.cmd.Confinement
	if confined != nil {
		var err error
		if p.waits, err = confined.Prepare(cmd); err != nil {
			ends.closeOurs()
			p.tree.close()
			confined.End()
			return &StartError{Program: p.cmd.program(), Reason: err.Error(), Err: err}
		}
	}
	started := make(chan error, 1)
	go p.own(cmd, started) // ends when supervise has had the leader reaped
	if err := <-started; err != nil {
		ends.closeOurs()
		p.tree.close()
		if confined != nil {
			confined.End()
		}
		return startError(p.cmd, program, err)
	}
	p.pid = p.leader.Pid
	return nil
}

// connect gives cmd its standard files and prepares p's side of them, and its tree.
func (p *child) connect(cmd *exec.Cmd, ends *pipes) error {
	stdout, theirStdout := ends.fromTheirs()
	stderr, theirStderr := ends.fromTheirs()
	cmd.Stdout, cmd.Stderr = theirStdout, theirStderr
	p.outputs = []*os.File{stdout, stderr}
	switch in := p.cmd.Stdin.(type) {
	case nil:
	case *os.File:
		cmd.Stdin = in
	default:
		stdin, theirStdin := ends.toTheirs()
		cmd.Stdin = theirStdin
		p.stdin = &feed{pipe: stdin, done: make(chan struct{})}
	}
	if ends.err != nil {
		return ends.err
	}
	tree, err := newTree(p.cmd.Terminal)
	if err != nil {
		return err
	}
	p.tree = tree
	cmd.SysProcAttr = tree.attributes()
	return nil
}

// pipes collects the ends of the pipes between us and a leader. After the first error
// no more are made.
type pipes struct {
	ours, theirs []*os.File
	err          error
}

// fromTheirs makes a pipe that we read.
func (ps *pipes) fromTheirs() (our, their *os.File) {
	r, w := ps.pipe()
	return ps.keep(r, w)
}

// toTheirs makes a pipe that we write.
func (ps *pipes) toTheirs() (our, their *os.File) {
	r, w := ps.pipe()
	return ps.keep(w, r)
}

func (ps *pipes) pipe() (r, w *os.File) {
	if ps.err == nil {
		r, w, ps.err = os.Pipe()
	}
	return r, w
}

func (ps *pipes) keep(our, their *os.File) (_, _ *os.File) {
	if ps.err == nil {
		ps.ours, ps.theirs = append(ps.ours, our), append(ps.theirs, their)
	}
	return our, their
}

func (ps *pipes) closeOurs()   { closeAll(ps.ours) }
func (ps *pipes) closeTheirs() { closeAll(ps.theirs) }

// own starts the leader, has it guarded, waits for it and reaps it, all from one thread: the
// parent-death signal of the leader comes when the thread that started it ends. The guard learns of
// the leader first, since what the leader starts until then would outlive this process.
func (p *child) own(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.tree.start(cmd, !p.waits)
	if err == nil {
		if err = p.tree.adopt(cmd.Process); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	p.leader = cmd.Process
	if p.stopGuard = func() {}; err == nil && !p.unguarded {
		p.stopGuard = p.tree.guard()
	}
	if err == nil {
		p.tree.proceed()
	}
	if err == nil && p.cmd.Confinement != nil {
		err = p.cmd.Confinement.Release()
		if n, ok := p.cmd.Confinement.(Namespaced); ok {
			if first, command := n.Namespace(); first != 0 && command != 0 {
				p.leader = p.tree.enter(first, command)
			}
		}
		if err != nil {
			p.tree.kill()
			p.stopGuard()
			p.wait(cmd)
		}
	}
	started <- err
	if err != nil {
		return
	}
	p.tree.wait()
	close(p.exited)
	<-p.release
	p.wait(cmd)
	p.tree.close()
	if p.cmd.Confinement != nil {
		p.cmd.Confinement.End()
	}
	close(p.reaped)
}

// wait reaps the leader, and what was started to become it.
func (p *child) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // the state says it all
	p.state = cmd.ProcessState
	if p.leader != cmd.Process {
		p.state, _ = p.leader.Wait()
		p.tree.endNamespace()
	}
}

// read starts the readers of both outputs; they end with them.
func (p *child) read() {
	stdout, stderr := p.outputs[0], p.outputs[1]
	var readers sync.WaitGroup
	var echo sync.Mutex
	seen := func(text []byte, next func([]byte)) {
		if p.cmd.Echo != nil {
			echo.Lock()
			_, _ = p.cmd.Echo.Write(text)
			echo.Unlock()
		}
		next(text)
	}
	readers.Go(func() {
		observed := lines{emit: p.cmd.OnStdout}
		eachChunk(stdout, func(text []byte) bool {
			seen(p.stdout.write(text), observed.write)
			return !p.stdout.over
		})
		if p.stdout.over {
			close(p.flooded)
		}
		observed.end()
	})
	readers.Go(func() {
		observed := lines{emit: p.cmd.OnStderr}
		eachChunk(stderr, func(text []byte) bool {
			p.stderr.write(text)
			seen(text, observed.write)
			return true
		})
		observed.end()
	})
	go func() { // ends after the readers
		readers.Wait()
		close(p.outputDone)
	}()
}

// copy writes what r has to the leader. That the leader does not want all of it is no
// error, so only those of r are kept.
func (f *feed) copy(r io.Reader) {
	defer close(f.done)
	defer f.pipe.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := f.pipe.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				f.err = err
			}
			return
		}
	}
}

func positiveOr(n, otherwise int64) int64 { return cmp.Or(max(n, 0), otherwise) }
