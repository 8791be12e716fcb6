package repl

import (
	"context"

	"loki/internal/frontend/repl/line"
)

// begin returns the context of what is being done from now on. done ends that, and reports whether
// the user wants to leave.
func (r *repl) begin(ctx context.Context) (working context.Context, done func() (leave bool)) {
	working, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
	return working, func() bool {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cancel = nil
		return r.leave
	}
}

// interrupt ends what is being done, as Ctrl-C does.
func (r *repl) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil && r.deaf == 0 {
		r.cancel()
	}
}

// watchKeys watches the keyboard while ctx works: see ahead. It is over when stop is called.
func (r *repl) watchKeys(ctx context.Context) (stop func()) {
	watch, err := r.editor.Watch(r.ahead(ctx))
	if err != nil {
		return func() {} // the terminal is gone, which the next line notices
	}
	r.setWatch(watch)
	r.showAhead()
	return func() {
		r.setWatch(nil)
		watch.Stop()
		r.screen.Below(nil)
	}
}

func (r *repl) setWatch(w *line.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch = w
}

// setEditor notes what reads from the terminal.
func (r *repl) setEditor(e *line.Editor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.editor = e
}

// hold leaves the keyboard to another reader until release is called.
func (r *repl) hold() (release func()) {
	r.mu.Lock()
	watch := r.watch
	r.mu.Unlock()
	if watch == nil {
		return func() {}
	}
	return watch.Pause()
}

// keep keeps what was typed at a question, but not for it, for the next line. Late means that Enter does not submit that line.
func (r *repl) keep(typed []byte, late bool) {
	r.mu.Lock()
	watch := r.watch
	r.mu.Unlock()
	if watch != nil {
		watch.Keep(typed, late)
	}
}

// lend leaves the whole terminal to another program, Ctrl-C included, until release is called.
func (r *repl) lend() (release func()) {
	resume := r.hold()
	r.screen.Pause()
	r.listen(-1)
	return func() {
		r.listen(1)
		r.screen.Resume()
		resume()
	}
}

// listen undoes (by 1) or adds (by -1) one reason for which the program ignores Ctrl-C.
func (r *repl) listen(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf -= by
}

// setEnded notes that a signal ends the REPL, so that no question is answered any more.
func (r *repl) setEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

func (r *repl) isEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}
