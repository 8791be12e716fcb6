package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// toolConcurrency is how many tool calls of one reply run at once.
const toolConcurrency = 8

// maxCalls is how many tool calls of one reply are made. The history leaves out the others, and the last result says how many.
const maxCalls = 128

// maxRefusals is how many replies in a row may hold refused calls only. The last of them ends
// the request. Replies whose refused calls are all of tools that are [Polled] do not count.
const maxRefusals = 3

// toolLoop is what the rounds of tool calls of one request have in common.
type toolLoop struct {
	repeats repeatGuard
	refused int // rounds in a row without a call that was run
}

// round answers the calls of one reply and returns their results in the order of the
// calls, and the calls that are the caller's. All calls are announced in the order of the reply before any of
// them is run. The calls of a reply that was cut off, or is broken, are not run: the results say why.
func (l *toolLoop) round(ctx context.Context, c *call, turn int, t turnResult) (results []chat.Message, open []chat.ToolCall, err error) {
	if err := announce(ctx, c.rc, c.req.Tools, t.Message.ToolCalls); err != nil {
		return nil, nil, err
	}
	if t.isCutOff() || t.Broken {
		if l.refused++; l.refused == maxRefusals {
			return nil, nil, c.incompleteError(t)
		}
		results, err = answerIncomplete(ctx, c.rc, t)
		return results, nil, err
	}
	calls, open := c.split(t.Message.ToolCalls)
	if len(calls) > 0 {
		results, err = l.answer(ctx, c, turn, calls)
	}
	if err == nil && t.LeftOut > 0 {
		addText(results, fmt.Sprintf("Your reply had %d calls. Only the first %d were made, and the others are left out: a reply may have %d. Make them in later replies.", maxCalls+t.LeftOut, maxCalls, maxCalls))
		err = c.rc.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("the model made %d calls in one reply: those after the first %d are left out", maxCalls+t.LeftOut, maxCalls)})
	}
	return results, open, err
}

// addText adds a text to the last result of a round, if there is one.
func addText(results []chat.Message, text string) {
	if len(results) == 0 {
		return
	}
	last := &results[len(results)-1]
	last.Parts = append([]chat.Part{{Type: chat.TextPart, Text: last.Text() + "\n\n" + text}}, imagesOf(*last)...)
}

// answer runs the calls of one reply that are not the caller's.
func (l *toolLoop) answer(ctx context.Context, c *call, turn int, calls []chat.ToolCall) ([]chat.Message, error) {
	alerts := make([]string, len(calls)) // why a call is not made, empty if it is
	refused, polls := 0, 0
	for i, call := range calls {
		instead := insteadOf(c.req.Tools, call.Name)
		var looped bool
		if alerts[i], looped = l.repeats.check(call, instead); !looped {
			continue
		}
		if refused++; instead != "" {
			polls++
		}
	}
	switch {
	case refused < len(calls):
		l.refused = 0
	case polls < refused: // a model may wait for something else to happen
		l.refused++
	}
	if l.refused == maxRefusals {
		return nil, fault.New(fault.Provider, "model %s repeats itself: it called %s with the same arguments again after %d refusals", c.model.ID, calls[0].Name, maxRefusals-1).
			WithHint("ask in another way, or take another model with -m")
	}
	results, err := callTools(ctx, c.rc, c.req.Tools, turn, calls, alerts, refused)
	if err != nil {
		return nil, err
	}
	l.repeats.record(calls, results)
	return results, c.addNotice(ctx, turn, results)
}

// announce emits the calls of a reply in their order.
func announce(ctx context.Context, rc *RequestContext, tools Tools, calls []chat.ToolCall) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, call := range calls {
		if err := rc.Events.Emit(ctx, event.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Sandbox: levelOf(tools, call)}); err != nil {
			return err
		}
	}
	return nil
}

// levelOf returns the level of the sandbox of a call, see [Confined].
func levelOf(tools Tools, call chat.ToolCall) string {
	if c, ok := tools.(Confined); ok {
		return c.Level(call)
	}
	return ""
}

// addNotice adds the notice of the request to the last result of a round. What the model has read
// is recorded, so that it reads the same when the run is resumed.
func (c *call) addNotice(ctx context.Context, turn int, results []chat.Message) error {
	if c.req.Notice == nil || len(results) == 0 {
		return nil
	}
	step := steps.Step{Kind: steps.Note, Key: fmt.Sprintf("notice/%d", turn)}
	notice, err := steps.Do(ctx, c.rc.Steps, step, func(ctx context.Context) (string, error) { return c.req.Notice(ctx), nil })
	if err != nil || notice == "" {
		return err
	}
	addText(results, notice)
	return nil
}

// answerIncomplete answers the calls of a reply that was cut off or is broken. It is not known which of them
// are complete: a closing bracket does not say which members were to follow.
func answerIncomplete(ctx context.Context, rc *RequestContext, t turnResult) ([]chat.Message, error) {
	why := "your reply reached the output limit and was cut off, so the call may be incomplete. " +
		"Nothing of it was done. Make the call again, with shorter arguments or in several smaller calls."
	if !t.isCutOff() {
		why = "your reply arrived broken: a part of it belongs to none of its calls for certain, or a call has no name, so arguments may be missing. " +
			"Nothing was done for any call of the reply. Make them again, one per reply."
	}
	calls := t.Message.ToolCalls
	results := make([]chat.Message, len(calls))
	for i, call := range calls {
		text := call.Name + " was not run: " + why
		var err error
		if results[i], err = answerCall(ctx, rc, call, event.ToolResult{Text: text, Failed: true}); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// callTools runs the calls of one reply side by side, beginning in their order, and returns
// their results in that order. Those with an alert, which are refused, get it as their result.
func callTools(ctx context.Context, rc *RequestContext, tools Tools, turn int, calls []chat.ToolCall, alerts []string, refused int) ([]chat.Message, error) {
	results := make([]chat.Message, len(calls)) // goroutine i writes results[i] and errs[i] only
	errs := make([]error, len(calls))
	slots := make(chan struct{}, toolConcurrency)
	var wg sync.WaitGroup
	run := callFuncs(tools, len(calls)-refused)
	ctx = WithBudget(ctx, rc.Budget)
	for i, call := range calls {
		if alerts[i] != "" {
			results[i], errs[i] = refuse(ctx, rc, call, alerts[i])
			continue
		}
		one := run[0]
		run = run[1:]
		slots <- struct{}{} // not in the goroutine: a call may wait for those in front of it
		wg.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = callTool(ctx, one, tools, rc, call, rc.Steps.At(fmt.Sprintf("tool/%d/%d", turn, i+1)))
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// refuse answers a call that is not run because it repeats others.
func refuse(ctx context.Context, rc *RequestContext, call chat.ToolCall, why string) (chat.Message, error) {
	if err := rc.Events.Emit(ctx, event.Warning{Text: "the model repeats itself: " + call.Name + " is not called again"}); err != nil {
		return chat.Message{}, err
	}
	return answerCall(ctx, rc, call, event.ToolResult{Text: why, Failed: true})
}

// insteadOf returns what a model should do instead of repeating a call of a tool that is [Polled],
// empty for other tools.
func insteadOf(tools Tools, name string) string {
	if p, ok := tools.(Polled); ok {
		return p.Instead(name)
	}
	return ""
}

// callFuncs returns what makes each of n calls.
func callFuncs(tools Tools, n int) []CallFunc {
	if o, ok := tools.(Ordered); ok {
		return o.InOrder(n)
	}
	return slices.Repeat([]CallFunc{tools.Call}, n)
}

func callTool(ctx context.Context, run CallFunc, tools Tools, rc *RequestContext, call chat.ToolCall, st steps.Steps) (chat.Message, error) {
	if err := ctx.Err(); err != nil {
		return chat.Message{}, err
	}
	text, failed, err := run(ctx, call, st)
	if err != nil {
		return chat.Message{}, fmt.Errorf("tool %s: %w", call.Name, err)
	}
	result := event.ToolResult{Text: text, Failed: failed, Sandbox: levelOf(tools, call)}
	if a, ok := tools.(Amended); ok {
		result.Arguments, result.OriginalArguments, _ = a.Edited(call)
	}
	m, err := answerCall(ctx, rc, call, result)
	if p, ok := tools.(Pictured); ok {
		m.Parts = append(m.Parts, p.Images(call)...)
	}
	return m, err
}

// answerCall returns the message that answers a call with a result, and emits that.
func answerCall(ctx context.Context, rc *RequestContext, call chat.ToolCall, r event.ToolResult) (chat.Message, error) {
	r.ID, r.Name = call.ID, call.Name
	m := chat.Text(chat.ToolRole, r.Text)
	m.ToolCallID, m.ToolName, m.Failed = call.ID, call.Name, r.Failed
	return m, rc.Events.Emit(ctx, r)
}

// repair brings the arguments of the calls of a complete reply into the form in which they are
// run, so that the history shows what was run. Arguments that cannot be repaired stay as the
// model wrote them.
func repair(calls []chat.ToolCall) {
	for i, call := range calls {
		if args, err := chat.ParseArguments(call.Arguments); err == nil {
			calls[i].Arguments = string(args)
		}
	}
}

type budgetKey struct{}

// WithBudget returns a context for calls of tools, see [BudgetOf]. b may be nil.
func WithBudget(ctx context.Context, b Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// BudgetOf returns the budget of the request that calls a tool with ctx, nil for none. A tool that
// asks a model takes it for that, and adds what the model used to [chat.MeterOf].
func BudgetOf(ctx context.Context) Budget {
	b, _ := ctx.Value(budgetKey{}).(Budget)
	return b
}
