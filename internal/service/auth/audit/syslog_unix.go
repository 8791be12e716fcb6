//go:build unix

package audit

import (
	"bytes"
	"log/syslog"
)

// Syslog returns a sink that sends each line to the system log of this machine, as loki, with the facility authpriv and the
// priority notice. It connects with the first line, and again after a failure.
func Syslog() Sink {
	return &system{dial: func() (*syslog.Writer, error) { return syslog.New(syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "loki") }}
}

type system struct {
	dial func() (*syslog.Writer, error)
	out  *syslog.Writer // nil while there is no connection
}

// Write implements [Sink].
func (s *system) Write(p []byte) (n int, err error) {
	if s.out == nil {
		if s.out, err = s.dial(); err != nil {
			s.out = nil
			return 0, err
		}
	}
	for line := range bytes.Lines(p) {
		if _, err := s.out.Write(line); err != nil {
			_ = s.Close()
			return n, err
		}
		n += len(line)
	}
	return n, nil
}

// Close implements [Sink].
func (s *system) Close() error {
	if s.out == nil {
		return nil
	}
	err := s.out.Close()
	s.out = nil
	return err
}
