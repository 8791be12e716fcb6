package repl

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"loki/internal/fault"
)

// handleSignals has signals do what they mean at a terminal: an interrupt ends what is being done, and
// a request to end ends the REPL. Those that are ignored in this process from its start stay ignored. It
// is over when stop is called.
func (r *repl) handleSignals(end context.CancelCauseFunc) (stop func()) {
	wanted := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	caught, done := make(chan os.Signal, 8), make(chan struct{})
	signal.Notify(caught, wanted...)
	go func() { // ends when caught is closed, which stop does and waits for
		defer close(done)
		for s := range caught {
			if s == os.Interrupt {
				r.interrupt()
				continue
			}
			r.setEnded()
			end(fault.New(fault.Canceled, "ended by signal %s", s))
		}
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
		<-done
	}
}
