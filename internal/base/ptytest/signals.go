// Package ptytest is the user's side of a pseudo-terminal, for tests: it types keys and waits for what is shown, at a program or at
// code of the test itself.
package ptytest

import (
	"os"
	"os/signal"
	"syscall"
)

// ObeySignals has the programs that the tests start obey SIGHUP, SIGINT and SIGQUIT as at a terminal, even if the tests were
// started with these ignored, as by nohup or in the background of a script: a signal that is caught here is not ignored there.
// It is for TestMain. The test process itself still ends by a signal that was not ignored.
func ObeySignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
