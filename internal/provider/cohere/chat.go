package cohere

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/sse"
	"loki/internal/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		err := c.chat(ctx, req, func(chunk provider.Chunk) error {
			if ctx.Err() != nil {
				return wire.Failure(ctx, c.reading(), ctx.Err())
			}
			if !yield(chunk, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(provider.Chunk{}, err)
		}
	}
}

// errStopped says that the consumer of a reply wants no more of it.
var errStopped = errors.New("the consumer stopped")

func (c *Client) chat(ctx context.Context, req provider.Request, emit func(provider.Chunk) error) error {
	m := wire.Lookup(c.model, req.Model)
	ctx = wire.WithCall(ctx, wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch})
	payload := newChatRequest(req, m.RealName)
	// The API takes no form of the reply along with tools.
	if shape, ok := normalize.CohereFormat(req.Format); ok && len(req.Tools) == 0 && !c.refusals.Has(m.RealName) {
		payload.Format = &sentFormat{"json_object", shape}
	}
	err := c.attempt(ctx, req, payload, &builder{emit: emit, req: req})
	e, ok := errors.AsType[*provider.Error](err)
	if payload.Format == nil || !ok || e.Kind != provider.Invalid || !normalize.RefusesFormat(e.Msg) {
		return err
	}
	c.refusals.Add(m.RealName)
	payload.Format = nil
	return c.attempt(ctx, req, payload, &builder{emit: emit, req: req})
}

// attempt sends payload and reads the reply to it into b.
func (c *Client) attempt(ctx context.Context, req provider.Request, payload chatRequest, b *builder) error {
	if req.Stream {
		resp, err := c.post(ctx, "/chat", payload, true)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return c.stream(ctx, resp, b)
	}
	data, err := c.ask(ctx, "/chat", payload)
	if err != nil {
		return err
	}
	if err := b.whole(data); err != nil {
		return err
	}
	return b.finish()
}

// maxShown is how much of a body is read that is only going to be shown.
const maxShown = 4 << 10

// stream reads a streamed reply.
func (c *Client) stream(ctx context.Context, resp *http.Response, b *builder) error {
	body := bufio.NewReader(resp.Body)
	switch first, err := body.Peek(1); {
	case err == nil && first[0] == '{': // gateways answer in one piece whatever they are asked for
		data, err := io.ReadAll(body)
		if err == nil {
			err = b.whole(data)
		}
		if err != nil {
			return wire.Failure(ctx, c.reading(), err)
		}
		return b.finish()
	case !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		data, err := io.ReadAll(io.LimitReader(body, maxShown))
		if err != nil && len(data) == 0 {
			return wire.Failure(ctx, c.reading(), err)
		}
		return wire.Lacking("event stream", data)
	}
	for ev, err := range sse.Decode(body, 0) {
		if errors.Is(err, sse.ErrTooLarge) {
			return &provider.Error{Kind: provider.BadReply, Msg: err.Error()}
		}
		if err != nil {
			return wire.Failure(ctx, c.reading(), err)
		}
		switch data := strings.TrimSpace(ev.Data); data {
		case "":
		case "[DONE]":
			b.finished = true
		default:
			if err := b.event([]byte(data)); err != nil {
				return err
			}
		}
		if b.finished {
			if err := b.finish(); err != nil {
				return err
			}
			wire.Drain(resp.Body)
			return nil
		}
	}
	return wire.Failure(ctx, c.reading(), io.ErrUnexpectedEOF)
}

// event takes the data of one event. Events of unknown types are passed over; one
// without a type reports a failure.
func (b *builder) event(data []byte) error {
	var e streamEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return wire.BadReply("an event that is not of the expected form", data)
	}
	m := e.Delta.Message
	switch e.Type {
	case "", "error":
		return wire.Lacking("event type", data)
	case "content-start", "content-delta":
		return b.content(e.Index, m.Content.one())
	case "tool-plan-delta":
		if b.texted && b.block != planIndex { // a text says what the plan says
			return nil
		}
		return b.text(planIndex, m.ToolPlan)
	case "tool-call-start":
		b.startCall(e.Index, m.ToolCalls.one())
	case "tool-call-delta":
		b.continueCall(e.Index, m.ToolCalls.one().Function.Arguments)
	case "message-end":
		b.finished, b.body = true, data
		return b.end(e.Delta.FinishReason, e.Delta.Usage, e.Delta.Error)
	}
	return nil
}
