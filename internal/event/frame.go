package event

import "context"

// Frame is the place that a nested run belongs to. Each call of [Within] makes a frame
// of its own, which distinguishes two runs of the same agent side by side.
type Frame struct {
	Source
	Outer *Frame // frame that the run of Source belongs to, nil at the top
}

type frameKey struct{}

// Within returns the context for a run or an answer that src starts, such as that of a child
// agent. All events of that work have to be emitted with it or with a context made from it.
func Within(ctx context.Context, src Source) context.Context {
	return context.WithValue(ctx, frameKey{}, &Frame{Source: src, Outer: Enclosing(ctx)})
}

// Enclosing returns the frame of the innermost [Within] around ctx, nil if there is none.
func Enclosing(ctx context.Context) *Frame {
	f, _ := ctx.Value(frameKey{}).(*Frame)
	return f
}
