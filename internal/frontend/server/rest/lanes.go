package rest

import (
	"context"
	"slices"
	"sync"

	"loki/internal/conversation/session"
)

// turns is what a store of sessions has that several servers share: the turn of a session is one server's at a time.
type turns interface {
	// Enter waits for the turn of a session and takes it. leave, or the end of the process, gives it back.
	Enter(ctx context.Context, id session.ID) (leave func(), err error)
}

// Lanes have the requests to one session served one after the other, in the order in which they came, whichever endpoint they
// are for. How many wait is bounded by how many requests there may be. The zero Lanes are empty.
type Lanes struct {
	mu   sync.Mutex
	busy map[session.ID][]chan struct{} // the waiting requests, by the session that another one is in
}

// Enter waits until no other request is in a session, neither here nor at another server that shares the store. leave lets the next
// one in.
func (l *Lanes) Enter(ctx context.Context, store session.Store, id session.ID) (leave func(), err error) {
	here, err := l.enter(ctx, id)
	shared, ok := store.(turns)
	if err != nil || !ok {
		return here, err
	}
	everywhere, err := shared.Enter(ctx, id)
	if err != nil {
		here()
		return nil, err
	}
	return func() {
		everywhere()
		here()
	}, nil
}

// enter waits until no other request of this server is in a session.
func (l *Lanes) enter(ctx context.Context, id session.ID) (leave func(), err error) {
	l.mu.Lock()
	waiting, taken := l.busy[id]
	if !taken {
		if l.busy == nil {
			l.busy = make(map[session.ID][]chan struct{})
		}
		l.busy[id] = nil
		l.mu.Unlock()
		return sync.OnceFunc(func() { l.leave(id) }), nil
	}
	turn := make(chan struct{})
	l.busy[id] = append(waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return sync.OnceFunc(func() { l.leave(id) }), nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.busy[id], turn)
	if i >= 0 {
		l.busy[id] = slices.Delete(l.busy[id], i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // the turn has come meanwhile
		l.leave(id)
	}
	return nil, context.Cause(ctx)
}

// leave lets the request that has waited longest in.
func (l *Lanes) leave(id session.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.busy[id]
	if len(waiting) == 0 {
		delete(l.busy, id)
		return
	}
	close(waiting[0])
	l.busy[id] = waiting[1:]
}

// Count returns in how many sessions a request is.
func (l *Lanes) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.busy)
}
