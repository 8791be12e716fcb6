package acpserver

import (
	"io"
	"sync"
)

// output writes to a client for as long as that reads. Its writes are not concurrent.
type output struct {
	lines   chan []byte
	written chan error
	over    chan struct{} // closed when nothing is written any more
	end     func()
}

// newOutput returns an output to a writer, until its end is called. Failed is called when a write fails.
func newOutput(to io.Writer, failed func()) *output {
	w := &output{lines: make(chan []byte), written: make(chan error, 1), over: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.over) })
	go func() { // ends with the output, or with the process if the client does not read
		for {
			select {
			case line := <-w.lines:
				_, err := to.Write(line)
				if err != nil {
					failed()
				}
				w.written <- err
			case <-w.over:
				return
			}
		}
	}()
	return w
}

// Write implements [io.Writer]. It may keep p.
func (w *output) Write(p []byte) (int, error) {
	select {
	case w.lines <- p:
	case <-w.over:
		return 0, io.ErrClosedPipe
	}
	select {
	case err := <-w.written:
		return len(p), err
	case <-w.over:
		return 0, io.ErrClosedPipe
	}
}
