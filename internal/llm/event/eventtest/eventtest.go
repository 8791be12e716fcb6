// Package eventtest helps tests to look at the events of a run.
package eventtest

import (
	"context"
	"slices"
	"sync"

	"loki/internal/llm/event"
)

// Collector is an [event.Emitter] that keeps everything. The zero Collector is ready; it may
// be used from several goroutines.
type Collector struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit keeps ev.
func (c *Collector) Emit(_ context.Context, ev event.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, ev)
	return nil
}

// Events returns what was collected so far.
func (c *Collector) Events() []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// Bodies returns the bodies of the collected events of type B.
func Bodies[B event.Body](c *Collector) []B {
	var bodies []B
	for _, ev := range c.Events() {
		if b, ok := ev.Body.(B); ok {
			bodies = append(bodies, b)
		}
	}
	return bodies
}
