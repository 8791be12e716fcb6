package record

import (
	"slices"
	"sync"
	"time"

	"loki/internal/llm/event"
)

// Queue has the events of a run that are not written yet. The next record takes them along, or they are written by
// themselves after a time. Its methods may be called from several goroutines.
type Queue struct {
	mu      sync.Mutex
	waiting []Event
	last    int            // number of the last event
	ended   bool           // nothing will be written soon any more
	soon    *time.Timer    // nil unless events wait for it
	writing sync.WaitGroup // of what it calls
}

// From sets the number of the last event on record, before the first one is added.
func (q *Queue) From(last int) { q.last = last }

// Add adds an event and returns its number. With a delay, write is called after it, once for all events until it
// calls Due.
func (q *Queue) Add(f Sealer, ev event.Event, delay time.Duration, write func()) (number int) {
	p := f.Event(ev)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	q.last++
	if delay > 0 && q.soon == nil && !q.ended {
		q.writing.Add(1)
		q.soon = time.AfterFunc(delay, func() {
			defer q.writing.Done()
			write()
		})
	}
	return q.last
}

// Due reports whether events wait. It is called by what Add was given, before it writes.
func (q *Queue) Due() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.soon = nil
	return len(q.waiting) > 0
}

// Stop has nothing written soon any more, and waits for what is being written.
func (q *Queue) Stop() {
	q.mu.Lock()
	q.ended = true
	if q.soon != nil && q.soon.Stop() {
		q.writing.Done()
	}
	q.soon = nil
	q.mu.Unlock()
	q.writing.Wait()
}

// Unwritten returns the events that are not written yet.
func (q *Queue) Unwritten() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clip(q.waiting)
}

// Drop drops the first n events, which were written.
func (q *Queue) Drop(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append([]Event(nil), q.waiting[n:]...)
}
