package repl

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"loki/internal/base/fault"
)

// handleSignals has signals do what they mean at a terminal: an interrupt ends what is being done, and
// a request to end ends the REPL. SIGQUIT ends the process with the stacks of all goroutines, the
// terminal restored, unless another program has the terminal. Signals that are ignored in this process from its start stay ignored. It
// is over when stop is called.
func (r *repl) handleSignals(end context.CancelCauseFunc) (stop func()) {
	wanted := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}, signal.Ignored)
	caught, done := make(chan os.Signal, 8), make(chan struct{})
	signal.Notify(caught, wanted...)
	go func() { // ends when caught is closed, which stop does and waits for
		defer close(done)
		for s := range caught {
			switch s {
			case os.Interrupt:
				r.interrupt()
			case syscall.SIGQUIT:
				r.quit()
			default:
				r.setEnded()
				end(fault.New(fault.Canceled, "ended by signal %s", s))
				r.interrupt() // a question when leaving, which end does not reach
			}
		}
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
		<-done
	}
}

// quit ends the process as SIGQUIT does a Go program, with the terminal restored. While another program
// has the terminal, the key that sends the signal is meant for that one.
func (r *repl) quit() {
	r.mu.Lock()
	editor, lent := r.editor, r.deaf > 0
	r.mu.Unlock()
	if lent {
		return
	}
	if editor != nil {
		_ = editor.Close()
	}
	debug.SetTraceback("all")
	panic("ended by SIGQUIT")
}
