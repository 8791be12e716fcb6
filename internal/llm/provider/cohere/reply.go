package cohere

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/toolcall"
	"loki/internal/llm/provider/wire"
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
	ID       wire.String
	Function struct {
		Name      wire.String
		Arguments wire.Arguments
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

// decoder turns what the server sends into the chunks of a reply.
type decoder struct {
	reply client.Reply

	plan   bool // the text so far is the tool plan
	calls  toolcall.Assembler
	reason string // why the message has ended
	usage  *wireUsage
	body   []byte // what says how the reply ended
}

// whole takes a reply in one piece.
func (d *decoder) whole(data []byte) error {
	var r wireReply
	if err := json.Unmarshal(data, &r); err != nil || r.Message == nil {
		return wire.MissingError("message", data)
	}
	for _, c := range r.Message.Content {
		if err := d.content(c); err != nil {
			return err
		}
	}
	if !d.reply.HasText() { // a text says what the plan says
		if err := d.reply.Text(r.Message.ToolPlan); err != nil {
			return err
		}
	}
	for i, c := range r.Message.ToolCalls {
		d.call(i, c)
	}
	d.body = data
	return d.finish(r.FinishReason, r.Usage, "")
}

// content takes a piece of a block of thinking or text.
func (d *decoder) content(c wireContent) error {
	if err := d.reply.Reasoning(c.Thinking, ""); err != nil {
		return err
	}
	d.plan = d.plan && c.Text == ""
	return d.reply.Text(c.Text)
}

// call takes a piece of a call.
func (d *decoder) call(index int, c wireCall) {
	d.calls.Add(toolcall.Piece{ID: string(c.ID), Name: string(c.Function.Name), Arguments: string(c.Function.Arguments), Index: &index})
}

// finish takes what the end of the message says. Reasons that say that the server broke
// off are errors.
func (d *decoder) finish(reason string, usage *wireUsage, failure string) error {
	d.reason, d.usage = reason, usage
	switch {
	case failure != "":
		return wire.Complaint(failure, "", "")
	case reason == "ERROR", reason == "TIMEOUT":
		return &provider.Error{Kind: provider.Transient, Msg: "the server broke the reply off: " + strings.ToLower(reason)}
	}
	return nil
}

// End implements [client.Decoder].
func (d *decoder) End(cut bool) error {
	if cut {
		return io.ErrUnexpectedEOF
	}
	calls := d.reply.Calls(&d.calls)
	return d.reply.End(calls, stopReason(d.reason, len(calls) > 0), d.usage.usage(), d.body)
}

// usage returns u in our terms.
func (u *wireUsage) usage() chat.Usage {
	if u == nil {
		return chat.Usage{}
	}
	c := u.BilledUnits
	if c == (tokenCounts{}) {
		c = u.Tokens
	}
	in, out := tokens(c.InputTokens), tokens(c.OutputTokens)
	return chat.Usage{InputTokens: in, CachedInputTokens: min(tokens(u.CachedTokens), in), OutputTokens: out}
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
