package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/provider"
	"loki/internal/steps"
)

// call is a request on its way through the turns.
type call struct {
	rc       *RequestContext
	req      Request
	model    Model          // the one that is asked; a fallback stays for the turns that follow
	messages []chat.Message // of the request and of the turns so far
}

// to returns the request of a turn as model gets it.
func (c *call) to(model Model, turn int) provider.Request {
	r := provider.Request{
		Model:           model.Name,
		Messages:        adjust(c.messages, model),
		Sampling:        c.req.Sampling.Over(c.rc.Sampling),
		MaxOutputTokens: model.MaxOutputTokens,
		OutputLimit:     model.OutputLimit,
		Stream:          !c.rc.NoStream && !model.NoStream,
		Origin:          provider.Origin{Node: cmp.Or(c.req.Node, c.rc.Events.Node), Turn: turn},
	}
	if c.req.Form != nil {
		r.Format = &provider.Format{Schema: c.req.Form.Value()}
	}
	if c.req.Tools != nil && model.SupportsTools {
		r.Tools = c.req.Tools.Declarations()
	}
	return r
}

// turnResult is one model call's outcome, as it is recorded.
type turnResult struct {
	Message chat.Message    `json:"message"`
	Stop    chat.StopReason `json:"stop"`
	Usage   chat.Usage      `json:"usage"`
	Model   string          `json:"model,omitempty"` // id of the fallback that answered
	Limit   int             `json:"limit,omitempty"` // output limit that the request set, in tokens; 0 for none
	Body    string          `json:"body,omitempty"`  // of an empty reply: the beginning of what the server sent
}

// turn makes one model call, or takes its recorded result. If a fallback answers it
// becomes the model of c.
func (e *Engine) turn(ctx context.Context, c *call, turn int) (turnResult, error) {
	step := steps.Step{Kind: steps.Model, Key: fmt.Sprintf("model/%d", turn), Name: c.model.ID}
	made := false
	t, err := steps.Do(ctx, c.rc.Steps, step, func(ctx context.Context) (turnResult, error) {
		made = true
		return e.ask(ctx, c, turn)
	})
	if err == nil && !made {
		if c.rc.Budget != nil {
			c.rc.Budget.Spend(t.Usage)
		}
		if t.Model != "" {
			err = e.replace(c, t.Model)
		}
	}
	return t, err
}

// replace makes the model called id that of c. What another model has reasoned is its
// own affair: its signatures would be refused.
func (e *Engine) replace(c *call, id string) error {
	model, err := e.models.ChatModel(id)
	if err != nil {
		return err
	}
	c.model, c.messages = model, withoutReasoning(c.messages)
	return nil
}

func withoutReasoning(messages []chat.Message) []chat.Message {
	cleaned := make([]chat.Message, 0, len(messages))
	for _, m := range messages {
		var parts []chat.Part
		for _, p := range m.Parts {
			if p.Type != chat.ReasoningPart {
				p.Signature = ""
				parts = append(parts, p)
			}
		}
		m.Parts = parts
		calls := make([]chat.ToolCall, 0, len(m.ToolCalls))
		for _, call := range m.ToolCalls {
			call.Signature = ""
			calls = append(calls, call)
		}
		m.ToolCalls = calls
		cleaned = append(cleaned, m)
	}
	return cleaned
}

// ask asks the model of c and, as long as none answers, its fallbacks.
func (e *Engine) ask(ctx context.Context, c *call, turn int) (turnResult, error) {
	first := c.model
	t, err := e.attempts(ctx, c, turn)
	for _, id := range first.Fallbacks {
		if !t.unanswered(err) {
			break
		}
		text := fmt.Sprintf("model %s is out of reach; asking %s instead: %v", c.model.ID, id, err)
		if err := c.rc.Events.Emit(ctx, event.Warning{Text: text}); err != nil {
			return t, err
		}
		if err := e.replace(c, id); err != nil {
			return t, err
		}
		t, err = e.attempts(ctx, c, turn)
	}
	if c.model.ID != first.ID {
		t.Model = c.model.ID
	}
	return t, err
}

// unanswered reports whether a call failed in a way that may not fail again, before
// anything of a reply had come.
func (t turnResult) unanswered(err error) bool {
	return provider.Retryable(err) && len(t.Message.Parts) == 0
}

// Retry says how often a call is repeated that failed in passing: the provider was
// overloaded, or the connection lost, before anything of a reply had come.
type Retry struct {
	Attempts int           // calls in all; 0 and 1 mean no repetition
	First    time.Duration // wait before the second call; it doubles from then on
	Longest  time.Duration // a provider that asks to wait longer is not waited for
}

// wait returns how long to wait before the attempt that follows attempt, counted from
// 1; ok is false if there is none. Half of the wait is left to chance, so that many who
// failed together do not come back together.
func (r Retry) wait(attempt int, err error) (d time.Duration, ok bool) {
	if attempt >= r.Attempts {
		return 0, false
	}
	if asked := provider.RetryAfter(err); asked > 0 {
		return asked, asked <= r.Longest
	}
	d = r.Longest
	if doublings := attempt - 1; r.First <= r.Longest>>min(doublings, 62) { // else it would exceed Longest, or overflow
		d = r.First << doublings
	}
	return d/2 + rand.N(d/2+1), true
}

// attempts asks the model of c, again if it failed in passing.
func (e *Engine) attempts(ctx context.Context, c *call, turn int) (turnResult, error) {
	for attempt := 1; ; attempt++ {
		t, err := e.attempt(ctx, c, turn)
		lost := c.req.Whole && provider.Retryable(err) // half an answer is of no use
		if !lost && !t.unanswered(err) {
			return t, err
		}
		wait, ok := c.model.Retry.wait(attempt, err)
		if !ok {
			return t, e.later(err, c.model.Retry.Longest)
		}
		var again event.Body = event.Warning{Text: fmt.Sprintf("%v; trying again in %v", err, wait.Round(100*time.Millisecond))}
		if len(t.Message.Parts) > 0 {
			again = event.Retry{Attempt: attempt, Error: err.Error(), Wait: wait} // the pieces so far are void
		}
		if err := c.rc.Events.Emit(ctx, again); err != nil {
			return t, err
		}
		if err := e.sleep(ctx, wait); err != nil {
			return t, err
		}
	}
}

// LaterError says that a provider asks to come back later than a call is waited for.
type LaterError struct {
	At  time.Time // when the same call may work
	Err error     // says so too
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap returns the provider's error.
func (e *LaterError) Unwrap() error { return e.Err }

// later adds to an error when the provider says that the same call may work. It is a
// [*LaterError] if that is later than a call is waited for.
func (e *Engine) later(err error, longest time.Duration) error {
	wait := provider.RetryAfter(err)
	if wait < time.Second {
		return err
	}
	at := e.now().Add(wait)
	layout := "15:04:05"
	if wait >= 12*time.Hour {
		layout = "January 2, 15:04"
	}
	err = fmt.Errorf("%w; try again in %s, at %s", err, roughly(wait), at.Local().Format(layout))
	if wait <= longest {
		return err
	}
	return &LaterError{at, err}
}

// roughly writes a wait in the unit that fits it, rounded up: 90 seconds, 2 hours.
func roughly(d time.Duration) string {
	unit, name := time.Second, "second"
	switch {
	case d > 2*time.Hour:
		unit, name = time.Hour, "hour"
	case d >= 2*time.Minute:
		unit, name = time.Minute, "minute"
	}
	n := int64((d + unit - 1) / unit)
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt sends the request once, within the budget.
func (e *Engine) attempt(ctx context.Context, c *call, turn int) (turnResult, error) {
	rc, model := c.rc, c.model
	request := c.to(model, turn)
	if err := guard(request.Messages, model); err != nil {
		return turnResult{}, err
	}
	settle, err := reserve(ctx, rc.Budget, model, request)
	if err != nil {
		return turnResult{}, err
	}
	if err := rc.Events.Emit(ctx, event.ModelCall{Model: model.ID, Turn: turn}); err != nil {
		settle(chat.Usage{})
		return turnResult{}, err
	}
	if e.showRequests {
		if err := rc.Events.Emit(ctx, shown(model.ID, request)); err != nil {
			settle(chat.Usage{})
			return turnResult{}, err
		}
	}
	t, err := e.send(ctx, rc, model, request)
	t.Usage = model.cost(t.Usage)
	settle(t.Usage)
	if err != nil {
		return t, err
	}
	return t, rc.Events.Emit(ctx, event.Reply{Model: model.ID, Text: t.Message.Text(), Stop: t.Stop, Usage: t.Usage})
}

// shown returns the event for a request.
func shown(id string, r provider.Request) event.Request {
	var schema json.RawMessage
	if r.Format != nil {
		schema = r.Format.Schema.AppendJSON(nil)
	}
	return event.Request{
		Schema: schema,
		Model:  id, Sampling: r.Sampling, MaxOutputTokens: r.MaxOutputTokens,
		Stream: r.Stream, Tools: r.Tools, Messages: r.Messages,
	}
}

// reserve sets aside what the call can use: its input, which is estimated, and the output
// limit that it is sent with, or else the model's own.
func reserve(ctx context.Context, b Budget, model Model, request provider.Request) (settle func(chat.Usage), err error) {
	if b == nil {
		return func(chat.Usage) {}, nil
	}
	least := chat.Usage{OutputTokens: request.MaxOutputTokens, Estimated: true}
	for _, m := range request.Messages {
		least.InputTokens += chat.EstimateTokens(m.Text())
	}
	most, limit := least, cmp.Or(request.MaxOutputTokens, request.OutputLimit)
	most.OutputTokens = limit
	return b.Reserve(ctx, model.cost(least), model.cost(most), limit > 0)
}

// note warns the user of what a provider has done in another way than asked, once for
// each model.
func (e *Engine) note(ctx context.Context, rc *RequestContext, model Model, text string) error {
	text = fmt.Sprintf("model %s: %s", model.ID, text)
	if _, again := e.notes.LoadOrStore(text, true); again {
		return nil
	}
	return rc.Events.Emit(ctx, event.Warning{Text: text})
}

// send sends the request and gathers the reply, emitting its pieces.
func (e *Engine) send(ctx context.Context, rc *RequestContext, model Model, request provider.Request) (turnResult, error) {
	t := turnResult{Message: chat.Message{Role: chat.Assistant}}
	var parts partsBuilder
	for chunk, err := range model.Provider.Chat(ctx, request) {
		if err != nil {
			t.Message.Parts = parts.done()
			return t, fmt.Errorf("model %s: %w", model.ID, err)
		}
		switch chunk.Kind {
		case provider.Text:
			parts.text(chunk.Text)
			err = rc.Events.Emit(ctx, event.Delta{Text: chunk.Text})
		case provider.Reasoning:
			parts.reasoning(chunk.Text, chunk.Signature)
			if chunk.Text != "" {
				err = rc.Events.Emit(ctx, event.Reasoning{Text: chunk.Text})
			}
		case provider.Note:
			err = e.note(ctx, rc, model, chunk.Text)
		case provider.ToolCall:
			t.Message.ToolCalls = append(t.Message.ToolCalls, chunk.ToolCall)
		case provider.End:
			t.Stop, t.Usage = chunk.Stop, chunk.Usage
			t.Limit, t.Body = cmp.Or(chunk.Limit, request.MaxOutputTokens), chunk.Body
		}
		if err != nil {
			t.Message.Parts = parts.done()
			return t, err
		}
	}
	t.Message.Parts = parts.done()
	if t.Message.Text() != "" && t.Stop != chat.StopToolCalls {
		t.Body = "" // nothing is missing
	}
	if !t.cutOff() {
		repair(t.Message.ToolCalls)
	}
	return t, nil
}
