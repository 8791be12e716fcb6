package cohere

import (
	"bytes"
	"encoding/json"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

// wireReply is a reply in one piece.
type wireReply struct {
	Message      *wireMessage
	FinishReason string `json:"finish_reason"`
	Usage        *wireUsage
}

// streamEvent is one event of a streamed reply.
type streamEvent struct {
	Type  string
	Index int
	Delta struct {
		Message      wireMessage
		FinishReason string `json:"finish_reason"`
		Usage        *wireUsage
		Error        string
	}
}

type wireMessage struct {
	Content   some[wireContent]
	ToolPlan  string         `json:"tool_plan"`
	ToolCalls some[wireCall] `json:"tool_calls"`
}

type wireContent struct {
	Text     string
	Thinking string
}

type wireCall struct {
	ID       string
	Function struct {
		Name      string
		Arguments string
	}
}

type wireUsage struct {
	BilledUnits  tokenCounts `json:"billed_units"`
	Tokens       tokenCounts
	CachedTokens float64 `json:"cached_tokens"`
}

type tokenCounts struct {
	InputTokens  float64 `json:"input_tokens"`
	OutputTokens float64 `json:"output_tokens"`
}

// some is a list of T, or a T alone: replies in one piece have lists where the events
// of a stream have the thing itself, save for the empty ones at its start.
type some[T any] []T

// UnmarshalJSON implements [json.Unmarshaler].
func (s *some[T]) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]T)(s))
	}
	if string(data) == "null" {
		return nil
	}
	*s = make([]T, 1)
	return json.Unmarshal(data, &(*s)[0])
}

// one returns the first of s, an empty one if there is none.
func (s some[T]) one() T {
	if len(s) == 0 {
		var none T
		return none
	}
	return s[0]
}

// builder turns what the server sends into the chunks of a reply.
type builder struct {
	emit func(provider.Chunk) error
	req  provider.Request

	texted   bool            // there has been text
	block    int             // the block that the last text was of
	calls    []*partialCall  // in the order in which they began
	wrote    strings.Builder // all that counts as output, for the estimate
	finished bool            // the message has ended
	reason   string          // why
	usage    *wireUsage
	body     []byte // what says how the reply ended
}

type partialCall struct {
	index     int
	id, name  string
	arguments strings.Builder
}

// planIndex stands for the tool plan among the blocks of text.
const planIndex = -1

// whole takes a reply in one piece.
func (b *builder) whole(data []byte) error {
	var r wireReply
	if err := json.Unmarshal(data, &r); err != nil || r.Message == nil {
		return wire.Lacking("message", data)
	}
	for i, c := range r.Message.Content {
		if err := b.content(i, c); err != nil {
			return err
		}
	}
	if !b.texted { // a text says what the plan says
		if err := b.text(planIndex, r.Message.ToolPlan); err != nil {
			return err
		}
	}
	for i, c := range r.Message.ToolCalls {
		b.startCall(i, c)
	}
	b.body = data
	return b.end(r.FinishReason, r.Usage, "")
}

// content takes a piece of a block of thinking or text.
func (b *builder) content(index int, c wireContent) error {
	if c.Thinking != "" {
		b.wrote.WriteString(c.Thinking)
		if err := b.emit(provider.Chunk{Kind: provider.Reasoning, Text: c.Thinking}); err != nil {
			return err
		}
	}
	return b.text(index, c.Text)
}

func (b *builder) text(block int, s string) error {
	if s == "" {
		return nil
	}
	b.texted, b.block = true, block
	b.wrote.WriteString(s)
	return b.emit(provider.Chunk{Kind: provider.Text, Text: s})
}

func (b *builder) startCall(index int, c wireCall) {
	p := &partialCall{index: index, id: c.ID, name: c.Function.Name}
	p.arguments.WriteString(c.Function.Arguments)
	b.calls = append(b.calls, p)
}

// continueCall adds to the last call with the index.
func (b *builder) continueCall(index int, arguments string) {
	for i := len(b.calls) - 1; i >= 0; i-- {
		if b.calls[i].index == index {
			b.calls[i].arguments.WriteString(arguments)
			return
		}
	}
}

// end takes what the end of the message says. Reasons that say that the server broke
// off are errors.
func (b *builder) end(reason string, usage *wireUsage, failure string) error {
	b.reason, b.usage = reason, usage
	switch {
	case failure != "":
		return wire.Complaint(failure, "", "")
	case reason == "ERROR", reason == "TIMEOUT":
		return &provider.Error{Kind: provider.Transient, Msg: "the server broke the reply off: " + strings.ToLower(reason)}
	}
	return nil
}

// finish emits the tool calls and the end of a complete reply.
func (b *builder) finish() error {
	calls := normalize.Calls(b.madeCalls(), b.req.Messages)
	for _, c := range calls {
		b.wrote.WriteString(c.Name + c.Arguments)
		if err := b.emit(provider.Chunk{Kind: provider.ToolCall, ToolCall: c}); err != nil {
			return err
		}
	}
	stop, body := stopReason(b.reason, len(calls) > 0), ""
	if len(calls) == 0 && (!b.texted || stop == chat.StopToolCalls) {
		body = wire.Excerpt(b.body)
	}
	return b.emit(provider.Chunk{Kind: provider.End, Stop: stop, Usage: b.tokens(), Body: body})
}

func (b *builder) tokens() chat.Usage {
	usage, ok := b.usage.usage()
	if !ok {
		return normalize.EstimatedUsage(b.req, chat.EstimateTokens(b.wrote.String()))
	}
	return usage
}

// usage returns u in our terms, and whether it says anything.
func (u *wireUsage) usage() (chat.Usage, bool) {
	if u == nil {
		return chat.Usage{}, false
	}
	c := u.BilledUnits
	if c == (tokenCounts{}) {
		c = u.Tokens
	}
	in, out := tokens(c.InputTokens), tokens(c.OutputTokens)
	return chat.Usage{InputTokens: in, CachedInputTokens: min(tokens(u.CachedTokens), in), OutputTokens: out}, in > 0 || out > 0
}

// tokens returns n, which Cohere writes as a number with a fraction, as a count.
func tokens(n float64) int { return int(max(0, min(n, 1<<40))) }

func stopReason(reason string, calls bool) chat.StopReason {
	if reason == "MAX_TOKENS" {
		return chat.StopLength
	}
	if calls {
		return chat.StopToolCalls
	}
	switch reason {
	case "COMPLETE", "STOP_SEQUENCE", "":
		return chat.StopEnd
	case "TOOL_CALL":
		return chat.StopToolCalls // although there is none: the caller has to know
	case "ERROR_TOXIC":
		return chat.StopFiltered
	}
	return chat.StopOther
}

// madeCalls returns the calls as the server tells them.
func (b *builder) madeCalls() []chat.ToolCall {
	calls := make([]chat.ToolCall, len(b.calls))
	for i, p := range b.calls {
		calls[i] = chat.ToolCall{ID: p.id, Name: p.name, Arguments: p.arguments.String()}
	}
	return calls
}
