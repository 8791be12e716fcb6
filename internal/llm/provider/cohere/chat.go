package cohere

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return c.frame.Tools.Chat(ctx, req, normalize.CohereTools(), c.chat)
}

func (c *Client) chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	m := c.frame.Model(req.Model)
	call := wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch}
	return c.frame.Chat(ctx, call, func(ctx context.Context, emit client.Emit) error {
		return c.dialects.Ask(m.RealName, req, emit, func(req provider.Request, d dialect) (client.Attempt[dialect], error) {
			payload := newChatRequest(req, m.RealName)
			// The API takes no form of the reply along with tools.
			if shape, ok := normalize.CohereFormat(req.Format); ok && len(req.Tools) == 0 && !d.noFormat {
				payload.Format = &sentFormat{"json_object", shape}
			}
			return client.Attempt[dialect]{
				Notes: normalize.Lacks{Penalties: !takesPenalties(req)}.Notes(nil, req),
				Send: func(emit client.Emit) error {
					resp, err := c.frame.Post(ctx, c.frame.URL("/chat"), payload, req.Stream)
					if err != nil {
						return err
					}
					return c.frame.Read(ctx, resp, &decoder{reply: client.Reply{Emit: emit, Request: req}})
				},
				Adapt: func(err error) (dialect, bool) {
					words, ok := client.Complaint(err)
					return dialect{noFormat: true}, ok && payload.Format != nil && normalize.RefusesFormat(words)
				},
			}, nil
		})
	})
}

// Document implements [client.Decoder].
func (d *decoder) Document(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return d.whole(data)
}

// Event implements [client.Decoder]. Events of unknown types are skipped; one without
// a type reports a failure.
func (d *decoder) Event(_ string, data []byte) (over bool, err error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var e streamEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, wire.BadReply("an event that is not of the expected form", data)
	}
	m := e.Delta.Message
	switch e.Type {
	case "", "error":
		return false, wire.MissingError("event type", data)
	case "content-start", "content-delta":
		return false, d.content(m.Content.one())
	case "tool-plan-delta":
		if d.reply.HasText() && !d.plan { // a text says what the plan says
			return false, nil
		}
		d.plan = true
		return false, d.reply.Text(m.ToolPlan)
	case "tool-call-start", "tool-call-delta":
		d.calls.NextEvent()
		d.call(e.Index, m.ToolCalls.one())
	case "message-end":
		d.body = data
		return true, d.finish(e.Delta.FinishReason, e.Delta.Usage, e.Delta.Error)
	}
	return false, nil
}

// Complete implements [client.Decoder]: nothing before the end of the message says how
// the reply ends.
func (d *decoder) Complete() bool { return false }
