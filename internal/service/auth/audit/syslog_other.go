//go:build !unix

package audit

import "errors"

// Syslog returns a sink that fails: this system has no system log.
func Syslog() Sink { return missing{} }

type missing struct{}

// Write implements [Sink].
func (missing) Write([]byte) (int, error) { return 0, errors.New("this system has no syslog") }

// Close implements [Sink].
func (missing) Close() error { return nil }
