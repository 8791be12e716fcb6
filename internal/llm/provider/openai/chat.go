package openai

import (
	"cmp"
	"context"
	"iter"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return c.frame.Tools.Chat(ctx, req, normalize.OpenAITools(), c.chat)
}

func (c *Client) chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	m := c.frame.Model(req.Model)
	if req.Effort != "" {
		m.Patch = m.Patch.Without("reasoning_effort").Without("reasoning", "effort")
	}
	call := wire.Call{API: wire.ChatCompletions, Model: req.Model, Patch: m.Patch}
	return c.frame.Chat(ctx, call, func(ctx context.Context, emit client.Emit) error {
		return c.dialects.Ask(req.Model, req, emit, func(req provider.Request, d dialect) (client.Attempt[dialect], error) {
			a := c.newAttempt(req, m, d)
			call.Patch = a.patch
			ctx := wire.WithCall(ctx, call)
			bare := a.format == responsesFormat || d.noConstraints
			return client.Attempt[dialect]{
				Notes: normalize.Lacks{Seed: bare, Penalties: bare}.Notes(a.notes(req, d), req),
				Send:  func(emit client.Emit) error { return c.send(ctx, req, m, a, emit) },
				Adapt: func(err error) (dialect, bool) { return d.adapt(err, a) },
			}, nil
		})
	})
}

// send sends a and emits its reply.
func (c *Client) send(ctx context.Context, req provider.Request, m wire.Model, a attempt, emit client.Emit) error {
	resp, err := c.frame.Post(ctx, a.target, a.payload, req.Stream, grokConversation, c.grokConversation(req, m))
	if err != nil {
		return err
	}
	r := newDecoder(a.format, builder{Reply: client.Reply{Emit: emit, Request: req}})
	err = c.frame.Read(ctx, resp, r)
	if err != nil {
		err = cmp.Or(r.flush(), err)
	}
	c.learnField(req.Model, reasoningField(r))
	return err
}

// attempt is a request in one of the formats.
type attempt struct {
	format  format
	routed  bool // the format is the one that tools need, and not the client's
	target  string
	payload payload
	patch   wire.Patch
}

// payload is the body of a request for a reply.
type payload interface {
	// adapt returns the dialect to try next, if the words of a rejection, in lower
	// case, name something that can be said in another way than in d.
	adapt(words string, d dialect) (dialect, bool)

	// effort returns the effort that is asked for, empty for none.
	effort() provider.Effort
}

// format is one of the formats in which chats are held.
type format int

const (
	chatFormat format = iota
	responsesFormat
)

// newAttempt puts req into the words of d.
func (c *Client) newAttempt(req provider.Request, m wire.Model, d dialect) attempt {
	a := attempt{patch: m.Patch}
	a.format, a.routed = c.formatFor(req, m, d)
	if a.format == responsesFormat {
		r := newResponseRequest(req, m, d)
		r.CacheKey = c.cacheKey(req, m, d)
		if s, ok := c.form(req, m, d); ok {
			r.Text = &responseText{responseForm{formType, s}}
		}
		a.payload, a.target, a.patch = r, c.responsesURL(), inResponses(m.Patch)
		return a
	}
	r := newChatRequest(req, m, d)
	r.CacheKey = c.cacheKey(req, m, d)
	if s, ok := c.form(req, m, d); ok {
		r.Format = &chatForm{formType, s}
	}
	if d.tools == withoutReasoning && len(req.Tools) > 0 {
		r.ReasoningEffort = provider.NoEffort
		a.patch = a.patch.Without("reasoning_effort")
	}
	a.payload, a.target = r, c.endpoint(wire.ChatCompletions, m.RealName)
	return a
}

// formatFor returns the format for req, and whether it is the one that tools need.
func (c *Client) formatFor(req provider.Request, m wire.Model, d dialect) (f format, routed bool) {
	switch {
	case cmp.Or(m.API, c.api) == responsesAPI:
		return responsesFormat, false
	case cmp.Or(m.API, c.api) != "", len(req.Tools) == 0, d.tools == withoutReasoning:
		return chatFormat, false
	case d.tools != inResponsesFormat && m.ToolsAPI != responsesAPI:
		return chatFormat, false
	}
	effort := req.Effort
	if v, ok := m.Patch.Body.Get("reasoning_effort"); ok && effort == "" {
		text, _ := v.AsString()
		effort = provider.Effort(text)
	}
	if effort == provider.NoEffort {
		return chatFormat, false
	}
	return responsesFormat, true
}

// notes returns what of req the model gets in another way.
func (a attempt) notes(req provider.Request, d dialect) []string {
	sent := a.payload.effort()
	switch {
	case a.format == chatFormat && d.tools == withoutReasoning && len(req.Tools) > 0:
		if req.Effort == "" || req.Effort == provider.NoEffort {
			return nil
		}
		return []string{"the model does not reason as long as it has tools, because the server has no responses API"}
	case req.Effort != "" && sent != req.Effort:
		return []string{req.Effort.ReplacedNote(sent)}
	}
	return nil
}

func newDecoder(f format, b builder) decoder {
	if f == responsesFormat {
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
