package gemini

import (
	"context"
	"iter"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return c.frame.Tools.Chat(ctx, req, normalize.GeminiTools(), c.chat)
}

func (c *Client) chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	m := c.frame.Model(req.Model)
	effort := req.Effort
	if effort != "" {
		for _, name := range []string{"thinkingLevel", "thinkingBudget", "includeThoughts"} {
			m.Patch = m.Patch.Without("generationConfig", "thinkingConfig", name)
		}
		if m.Efforts != nil {
			effort = effort.Nearest(m.Efforts)
		}
	}
	call := wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch}
	return c.frame.Chat(ctx, call, func(ctx context.Context, emit client.Emit) error {
		return c.dialects.Ask(m.RealName, req, emit, func(req provider.Request, d dialect) (client.Attempt[dialect], error) {
			a := attempt{
				thinking: thinkingFor(m.RealName, effort, d.limit), signatures: !d.noSignatures,
				format:    req.Format != nil && takesFormat(req, m.RealName) && !d.noFormat,
				penalties: !d.noPenalties,
			}
			payload, err := newRequest(req, m.RealName, a)
			return client.Attempt[dialect]{
				Notes: normalize.Lacks{Penalties: d.noPenalties}.Notes(a.thinking.notes(req.Effort), req),
				Send: func(emit client.Emit) error {
					method := generateContent
					if req.Stream {
						method = streamGenerateContent
					}
					target, err := c.target(m.RealName, method)
					if err != nil {
						return err
					}
					resp, err := c.frame.Post(ctx, target, payload, req.Stream)
					if err != nil {
						return err
					}
					return c.frame.Read(ctx, resp, &decoder{Reply: client.Reply{Emit: emit, Request: req}})
				},
				Adapt: func(err error) (dialect, bool) { return d.adapt(err, a) },
			}, err
		})
	})
}

// dialect is what a model does not take of that which others do. The zero value takes
// everything.
type dialect struct {
	limit        limit
	noFormat     bool
	noSignatures bool
	noPenalties  bool
}

// withoutConversation returns d without what concerns one conversation: its signatures.
func (d dialect) withoutConversation() dialect {
	d.noSignatures = false
	return d
}

// adapt returns the dialect to try after err, if that is a rejection of a that names
// something that can be left out.
func (d dialect) adapt(err error, a attempt) (dialect, bool) {
	words, ok := client.Complaint(err)
	switch {
	case !ok:
	case a.format && normalize.RefusesFormat(words):
		d.noFormat = true
	case isSignatureComplaint(words) && a.signatures:
		d.noSignatures = true
	case a.penalties && strings.Contains(words, "penalty"): // "Penalty is not enabled for this model"
		d.noPenalties = true
	case isThinkingComplaint(words):
		d.limit, ok = lower(a.thinking)
	default:
		ok = false
	}
	return d, ok
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
