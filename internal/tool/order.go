package tool

import (
	"context"
	"sync"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
)

// Instead returns what the hints of the tool with the name say, see [Hints].
func (b *Box) Instead(name string) string {
	if e, ok := b.tools().lookup(name); ok {
		return e.tool.Hints().Instead
	}
	return ""
}

// InOrder returns functions like [Box.Call] for n calls that are made at once. The user is asked
// about the calls in the order of the functions, and calls of stateful tools are made one after the
// other in that order. All are made in the mode that the conversation has now. The caller has to call each function once, and in this order.
func (b *Box) InOrder(n int) []func(context.Context, chat.ToolCall, steps.Steps) (text string, failed bool, err error) {
	o := b.o
	if o.Mode != nil {
		now := o.Mode()
		o.Mode = func() chat.Mode { return now }
	}
	asked, over := make([]chan struct{}, n), make([]chan struct{}, n)
	calls := make([]func(context.Context, chat.ToolCall, steps.Steps) (string, bool, error), n)
	for i := range n {
		asked[i], over[i] = make(chan struct{}), make(chan struct{})
		one := &Box{
			o: o, human: b.human, known: b.known,
			earlier: asked[:i], asked: sync.OnceFunc(func() { close(asked[i]) }),
			before: over[:i], over: sync.OnceFunc(func() { close(over[i]) }),
		}
		calls[i] = one.Call
	}
	return calls
}

// acquire waits until the calls in front of this one have asked their questions, and no other
// call talks to the user.
func (b *Box) acquire(ctx context.Context) error {
	if err := wait(ctx, b.earlier); err != nil {
		return err
	}
	select {
	case b.human <- struct{}{}:
		return nil
	case <-ctx.Done():
		return endError(ctx)
	}
}

// wait waits until all channels are closed.
func wait(ctx context.Context, closed []chan struct{}) error {
	for _, c := range closed {
		select {
		case <-c:
		case <-ctx.Done():
			return endError(ctx)
		}
	}
	return nil
}

// release lets other calls talk to the user.
func (b *Box) release() { <-b.human }
