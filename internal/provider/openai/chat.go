package openai

import (
	"context"
	"errors"
	"iter"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		m := wire.Lookup(c.model, req.Model)
		// The context keeps the secrets of the call out of its errors.
		patch := m.Patch
		if c.responses {
			patch = inResponses(patch)
		}
		ctx := wire.WithCall(ctx, wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: patch})
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

// errStopped says that the consumer of a reply wants no more of it.
var errStopped = errors.New("the consumer stopped")

// chat sends req, adapted to what the server takes, and emits its reply.
func (c *Client) chat(ctx context.Context, req provider.Request, m wire.Model, emit func(provider.Chunk) error) error {
	d := c.dialect(req.Model)
	for {
		payload, target := c.chatPayload(req, m, d)
		resp, err := c.post(ctx, target, payload, req.Stream)
		if err == nil {
			defer resp.Body.Close()
			r := c.newDecoder(builder{emit: emit, req: req})
			if err = readReply(resp, r); err != nil && err != errStopped {
				err = wire.Failure(ctx, "reading the reply of "+c.name, err)
			}
			c.learn(req.Model, d, reasoningField(r))
			return err
		}
		rejection, ok := errors.AsType[*wire.Rejection](err)
		if !ok {
			return err
		}
		if d, ok = d.adapt(rejection, payload); !ok { // each adaptation can be made once, so this ends
			return err
		}
	}
}

// payload is the body of a request for a reply.
type payload interface {
	// adapt returns the dialect to try next, if the words of a rejection, in lower
	// case, name something that can be said in another way than in d.
	adapt(words string, d dialect) (dialect, bool)
}

// chatPayload puts req into the format of c and the words of d, and returns the URL
// for it.
func (c *Client) chatPayload(req provider.Request, m wire.Model, d dialect) (payload, string) {
	if c.responses {
		return newResponseRequest(req, m, d), c.base + "/responses"
	}
	return newChatRequest(req, m, d), c.endpoint(wire.ChatCompletions, m.RealName)
}

func (c *Client) newDecoder(b builder) decoder {
	if c.responses {
		return &responseReply{builder: b}
	}
	return &chatReply{builder: b}
}

// reasoningField returns the name under which reasoning came, empty if none did.
func reasoningField(d decoder) string {
	if r, ok := d.(*chatReply); ok {
		return r.reasoningField
	}
	return ""
}
