package tool

import (
	"context"
	"sync"

	"loki/internal/chat"
	"loki/internal/steps"
)

// InOrder returns functions like [Box.Call] for n calls that are made at once. The user is asked
// about the calls in the order of the functions. The caller has to call each function once, and
// in this order.
func (b *Box) InOrder(n int) []func(context.Context, chat.ToolCall, steps.Steps) (text string, failed bool, err error) {
	asked := make([]chan struct{}, n)
	calls := make([]func(context.Context, chat.ToolCall, steps.Steps) (string, bool, error), n)
	for i := range n {
		asked[i] = make(chan struct{})
		one := &Box{o: b.o, human: b.human, earlier: asked[:i], asked: sync.OnceFunc(func() { close(asked[i]) })}
		calls[i] = one.Call
	}
	return calls
}

// acquire waits until the calls in front of this one have asked their questions, and no other
// call talks to the user.
func (b *Box) acquire(ctx context.Context) error {
	for _, asked := range b.earlier {
		select {
		case <-asked:
		case <-ctx.Done():
			return endError(ctx)
		}
	}
	select {
	case b.human <- struct{}{}:
		return nil
	case <-ctx.Done():
		return endError(ctx)
	}
}

// release lets other calls talk to the user.
func (b *Box) release() { <-b.human }
