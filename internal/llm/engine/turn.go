package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// call is a request on its way through the turns.
type call struct {
	rc       *RequestContext
	req      Request
	model    Model          // the one that is asked; a fallback stays for the turns that follow
	messages []chat.Message // of the request and of the turns so far
	known    int            // how many of them earlier calls sent or received
	note     string         // of hooks, for the next request only; empty for none
}

// providerRequest returns the request of a turn as model gets it.
func (c *call) providerRequest(model Model, turn int) provider.Request {
	r := provider.Request{
		Model:           model.Name,
		Messages:        adjust(withNote(c.messages, c.note), model),
		Sampling:        c.req.Sampling.Over(c.rc.Sampling),
		MaxOutputTokens: cmp.Or(c.rc.MaxOutputTokens, model.MaxOutputTokens),
		OutputLimit:     model.OutputLimit,
		Stream:          !c.rc.NoStream && !model.NoStream,
		Origin:          provider.Origin{Node: cmp.Or(c.req.Node, c.rc.Events.Node), Turn: turn},
	}
	if r.Constraints = c.req.Constraints; turn > 1 {
		r.Choice = chat.ToolChoice{}
	}
	if c.req.Form != nil {
		r.Format = &provider.Format{Schema: c.req.Form.Value()}
	}
	if model.SupportsTools {
		r.Tools = c.tools()
	}
	return r
}

// turnResult is one model call's outcome, as it is recorded.
type turnResult struct {
	Message chat.Message    `json:"message"`
	Stop    chat.StopReason `json:"stop"`
	Usage   chat.Usage      `json:"usage"`
	Model   string          `json:"model,omitempty"`    // id of the fallback that answered
	Limit   int             `json:"limit,omitempty"`    // output limit of the request, in tokens; 0 for none
	Window  bool            `json:"window,omitempty"`   // the reply was cut off because the context window is full
	Broken  bool            `json:"broken,omitempty"`   // the calls may lack arguments, see [provider.Chunk]
	LeftOut int             `json:"left_out,omitempty"` // calls beyond maxCalls
	Body    string          `json:"body,omitempty"`     // of an empty reply: the beginning of what the server sent

	Note    string `json:"note,omitempty"`    // what hooks noted about the reply
	Refused string `json:"refused,omitempty"` // which hook refused the reply, and why; the message is empty then
}

// turn makes one model call, or reads its recorded result. A fallback that answers becomes the
// model of c.
func (e *Engine) turn(ctx context.Context, c *call, turn int) (turnResult, error) {
	step := steps.Step{Kind: steps.Model, Key: ModelKey(turn), Name: c.model.ID}
	if c.rc.Steps.Recording() {
		described := *c // a copy, so that a call that is not recorded stays off the heap
		step.Request = described.description
	}
	made := false
	t, err := steps.Do(ctx, c.rc.Steps, step, func(ctx context.Context) (turnResult, error) {
		made = true
		return e.askWithHooks(ctx, c, turn)
	})
	if err == nil && !made {
		if c.rc.Budget != nil {
			c.rc.Budget.Spend(t.Usage)
		}
		if t.Model != "" {
			err = e.replace(ctx, c, t.Model)
		}
	}
	if err == nil {
		err = c.refusal(t)
	}
	return t, err
}

// replace makes the model called id that of c. The reasoning of another model is removed: its
// signatures would be refused.
func (e *Engine) replace(ctx context.Context, c *call, id string) error {
	model, err := e.models.ChatModel(ctx, id)
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

// attempt sends the request once, within the budget.
func (e *Engine) attempt(ctx context.Context, c *call, turn int) (turnResult, error) {
	rc, model := c.rc, c.model
	request := c.providerRequest(model, turn)
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
		if err := rc.Events.Emit(ctx, requestEvent(model.ID, request)); err != nil {
			settle(chat.Usage{})
			return turnResult{}, err
		}
	}
	t, err := e.send(ctx, rc, model, request)
	t.Usage = model.withCost(t.Usage)
	settle(t.Usage)
	if err != nil {
		return t, err
	}
	return t, rc.Events.Emit(ctx, event.Reply{Model: model.ID, Text: t.Message.Text(), Stop: t.Stop, Usage: t.Usage})
}

// requestEvent returns the event for a request.
func requestEvent(id string, r provider.Request) event.Request {
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
	estimate := token.Estimate()
	least := chat.Usage{InputTokens: estimate.Tools(request.Tools), OutputTokens: request.MaxOutputTokens, Estimated: true}
	for _, m := range request.Messages {
		least.InputTokens += estimate.Message(m, true)
	}
	most, limit := least, cmp.Or(request.MaxOutputTokens, request.OutputLimit)
	most.OutputTokens = limit
	return b.Reserve(ctx, model.withCost(least), model.withCost(most), limit > 0)
}

// note warns the user, once for each model in a conversation, that a provider did something in
// another way than asked.
func note(ctx context.Context, rc *RequestContext, model Model, text string) error {
	return rc.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("model %s: %s", model.ID, text), Once: true})
}

// send sends the request and gathers the reply, emitting its pieces.
func (e *Engine) send(ctx context.Context, rc *RequestContext, model Model, request provider.Request) (turnResult, error) {
	t := turnResult{Message: chat.Message{Role: chat.Assistant}}
	var parts partsBuilder
	stop := stopper{texts: request.Stop}
	for chunk, err := range model.Provider.Chat(ctx, request) {
		if err != nil {
			if text := stop.rest(); text != "" {
				parts.text(text)
			}
			t.Message.Parts = parts.finish()
			return t, fmt.Errorf("model %s: %w", model.ID, err)
		}
		if stop.stopped && chunk.Kind != provider.End { // which has the usage
			continue
		}
		text := ""
		switch chunk.Kind {
		case provider.Text:
			text = stop.take(chunk.Text)
		case provider.Reasoning:
			parts.reasoning(chunk.Text, chunk.Signature)
			if chunk.Text != "" {
				err = rc.Events.Emit(ctx, event.Reasoning{Text: chunk.Text})
			}
		case provider.Note:
			err = note(ctx, rc, model, chunk.Text)
		case provider.ToolCall:
			if len(t.Message.ToolCalls) == maxCalls {
				t.LeftOut++
				continue
			}
			chunk.ToolCall.Arguments = chat.CleanJSON(chunk.ToolCall.Arguments)
			t.Message.ToolCalls = append(t.Message.ToolCalls, chunk.ToolCall)
		case provider.End:
			text = stop.rest()
			t.Stop, t.Usage = chunk.Stop, chunk.Usage
			t.Limit, t.Body = cmp.Or(chunk.Limit, request.MaxOutputTokens), chunk.Body
			t.Window, t.Broken = chunk.Window, chunk.Broken
			if stop.stopped {
				t.Stop = chat.StopEnd
			}
		}
		if text != "" {
			parts.text(text)
			err = rc.Events.Emit(ctx, event.Delta{Text: text})
		}
		if err != nil {
			t.Message.Parts = parts.finish()
			return t, err
		}
	}
	t.Message.Parts = parts.finish()
	if t.Message.Text() != "" && t.Stop != chat.StopToolCalls {
		t.Body = "" // nothing is missing
	}
	if !t.isCutOff() && !t.Broken {
		repair(t.Message.ToolCalls)
	}
	return t, nil
}

// ModelKey returns the key of the step that calls the model for a turn of a request.
func ModelKey(turn int) string { return fmt.Sprintf("model/%d", turn) }
