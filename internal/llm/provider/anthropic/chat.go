package anthropic

import (
	"context"
	"iter"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return c.frame.Tools.Chat(ctx, req, normalize.ClaudeTools(), c.chat)
}

func (c *Client) chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	m := c.frame.Model(req.Model)
	if req.Effort != "" {
		m.Patch = m.Patch.Without("thinking").Without("output_config", "effort")
	}
	call := wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch}
	return c.frame.Chat(ctx, call, func(ctx context.Context, emit client.Emit) error {
		return c.dialects.Ask(m.RealName, req, emit, func(req provider.Request, d dialect) (client.Attempt[dialect], error) {
			own := d
			own.noFormat = d.noFormat || c.vertex // whose documentation knows of none
			x, err := newExchange(req, m, own)
			if err != nil {
				return client.Attempt[dialect]{}, err
			}
			return client.Attempt[dialect]{
				Notes: normalize.Lacks{Seed: true, Penalties: true, Choice: x.thinks()}.Notes(x.notes(req), req),
				Send:  func(emit client.Emit) error { return c.send(ctx, req, x, emit) },
				Adapt: func(err error) (dialect, bool) {
					words, ok := client.Complaint(err)
					if !ok {
						return d, false
					}
					return d.adapt(words, x)
				},
			}, nil
		})
	})
}

// send sends x and emits its reply.
func (c *Client) send(ctx context.Context, req provider.Request, x *exchange, emit client.Emit) error {
	version := apiVersion
	if c.vertex {
		x.params.Model, x.params.Version, version = "", vertexVersion, ""
	}
	x.params.Stream = x.stream
	resp, err := c.frame.Post(ctx, c.endpoint(x.model, x.stream), x.params, x.stream, "Anthropic-Version", version)
	if err != nil {
		return err
	}
	return c.frame.Read(ctx, resp, &decoder{Reply: client.Reply{Emit: emit, Request: req, Limit: int(x.params.MaxTokens)}})
}
