package harness

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/tool"
)

// permit answers whether the program may make a call.
func (t *talk) permit(ctx context.Context, r *acp.PermissionRequest) (any, error) {
	ctx, stop := t.untilCanceled(ctx)
	defer stop()
	t.telling.Lock()
	c := t.merge(&r.ToolCall)
	err := t.show(ctx, c)
	asked := c.ToolCall
	t.telling.Unlock()
	if err != nil {
		t.fail(err)
		return nil, err
	}
	allowed, err := t.judgeCall(ctx, &asked)
	switch {
	case err != nil && ctx.Err() == nil:
		t.fail(err) // the run ends, or waits for the user
		fallthrough
	case err != nil:
		return acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: acp.Cancelled}}, nil
	case allowed:
		return choose(r.Options, acp.AllowOnce), nil
	}
	return choose(r.Options, acp.RejectOnce, acp.RejectAlways), nil
}

// untilCanceled returns a context that also ends when the turn is canceled: the program may wait for an answer before it stops.
func (t *talk) untilCanceled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() { // ends with the context
		select {
		case <-t.quit:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// choose returns the first option of one of the kinds, in their order. Without one no option is chosen.
func choose(options []acp.PermissionOption, kinds ...string) acp.PermissionResponse {
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: "selected", OptionID: o.OptionID}}
			}
		}
	}
	return acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: acp.Cancelled}}
}

// judgeCall judges a call of the program.
func (t *talk) judgeCall(ctx context.Context, c *acp.ToolCall) (bool, error) {
	if own := "mcp__" + serverName + "__"; t.a.Tools != nil && (strings.HasPrefix(c.Name, own) || strings.HasPrefix(c.Title, own)) {
		return true, nil // it is judged when it is made
	}
	list := judgments(t.p, c)
	for _, j := range list {
		err := t.judge(ctx, c.ToolCallID, j)
		if _, refused := errors.AsType[*tool.CallError](err); refused {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range list { // the program may have this program do it
		t.granted[j.subject()]++
	}
	return true, nil
}

// subject is what calls have in common that do the same.
func (j judgment) subject() string { return j.tool + "\x00" + cmp.Or(j.args.Command, j.args.Path) }

// judge judges a call: nil if it may be made, a [*tool.CallError] if it may not.
func (t *talk) judge(ctx context.Context, id string, j judgment) error {
	args, err := json.Marshal(j.args)
	if err != nil {
		return err
	}
	_, err = t.a.Judge.Make(ctx, id, j.tool, args, t.place("ask", j.tool, args))
	return err
}

// place returns the steps of a call, which have the same keys when the same call is made after an interruption. An answer of the user to a question about it
// is found again then.
func (t *talk) place(kind, name string, args []byte) steps.Steps {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s", name, args))
	key := kind + "/" + hex.EncodeToString(sum[:6])
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[key]++
	return t.all.At(key).At(fmt.Sprint(t.asked[key]))
}

// take uses up a consent to a call that the program asks this program to make, and reports whether there was one.
func (t *talk) take(j judgment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.granted[j.subject()] == 0 {
		return false
	}
	t.granted[j.subject()]--
	return true
}

// make makes a call of a tool that serves the program.
func (t *talk) make(ctx context.Context, kind string, j judgment, args any) (string, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	box := t.a.Work
	if t.take(j) {
		box = t.a.Allowed
	}
	st, err := t.fresh(ctx, kind, j.tool, raw)
	if err != nil {
		return "", err
	}
	made, err := box.Make(ctx, kind, j.tool, raw, st)
	if err == nil {
		err = t.over(ctx, st)
	}
	if _, refused := errors.AsType[*tool.CallError](err); err != nil && !refused && ctx.Err() == nil {
		t.fail(err)
	}
	if fault.CodeOf(err) == fault.Suspended {
		err = &acp.Error{Code: acp.InternalError, Message: "the user has to answer first"}
	}
	return made.Output, err
}

// fresh is place for a call that is made: one that an earlier attempt finished is made again.
func (t *talk) fresh(ctx context.Context, kind, name string, args []byte) (steps.Steps, error) {
	for {
		st := t.place(kind, name, args)
		_, over, err := steps.ReadNote[bool](ctx, st, "over")
		if err != nil || !over {
			return st, err
		}
	}
}

// over notes that a call was made.
func (t *talk) over(ctx context.Context, st steps.Steps) error {
	return steps.WriteNote(context.WithoutCancel(ctx), st, "over", true)
}
