package chat

import (
	"context"
	"sync"
)

// Meter adds up what tools used that call models themselves. It may be used from several
// goroutines. A nil Meter counts nothing.
type Meter struct {
	mu             sync.Mutex
	used, replayed Usage
}

type meterKey struct{}

// WithMeter returns a context in which tools are called whose usage m adds up.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// MeterOf returns the meter of a context, nil if it has none.
func MeterOf(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// Add counts what a call used. A call is replayed if its result was read back from a record.
func (m *Meter) Add(used Usage, replayed bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = m.used.Add(used)
	if replayed {
		m.replayed = m.replayed.Add(used)
	}
}

// Total returns what all calls used, and the part of it that was replayed.
func (m *Meter) Total() (used, replayed Usage) {
	if m == nil {
		return Usage{}, Usage{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.replayed
}
