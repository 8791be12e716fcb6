package anthropic

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// errStopped says that the consumer of a reply wants no more of it.
var errStopped = errors.New("the consumer stopped")

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		m := wire.Lookup(c.model, req.Model)
		if req.Effort != "" {
			m.Patch = m.Patch.Without("thinking").Without("output_config", "effort")
		}
		ctx := wire.WithCall(ctx, wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch})
		err := c.chat(ctx, req, m, func(chunk provider.Chunk) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !yield(chunk, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(provider.Chunk{}, wire.Failure(ctx, "asking "+c.name, err))
		}
	}
}

// chat sends req, adapted to what the model takes, and emits its reply.
func (c *Client) chat(ctx context.Context, req provider.Request, m wire.Model, emit func(provider.Chunk) error) error {
	known := c.dialect(m.RealName)
	for d := known; ; {
		x, err := newExchange(req, m, d)
		if err != nil {
			return err
		}
		resp, err := c.send(ctx, x)
		if err == nil {
			if d != known {
				c.learn(m.RealName, d)
			}
			defer resp.Body.Close()
			if text := x.note(req); text != "" {
				if err := emit(provider.Chunk{Kind: provider.Note, Text: text}); err != nil {
					return err
				}
			}
			return readReply(resp, &builder{emit: emit, req: req, limit: int(x.params.MaxTokens)})
		}
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Kind != provider.Invalid {
			return err
		}
		if d, ok = d.adapt(e.Msg, x); !ok { // each adaptation can be made once, so this ends
			return err
		}
	}
}

// send sends x and returns the response, whose body is the caller's to close.
func (c *Client) send(ctx context.Context, x *exchange) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	credentials, err := c.credentials(ctx)
	if err != nil {
		return nil, err
	}
	options := []option.RequestOption{credentials}
	extra := make(map[string]any)
	if c.vertex {
		x.params.Model = ""
		extra["anthropic_version"] = vertexVersion
	}
	if x.stream {
		extra["stream"] = true
		options = append(options,
			option.WithHeader("Accept", "text/event-stream"),
			option.WithHeader("Cache-Control", "no-store"),
			option.WithHeader("Accept-Encoding", "identity")) // compression makes proxies hold chunks back
	}
	x.params.SetExtraFields(extra)
	var resp *http.Response
	err = c.sdk.Post(ctx, c.endpoint(x.model, x.stream), x.params, &resp, options...)
	return resp, err
}
