package gemini

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// doingChat says in errors what failed.
const doingChat = "calling the chat-completions api"

// finishGrace is how long the server may be silent after the finish reason: the end of
// the stream should follow at once and is not worth a longer wait.
const finishGrace = 10 * time.Second

// errStopped says that the consumer of a reply wants no more of it.
var errStopped = errors.New("the consumer stopped")

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		err := c.chat(ctx, req, func(chunk provider.Chunk) error {
			if ctx.Err() != nil {
				return wire.Failure(ctx, doingChat, ctx.Err())
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

// chat sends req, adapted to what the model takes, and emits its reply.
func (c *Client) chat(ctx context.Context, req provider.Request, emit func(provider.Chunk) error) error {
	if err := ctx.Err(); err != nil {
		return wire.Failure(ctx, doingChat, err)
	}
	m := wire.Lookup(c.model, req.Model)
	l := c.limit(m.RealName)
	a := attempt{thinking: thinkingConfig(m.RealName, req.Effort, l), signatures: true}
	for {
		b := &builder{emit: emit, req: req}
		err := c.attempt(ctx, req, m, a, b)
		if err == nil && l != c.limit(m.RealName) {
			c.setLimit(m.RealName, l)
		}
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Kind != provider.Invalid || b.begun() {
			return err
		}
		switch complaint := strings.ToLower(e.Error()); {
		case isSignatureComplaint(complaint) && a.signatures:
			a.signatures = false
		case isThinkingComplaint(complaint):
			next, ok := lower(a.thinking)
			if !ok {
				return err
			}
			l, a.thinking = next, thinkingConfig(m.RealName, req.Effort, next)
		default:
			return err
		}
	}
}

// isSignatureComplaint reports whether a rejection is about thought signatures: one of
// another model, or of another provider.
func isSignatureComplaint(msg string) bool {
	return strings.Contains(msg, "thought signature") || strings.Contains(msg, "thought_signature") || strings.Contains(msg, "thoughtsignature")
}

// isThinkingComplaint reports whether a rejection is about the thinking configuration,
// as in "Thinking level MINIMAL is not supported for this model", "Budget 0 is invalid.
// This model only works in thinking mode." and `Unknown name "thinkingConfig"`.
func isThinkingComplaint(msg string) bool {
	return strings.Contains(msg, "thinking")
}

// attempt sends req in one form.
func (c *Client) attempt(ctx context.Context, req provider.Request, m wire.Model, a attempt, b *builder) error {
	conversation, err := contents(req, m.RealName, a)
	if err != nil {
		return err
	}
	config, err := config(req, a)
	if err != nil {
		return err
	}
	ctx, cl, err := c.call(ctx, wire.ChatCompletions, req.Model, m)
	if err != nil {
		return err
	}
	if !req.Stream {
		r, err := c.models.GenerateContent(ctx, m.RealName, conversation, config)
		if err := cl.failure(ctx, doingChat, err); err != nil {
			return err
		}
		if err := b.document(r); err != nil {
			return err
		}
		return b.end(true)
	}
	var failed error
	for r, err := range c.models.GenerateContentStream(ctx, m.RealName, conversation, config) {
		if err != nil {
			failed = err
			break
		}
		if err := b.document(r); err != nil {
			return err
		}
		if b.finish != "" {
			wire.Hurry(cl.body, finishGrace)
		}
	}
	// What fails after the finish reason has taken nothing from the reply.
	if err := cl.failure(ctx, doingChat, failed); err != nil && b.finish == "" {
		return err
	}
	return b.end(false)
}
