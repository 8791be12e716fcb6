package rag

import (
	"context"
	"sync/atomic"
)

// gate holds a goroutine up while things take too much memory.
type gate struct {
	bytes atomic.Int64
	less  chan struct{} // has an element if bytes has become less
}

func newGate() *gate { return &gate{less: make(chan struct{}, 1)} }

func (g *gate) add(n int) { g.bytes.Add(int64(n)) }

// sub is add for what is no longer there.
func (g *gate) sub(n int) {
	g.bytes.Add(int64(-n))
	select {
	case g.less <- struct{}{}:
	default:
	}
}

// pass waits until there is room, and reports whether there is; otherwise ctx has ended. One goroutine
// calls it.
func (g *gate) pass(ctx context.Context) bool {
	for g.bytes.Load() >= maxOpen {
		select {
		case <-g.less:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}
