package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// wait ends when a time has come, or with a signal. Without a signal in time it takes its default; without a default the node fails.
func (r *Runner) wait(ctx context.Context, t *run.Task) (product, error) {
	var signal value.Value
	var err error
	if !r.Dry { // in which nothing comes
		signal, err = tryNode(ctx, r, t, func(ctx context.Context) (value.Value, error) { return r.awaitSignal(ctx, t) })
	} else if t.Node.Wait.Default != nil {
		signal = t.Node.Wait.DefaultIn(t.Draft)
	}
	if err != nil {
		return r.fail(ctx, t, err)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "signal", signal, "")
	return r.exit(ctx, t, product{result: signal})
}

// overdueError says that a node waited for longer than its timeout.
type overdueError struct{ text string }

func (e *overdueError) Error() string { return e.text }

// awaitSignal waits, and returns the value of the signal, null for a wait for a time.
func (r *Runner) awaitSignal(ctx context.Context, t *run.Task) (none value.Value, err error) {
	q := r.questions(t)
	place := q.Place
	if try := strings.TrimPrefix(t.Steps.Key(""), q.Base); try != "" {
		place += "/" + strings.TrimSuffix(try, "/")
	}
	w := run.Wait{Steps: t.Steps, Events: t.Events, Place: place, Waits: q.Waits, Now: r.Now, Sleep: r.Sleep}
	began, err := w.Began(ctx)
	if err != nil {
		return none, err
	}
	node := t.Node.Wait
	var deadline time.Time
	if t.Node.HasTimeout {
		deadline = began.Add(t.Node.Timeout)
	}
	until := func(at time.Time) error {
		if deadline.IsZero() || !at.After(deadline) {
			return w.Until(ctx, at)
		}
		if err := w.Until(ctx, deadline); err != nil {
			return err
		}
		return &overdueError{fmt.Sprintf("the time to wait for, %s, does not come within %s", at.Format(time.RFC3339), t.Node.Timeout)}
	}
	switch {
	case node.For != nil:
		return none, until(began.Add(*node.For))
	case node.Until != nil:
		text, err := node.Until.Strict(t.Draft)
		if err != nil {
			return none, fmt.Errorf("until: %w", err)
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return none, fmt.Errorf("until: %q is not a time as RFC 3339 has it, such as 2026-12-24T18:00:00Z", text)
		}
		return none, until(at)
	}
	v, came, err := w.Signal(ctx, node.Signal, deadline)
	if err != nil {
		return none, err
	}
	if !came {
		if node.Default == nil {
			return none, &overdueError{fmt.Sprintf("no signal %s within %s, and the node has no default", node.Signal, t.Node.Timeout)}
		}
		v = node.DefaultIn(t.Draft)
	}
	if err := r.fits(node, v); err != nil || came {
		return v, err
	}
	return v, t.Events.Emit(ctx, event.Signal{ID: place, Name: node.Signal, Value: v, TimedOut: true})
}

// fits returns why a value is not one that the signal of a node can have.
func (r *Runner) fits(w *graph.Wait, v value.Value) error {
	if w.Schema == nil {
		return nil
	}
	form, err := schema.Compile(*w.Schema)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if violations := form.Validate(v); violations != nil {
		return fmt.Errorf("signal %s does not match schema: %s", w.Signal, schema.List(violations, "; "))
	}
	return nil
}
