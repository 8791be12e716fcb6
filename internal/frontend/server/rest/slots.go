package rest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots bound how many requests are worked on at once, in all and for each subject.
type slots struct {
	mu        sync.Mutex // guards what follows
	all, each int        // the most
	used      int
	subjects  map[string]*subject // the ones with requests
	whenIdle  []chan struct{}     // closed when used is 0
}

// subject is the requests of one caller.
type subject struct {
	used    int
	waiting []chan struct{} // in order; each gets the slot that becomes free
}

// waitersPerSlot is how many requests of a subject may wait for each that it may have at work.
const waitersPerSlot = 4

// resize sets how many requests there may be. Requests at work are not ended.
func (s *slots) resize(all, each int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.each = all, each
	if s.subjects == nil {
		s.subjects = make(map[string]*subject)
	}
	for _, of := range s.subjects {
		s.grant(of)
	}
}

// take waits up to patience until a subject may work on one more request. A request that waits takes no slot of the
// server, so that others may work. The error is an [*Error], or that of ctx.
func (s *slots) take(ctx context.Context, name string, patience time.Duration) (release func(), err error) {
	s.mu.Lock()
	of := s.subjects[name]
	full := of != nil && (of.used >= s.each || len(of.waiting) > 0)
	switch {
	case !full && s.used >= s.all:
		s.mu.Unlock()
		return nil, overloadError("the server works on as many requests as it may")
	case full && len(of.waiting) >= s.each*waitersPerSlot:
		s.mu.Unlock()
		return nil, overloadError("as many requests of " + name + " wait as may at once")
	case of == nil:
		of = new(subject)
		s.subjects[name] = of
	}
	turn := make(chan struct{})
	of.waiting = append(of.waiting, turn)
	s.grant(of)
	s.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-turn:
		return func() { s.release(name, of) }, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = overloadError("too many requests of " + name + " are in progress")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(of.waiting, turn); i >= 0 {
		of.waiting = slices.Delete(of.waiting, i, i+1)
		s.forget(name, of)
		return nil, err
	}
	return func() { s.release(name, of) }, nil // the turn has come meanwhile
}

// grant gives slots to the requests of a subject that wait, as many as there may be. The caller holds mu.
func (s *slots) grant(of *subject) {
	for len(of.waiting) > 0 && of.used < s.each && s.used < s.all {
		close(of.waiting[0])
		of.waiting = of.waiting[1:]
		of.used++
		s.used++
	}
}

// release gives a slot back, to the next of the subject that waits for it if there is one.
func (s *slots) release(name string, of *subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.used--
	s.used--
	s.grant(of)
	s.forget(name, of)
	if s.used == 0 {
		for _, c := range s.whenIdle {
			close(c)
		}
		s.whenIdle = nil
	}
}

// forget drops a subject that has no requests. The caller holds mu.
func (s *slots) forget(name string, of *subject) {
	if of.used == 0 && len(of.waiting) == 0 && s.subjects[name] == of {
		delete(s.subjects, name)
	}
}

// busy returns how many requests are at work.
func (s *slots) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// idle waits until there are none, and reports whether that is so when ctx ends.
func (s *slots) idle(ctx context.Context) bool {
	s.mu.Lock()
	if s.used == 0 {
		s.mu.Unlock()
		return true
	}
	c := make(chan struct{})
	s.whenIdle = append(s.whenIdle, c)
	s.mu.Unlock()
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
