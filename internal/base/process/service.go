package process

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Service is a leader that runs until it is stopped, and talks with this program over
// its standard input and output meanwhile. Its tree is held together as that of [Run]
// is. Its methods may be called from several goroutines.
type Service struct {
	child   *child
	process *os.Process
	stdin   *os.File
	stdout  *os.File

	stop     chan struct{} // closed to have the tree killed
	stopOnce sync.Once
	asked    chan time.Duration // gets how long the tree has to end
	done     chan struct{}      // closed when the tree is dead and every goroutine has ended
}

// Start starts c, of which Path, Args, Dir, Env, OnStderr, Echo and Confinement count. The rest is
// left to the caller, who has to call Stop, Terminate or Kill at some time. With an Echo the leader has no input, its two outputs
// are one, and Stdin and Stdout are not there. The error is a *StartError.
func Start(c Command) (*Service, error) {
	p, cmd, err := newChild(&c)
	if err != nil {
		return nil, err
	}
	var ends pipes
	defer ends.closeTheirs()
	var stdin, stdout *os.File
	stderr, theirStderr := ends.fromTheirs()
	cmd.Stdout, cmd.Stderr = theirStderr, theirStderr
	if c.Echo == nil {
		stdin, cmd.Stdin = ends.toTheirs()
		stdout, cmd.Stdout = ends.fromTheirs()
	}
	if ends.err == nil {
		p.tree, ends.err = newTree(false)
	}
	if ends.err != nil {
		ends.closeOurs()
		return nil, &StartError{Program: c.program(), Reason: ends.err.Error(), Err: ends.err}
	}
	cmd.SysProcAttr = p.tree.attributes()
	if err := p.start(cmd, &ends); err != nil {
		return nil, err
	}
	s := &Service{
		child:   p,
		process: p.leader,
		stdin:   stdin,
		stdout:  stdout,
		stop:    make(chan struct{}),
		asked:   make(chan time.Duration),
		done:    make(chan struct{}),
	}
	p.outputs = []*os.File{stderr}
	go s.readErrors(stderr) // ends with stderr
	go s.supervise()        // ends with the tree
	return s, nil
}

// readErrors hands stderr to its observer, line by line, or all output to Echo.
func (s *Service) readErrors(stderr *os.File) {
	defer close(s.child.outputDone)
	observed := lines{emit: s.child.cmd.OnStderr}
	eachChunk(stderr, func(text []byte) bool {
		if echo := s.child.cmd.Echo; echo != nil {
			_, _ = echo.Write(text)
		} else {
			observed.write(text)
		}
		return true
	})
	observed.end()
}

// supervise waits for the end of the leader, or brings it about, and leaves nothing of
// the tree behind.
func (s *Service) supervise() {
	defer close(s.done)
	p, t := s.child, standardTiming()
	select {
	case <-p.exited:
	case grace := <-s.asked:
		p.tree.terminate()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
		case <-s.stop:
		}
	case <-s.stop:
	}
	_, _ = p.finish(nil, within(0, p.exited) || p.kill(t), t) // see Outcome
}

// Stdin is what the leader reads. Writing fails when the leader is gone.
func (s *Service) Stdin() io.WriteCloser { return s.stdin }

// Stdout is what the leader prints. It ends with the tree; closing it ends a Read.
func (s *Service) Stdout() io.ReadCloser { return s.stdout }

// Done is closed when the tree is dead.
func (s *Service) Done() <-chan struct{} { return s.done }

// Outcome says how the leader ended, as [Run] would: nil for success, else an
// *ExitError without Stderr. Call it after Done.
func (s *Service) Outcome() error {
	if s.child.state == nil {
		return nil // it could not even be killed
	}
	return s.child.outcome(nil, s.child.result(), nil)
}

// Kill kills the tree and returns when it is dead.
func (s *Service) Kill() {
	s.stopOnce.Do(func() { close(s.stop) })
	<-s.done
	s.stdin.Close()
}

// Terminate sends SIGTERM to all of the tree, where the system has it, and kills what is left after grace. It returns when the tree is dead.
func (s *Service) Terminate(grace time.Duration) {
	select {
	case s.asked <- grace:
		<-s.done
	case <-s.done:
	}
	s.Kill()
}

// Stop asks the leader to end, by closing its standard input, after a quarter of grace
// also by SIGTERM where the system has it, and kills what is left of the tree after
// grace. It returns when the tree is dead. The caller should keep reading Stdout
// meanwhile, as a leader that cannot print does not end.
func (s *Service) Stop(grace time.Duration) {
	s.stdin.Close()
	if grace > 0 && !within(grace/4, s.done) {
		_ = s.process.Signal(syscall.SIGTERM) // not on Windows
		within(grace-grace/4, s.done)
	}
	s.Kill()
}

// PID is the process id of the leader.
func (s *Service) PID() int { return s.child.pid }
