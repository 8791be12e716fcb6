package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/toolcall"
	"loki/internal/llm/provider/wire"
)

// decoder turns the documents of a reply into its chunks.
type decoder struct {
	client.Reply

	calls   toolcall.Assembler
	usage   chat.Usage // the last one that says anything
	finish  string
	blocked *promptFeedback
	answers bool   // there has been a candidate
	whole   bool   // it came as one document
	body    []byte // the last document
}

// hasBegun reports whether the model has said anything.
func (d *decoder) hasBegun() bool { return d.HasBegun() || d.calls.Any() }

// Complete implements [client.Decoder].
func (d *decoder) Complete() bool { return d.finish != "" }

// Document implements [client.Decoder]. It takes JSON values in a row, with or without an
// array around them, which is what the API sends without alt=sse.
func (d *decoder) Document(body io.Reader) error {
	d.whole = !d.Request.Stream
	for doc, err := range documents(body) {
		if err == nil {
			err = d.take(doc, "the reply")
		}
		if err != nil && d.Complete() {
			return nil // nothing of the reply is lost
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Event implements [client.Decoder].
func (d *decoder) Event(_ string, data []byte) (over bool, err error) {
	if string(data) == "[DONE]" { // some gateways end like this
		return d.Complete(), nil
	}
	if err = d.take(data, "a piece of the reply"); err != nil && d.Complete() {
		return true, nil // nothing of the reply is lost
	}
	return false, err
}

// take takes a document, called what in errors.
func (d *decoder) take(doc []byte, what string) error {
	var r generateReply
	if err := decode(doc, &r, what); err != nil {
		return err
	}
	d.body = doc
	d.calls.NextEvent()
	if u := usage(r.UsageMetadata); u != (chat.Usage{}) {
		d.usage = u
	}
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" && f.BlockReason != "BLOCKED_REASON_UNSPECIFIED" && f.BlockReason != "BLOCK_REASON_UNSPECIFIED" {
		d.blocked = f
	}
	for _, c := range r.Candidates {
		if c == nil || c.Index != 0 {
			continue
		}
		d.answers = true
		if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			d.finish = c.FinishReason
		}
		if err := d.parts(c.Content.Parts); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) parts(parts []part) error {
	for _, p := range parts {
		signature := cmp.Or(p.GatewaySignature, p.ThoughtSignature)
		var err error
		switch {
		case p.FunctionCall != nil:
			d.call(p.FunctionCall, signature)
		case p.Thought:
			err = d.Reasoning(p.Text, signature)
		default:
			if err = d.Text(p.Text); err == nil {
				err = d.Reasoning("", signature)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call keeps a call for the end of the reply: those of a reply that breaks off must
// not be run.
func (d *decoder) call(f *functionCall, signature string) {
	d.calls.Add(toolcall.Piece{ID: f.ID, Name: f.Name, Arguments: arguments(f.Args), Signature: signature, Whole: true})
}

// arguments returns the arguments of a call as they came, without white space: replies
// in one piece are indented.
func arguments(args json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, args); err != nil || compact.String() == "null" {
		return "{}" // a call without
	}
	return compact.String()
}

// End implements [client.Decoder]. A reply in pieces without a finish reason has been cut
// off.
func (d *decoder) End(bool) error {
	switch {
	case d.blocked != nil && !d.hasBegun():
		return refusal("the prompt was blocked", d.blocked.BlockReason, d.blocked.BlockReasonMessage)
	case !d.answers:
		return wire.BadReply("the reply has no candidate", nil)
	case d.finish == "" && !d.whole:
		return io.ErrUnexpectedEOF
	}
	stop, err := d.stop()
	if err != nil {
		return err
	}
	return d.Reply.End(d.Calls(&d.calls), stop, d.usage, d.body)
}

// stop translates the finish reason.
func (d *decoder) stop() (chat.StopReason, error) {
	switch d.finish {
	case "MAX_TOKENS":
		return chat.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		if !d.hasBegun() {
			return "", refusal("the reply was blocked", d.finish, "")
		}
		return chat.StopFiltered, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		// A slip of the model that it need not make again.
		return "", &provider.Error{Kind: provider.Transient, Msg: fmt.Sprintf("the model made a call that cannot be read (%s)", d.finish)}
	case "MISSING_THOUGHT_SIGNATURE":
		return "", &provider.Error{Kind: provider.Invalid, Msg: "the conversation has a call without the thought_signature that the model insists on"}
	}
	if d.calls.Any() {
		return chat.StopToolCalls, nil
	}
	if d.finish == "STOP" || d.finish == "" {
		return chat.StopEnd, nil
	}
	return chat.StopOther, nil
}

func refusal(what, reason, message string) error {
	what += " (" + reason + ")"
	if message != "" {
		what += ": " + message
	}
	return &provider.Error{Kind: provider.Refused, Msg: what}
}

// usage returns what the API reports about tokens in our terms.
func usage(u usageMetadata) chat.Usage {
	count := func(n wire.Int) int { return max(int(n), 0) }
	in := count(u.PromptTokenCount) + count(u.ToolUsePromptTokenCount)
	thoughts := count(u.ThoughtsTokenCount)
	return chat.Usage{
		InputTokens: in, CachedInputTokens: min(count(u.CachedContentTokenCount), in),
		OutputTokens: count(u.CandidatesTokenCount) + thoughts, ReasoningTokens: thoughts,
	}
}

// decode reads a document, called what in errors, into reply.
func decode(doc []byte, reply any, what string) error {
	if err := wire.ReplyError(doc); err != nil {
		return err
	}
	if json.Unmarshal(doc, reply) != nil {
		return wire.BadReply(what+" is not of the expected form", doc)
	}
	return nil
}
