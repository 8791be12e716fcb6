package fsys

import (
	"context"
	"sync"
)

// Locks serializes changes of the same file. The zero value is ready; it must not be
// copied after first use. It may be used from several goroutines.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

// lock is the lock of one file.
type lock struct {
	turn  chan struct{} // holds one element while the lock is held
	users int           // that hold or want it
}

// Lock waits for the turn to change a file, given by its real path. Call unlock once. The
// error is that of ctx.
func (l *Locks) Lock(ctx context.Context, path string) (unlock func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*lock)
	}
	one := l.held[path]
	if one == nil {
		one = &lock{turn: make(chan struct{}, 1)}
		l.held[path] = one
	}
	one.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, path)
		}
	}
	select {
	case one.turn <- struct{}{}:
		return func() { <-one.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
