package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// tries says how often a part of a node's work is tried.
type tries struct {
	policy retry.Policy
	name   string           // steps from the second try on are recorded below name/2, name/3, ...
	passes func(error) bool // reports whether a failure may pass, so that another try makes sense
}

// tryWork calls fn until it succeeds, fails for good, or the tries are used up. A resumed run
// does not repeat the tries that failed.
func tryWork[T any](ctx context.Context, r *Runner, t *run.Task, tries tries, fn func(context.Context) (T, error)) (T, error) {
	first := t.Steps
	defer func() { t.Steps = first }()
	for attempt := 1; ; attempt++ {
		failed := fmt.Sprintf("%s/%d/failed", tries.name, attempt)
		if earlier, done, err := steps.ReadNote[failedAttempt](ctx, first, failed); err != nil {
			var none T
			return none, err
		} else if done && attempt < tries.policy.Attempts {
			r.charge(t, earlier.Usage)
			t.Retries++
			continue
		}
		if attempt > 1 {
			t.Steps = first.At(fmt.Sprintf("%s/%d", tries.name, attempt))
		}
		before := t.Usage
		result, err := fn(ctx)
		if err == nil || isFinal(ctx, err) || !tries.passes(err) {
			return result, err
		}
		wait, ok := tries.policy.Wait(attempt, provider.RetryAfter(err), r.Random())
		if !ok {
			return result, err
		}
		if err := steps.WriteNote(ctx, first, failed, failedAttempt{t.Usage.Sub(before)}); err != nil {
			return result, err
		}
		t.Retries++
		if emitErr := t.Events.Emit(ctx, event.Retry{Attempt: attempt, Error: short(err), Wait: wait}); emitErr != nil {
			return result, emitErr
		}
		if wait > 0 && r.Sleep(ctx, wait) != nil {
			return result, context.Cause(ctx)
		}
	}
}

// tryNode calls fn as often as the retry of the node allows.
func tryNode[T any](ctx context.Context, r *Runner, t *run.Task, fn func(context.Context) (T, error)) (T, error) {
	if t.Node.Retry == nil {
		return fn(ctx)
	}
	passes := func(error) bool { return true } // it is unknown why a script failed
	switch t.Node.Type {
	case graph.LLMNode, graph.RAGNode:
		passes = func(err error) bool { return is[*timeoutError](err) || mayPass(t, err) }
	case graph.ToolNode:
		passes = func(err error) bool { return !is[*argumentsError](err) }
	case graph.WaitNode:
		passes = is[*overdueError]
	case graph.ApprovalNode, graph.InputNode:
		passes = func(err error) bool { return !is[*graph.MissingError](err) }
	}
	return tryWork(ctx, r, t, tries{policy: *t.Node.Retry, name: "retry", passes: passes}, fn)
}

// mayPass reports whether a call of a model that failed may succeed soon. One of which a recorded run is suspended is no try.
func mayPass(t *run.Task, err error) bool {
	return provider.Retryable(err) && !(is[*engine.LaterError](err) && t.Steps.Recording())
}

// is reports whether an error has another one of type E in its chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isFinal reports whether an error ends a node's work whatever its retries are: the work was
// canceled, waits for the user, has no budget left or lacks what it depends on, or another
// process took over the run.
func isFinal(ctx context.Context, err error) bool {
	switch fault.CodeOf(err) {
	case fault.Suspended, fault.Limit, fault.Canceled:
		return true
	}
	return is[*run.LeaseError](err) || is[*unfitError](err) || ctx.Err() != nil || errors.Is(err, run.ErrLeaseLost)
}

// failedAttempt is the record of an attempt that a resumed run does not repeat. Its usage
// counts nevertheless. Records of older versions have true in its place.
type failedAttempt struct {
	Usage chat.Usage `json:"usage"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *failedAttempt) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain failedAttempt
	return json.Unmarshal(data, (*plain)(f))
}

// charge counts the usage of an attempt that is not repeated.
func (r *Runner) charge(t *run.Task, used chat.Usage) {
	addUsage(t, used)
	if r.Context.Budget != nil {
		r.Context.Budget.Spend(used)
	}
}
