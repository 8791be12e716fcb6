package rest

import (
	"context"
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
	busy map[session.ID]*lane
}

// lane is that of a session to which there are requests.
type lane struct {
	turn     chan struct{} // holds a token while a request is in the session; those that wait send in their order
	requests int           // in the session, or waiting; guarded by the mutex of the lanes
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

// enter is Enter for the requests of this process.
func (l *Lanes) enter(ctx context.Context, id session.ID) (leave func(), err error) {
	l.mu.Lock()
	of := l.busy[id]
	if of == nil {
		if l.busy == nil {
			l.busy = make(map[session.ID]*lane)
		}
		of = &lane{turn: make(chan struct{}, 1)}
		l.busy[id] = of
	}
	of.requests++
	l.mu.Unlock()
	select {
	case of.turn <- struct{}{}:
		return sync.OnceFunc(func() {
			<-of.turn
			l.leave(id, of)
		}), nil
	case <-ctx.Done():
		l.leave(id, of)
		return nil, context.Cause(ctx)
	}
}

// leave takes a request out of a lane.
func (l *Lanes) leave(id session.ID, of *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.requests--; of.requests == 0 {
		delete(l.busy, id)
	}
}

// Count returns how many sessions requests are in.
func (l *Lanes) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.busy)
}
