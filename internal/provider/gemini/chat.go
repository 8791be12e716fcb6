package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/normalize"
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
	if req.Effort != "" {
		for _, name := range []string{"thinkingLevel", "thinkingBudget", "includeThoughts"} {
			m.Patch = m.Patch.Without("generationConfig", "thinkingConfig", name)
		}
	}
	ctx = wire.WithCall(ctx, wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch})
	l := c.limit(m.RealName)
	effort := req.Effort
	if effort != "" && m.Efforts != nil {
		effort = effort.Nearest(m.Efforts)
	}
	a := attempt{thinking: thinkingFor(m.RealName, effort, l), signatures: true, format: req.Format != nil && takesFormat(req, m.RealName) && !c.refusals.Has(m.RealName)}
	noted := false
	for {
		b := &builder{req: req, emit: func(chunk provider.Chunk) error {
			if text := a.thinking.note(req.Effort); text != "" && !noted {
				noted = true
				if err := emit(provider.Chunk{Kind: provider.Note, Text: text}); err != nil {
					return err
				}
			}
			return emit(chunk)
		}}
		err := c.attempt(ctx, req, m.RealName, a, b)
		if err == nil && l != c.limit(m.RealName) {
			c.setLimit(m.RealName, l)
		}
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Kind != provider.Invalid || b.begun() {
			return err
		}
		switch complaint := strings.ToLower(e.Error()); {
		case a.format && normalize.RefusesFormat(complaint):
			a.format = false
			c.refusals.Add(m.RealName)
		case isSignatureComplaint(complaint) && a.signatures:
			a.signatures = false
		case isThinkingComplaint(complaint):
			next, ok := lower(a.thinking)
			if !ok {
				return err
			}
			l, a.thinking = next, thinkingFor(m.RealName, effort, next)
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
func (c *Client) attempt(ctx context.Context, req provider.Request, model string, a attempt, b *builder) error {
	payload, err := newRequest(req, model, a)
	if err != nil {
		return err
	}
	if !req.Stream {
		var doc json.RawMessage
		if err := c.postJSON(ctx, doingChat, model, generateContent, payload, &doc); err != nil {
			return err
		}
		var reply generateReply
		if err := decode(doc, &reply, "the reply"); err != nil {
			return wire.Failure(ctx, doingChat, err)
		}
		b.body = doc
		if err := b.document(&reply); err != nil {
			return err
		}
		return b.end(true)
	}
	resp, err := c.post(ctx, doingChat, model, streamGenerateContent, payload)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for doc, err := range documents(resp.Body) {
		var piece generateReply
		if err == nil {
			err = decode(doc, &piece, "a piece of the reply")
		}
		if err != nil && b.finish != "" {
			break // nothing of the reply is lost
		}
		if err != nil {
			return wire.Failure(ctx, doingChat, err)
		}
		b.body = doc
		if err := b.document(&piece); err != nil {
			return err
		}
		if b.finish != "" {
			wire.Hurry(resp.Body, finishGrace)
		}
	}
	return b.end(false)
}
