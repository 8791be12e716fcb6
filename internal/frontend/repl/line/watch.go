package line

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"time"
)

// Watch is a keyboard that is being watched. Its methods may be called from several goroutines, but
// not from the functions of [Ahead].
type Watch struct {
	editor *Editor
	ahead  Ahead

	mu      sync.Mutex
	stopped bool
	paused  int
	done    chan struct{} // closed when the goroutine has ended; nil while there is none
	stop    chan struct{} // closed to end it
}

const endOfInput = 0x04 // Ctrl-D

// Watch reads the keyboard while the program works, and passes what is typed to a. What is not submitted is kept for the next
// Read. Ctrl-C and Ctrl-Z stay signals.
func (e *Editor) Watch(a Ahead) (*Watch, error) {
	w := &Watch{editor: e, ahead: a}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

// Pause leaves the terminal to another reader, such as a question, until resume is called. What was
// typed before stays kept for the next Read. Several pauses may overlap.
func (w *Watch) Pause() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused++; w.paused == 1 {
		w.halt()
	}
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.paused--; w.paused == 0 && !w.stopped {
			_ = w.start() // without a terminal nothing can be typed
		}
	})
}

// Keep keeps bytes of the terminal that another reader took during a pause. After a late one Enter breaks the line, and submits
// nothing, until no key was pressed for a while: what is typed belongs to a question.
func (w *Watch) Keep(typed []byte, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if late {
		w.editor.draft.mu.Lock()
		w.editor.burst = time.Now().Add(burstTime)
		w.editor.draft.mu.Unlock()
	}
	w.take(bytes.Clone(typed))
}

// Stop ends the watch: the terminal is as it was found, and no function of its [Ahead] is called any more.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.halt()
}

// start takes the terminal. The watch is locked, or no other goroutine has it.
func (w *Watch) start() error {
	e := w.editor
	if err := e.enter(watching); err != nil {
		return err
	}
	keyboard, err := listen(e.opts.In)
	if err != nil {
		_ = e.leave()
		return err
	}
	signals := make(chan os.Signal, 8)
	notify(signals)
	stop, done := make(chan struct{}), make(chan struct{})
	w.stop, w.done = stop, done
	go func() { // ends when halt closes stop and waits, or with the editor
		defer close(done)
		defer func() { _ = e.leave() }()
		defer func() { w.take(keyboard.stop()) }()
		defer signal.Stop(signals)
		chunks := keyboard.chunks
		for {
			select {
			case chunk, ok := <-chunks:
				if !ok { // the terminal is gone
					chunks = nil
				}
				w.take(chunk)
			case <-w.rest():
				w.press(true)
			case s := <-signals:
				switch {
				case isStop(s):
					if e.leave() == nil {
						stopProcess(signals, false)
						_ = e.enter(watching)
					}
				case isContinue(s):
					_ = e.enter(watching)
				}
			case <-stop:
				return
			case <-e.closing:
				return
			}
		}
	}()
	return nil
}

// halt gives the terminal back, if the watch has it.
func (w *Watch) halt() {
	if w.done == nil {
		return
	}
	close(w.stop)
	<-w.done
	w.stop, w.done = nil, nil
}

// take keeps what was typed.
func (w *Watch) take(chunk []byte) {
	kept := chunk[:0]
	for _, c := range chunk {
		if c != endOfInput || w.ahead.End == nil || !w.ahead.End() {
			kept = append(kept, c)
		}
	}
	e := w.editor
	e.draft.mu.Lock()
	if len(e.keys.buf)+len(e.keys.pasted)+len(kept) <= maxAhead {
		e.takeInput(kept)
	}
	e.draft.mu.Unlock()
	w.press(false)
}
