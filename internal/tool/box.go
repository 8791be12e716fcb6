package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/awake"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
)

// Options configure NewBox. The zero value of each field is its default.
type Options struct {
	Tools Set
	// More returns tools of which some may not have been there before. It is called before each request of the model; those
	// with new names are offered from then on. Nil means that there are none.
	More func() []Tool

	// Run is the id of the durable run that the calls belong to, and Task what the keys
	// of its steps are unique in, such as a super-step and node. Together with the step's
	// own key they make a call's idempotency key. Without a Run calls have none.
	Run, Task string
	// Key is the key of the only call of the box, whatever its step is, such as one that is made in several tries. Empty for
	// the usual boxes.
	Key string

	// Asker asks the user about calls that need consent, and about uncertain ones; nil is
	// [ask.Unavailable]. If the user cannot be asked, the former are refused or, as Judge
	// says, allowed or suspended, and the latter end the request with code fault.Suspended.
	// An Asker that itself fails with that code ends the request in both cases, so that the
	// run can wait. Calls do not overlap. The ID of a question is the key of the step that it
	// is about, unique within the task: another call asks under another key, even if it asks
	// the same.
	Asker ask.Asker
	// From says where the questions come from: the agent, node and depth.
	From ask.Question
	// By names who asks for the calls, for questions, such as: Node "fetch". Empty is a model.
	By string
	// Judge decides which calls may be made; nil leaves it to the tools' hints and guards.
	Judge Judge
	// AtMost is the highest level of the sandbox in which programs of calls run, whatever is asked for, allowed or
	// consented to. Empty is no bound. Where there is no sandbox to hold it, every such call needs consent.
	AtMost sandbox.Level
	// Mode, if set, returns the mode of the conversation, which may change between calls: in chat.ModePlan only tools that change
	// nothing are offered. Trusts reports whether a tool is one of an MCP server that is believed when it says so; nil
	// believes none. Both may be called from several goroutines.
	Mode   func() chat.Mode
	Trusts func(tool string) bool
	// AutoConfirm consents to every call without asking. Denied calls stay denied.
	AutoConfirm bool
	// ForRun says that an answer that holds for more than one call holds for the run, and not for a session or an agent.
	ForRun bool
	// Hooks run before and after calls. What they change is judged as if the model had written it.
	Hooks *hook.Runner
	// Uncertain decides about uncertain calls; empty means Ask.
	Uncertain Policy

	Timeout   time.Duration // for tools without one of their own; 0 means DefaultTimeout
	MaxOutput int           // likewise, in bytes; 0 means DefaultMaxOutput

	// Touched, if set, is called with the files that a call names, absolute, before it is decided about. It may be called from several goroutines.
	Touched func(paths []string)

	// Readable, if set, returns directories outside of the workspace that calls may read. It may be called from several goroutines.
	Readable func() []string
	// Reads, if set, is called with each call that is going to be made, and the files that it names, absolute. It may be called from several goroutines.
	Reads func(call Call, paths []string)

	// Notes, if set, is called after each call that is made, and returns lines that the model needs to know besides the result. It may be called
	// from several goroutines.
	Notes func(ctx context.Context) []string

	// OnPanic, if set, receives each panic of a tool, for the log. The model reads
	// about it without the stack.
	OnPanic func(tool string, value any, stack []byte)
}

// Box answers the tool calls of one request. It may be used from several goroutines.
type Box struct {
	o       Options
	human   chan struct{}   // holds one element while the user is talked to
	earlier []chan struct{} // closed when the calls in front of this one have asked their questions
	asked   func()          // closes the channel of this call
	before  []chan struct{} // closed when the calls in front of this one cannot change a tool's state any more
	over    func()          // closes the channel of this call
	known   *known
	plain   bool // no model reads the results, see Make
}

// NewBox returns a Box.
func NewBox(o Options) *Box {
	if o.Asker == nil {
		o.Asker = ask.Unavailable{}
	}
	o.Uncertain = cmp.Or(o.Uncertain, Ask)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxOutput = cmp.Or(o.MaxOutput, DefaultMaxOutput)
	return &Box{o: o, human: make(chan struct{}, 1), asked: func() {}, over: func() {}, known: newKnown()}
}

// Declarations lists the tools as the model sees them.
func (b *Box) Declarations() []chat.Tool {
	b.renew()
	set := b.tools()
	list := make([]chat.Tool, 0, set.Len())
	for _, e := range set.entries {
		if d, ok := b.offer(e); ok {
			list = append(list, d)
		}
	}
	return list
}

// Call makes one call and returns the text for the model; failed is true if the text
// reports a failure. The error is that of ctx if it has ended, one of st, one with code
// fault.Suspended, or that of an Asker that was interrupted.
func (b *Box) Call(ctx context.Context, call chat.ToolCall, st steps.Steps) (text string, failed bool, err error) {
	out, err := b.call(ctx, call, st)
	if err != nil {
		return "", false, err
	}
	if len(out.Images) > 0 {
		remember(b.known, b.known.images, call.ID, out.Images)
	}
	return out.Text, out.Failed, nil
}

func (b *Box) call(ctx context.Context, requested chat.ToolCall, st steps.Steps) (outcome, error) {
	defer b.asked()
	defer b.over()
	e, ok := b.tools().lookup(requested.Name)
	if !ok { // a tool that came later: a request from the record has renewed nothing
		b.renew()
		e, ok = b.tools().lookup(requested.Name)
	}
	if !ok || !e.tool.Hints().Stateful {
		b.over()
	}
	if !ok {
		unknown := UnknownError{Name: requested.Name}
		for _, d := range b.Declarations() {
			unknown.Available = append(unknown.Available, d.Name)
		}
		slices.Sort(unknown.Available)
		return failure("%s", unknown.Error()), nil
	}
	if e.declared, ok = b.offer(e); !ok {
		remember(b.known, b.known.declined, requested.ID, fault.Failure)
		return b.notOffered(e), nil
	}
	args, err := chat.ParseArguments(requested.Arguments)
	if err == nil {
		args, err = fit(e.tool, e.declared, args)
	}
	if _, held := e.tool.(Confined); err == nil && held && b.mode() == chat.ModePlan {
		_, err = Fit(e.declared.Parameters, args, FitOptions{Known: true})
	}
	if err != nil {
		return failure("%s was not run: %v.%s", e.declared.Name, err, b.advice(" Write the call again.")), nil
	}
	return b.checkAndCall(ctx, e, requested.ID, args, st)
}

// checkAndCall makes a call, unless hooks or rules refuse it. The id is the model's.
func (b *Box) checkAndCall(ctx context.Context, e entry, id string, args json.RawMessage, st steps.Steps) (outcome, error) {
	before, err := b.runBefore(ctx, e.declared, id, args, st)
	if err != nil {
		return outcome{}, err
	}
	var out outcome
	if before.Refused() {
		remember(b.known, b.known.declined, id, fault.Failure)
		out = failure("%s was not run: %s%s", e.declared.Name, before.Refusal(), b.advice(" Do not try to get around this; do without, or say so to the user."))
	} else {
		if before.Arguments != nil {
			args = before.Arguments
		}
		out, err = b.judgeAndCall(ctx, e, id, args, st)
	}
	b.note(&out, before)
	return out, err
}

// judgeAndCall makes a call that hooks have let through, unless it is not allowed.
func (b *Box) judgeAndCall(ctx context.Context, e entry, id string, args json.RawMessage, st steps.Steps) (outcome, error) {
	hints := e.tool.Hints()
	step := steps.Step{Kind: steps.Tool, Key: "call", Name: e.declared.Name, Effect: !hints.ReadOnly}
	if st.Recording() {
		step.Request = func() any { return args }
	}
	call := Call{Name: e.declared.Name, Arguments: args, Key: cmp.Or(b.o.Key, joinKey(b.o.Task, st.Key(step.Key))), RunID: b.o.Run}
	if b.o.Readable != nil {
		call.Readable = b.o.Readable()
	}
	if b.o.Run != "" {
		call.IdempotencyKey = joinKey(b.o.Run, call.Key)
	}
	var wanted Request
	confined, isConfined := e.tool.(Confined)
	if isConfined {
		var err error
		if wanted, err = confined.Request(call); err != nil {
			return failure("%s was not run: %v.%s", call.Name, err, b.advice(" Write the call again.")), nil
		}
	}
	a, err := b.admit(ctx, e, hints, call, wanted, st)
	if err == nil && a.edited != nil {
		return b.change(ctx, e, id, args, a.edited, st)
	}
	if a.unattended {
		remember(b.known, b.known.declined, id, fault.Suspended)
	} else if a.refused != "" {
		remember(b.known, b.known.declined, id, fault.Failure)
	}
	if err != nil || a.refused != "" {
		return failure("%s was not run: %s", call.Name, a.refused), err
	}
	call.Unasked, call.Sandbox, call.Hidden, call.Judged, call.Consented = a.unasked, a.sandbox, a.hidden, a.judged, a.files
	if wanted.holds() {
		remember(b.known, b.known.levels, id, a.sandbox.Level)
	}
	if b.o.Reads != nil {
		b.o.Reads(call, a.paths)
	}
	if hints.Stateful {
		return b.runStateful(ctx, e.tool, hints, call, id, st)
	}
	put := b.ask
	if hints.Interactive {
		if err := b.acquire(ctx); err != nil {
			return outcome{}, err
		}
		defer b.release()
		put = b.o.Asker.Ask
	}
	call.Steps = st
	step.Uncertain = func(ctx context.Context, _ string) (steps.Decision, error) {
		if _, found, err := steps.ReadNote[json.RawMessage](ctx, st, TaskNote); found || err != nil {
			return steps.Retry, err
		}
		return b.decide(ctx, call, st, put)
	}
	replayed := true
	out, err := steps.Do(ctx, st, step, func(ctx context.Context) (outcome, error) {
		replayed = false
		b.asked()
		if a.unasked && a.guard.Consent(call) != "" {
			out := failure("%s was not run: the target changed while the call was being prepared, and now needs the user's approval.%s",
				call.Name, b.advice(" Repeat the call if you still want it."))
			return out, b.unrecordedError(out)
		}
		used := new(chat.Meter)
		out, err := b.run(chat.WithMeter(ctx, used), e.tool, hints, call)
		failed := b.unrecordedError(out)
		if err == nil {
			out, err = b.runAfter(ctx, call, id, hints, out)
		}
		if err == nil && b.o.Notes != nil && !b.plain {
			for _, note := range b.o.Notes(ctx) {
				out.Text = strings.TrimPrefix(out.Text+"\n\n"+note, "\n\n")
			}
		}
		out.Usage, _ = used.Total()
		return out, cmp.Or(err, failed)
	})
	chat.MeterOf(ctx).Add(out.Usage, replayed)
	if isConfined && !a.files { // a repeated call needs to be asked about again
		remember(b.known, b.known.refused, call.Name+" "+wanted.Text, out.Refused)
	}
	if errors.Is(err, steps.ErrSkipped) && !b.plain {
		return failure("%s was interrupted, and it is unknown whether it did its work. It was not run again. Find out what happened before you repeat the call.", call.Name), nil
	}
	return out, err
}

// runStateful makes a call that changes the state of its tool, after those in front of it.
func (b *Box) runStateful(ctx context.Context, t Tool, hints Hints, call Call, id string, st steps.Steps) (outcome, error) {
	b.asked()
	if err := wait(ctx, b.before); err != nil {
		return outcome{}, err
	}
	out, err := b.run(ctx, t, hints, call)
	if err != nil || !b.o.Hooks.Has(hook.AfterTool) {
		return out, err
	}
	after := steps.Step{Kind: steps.Hook, Key: string(hook.AfterTool), Name: call.Name}
	return steps.Do(ctx, st, after, func(ctx context.Context) (outcome, error) { return b.runAfter(ctx, call, id, hints, out) })
}

// joinKey joins the parts that are not empty.
func joinKey(parts ...string) string {
	key := ""
	for _, p := range parts {
		if key != "" && p != "" {
			key += "/"
		}
		key += p
	}
	return key
}

// ask asks the user, one question at a time.
func (b *Box) ask(ctx context.Context, q ask.Question) (string, error) {
	if err := b.acquire(ctx); err != nil {
		return "", err
	}
	defer b.release()
	return b.o.Asker.Ask(ctx, q)
}

// timeoutError says that a call took longer than it may.
type timeoutError struct {
	tool  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s timed out after %s", e.tool, e.limit) }

// run makes the call within the tool's limits. It fails only if ctx has ended or the
// call needs an answer and no user can be asked.
func (b *Box) run(ctx context.Context, t Tool, h Hints, call Call) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, endError(ctx)
	}
	limit := cmp.Or(h.Timeout, b.o.Timeout)
	timeout := &timeoutError{call.Name, limit}
	timed := ctx
	if h.Timeout != Unlimited && (h.Timeout != 0 || !h.Interactive) {
		var cancel context.CancelFunc
		timed, cancel = awake.WithTimeoutCause(ctx, limit, timeout)
		defer cancel()
	}
	r, err := b.callSafely(timed, t, call)
	maxOutput := cmp.Or(h.MaxOutput, b.o.MaxOutput)
	switch {
	case err == nil && b.plain:
		return plainOutcome(r, call.Sandbox, b.atMost(), maxOutput), nil
	case err == nil:
		return successOutcome(r, call.Sandbox, b.atMost(), maxOutput), nil
	case ctx.Err() != nil:
		return outcome{}, endError(ctx)
	case errors.Is(context.Cause(timed), timeout):
		err = timeout
	case fault.CodeOf(err) == fault.Suspended:
		return outcome{}, err
	case h.Interactive && errors.Is(err, context.Canceled): // the user interrupted it, and ctx is about to end
		return outcome{}, err
	}
	return failureOutcome(r, err, call.Sandbox, b.atMost(), maxOutput), nil
}

// callSafely makes the call and turns a panic into an error.
func (b *Box) callSafely(ctx context.Context, t Tool, call Call) (r Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			if b.o.OnPanic != nil {
				b.o.OnPanic(call.Name, v, debug.Stack())
			}
			r, err = Result{}, fmt.Errorf("%s panicked (a bug in the tool): %v", call.Name, v)
		}
	}()
	return t.Call(ctx, call)
}

// endError returns the error of a ctx that has ended, with its cause if that says more.
func endError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
