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

	stopGuard func() // never nil
}

// feed is the copying of a Reader to a leader's standard input.
type feed struct {
	pipe *os.File
	done chan struct{} // closed when the copying has ended
	err  error         // of a Read; read it after done
}

// launch starts the leader of c and the goroutines that read its output, write its
// input and wait for it.
func launch(c *Command) (*child, error) {
	path, err := find(c.Path, c.Env)
	if err != nil {
		return nil, err
	}
	p := &child{
		cmd:        c,
		exited:     make(chan struct{}),
		release:    make(chan struct{}),
		reaped:     make(chan struct{}),
		outputDone: make(chan struct{}),
		flooded:    make(chan struct{}),
		stopGuard:  func() {},
	}
	p.stdout.max = positiveOr(c.MaxStdout, DefaultMaxStdout)
	p.stderr.max = positiveOr(c.MaxStderr, DefaultMaxStderr)

	var theirs []*os.File // closed once the leader has them
	defer func() { closeAll(theirs) }()
	var ours []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	keep := func(our, their *os.File) {
		if err == nil {
			ours, theirs = append(ours, our), append(theirs, their)
		}
	}
	outR, outW := pipe()
	keep(outR, outW)
	errR, errW := pipe()
	keep(errR, errW)
	cmd := &exec.Cmd{
		Path:   path,
		Args:   append([]string{c.Path}, c.Args...),
		Dir:    c.Dir,
		Env:    append([]string{}, c.Env...), // exec takes nil for this process's own
		Stdout: outW,
		Stderr: errW,
	}
	switch in := c.Stdin.(type) {
	case nil:
	case *os.File:
		cmd.Stdin = in
	default:
		inR, inW := pipe()
		keep(inW, inR)
		cmd.Stdin = inR
		p.stdin = &feed{pipe: inW, done: make(chan struct{})}
	}
	if err == nil {
		p.tree, err = newTree(c.Terminal)
	}
	if err != nil {
		closeAll(ours)
		return nil, &StartError{Program: c.program(), Reason: err.Error(), Err: err}
	}
	cmd.SysProcAttr = p.tree.attributes()

	started := make(chan error, 1)
	go p.own(cmd, started) // ends when supervise has had the leader reaped
	if err := <-started; err != nil {
		closeAll(ours)
		p.tree.close()
		return nil, startError(c, path, err)
	}
	p.pid = cmd.Process.Pid
	p.outputs = []*os.File{outR, errR}
	p.read(outR, errR)
	if p.stdin != nil {
		go p.stdin.copy(c.Stdin) // ends when pipe is closed, or its Read returns
	}
	return p, nil
}

// own starts the leader, waits for it and reaps it, all from one thread: the
// parent-death signal of the leader comes when the thread that started it ends.
func (p *child) own(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		if err = p.tree.adopt(cmd.Process); err != nil {
			cmd.Process.Kill() //nolint:errcheck // it is suspended and cannot have ended
			cmd.Wait()         //nolint:errcheck // the error of adopt is the one to report
		}
	}
	started <- err
	if err != nil {
		return
	}
	p.tree.wait()
	close(p.exited)
	<-p.release
	cmd.Wait() //nolint:errcheck // the state says it all
	p.state = cmd.ProcessState
	p.tree.close()
	close(p.reaped)
}

// read starts the readers of both outputs; they end with them.
func (p *child) read(stdout, stderr io.Reader) {
	var readers sync.WaitGroup
	readers.Go(func() {
		observed := lines{emit: p.cmd.OnStdout}
		p.stdout.readFrom(stdout, observed.write)
		if p.stdout.over {
			close(p.flooded)
		}
		observed.end()
	})
	readers.Go(func() {
		observed := lines{emit: p.cmd.OnStderr}
		buf := make([]byte, firstChunk)
		for {
			n, err := stderr.Read(buf)
			p.stderr.write(buf[:n])
			observed.write(buf[:n])
			if err != nil {
				break
			}
		}
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
