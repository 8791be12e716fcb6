package sqlite

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Bounds of what callers share, so that the lock of the file is held for moments only and
// other processes get it too.
const (
	maxGroup    = 256                  // writes that wait for the file together
	maxHold     = 5 * time.Millisecond // after which a transaction takes no further write
	maxCreating = 64                   // runs that are created together
)

// A process that waits for the file looks every 100 ms whether it is free. So that it gets
// the file before it gives up, however much this process writes, the file is left free for a
// bit longer than that after every fairAfter in which it was locked nearly all the time.
const (
	fairAfter = 2 * time.Second
	freeFor   = 110 * time.Millisecond
)

// write is what one caller wants to have in the file.
type write struct {
	op       string
	create   bool // the file may be created
	fn       func(c *conn) error
	held     error // of fn, if what it wrote is committed nevertheless
	panicked any   // what fn panicked with
	err      error // errUnwritten until the write is answered
}

// errUnwritten says that a write was not made.
var errUnwritten = errors.New("the write was not made")

// run calls fn. A panic is for its own caller, who may be another goroutine.
func (w *write) run(c *conn) (err error) {
	w.held, w.panicked = nil, nil
	defer func() {
		if p := recover(); p != nil {
			w.panicked, err = fmt.Sprintf("%v\n%s", p, debug.Stack()), errUnwritten
		}
	}()
	err = w.fn(c)
	if held, ok := errors.AsType[*heldError](err); ok {
		w.held, err = held.LeaseError, nil
	}
	return err
}

// group is the writes that wait for the file together, while others are being made. The
// caller of the first one makes them all.
type group struct {
	writes []*write
	done   chan struct{} // closed when all are answered; nil as long as there is one only
}

// write runs fn in a transaction that it may share with the writes of others which wait for
// the file at the same time, and returns once that is committed. An error of fn undoes what
// fn has written, and nothing else. fn may be called again after what it wrote was rolled
// back, and by another goroutine, but never while another write to the store is made.
func (s *Store) write(op string, create bool, fn func(c *conn) error) error {
	w := &write{op: op, create: create, fn: fn, err: errUnwritten}
	if g, first := s.join(w); first {
		s.writeGroup(g)
	} else {
		<-g.done
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	return w.err
}

// join adds w to the group that waits for the file. first says that w has begun it.
func (s *Store) join(w *write) (g *group, first bool) {
	s.groupMu.Lock()
	defer s.groupMu.Unlock()
	g = s.waiting
	if g == nil || len(g.writes) == maxGroup {
		g = &group{writes: []*write{w}}
		s.waiting = g
		return g, true
	}
	if g.done == nil {
		g.done = make(chan struct{})
	}
	g.writes = append(g.writes, w)
	return g, false
}

// usage is how much of the time the file was locked of late.
type usage struct {
	began, last time.Time // of what is counted; zero for nothing
	locked      time.Duration
}

// add counts a transaction, and reports whether the file should be left free after it.
func (u *usage) add(begin, end time.Time) bool {
	if begin.Sub(u.last) >= freeFor {
		*u = usage{began: begin}
	}
	u.last = end
	u.locked += end.Sub(begin)
	all := end.Sub(u.began)
	if all < fairAfter {
		return false
	}
	hogged := u.locked > all*3/4
	*u = usage{began: end, last: end}
	return hogged
}

// writeGroup waits for the file and makes the writes of a group.
func (s *Store) writeGroup(g *group) {
	s.writing.Lock()
	if s.yield {
		time.Sleep(freeFor)
		s.yield = false
	}
	s.groupMu.Lock()
	if s.waiting == g {
		s.waiting = nil // no write joins it any more
	}
	s.groupMu.Unlock()
	defer func() { // also after a panic of Options.Hook
		s.writing.Unlock()
		if g.done != nil {
			close(g.done)
		}
	}()
	for left := g.writes; len(left) > 0; {
		left = left[s.transact(left):]
	}
}

// transact makes the first of the writes, and as many of the others as there is time for, in
// one transaction, and returns how many were answered. If that fails, each of them is made
// in a transaction of its own. The caller holds s.writing.
func (s *Store) transact(writes []*write) (answered int) {
	first := writes[0]
	if err := s.ready(first.create); err != nil {
		first.err = s.explain(err)
		return 1
	}
	s.hook(first.op)
	taken := 0
	var begin time.Time
	err := s.writer.transaction("BEGIN IMMEDIATE", func() error {
		begin = time.Now()
		if err := s.noteVersion(s.writer); err != nil {
			return err
		}
		for taken < len(writes) && (taken == 0 || time.Since(begin) < maxHold) {
			taken++
			if err := writes[taken-1].run(s.writer); err != nil {
				return err
			}
		}
		return nil
	})
	if taken > 0 && s.usage.add(begin, time.Now()) {
		s.yield = true
	}
	s.hook(first.op)
	switch {
	case err == nil:
		for _, w := range writes[:taken] {
			w.err = w.held
		}
	case taken == 0: // such as when another process has the file
		for _, w := range writes {
			w.err = s.explain(err)
		}
		return len(writes)
	case taken == 1:
		first.err = s.explain(err)
	default:
		for i := range taken {
			s.transact(writes[i : i+1])
		}
	}
	return taken
}
