package tool

import "context"

// DepthKey is the member of the metadata of a call of an MCP tool that has the depth of the call: how many calls of programs by each other led to it.
// A call deeper than MaxDepth is refused, so that programs that call each other as tools come to an end.
const (
	DepthKey = "loki/depth"
	MaxDepth = 8
)

type depthKey struct{}

// AtDepth returns the context of a run that a call of a depth began.
func AtDepth(ctx context.Context, depth int) context.Context {
	if depth == 0 {
		return ctx
	}
	return context.WithValue(ctx, depthKey{}, depth)
}

// NextDepth returns the depth of the calls that the run of ctx makes.
func NextDepth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth + 1
}
