package rest

import (
	"context"
	"sync"
	"time"
)

// slots bound how many requests are worked on at once, in all and for each subject.
type slots struct {
	mu        sync.Mutex // guards what follows
	all, each int        // the most
	used      int
	subjects  map[string]*subject // of those with requests
	whenIdle  []chan struct{}     // closed when used is 0
}

// subject is the requests of one caller.
type subject struct {
	used    int
	waiting []chan struct{} // in order; each gets the slot that becomes free
}

// resize sets how many requests there may be. Requests at work are not ended.
func (s *slots) resize(all, each int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.each = all, each
	if s.subjects == nil {
		s.subjects = make(map[string]*subject)
	}
}

// take waits up to patience until a subject may work on one more request. The error is an [*Error], or that
// of ctx.
func (s *slots) take(ctx context.Context, name string, patience time.Duration) (release func(), err error) {
	s.mu.Lock()
	if s.used >= s.all {
		s.mu.Unlock()
		return nil, overloaded("the server works on as many requests as it may")
	}
	of := s.subjects[name]
	if of == nil {
		of = new(subject)
		s.subjects[name] = of
	}
	s.used++ // also while it waits, so that waiting requests are bounded
	if of.used < s.each {
		of.used++
		s.mu.Unlock()
		return func() { s.release(name, of) }, nil
	}
	turn := make(chan struct{})
	of.waiting = append(of.waiting, turn)
	s.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-turn:
		return func() { s.release(name, of) }, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = overloaded("as many requests of " + name + " are worked on as may be at once")
	}
	s.mu.Lock()
	for i, w := range of.waiting {
		if w == turn {
			of.waiting = append(of.waiting[:i], of.waiting[i+1:]...)
			s.leave()
			s.mu.Unlock()
			return nil, err
		}
	}
	s.mu.Unlock()
	s.release(name, of) // the turn has come meanwhile
	return nil, err
}

// release gives a slot back, to the next that waits for it if there is one.
func (s *slots) release(name string, of *subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	if len(of.waiting) > 0 && of.used <= s.each {
		close(of.waiting[0])
		of.waiting = of.waiting[1:]
		return
	}
	if of.used--; of.used == 0 && len(of.waiting) == 0 {
		delete(s.subjects, name)
	}
}

// leave counts a request less. The caller holds mu.
func (s *slots) leave() {
	if s.used--; s.used == 0 {
		for _, c := range s.whenIdle {
			close(c)
		}
		s.whenIdle = nil
	}
}

// busy returns how many requests there are.
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
